//! Tests the requests to language models, and which parts of their responses reach the client, in each provider's
//! format.

use crate::common::provider::{
    AnswerPiece, FinishReason, PricedModel, ProviderReply, ProviderServer, ProviderUsage,
};
use crate::common::{AgentFixture, NO_CAPABILITIES};
use acp::thread::ToolCallStatus;
use acp::v1::{ContentBlock, ImageContent, ResourceLink, SessionUpdate, StopReason};
use acp_agent::store::MemoryStore;
use acp_agent::{
    CodingAgent, ModelConfig, ModelFactory, ModelMessage, OpaqueParts, ProviderModel, RoundRequest,
    Step, Steps, ThoughtLevel, ToolSpec, WireFormat,
};
use serde_json::{Value, json};

fn agent_with_model(model: ProviderModel) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Provider(Box::new(model))).unwrap()
}

async fn start_fixture(server: &ProviderServer) -> AgentFixture {
    AgentFixture::new(agent_with_model(server.model()), NO_CAPABILITIES).await
}

/// Returns the messages and thoughts shown to the client in the last turn.
fn message_and_thought(f: &AgentFixture) -> (String, String) {
    let (mut said, mut thought) = (String::new(), String::new());
    for update in f.seen.updates.lock().unwrap().iter() {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => said += chunk.content.as_text().unwrap(),
            SessionUpdate::AgentThoughtChunk(chunk) => thought += chunk.content.as_text().unwrap(),
            _ => {}
        }
    }
    (said, thought)
}

/// Returns the steps of a round.
async fn collect_steps(mut steps: Steps<'_>) -> Vec<Step> {
    let mut all = Vec::new();
    while let Some(step) = std::future::poll_fn(|cx| steps.as_mut().poll_next(cx)).await {
        all.push(step.unwrap());
    }
    all
}

#[tokio::test]
async fn text_thoughts_and_parallel_calls_arrive_and_results_are_sent_back() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(
            format,
            [
                ProviderReply::Says(vec![
                    AnswerPiece::Think("Hm… two files"),
                    AnswerPiece::Sign("signed"),
                    AnswerPiece::Redacted("hidden"),
                    AnswerPiece::Text("Ich schaue nach: ä, ö, 🦀."),
                    AnswerPiece::Call("one", "read", json!({"path": "a.txt"})),
                    AnswerPiece::Call("two", "read", json!({"path": "b.txt"})),
                ]),
                ProviderReply::Says(vec![AnswerPiece::Text("Both are read.")]),
                ProviderReply::Says(vec![AnswerPiece::Text("Yes.")]),
            ],
        )
        .await;
        let f = start_fixture(&server).await;
        f.write_file("a.txt", "alpha\n");
        f.write_file("b.txt", "beta\n");
        assert_eq!(
            f.prompt_for_text("Read both").await,
            "Both are read.",
            "{format}"
        );
        let (said, thought) = message_and_thought(&f);
        assert_eq!(thought, "Hm… two files", "{format}");
        assert_eq!(said, "Ich schaue nach: ä, ö, 🦀.Both are read.", "{format}");
        let statuses: Vec<_> = f
            .tool_calls()
            .iter()
            .map(|call| call.status.clone())
            .collect();
        assert_eq!(
            statuses,
            [ToolCallStatus::Completed, ToolCallStatus::Completed]
        );
        assert_eq!(f.prompt_for_text("Sure?").await, "Yes.");
        let heard = server.requests();
        let first = heard[0].body.to_string();
        assert!(
            first.contains("Read both") && first.contains("\"read\""),
            "{first}"
        );
        assert_results_sent_back(format, &heard[1].body);
    }
}

