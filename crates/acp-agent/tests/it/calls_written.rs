//! Checks that tool calls appear while the model is still writing them, in each provider's format. A call appears as
//! soon as the name of its tool has arrived, with as much of its arguments as has arrived.

use crate::common;
use std::sync::Arc;

use crate::common::provider::{AnswerPiece, ProviderReply, ProviderServer};
use crate::common::{ALLOW, AgentFixture, NO_CAPABILITIES, REJECT, call_text, wait_for_thread};
use acp::thread::{ItemKind, ThreadToolCall, ToolCallStatus};
use acp::v1::{ProtocolVersion, SessionUpdate, StopReason, ToolKind};
use acp::{Options, Thread};
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{
    CodingAgent, Model, ModelConfig, ModelMessage, RoundRequest, Step, Steps, ToolRequest,
    WireFormat,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

fn provider_agent(server: &ProviderServer) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Provider(Box::new(server.model()))).unwrap()
}

fn tool_calls(thread: &Thread) -> Vec<ThreadToolCall> {
    let calls = thread.items().iter().filter_map(|item| match &item.kind {
        ItemKind::ToolCall(call) => Some((**call).clone()),
        _ => None,
    });
    calls.collect()
}

/// Returns the title, status and text of each call, as a user sees them.
fn shown_calls(thread: &Thread) -> Vec<(String, ToolCallStatus, String)> {
    let calls = tool_calls(thread).into_iter();
    calls
        .map(|call| (call.title.clone(), call.status.clone(), call_text(&call)))
        .collect()
}

/// Returns a predicate that checks whether a call with this title is pending.
fn has_pending_call(title: &'static str) -> impl Fn(&Thread) -> bool {
    move |thread| {
        let mut calls = tool_calls(thread).into_iter();
        calls.any(|call| call.title == title && call.status == ToolCallStatus::Pending)
    }
}

#[tokio::test]
async fn call_is_shown_while_its_arguments_arrive() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        for format in WireFormat::ALL {
            check_shown_early(options.clone(), format).await;
        }
    }
}

async fn check_shown_early(options: Options, format: WireFormat) {
    let what = format!("{format}, {:?}", options.latest());
    let more = Arc::new(Notify::new());
    let answers = [
        ProviderReply::Held(
            vec![
                AnswerPiece::Text("I write it."),
                AnswerPiece::Call("one", "write", json!({"path": "new.txt", "text": "new\n"})),
                AnswerPiece::Call("two", "plan", json!({"entries": []})),
                AnswerPiece::Call(
                    "three",
                    "read",
                    json!({"limit": 3, "line": 2, "path": "a.txt"}),
                ),
            ],
            Arc::clone(&more),
        ),
        ProviderReply::Says(vec![AnswerPiece::Text("Done.")]),
    ];
    let server = ProviderServer::new(format, answers).await;
    let sessions = tempfile::tempdir().unwrap();
    let store = || SqliteStore::open(sessions.path()).unwrap();
    let keeps = provider_agent(&server).keep_sessions(store());
    let f = AgentFixture::start_with_options(options.clone(), keeps, NO_CAPABILITIES).await;
    f.write_file("a.txt", "1\n2\n3\n4\n");
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt("Write it");
    let last = match format {
        WireFormat::Gemini => "Read `a.txt`, lines 2–4",
        _ => "Read a file",
    };
    wait_for_thread(f.session.thread(), has_pending_call("Write `new.txt`")).await;
    wait_for_thread(f.session.thread(), has_pending_call(last)).await;
    let early = f.tool_calls();
    let [write, read] = &early[..] else {
        panic!("{what}: {early:?}");
    };
    assert_eq!(write.kind, ToolKind::Edit, "{what}");
    assert_eq!(write.locations[0].path, f.path("new.txt"), "{what}");
    assert_eq!(read.kind, ToolKind::Read, "{what}");
    assert!(
        !f.file_exists("new.txt") && f.permission_requests().is_empty(),
        "{what}"
    );

    more.notify_one();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn, "{what}");
    assert_eq!(f.read_file("new.txt"), "new\n");
    // The calls are the same, and their descriptions are now complete.
    let done = f.tool_calls();
    assert_eq!(done.len(), 2, "{what}: {done:?}");
    for (done, early) in done.iter().zip(&early) {
        assert_eq!(done.id, early.id, "{what}");
        assert_eq!(done.status, ToolCallStatus::Completed, "{what}: {done:?}");
    }
    assert_eq!(done[1].title, "Read `a.txt`, lines 2–4");
    assert_eq!(done[1].locations[0].line, Some(2));
    let input: Value = serde_json::to_value(&done[0].raw_input).unwrap();
    assert_eq!(input, json!({"path": "new.txt", "text": "new\n"}));
    assert_eq!(f.permission_requests()[0].tool_call.id, done[0].id);

    // A client that opens the session again shows the same calls.
    let before = f.session.thread().read(shown_calls);
    let g = AgentFixture::start_with_options(
        options,
        provider_agent(&server).keep_sessions(store()),
        NO_CAPABILITIES,
    )
    .await;
    let id = f.session.id().clone();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    assert_eq!(again.thread().read(shown_calls), before, "{what}");
}

