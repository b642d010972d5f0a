//! Tests how failures of a language model in the middle of a task are handled, in both protocol versions: the turn
//! ends, no work is lost, and the model continues from there.

use crate::common::provider::{AnswerPiece, FinishReason, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NO_CAPABILITIES};
use acp::Options;
use acp::v1::StopReason;
use acp_agent::store::MemoryStore;
use acp_agent::{CodingAgent, ModelConfig, WireFormat};
use serde_json::json;

fn provider_agent(server: &ProviderServer) -> CodingAgent {
    let agent = CodingAgent::new(&ModelConfig::Provider(Box::new(server.model()))).unwrap();
    // The next turn reads the stored history in the same way.
    agent.keep_sessions(MemoryStore::new())
}

/// Returns the failures to test in the second round, each with the kind of the resulting error.
fn midway_failures() -> Vec<(ProviderReply, &'static str)> {
    let status = |status, message: &str| {
        ProviderReply::Status(
            status,
            &[],
            json!({"error": {"message": message}}).to_string(),
        )
    };
    let begins = || vec![AnswerPiece::Text("I begin")];
    vec![
        (status(401, "no such key"), "unauthorized"),
        (
            status(404, "The model `a-model` does not exist"),
            "unknown_model",
        ),
        (
            ProviderReply::Status(
                429,
                &[("retry-after", "86400")],
                json!({"error": {"message": "Slow down"}}).to_string(),
            ),
            "overloaded",
        ),
        (ProviderReply::Cut(begins()), "broken"),
        (
            ProviderReply::Event(
                begins(),
                "event: content_block_delta\ndata: {\"what\": \n\n".to_owned(),
            ),
            "broken",
        ),
    ]
}

#[tokio::test]
async fn completed_work_is_kept_after_a_failure() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        for format in WireFormat::ALL {
            for (fails, kind) in midway_failures() {
                check_continues_after(options.clone(), format, fails, kind).await;
            }
        }
    }
}

async fn check_continues_after(
    options: Options,
    format: WireFormat,
    fails: ProviderReply,
    kind: &str,
) {
    let what = format!("{:?}, {format}, {fails:?}", options.latest());
    let read = AnswerPiece::Call("one", "read", json!({"path": "notes.txt"}));
    let answers = [
        ProviderReply::Says(vec![read]),
        fails,
        ProviderReply::Says(vec![AnswerPiece::Text("I know it still.")]),
    ];
    let server = ProviderServer::new(format, answers).await;
    let f =
        AgentFixture::start_with_options(options, provider_agent(&server), NO_CAPABILITIES).await;
    f.write_file("notes.txt", "the number is 4711\n");
    let error = f.prompt("Read my notes").await.expect_err(&what);
    let error = error.peer_error().expect(&what).clone();
    assert_eq!(error.data.unwrap()["kind"], kind, "{what}");
    f.session.thread().read(|thread| {
        assert!(!thread.is_running(), "{what}");
        assert_eq!(
            thread.stop_reason().filter(|r| **r == StopReason::EndTurn),
            None
        );
    });
    assert_eq!(f.last_tool_call().status.as_str(), "completed", "{what}");
    assert_eq!(
        f.prompt_for_text("What is the number?").await,
        "I know it still.",
        "{what}"
    );
    let heard = server.requests();
    assert_eq!(heard.len(), 3, "{what}");
    let told = heard[2].body.to_string();
    for known in ["Read my notes", "the number is 4711", "What is the number?"] {
        assert_eq!(told.matches(known).count(), 1, "{known:?}, {what}: {told}");
    }
}

#[tokio::test]
async fn skipped_calls_still_get_results() {
    for format in WireFormat::ALL {
        let write = AnswerPiece::Call("one", "write", json!({"path": "no.txt", "text": "no"}));
        let answers = [
            // The call is cut off, so it may not be what the model meant.
            ProviderReply::Says(vec![write, AnswerPiece::Stop(FinishReason::Length)]),
            ProviderReply::Says(vec![AnswerPiece::Text("Fine.")]),
        ];
        let server = ProviderServer::new(format, answers).await;
        let f = AgentFixture::new(provider_agent(&server), NO_CAPABILITIES).await;
        assert_eq!(f.prompt("Write").await.unwrap(), StopReason::MaxTokens);
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.", "{format}");
        assert!(!f.file_exists("no.txt"));
        let told = server.requests()[1].body.to_string();
        assert!(
            told.contains("Not run: the turn ended before this call started."),
            "{told}"
        );
    }
}

/// Returns each provider's error for a conversation that is too long.
fn context_overflow_reply(format: WireFormat) -> ProviderReply {
    let error = match format {
        WireFormat::AnthropicMessages => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}})
        }
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
            json!({"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 128000 tokens."}})
        }
        _ => {
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."}})
        }
    };
    ProviderReply::Status(400, &[], error.to_string())
}

/// Opens a session whose model reads a file and then sends these replies.
async fn start_reading_task(
    format: WireFormat,
    then: Vec<ProviderReply>,
) -> (AgentFixture, ProviderServer) {
    let read = AnswerPiece::Call("one", "read", json!({"path": "notes.txt"}));
    let answers = [ProviderReply::Says(vec![read])].into_iter().chain(then);
    let server = ProviderServer::new(format, answers).await;
    let f = AgentFixture::new(provider_agent(&server), NO_CAPABILITIES).await;
    f.write_file("notes.txt", "the number is 4711\n");
    (f, server)
}

#[tokio::test]
async fn full_window_is_compacted_and_the_task_continues() {
    for format in WireFormat::ALL {
        let then = vec![
            context_overflow_reply(format),
            ProviderReply::Says(vec![AnswerPiece::Text("They want the number; it is 4711.")]),
            ProviderReply::Says(vec![AnswerPiece::Text("It is 4711.")]),
        ];
        let (f, server) = start_reading_task(format, then).await;
        assert_eq!(f.prompt_for_text("What is my number?").await, "It is 4711.");
        let heard = server.requests();
        let [_, _, summary, goes_on] = &heard[..] else {
            panic!("{format}: {heard:?}")
        };
        let asked = summary.body.to_string();
        assert!(asked.contains("the number is 4711"), "{asked}");
        assert_eq!(summary.body.get("tools"), None, "{asked}");
        let told = goes_on.body.to_string();
        for known in ["They want the number; it is 4711.", "What is my number?"] {
            assert!(told.contains(known), "{known:?}: {told}");
        }
        // The messages that the summary replaces are gone, and no call lacks its result.
        assert!(!told.contains("the number is 4711"), "{told}");
        assert!(goes_on.tool_results(format).is_empty(), "{told}");
    }
}

#[tokio::test]
async fn window_that_stays_full_ends_only_the_turn() {
    for format in WireFormat::ALL {
        // Each attempt sends a shorter conversation, until the agent gives up.
        let mut then = vec![context_overflow_reply(format); 5];
        then.push(ProviderReply::Says(vec![AnswerPiece::Text(
            "Now there is room.",
        )]));
        let (f, server) = start_reading_task(format, then).await;
        let error = f.prompt("What is my number?").await.unwrap_err();
        let error = error.peer_error().unwrap().clone();
        assert_eq!(error.data.unwrap()["kind"], "context_full", "{format}");
        let said = error.message;
        assert!(
            said.contains("continue with a model that has a larger context window"),
            "{said}"
        );
        assert_eq!(server.requests().len(), 6);
        assert_eq!(f.prompt_for_text("And now?").await, "Now there is room.");
        // No part of the conversation was lost.
        let told = server.requests()[6].body.to_string();
        assert!(told.contains("the number is 4711"), "{told}");
    }
}