/// Checks the request that follows a round with two calls.
fn assert_results_sent_back(format: WireFormat, body: &Value) {
    match format {
        WireFormat::AnthropicMessages => {
            let said = &body["messages"][1]["content"];
            assert_eq!(
                said[0],
                json!({"type": "thinking", "thinking": "Hm… two files", "signature": "signed"})
            );
            assert_eq!(
                said[1],
                json!({"type": "redacted_thinking", "data": "hidden"})
            );
            assert_eq!(said[2]["text"], "Ich schaue nach: ä, ö, 🦀.");
            assert_eq!(
                said[3],
                json!({"type": "tool_use", "id": "one", "name": "read", "input": {"path": "a.txt"}})
            );
            let results = &body["messages"][2];
            assert_eq!(results["role"], "user");
            assert_eq!(results["content"][0]["tool_use_id"], "one");
            assert_eq!(results["content"][1]["tool_use_id"], "two");
            assert!(
                results["content"][1]["content"]
                    .as_str()
                    .unwrap()
                    .contains("beta")
            );
            // The provider caches the conversation up to this point.
            assert_eq!(results["content"][1]["cache_control"]["type"], "ephemeral");
        }
        WireFormat::OpenAiChat => {
            // In this format, the instructions are the first message.
            let said = &body["messages"][2];
            assert_eq!(said["content"], "Ich schaue nach: ä, ö, 🦀.");
            assert_eq!(said["reasoning_content"], "Hm… two files");
            assert_eq!(said["tool_calls"][1]["id"], "two");
            assert_eq!(
                said["tool_calls"][1]["function"]["arguments"],
                r#"{"path":"b.txt"}"#
            );
            assert_eq!(body["messages"][3]["role"], "tool");
            assert_eq!(body["messages"][3]["tool_call_id"], "one");
            assert!(
                body["messages"][4]["content"]
                    .as_str()
                    .unwrap()
                    .contains("beta")
            );
        }
        WireFormat::OpenAiResponses => {
            let said = &body["input"];
            assert_eq!(
                said[1],
                json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "signed",
                    "summary": [{"type": "summary_text", "text": "Hm… two files"}]})
            );
            assert_eq!(said[2]["content"], "Ich schaue nach: ä, ö, 🦀.");
            assert_eq!(
                said[4],
                json!({"type": "function_call", "call_id": "two", "name": "read",
                    "arguments": r#"{"path":"b.txt"}"#})
            );
            assert_eq!(said[5]["type"], "function_call_output");
            assert_eq!(said[5]["call_id"], "one");
            assert!(said[6]["output"].as_str().unwrap().contains("beta"));
            assert_eq!(body["store"], false);
        }
        _ => {
            let said = &body["contents"][1]["parts"];
            assert_eq!(said[0]["text"], "Ich schaue nach: ä, ö, 🦀.");
            assert_eq!(said[1]["functionCall"]["args"], json!({"path": "a.txt"}));
            assert_eq!(said[1]["thoughtSignature"], "signed");
            assert_eq!(said[2]["thoughtSignature"], Value::Null);
            let results = &body["contents"][2]["parts"];
            assert_eq!(results[1]["functionResponse"]["name"], "read");
            assert!(results[1]["functionResponse"].to_string().contains("beta"));
        }
    }
}

#[tokio::test]
async fn usage_is_reported_and_cost_accumulates_over_the_session() {
    for format in WireFormat::ALL {
        let used = ProviderUsage {
            input: 10_000,
            cached: 4000,
            output: 1000,
            thought: 300,
        };
        let answer = ProviderReply::Says(vec![AnswerPiece::Text("Yes."), AnswerPiece::Usage(used)]);
        let server = ProviderServer::new(format, [answer.clone(), answer]).await;
        let mut model = server.model();
        model.context_window = Some(50_000);
        let model = PricedModel::new(model);
        let agent = CodingAgent::with_model(model).keep_sessions(MemoryStore::new());
        let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
        // 6000 uncached input tokens, 4000 from the cache, and 1000 output tokens.
        let cost = 0.018 + 0.0012 + 0.015;
        for sum in [cost, 2.0 * cost] {
            f.prompt_for_text("Well?").await;
            let updates = f.seen.updates.lock().unwrap();
            let usage = updates.iter().find_map(|update| match update {
                SessionUpdate::UsageUpdate(usage) => Some(usage.clone()),
                _ => None,
            });
            let usage = usage.expect("it is reported");
            assert_eq!((usage.used, usage.size), (11_000, 50_000), "{format}");
            let spent = usage.cost.clone().unwrap();
            assert_eq!(spent.currency, "USD");
            assert!((spent.amount - sum).abs() < 1e-9, "{format}: {spent:?}");
        }
    }
}