/// Returns a call cut off in the middle of its arguments.
fn half_written_call() -> AnswerPiece {
    AnswerPiece::Scribble("x", "write", r#"{"path": "no.txt", "text": "not all"#)
}

#[tokio::test]
async fn interrupted_call_fails() {
    for format in WireFormat::ALL {
        let cut = vec![AnswerPiece::Text("I begin."), half_written_call()];
        let fine = ProviderReply::Says(vec![AnswerPiece::Text("Fine.")]);
        let server = ProviderServer::new(format, [ProviderReply::Cut(cut), fine]).await;
        let f = AgentFixture::new(
            provider_agent(&server).keep_sessions(MemoryStore::new()),
            NO_CAPABILITIES,
        )
        .await;
        let error = f.prompt("Write it").await.unwrap_err();
        let data = error.peer_error().unwrap().data.clone().unwrap();
        assert_eq!(data["kind"], "broken", "{format}");
        let call = f.last_tool_call();
        assert_eq!(call.title, "Write `no.txt`", "{format}");
        assert_eq!(call.status, ToolCallStatus::Failed, "{format}");
        assert!(
            call_text(&call).contains("Not run: the turn failed before this call started."),
            "{call:?}"
        );
        assert_eq!(f.statuses(&call.id), ["pending", "failed"], "{format}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        assert!(!f.file_exists("no.txt"));
        let told = server.requests()[1].body.to_string();
        assert!(!told.contains("no.txt"), "{told}");
    }
}

#[tokio::test]
async fn restarted_call_is_a_new_call() {
    for format in WireFormat::ALL {
        let answers = [
            ProviderReply::Cut(vec![half_written_call()]),
            ProviderReply::Says(vec![AnswerPiece::Call(
                "y",
                "read",
                json!({"path": "a.txt"}),
            )]),
            ProviderReply::Says(vec![AnswerPiece::Text("Fine.")]),
        ];
        let server = ProviderServer::new(format, answers).await;
        let f = AgentFixture::new(provider_agent(&server), NO_CAPABILITIES).await;
        f.write_file("a.txt", "one\n");
        assert_eq!(f.prompt_for_text("Go").await, "Fine.", "{format}");
        let seen = f.session.thread().read(shown_calls);
        let seen: Vec<_> = seen.iter().map(|(t, s, _)| (t.as_str(), s)).collect();
        assert_eq!(
            seen,
            [
                ("Write `no.txt`", &ToolCallStatus::Failed),
                ("Read `a.txt`", &ToolCallStatus::Completed)
            ],
            "{format}"
        );
        assert!(!f.file_exists("no.txt"));
    }
}

#[tokio::test]
async fn cancel_while_arguments_arrive_ends_the_call() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        for format in WireFormat::ALL {
            let stalls =
                ProviderReply::Stalls(vec![AnswerPiece::Text("I begin."), half_written_call()]);
            let fine = ProviderReply::Says(vec![AnswerPiece::Text("Fine.")]);
            let server = ProviderServer::new(format, [stalls, fine]).await;
            let f = AgentFixture::start_with_options(
                options.clone(),
                provider_agent(&server),
                NO_CAPABILITIES,
            )
            .await;
            let ended = f
                .cancel_when("Write it", has_pending_call("Write `no.txt`"))
                .await;
            assert_eq!(ended, StopReason::Cancelled, "{format}");
            let call = f.last_tool_call();
            match options.latest() {
                // This version has no status for that, so a text says it.
                ProtocolVersion::V1 => {
                    assert_eq!(call.status, ToolCallStatus::Failed, "{format}");
                    assert_eq!(call_text(&call), "Cancelled.");
                }
                _ => assert_eq!(call.status, ToolCallStatus::Cancelled, "{format}"),
            }
            assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
            assert!(!f.file_exists("no.txt"));
            let told = server.requests()[1].body.to_string();
            assert!(
                told.contains("I begin.") && !told.contains("no.txt"),
                "{told}"
            );
        }
    }
}

#[tokio::test]
async fn partial_call_is_shown_as_failed_after_the_agent_exits() {
    let stalls = ProviderReply::Stalls(vec![half_written_call()]);
    let server = ProviderServer::new(WireFormat::AnthropicMessages, [stalls]).await;
    let sessions = tempfile::tempdir().unwrap();
    let keeps =
        || provider_agent(&server).keep_sessions(SqliteStore::open(sessions.path()).unwrap());
    let f = AgentFixture::new(keeps(), NO_CAPABILITIES).await;
    let _turn = f.start_prompt("Write it");
    wait_for_thread(f.session.thread(), has_pending_call("Write `no.txt`")).await;
    // As after a kill, only the stored data is left.
    let g = AgentFixture::new(keeps(), NO_CAPABILITIES).await;
    let id = f.session.id().clone();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    let seen = again.thread().read(shown_calls);
    assert_eq!(seen[0].0, "Write `no.txt`");
    assert_eq!(seen[0].1, ToolCallStatus::Failed);
}

