//! Tests several turns with a language model, in each provider's format: requests after a turn without a response, and
//! the cost of compaction.

use crate::common::provider::{
    AnswerPiece, FinishReason, PricedModel, ProviderReply, ProviderServer, ProviderUsage,
};
use crate::common::{AgentFixture, NO_CAPABILITIES};
use acp::v1::{SessionUpdate, StopReason};
use acp_agent::store::MemoryStore;
use acp_agent::{CodingAgent, ModelConfig, ModelFactory, ModelMessage, RoundRequest, WireFormat};
use serde_json::{Value, json};

#[tokio::test]
async fn unanswered_prompts_are_sent_as_one_message() {
    for format in WireFormat::ALL {
        let refused = json!({"error": {"message": "Not today"}}).to_string();
        let answers = [
            ProviderReply::Status(400, &[], refused),
            ProviderReply::Silent,
            ProviderReply::Says(vec![AnswerPiece::Text("Three.")]),
            ProviderReply::Says(vec![AnswerPiece::Text("Four.")]),
        ];
        let server = ProviderServer::new(format, answers).await;
        let model = ModelConfig::Provider(Box::new(server.model()));
        let agent = CodingAgent::new(&model).unwrap();
        let f = AgentFixture::new(agent.keep_sessions(MemoryStore::new()), NO_CAPABILITIES).await;
        f.prompt("one").await.unwrap_err();
        let turn = f.start_prompt("two");
        server.wait_for_requests(2).await;
        assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
        assert_eq!(f.prompt_for_text("three").await, "Three.", "{format}");
        assert_eq!(f.prompt_for_text("four").await, "Four.", "{format}");

        let heard = server.requests();
        let (roles, first) = roles_and_first_message(format, &heard[2].body);
        assert_eq!(roles, ["user"], "{format}");
        match format {
            // Text is sent as a string and not as a list, because not every local model's template accepts a list.
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
                assert_eq!(first["content"], "one\n\ntwo\n\nthree")
            }
            WireFormat::AnthropicMessages => {
                assert_eq!(joined_text(&first["content"]), "one\n\ntwo\n\nthree")
            }
            _ => assert_eq!(joined_text(&first["parts"]), "one\n\ntwo\n\nthree"),
        }
        let (roles, _) = roles_and_first_message(format, &heard[3].body);
        let model = match format {
            WireFormat::Gemini => "model",
            _ => "assistant",
        };
        assert_eq!(roles, ["user", model, "user"], "{format}");
    }
}

#[tokio::test]
async fn all_rounds_reuse_one_connection() {
    for format in WireFormat::ALL {
        let says = |text| ProviderReply::Says(vec![AnswerPiece::Text(text)]);
        let server = ProviderServer::new(format, ["One.", "Two.", "Three."].map(says)).await;
        // The list of models is not requested, so there are no other connections.
        let model = ModelFactory::new().build_model(server.model()).unwrap();
        let conversation = [ModelMessage::User(vec!["Hi".into()])];
        for _ in 0..3 {
            let mut steps = model.respond(RoundRequest::new(&conversation, &[], "/"));
            while let Some(step) = std::future::poll_fn(|cx| steps.as_mut().poll_next(cx)).await {
                step.unwrap();
            }
        }
        assert_eq!(server.requests().len(), 3, "{format}");
        assert_eq!(server.connection_count(), 1, "{format}");
    }
}

/// Returns the roles of all messages except system messages, and the first of these messages.
fn roles_and_first_message(format: WireFormat, body: &Value) -> (Vec<String>, Value) {
    let messages = match format {
        WireFormat::Gemini => &body["contents"],
        WireFormat::OpenAiResponses => &body["input"],
        _ => &body["messages"],
    };
    let messages = messages.as_array().unwrap().iter();
    let said: Vec<&Value> = messages.filter(|said| said["role"] != "system").collect();
    let roles = said.iter().map(|said| said["role"].as_str().unwrap());
    (roles.map(str::to_owned).collect(), said[0].clone())
}

fn joined_text(parts: &Value) -> String {
    let parts = parts.as_array().unwrap().iter();
    let texts: Vec<_> = parts.map(|part| part["text"].as_str().unwrap()).collect();
    texts.join("\n\n")
}

/// Returns the costs reported in the last turn, in US dollars.
fn reported_costs(f: &AgentFixture) -> Vec<f64> {
    let updates = f.seen.updates.lock().unwrap();
    let costs = updates.iter().filter_map(|update| match update {
        SessionUpdate::UsageUpdate(usage) => Some(usage.cost.as_ref().unwrap().amount),
        _ => None,
    });
    costs.collect()
}

#[tokio::test]
async fn cost_of_a_summary_is_reported() {
    // Whether the request succeeds or not.
    for why in [FinishReason::End, FinishReason::Refusal] {
        for format in WireFormat::ALL {
            let says = |text, input, why| {
                let used = ProviderUsage {
                    input,
                    output: 1000,
                    ..ProviderUsage::default()
                };
                ProviderReply::Says(vec![
                    AnswerPiece::Text(text),
                    AnswerPiece::Usage(used),
                    AnswerPiece::Stop(why),
                ])
            };
            let answers = [
                says("One.", 45_000, FinishReason::End),
                says("They said one.", 20_000, why),
                says("Two.", 10_000, FinishReason::End),
            ];
            let server = ProviderServer::new(format, answers).await;
            let mut model = server.model();
            model.context_window = Some(50_000);
            let agent = CodingAgent::with_model(PricedModel::new(model));
            let f =
                AgentFixture::new(agent.keep_sessions(MemoryStore::new()), NO_CAPABILITIES).await;
            f.prompt_for_text("1").await;
            let first = 0.135 + 0.015;
            assert_eq!(
                round_costs(&reported_costs(&f)),
                round_costs(&[first]),
                "{format}"
            );
            f.prompt_for_text("2").await;
            let summary = 0.06 + 0.015;
            let second = 0.03 + 0.015;
            let mut all = vec![first + summary + second];
            if why == FinishReason::End {
                // Repeat this as soon as there is space.
                all.insert(0, first + summary);
            }
            assert_eq!(
                round_costs(&reported_costs(&f)),
                round_costs(&all),
                "{format}, {why:?}"
            );
            assert_eq!(server.requests().len(), 3);
        }
    }
}

/// Rounds the costs to whole millionths of a dollar.
fn round_costs(costs: &[f64]) -> Vec<i64> {
    let millionths = costs.iter().map(|cost| (cost * 1e6).round() as i64);
    millionths.collect()
}