#[tokio::test]
async fn stop_reason_of_the_model_is_reported() {
    for format in WireFormat::ALL {
        let stop = |why| ProviderReply::Says(vec![AnswerPiece::Text("So"), AnswerPiece::Stop(why)]);
        let server = ProviderServer::new(
            format,
            [
                stop(FinishReason::Length),
                // The calls may be incomplete, so they are not executed.
                ProviderReply::Says(vec![
                    AnswerPiece::Call("x", "write", json!({"path": "no.txt", "text": "no"})),
                    AnswerPiece::Stop(FinishReason::Length),
                ]),
                stop(FinishReason::Refusal),
                stop(FinishReason::End),
            ],
        )
        .await;
        let f = start_fixture(&server).await;
        assert_eq!(
            f.prompt("1").await.unwrap(),
            StopReason::MaxTokens,
            "{format}"
        );
        assert_eq!(
            f.prompt("2").await.unwrap(),
            StopReason::MaxTokens,
            "{format}"
        );
        assert!(!f.file_exists("no.txt"));
        assert_eq!(
            f.prompt("3").await.unwrap(),
            StopReason::Refusal,
            "{format}"
        );
        assert_eq!(
            f.prompt("4").await.unwrap(),
            StopReason::EndTurn,
            "{format}"
        );
    }
}

#[tokio::test]
async fn refusal_field_is_shown_as_text() {
    let event = json!({"choices": [{"index": 0, "delta": {"refusal": "I will not."}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = format!("data: {event}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let server = ProviderServer::new(
        WireFormat::OpenAiChat,
        [ProviderReply::Event(vec![], events)],
    )
    .await;
    let f = start_fixture(&server).await;
    assert_eq!(f.prompt("Do it").await.unwrap(), StopReason::Refusal);
    assert_eq!(message_and_thought(&f).0, "I will not.");
    let event =
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "I will not."});
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    let events = format!("data: {event}\n\ndata: {end}\n\n");
    let server = ProviderServer::new(
        WireFormat::OpenAiResponses,
        [ProviderReply::Event(vec![], events)],
    )
    .await;
    let f = start_fixture(&server).await;
    assert_eq!(f.prompt("Do it").await.unwrap(), StopReason::Refusal);
    assert_eq!(message_and_thought(&f).0, "I will not.");
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let blocked = format!("data: {blocked}\n\n");
    let server =
        ProviderServer::new(WireFormat::Gemini, [ProviderReply::Event(vec![], blocked)]).await;
    let f = start_fixture(&server).await;
    assert_eq!(f.prompt("Do it").await.unwrap(), StopReason::Refusal);
}

#[tokio::test]
async fn invalid_json_arguments_are_returned_to_the_model() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(
            format,
            [
                ProviderReply::Says(vec![AnswerPiece::Scribble("x", "read", "{\"path\": a.txt")]),
                ProviderReply::Says(vec![AnswerPiece::Text("I try again.")]),
            ],
        )
        .await;
        let f = start_fixture(&server).await;
        assert_eq!(
            f.prompt_for_text("Read it").await,
            "I try again.",
            "{format}"
        );
        assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
        let told = server.requests()[1].body.to_string();
        assert!(told.contains("The arguments are not valid JSON:"), "{told}");
    }
}

#[tokio::test]
async fn images_are_sent_only_to_models_that_accept_them() {
    let prompt = || {
        vec![
            ContentBlock::text("What is this?"),
            ContentBlock::Image(ImageContent::new("aGVsbG8=", "image/png").into()),
            ContentBlock::ResourceLink(ResourceLink::new("notes", "file:///notes.md").into()),
        ]
    };
    for format in WireFormat::ALL {
        for takes in [true, false] {
            let server = ProviderServer::new(
                format,
                [ProviderReply::Says(vec![AnswerPiece::Text("A crab.")])],
            )
            .await;
            let mut model = server.model();
            model.images = Some(takes);
            let f = AgentFixture::new(agent_with_model(model), NO_CAPABILITIES).await;
            let offered = f.agent.capabilities().prompt_capabilities.image;
            assert_eq!(offered, takes, "{format}");
            if takes {
                assert_eq!(f.prompt_for_text(prompt()).await, "A crab.");
                let body = &server.requests()[0].body;
                let picture = match format {
                    WireFormat::AnthropicMessages => {
                        &body["messages"][0]["content"][1]["source"]["data"]
                    }
                    WireFormat::OpenAiChat => {
                        &body["messages"][1]["content"][1]["image_url"]["url"]
                    }
                    WireFormat::OpenAiResponses => &body["input"][0]["content"][1]["image_url"],
                    _ => &body["contents"][0]["parts"][1]["inline_data"]["data"],
                };
                assert!(picture.as_str().unwrap().ends_with("aGVsbG8="), "{body}");
                assert!(body.to_string().contains("/notes.md"));
            } else {
                // The client no longer offers this, but an old session may still use it.
                let conversation = [ModelMessage::User(prompt())];
                let model = ModelFactory::new().build_model(server.model()).unwrap();
                collect_steps(model.respond(RoundRequest::new(&conversation, &[], "/"))).await;
                let body = server.requests()[0].body.to_string();
                assert!(!body.contains("aGVsbG8="), "{body}");
                assert!(body.contains("Image omitted: image/png"), "{body}");
            }
        }
    }
}

