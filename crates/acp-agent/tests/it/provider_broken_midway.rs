//! Language models that fail while a task is under way, in both versions: the turn ends, what was done is not lost,
//! and the model goes on from it.

use crate::common::provider::{AnswerPiece, FinishReason, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NONE};
use acp::Options;
use acp::v1::StopReason;
use acp_agent::store::MemoryStore;
use acp_agent::{CodingAgent, ModelConfig, WireFormat};
use serde_json::json;

fn agent(server: &ProviderServer) -> CodingAgent {
    let agent = CodingAgent::new(&ModelConfig::Provider(Box::new(server.model()))).unwrap();
    // What is kept is read back by the next turn just the same.
    agent.keep_sessions(MemoryStore::new())
}

/// How the second round goes, and what kind of failure that is.
fn failures() -> Vec<(ProviderReply, &'static str)> {
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
async fn what_was_done_before_is_known_afterwards() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        for format in WireFormat::ALL {
            for (fails, kind) in failures() {
                goes_on_after(options.clone(), format, fails, kind).await;
            }
        }
    }
}

async fn goes_on_after(options: Options, format: WireFormat, fails: ProviderReply, kind: &str) {
    let what = format!("{:?}, {format}, {fails:?}", options.latest());
    let read = AnswerPiece::Call("one", "read", json!({"path": "notes.txt"}));
    let answers = [
        ProviderReply::Says(vec![read]),
        fails,
        ProviderReply::Says(vec![AnswerPiece::Text("I know it still.")]),
    ];
    let server = ProviderServer::new(format, answers).await;
    let f = AgentFixture::speaking(options, agent(&server), NONE).await;
    f.put("notes.txt", "the number is 4711\n");
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
    assert_eq!(f.call().status.as_str(), "completed", "{what}");
    assert_eq!(
        f.says("What is the number?").await,
        "I know it still.",
        "{what}"
    );
    let heard = server.heard();
    assert_eq!(heard.len(), 3, "{what}");
    let told = heard[2].body.to_string();
    for known in ["Read my notes", "the number is 4711", "What is the number?"] {
        assert_eq!(told.matches(known).count(), 1, "{known:?}, {what}: {told}");
    }
}

#[tokio::test]
async fn what_is_not_carried_out_has_a_result_all_the_same() {
    for format in WireFormat::ALL {
        let write = AnswerPiece::Call("one", "write", json!({"path": "no.txt", "text": "no"}));
        let answers = [
            // Cut off, so that it may not be what was meant.
            ProviderReply::Says(vec![write, AnswerPiece::Stop(FinishReason::Length)]),
            ProviderReply::Says(vec![AnswerPiece::Text("Fine.")]),
        ];
        let server = ProviderServer::new(format, answers).await;
        let f = AgentFixture::new(agent(&server), NONE).await;
        assert_eq!(f.prompt("Write").await.unwrap(), StopReason::MaxTokens);
        assert_eq!(f.says("And now?").await, "Fine.", "{format}");
        assert!(!f.there("no.txt"));
        let told = server.heard()[1].body.to_string();
        assert!(told.contains("Not run: the turn ended first."), "{told}");
    }
}

/// How each provider says that a conversation is too long.
fn too_long(format: WireFormat) -> ProviderReply {
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

/// A session whose model reads a file, and is then answered so.
async fn reading(format: WireFormat, then: Vec<ProviderReply>) -> (AgentFixture, ProviderServer) {
    let read = AnswerPiece::Call("one", "read", json!({"path": "notes.txt"}));
    let answers = [ProviderReply::Says(vec![read])].into_iter().chain(then);
    let server = ProviderServer::new(format, answers).await;
    let f = AgentFixture::new(agent(&server), NONE).await;
    f.put("notes.txt", "the number is 4711\n");
    (f, server)
}

#[tokio::test]
async fn a_window_that_turns_out_to_be_full_is_emptied_and_the_task_goes_on() {
    for format in WireFormat::ALL {
        let then = vec![
            too_long(format),
            ProviderReply::Says(vec![AnswerPiece::Text("They want the number; it is 4711.")]),
            ProviderReply::Says(vec![AnswerPiece::Text("It is 4711.")]),
        ];
        let (f, server) = reading(format, then).await;
        assert_eq!(f.says("What is my number?").await, "It is 4711.");
        let heard = server.heard();
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
        // What the summary stands for is gone, and no call is left without its result.
        assert!(!told.contains("the number is 4711"), "{told}");
        assert!(goes_on.results(format).is_empty(), "{told}");
    }
}

#[tokio::test]
async fn a_window_that_stays_full_ends_the_turn_and_not_the_session() {
    for format in WireFormat::ALL {
        // Each summary is tried with less, until nobody believes in it.
        let mut then = vec![too_long(format); 5];
        then.push(ProviderReply::Says(vec![AnswerPiece::Text(
            "Now there is room.",
        )]));
        let (f, server) = reading(format, then).await;
        let error = f.prompt("What is my number?").await.unwrap_err();
        let error = error.peer_error().unwrap().clone();
        assert_eq!(error.data.unwrap()["kind"], "context_full", "{format}");
        let said = error.message;
        assert!(
            said.contains("continue with a model that has a larger context window"),
            "{said}"
        );
        assert_eq!(server.heard().len(), 6);
        assert_eq!(f.says("And now?").await, "Now there is room.");
        // Nothing of it was lost.
        let told = server.heard()[6].body.to_string();
        assert!(told.contains("the number is 4711"), "{told}");
    }
}