#[tokio::test]
async fn call_in_architect_mode_fails_if_the_mode_switch_is_rejected_or_cancelled() {
    for format in WireFormat::ALL {
        let write = || AnswerPiece::Call("one", "write", json!({"path": "no.txt", "text": "no"}));
        let answers = [
            ProviderReply::Says(vec![write()]),
            ProviderReply::Says(vec![AnswerPiece::Text("As you like.")]),
            ProviderReply::Says(vec![write()]),
        ];
        let server = ProviderServer::new(format, answers).await;
        let agent = provider_agent(&server).mode(acp_agent::Mode::Architect);
        let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
        f.queue_answers([REJECT]);
        assert_eq!(
            f.prompt_for_text("Write it").await,
            "As you like.",
            "{format}"
        );
        assert_eq!(count_failed(&f.tool_calls()), 2, "{format}");
        f.queue_answers([common::QuestionAnswer::Hang]);
        f.seen.asked.lock().unwrap().clear();
        let ended = f
            .cancel_when("Write it", |_| !f.permission_requests().is_empty())
            .await;
        assert_eq!(ended, StopReason::Cancelled, "{format}");
        // The call and the permission request are each shown twice.
        assert_eq!(
            count_failed(&f.tool_calls()),
            4,
            "{format}: {:?}",
            f.tool_calls()
        );
        assert!(!f.file_exists("no.txt"));
    }
}

/// Returns how many of the calls failed.
fn count_failed(calls: &[ThreadToolCall]) -> usize {
    let failed = calls.iter();
    let failed = failed.filter(|call| call.status == ToolCallStatus::Failed);
    failed.count()
}

/// A model that writes these calls in pieces of this many bytes, followed by a call that it never completes. Its later
/// responses are empty.
struct CallWritingModel(Vec<ToolRequest>, usize);

impl Model for CallWritingModel {
    fn name(&self) -> &'static str {
        "writes"
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        let mut steps = Vec::new();
        if matches!(request.conversation.last(), Some(ModelMessage::User(_))) {
            for (call, request) in self.0.iter().enumerate() {
                let tool = request.tool.clone();
                steps.push(Step::CallStarted { call, tool });
                let written = request.arguments.to_string();
                let pieces = written.as_bytes().chunks(self.1);
                steps.extend(pieces.map(|piece| Step::CallDelta {
                    call,
                    arguments: String::from_utf8(piece.to_vec()).unwrap(),
                }));
            }
            steps.push(Step::CallStarted {
                call: self.0.len(),
                tool: "frob".to_owned(),
            });
            steps.extend(self.0.iter().cloned().map(Step::Call));
        }
        Box::pin(futures_util::stream::iter(steps.into_iter().map(Ok)))
    }
}

#[tokio::test]
async fn updates_of_a_long_call_are_batched() {
    let text = "a line of some length\n".repeat(4000);
    let arguments = json!({"path": "long.txt", "text": text});
    let write = ToolRequest::new("one", "write", arguments);
    let plan = ToolRequest::new(
        "two",
        "plan",
        json!({"entries": [{"content": "Look", "priority": "low", "status": "pending"}]}),
    );
    let f = AgentFixture::new(
        CodingAgent::with_model(CallWritingModel(vec![write, plan], 7)),
        NO_CAPABILITIES,
    )
    .await;
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt("Go").await.unwrap(), StopReason::EndTurn);
    assert_eq!(f.read_file("long.txt"), text);
    assert_eq!(f.plan_updates().len(), 1);
    let calls = f.tool_calls();
    let [write, frob] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert_eq!(write.status, ToolCallStatus::Completed);
    // One call was started but never completed.
    assert_eq!(frob.title, "Call `frob`");
    assert_eq!(frob.status, ToolCallStatus::Failed);

    let updates = f.seen.updates.lock().unwrap();
    let inputs: Vec<Value> = updates
        .iter()
        .filter_map(|update| match update {
            SessionUpdate::ToolCallUpdate(update) if update.tool_call_id == write.id => {
                serde_json::to_value(update.raw_input.as_ref()?).ok()
            }
            _ => None,
        })
        .collect();
    // 13,000 pieces, which are parsed each time their length has doubled.
    assert!((5..12).contains(&inputs.len()), "{}", inputs.len());
    let lengths: Vec<usize> = inputs
        .iter()
        .map(|input| input["text"].as_str().map_or(0, str::len))
        .collect();
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert_eq!(lengths.last(), Some(&text.len()));
    assert!(
        lengths.iter().sum::<usize>() < 3 * text.len(),
        "{lengths:?}"
    );
    assert_eq!(inputs[0]["path"], "long.txt");
}