#[tokio::test]
async fn request_matches_the_model_configuration() {
    let conversation = [ModelMessage::User(vec!["Hi".into()])];
    for format in WireFormat::ALL {
        let answer = ProviderReply::Says(vec![AnswerPiece::Text("Hello.")]);
        let server = ProviderServer::new(format, [answer.clone(), answer]).await;
        let mut model = server.model();
        // The end of this name is not a thought level.
        model.name = "acme-3-max".to_owned();
        model.max_output = Some(777);
        let model = ModelFactory::new().build_model(model).unwrap();
        let tools = [sample_tool()];
        let request = RoundRequest::new(&conversation, &tools, "/").instructions("Be brief.");
        collect_steps(model.respond(request)).await;
        collect_steps(model.respond(request.thought(Some(ThoughtLevel::High)))).await;
        let [plain, thinks] = &server.requests()[..] else {
            panic!("{:?}", server.requests());
        };
        let (body, thinks) = (&plain.body, thinks.body.to_string());
        match format {
            WireFormat::AnthropicMessages => {
                assert_eq!(plain.path, "/v1/messages");
                assert_eq!(plain.header("x-api-key"), Some("a-key"));
                assert_eq!(body["model"], "acme-3-max");
                assert_eq!(body["system"], "Be brief.");
                assert_eq!(body["max_tokens"], 777);
                assert_eq!(body["tools"][0]["name"], "look");
                assert!(thinks.contains("budget_tokens"), "{thinks}");
            }
            WireFormat::OpenAiChat => {
                assert_eq!(plain.path, "/v1/chat/completions");
                assert_eq!(plain.header("authorization"), Some("Bearer a-key"));
                assert_eq!(body["model"], "acme-3-max");
                assert_eq!(
                    body["messages"][0],
                    json!({"role": "system", "content": "Be brief."})
                );
                assert_eq!(body["max_tokens"], 777);
                assert_eq!(body["reasoning_effort"], Value::Null);
                assert_eq!(body["tools"][0]["function"]["name"], "look");
                assert!(thinks.contains(r#""reasoning_effort":"high""#), "{thinks}");
            }
            WireFormat::OpenAiResponses => {
                assert_eq!(plain.path, "/v1/responses");
                assert_eq!(plain.header("authorization"), Some("Bearer a-key"));
                assert_eq!(body["model"], "acme-3-max");
                assert_eq!(body["instructions"], "Be brief.");
                assert_eq!(body["max_output_tokens"], 777);
                assert_eq!(body["store"], false);
                assert_eq!(body["reasoning"], Value::Null);
                assert_eq!(body["tools"][0]["name"], "look");
                assert!(thinks.contains(r#""effort":"high""#), "{thinks}");
                assert!(thinks.contains("reasoning.encrypted_content"), "{thinks}");
            }
            _ => {
                assert_eq!(
                    plain.path,
                    "/v1beta/models/acme-3-max:streamGenerateContent?alt=sse"
                );
                assert_eq!(plain.header("x-goog-api-key"), Some("a-key"));
                assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
                assert_eq!(body["generationConfig"]["maxOutputTokens"], 777);
                assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "look");
                assert!(thinks.contains(r#""thinkingBudget":24000"#), "{thinks}");
            }
        }
        // If no thought level is set, the request contains none.
        let plain = body.to_string();
        assert!(
            !plain.contains("budget_tokens") && !plain.contains("thinkingBudget"),
            "{plain}"
        );
    }
}

fn sample_tool() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    ToolSpec::new("look", "Looks at something.", schema)
}

#[tokio::test]
async fn rejected_parameter_is_omitted_from_later_requests() {
    let refusal = |parameter: &str| {
        let error = json!({"error": {"message": "You may not have this", "type": "invalid_request_error",
            "param": parameter, "code": "unsupported_value"}});
        ProviderReply::Status(400, &[], error.to_string())
    };
    let says = || ProviderReply::Says(vec![AnswerPiece::Text("Yes.")]);
    let answers = [
        refusal("reasoning.summary"),
        refusal("include"),
        says(),
        says(),
        refusal("include"),
    ];
    let server = ProviderServer::new(WireFormat::OpenAiResponses, answers).await;
    let mut model = server.model();
    model.name = "gpt-5.4".to_owned();
    // This is not an error for which requests are retried.
    model.retries.tries = 1;
    let f = AgentFixture::new(agent_with_model(model), NO_CAPABILITIES).await;
    assert_eq!(f.prompt_for_text("Well?").await, "Yes.");
    assert_eq!(message_and_thought(&f).1, "", "nobody is told of it");
    assert_eq!(f.prompt_for_text("And now?").await, "Yes.");
    let heard = server.requests();
    let asked = heard.iter().map(|heard| {
        let summary = heard.body.pointer("/reasoning/summary").is_some();
        (summary, heard.body.get("include").is_some())
    });
    let asked: Vec<_> = asked.collect();
    let expected = [(true, true), (false, true), (false, false), (false, false)];
    assert_eq!(asked, expected);
    // A server that rejects a parameter that was not sent is not retried.
    let error = f.prompt("Well?").await.unwrap_err();
    assert!(
        error.to_string().contains("You may not have this"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn local_model_needs_no_key() {
    let answer = ProviderReply::Says(vec![AnswerPiece::Text("Hello.")]);
    let server = ProviderServer::new(WireFormat::OpenAiChat, [answer]).await;
    let mut model = server.model();
    model.key = None;
    let f = AgentFixture::new(agent_with_model(model), NO_CAPABILITIES).await;
    assert_eq!(f.prompt_for_text("Hi").await, "Hello.");
    let heard = server.requests();
    assert_eq!(heard[0].header("authorization"), None);
    assert_eq!(heard[0].path, "/v1/chat/completions");
}

#[tokio::test]
async fn conversation_continues_with_a_model_of_another_provider() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(
            format,
            [ProviderReply::Says(vec![AnswerPiece::Text("I go on.")])],
        )
        .await;
        let mut said = Vec::new();
        // The conversation with another model, as it is stored.
        for by in [
            "anthropic/x https://a.example",
            "gemini/x https://b.example",
        ] {
            said.push(ModelMessage::User(vec!["Read it".into()]));
            let round = json!({"assistant": {
                "text": "", "thought": "Hm", "calls": [
                    {"id": "call#read#0", "tool": "read", "arguments": {"path": "a"}},
                    {"id": "call#read#0", "tool": "read", "arguments": {"path": "b"}}],
                "sealed": {"by": by, "parts": [{"type": "thinking", "thinking": "Hm", "signature": "theirs"}]}}});
            said.push(serde_json::from_value(round).unwrap());
            for text in ["of a", "of b"] {
                let result = json!({"tool_result": {"id": "call#read#0", "status": "done", "text": text, "data": null}});
                said.push(serde_json::from_value(result).unwrap());
            }
        }
        let model = ModelFactory::new().build_model(server.model()).unwrap();
        let steps = collect_steps(model.respond(RoundRequest::new(&said, &[], "/"))).await;
        assert!(
            steps.contains(&Step::Text("I g".into())) || steps.len() > 1,
            "{steps:?}"
        );
        let body = server.requests()[0].body.to_string();
        assert!(!body.contains("theirs") && !body.contains("Hm"), "{body}");
        let (a, b) = (body.find("of a").unwrap(), body.find("of b").unwrap());
        assert!(a < b, "{body}");
    }
}

#[test]
fn history_stored_by_older_versions_is_read() {
    let old = json!({"assistant": {"text": "Hi", "thought": "", "calls": []}});
    let message: ModelMessage = serde_json::from_value(old.clone()).unwrap();
    assert!(matches!(
        &message,
        ModelMessage::Assistant { sealed: None, .. }
    ));
    // Without opaque data, the rest of the message is unchanged.
    assert_eq!(serde_json::to_value(&message).unwrap(), old);
    let sealed = OpaqueParts::new("x", json!([1]));
    let back: OpaqueParts = serde_json::from_value(serde_json::to_value(&sealed).unwrap()).unwrap();
    assert_eq!(back, sealed);
}
