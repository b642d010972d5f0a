//! Tests that this side's memory stays within the limits in `docs/memory.md`, whatever a peer sends.
//!
//! All allocations of the process are counted, so there is only one test here, which calls a function for each subject.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "it/common/mod.rs"]
mod common;

use std::sync::Arc;

use acp::agent::{Prompt, TerminalCommand, Turn};
use acp::client::PermissionRequest;
use acp::v1::{RequestPermissionOutcome, StopReason};
use acp::{Agent, Client, Limits, Result};
use peak_alloc::PeakAlloc;
use serde_json::json;

use common::{NoopClient, PIPE_CAPACITY, TestPeer, limits_with, prompt_request, wait_until_idle};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Memory allowed for the tests themselves and their pipes. Smaller amounts are not checked.
const TEST_OVERHEAD_BYTES: usize = 1024 * 1024;

/// The memory in use at the start of a measurement.
struct MemoryBaseline(usize);

impl MemoryBaseline {
    fn now() -> Self {
        ALLOCATOR.reset_peak_usage();
        Self(ALLOCATOR.current_usage())
    }

    /// Checks that the peak memory since the start is within the bound.
    #[track_caller]
    fn assert_peak_within(&self, what: &str, bound: usize) {
        let peak = ALLOCATOR.peak_usage().saturating_sub(self.0);
        assert!(
            peak <= bound + TEST_OVERHEAD_BYTES,
            "{what}: a peak of {peak} bytes, bound {bound}"
        );
    }

    /// Checks that the memory currently in use is within the bound.
    #[track_caller]
    fn assert_current_usage_within(&self, what: &str, bound: usize) {
        let kept = ALLOCATOR.current_usage().saturating_sub(self.0);
        assert!(
            kept <= bound + TEST_OVERHEAD_BYTES,
            "{what}: {kept} bytes are kept, bound {bound}"
        );
    }
}

fn small_limits() -> Limits {
    limits_with(|l| {
        l.message = 1024 * 1024;
        l.message_memory = 16 * 1024 * 1024;
        l.outbox = 64 * 1024;
        l.backlog = 1024 * 1024;
        l.request_memory = 4 * 1024 * 1024;
        l.thread = 1024 * 1024;
    })
}

#[test]
fn memory_stays_within_the_documented_limits() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    // Each has its own runtime, which leaves nothing behind.
    runtime().block_on(check_memory_of_messages());
    runtime().block_on(check_memory_of_threads());
    runtime().block_on(check_memory_of_unopened_sessions());
    runtime().block_on(check_memory_of_requests());
    runtime().block_on(check_memory_of_permission_requests());
    runtime().block_on(check_memory_of_unanswered_requests());
}

/// Returns JSON texts of about `bytes` bytes that use far more memory.
fn dense_messages(bytes: usize) -> Vec<(&'static str, String)> {
    let list = |item: &str| {
        format!(
            "[{}{item}]",
            format!("{item},").repeat(bytes / (item.len() + 1))
        )
    };
    let fields: Vec<String> = (0..bytes / 10).map(|n| format!("\"{n:x}\":0")).collect();
    let deep = "[".repeat(100) + &"]".repeat(100);
    vec![
        ("numbers", list("0")),
        ("texts", list("\"\"")),
        ("lists", list("[]")),
        ("lists of one", list("[0]")),
        ("objects", list("{}")),
        ("objects of one", list("{\"\":0}")),
        ("an object", format!("{{{}}}", fields.join(","))),
        ("nests", list(&deep)),
        ("objects in objects", list("{\"\":{\"\":{\"\":0}}}")),
        ("half characters", list("\"\\ud800\"")),
        ("one text", format!("\"{}\"", "x".repeat(bytes))),
        ("blocks", list(r#"{"type":"text","text":""}"#)),
        (
            "blocks with more",
            list(r#"{"type":"text","text":"","_meta":{"":0}}"#),
        ),
        (
            "contents",
            list(r#"{"type":"content","content":{"type":"text","text":"","annotations":{}}}"#),
        ),
        ("places", list(r#"{"path":""}"#)),
        (
            "steps",
            list(r#"{"content":"","priority":"low","status":"pending"}"#),
        ),
        (
            "commands",
            list(r#"{"name":"","description":"","input":{"hint":""}}"#),
        ),
        (
            "options",
            list(
                r#"{"id":"","name":"","type":"select","currentValue":"","options":[{"value":"","name":""}]}"#,
            ),
        ),
    ]
}

async fn check_memory_of_messages() {
    for bytes in [2_000, 200_000] {
        for (name, value) in dense_messages(bytes) {
            for update in [
                format!(
                    r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"","rawInput":{value}}}"#
                ),
                format!(
                    r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"","content":{value},"locations":{value}}}"#
                ),
                format!(
                    r#"{{"content":{value},"sessionUpdate":"tool_call","toolCallId":"c","title":""}}"#
                ),
                format!(r#"{{"sessionUpdate":"plan","entries":{value}}}"#),
                format!(
                    r#"{{"sessionUpdate":"available_commands_update","availableCommands":{value}}}"#
                ),
                format!(r#"{{"sessionUpdate":"config_option_update","configOptions":{value}}}"#),
                format!(r#"{{"sessionUpdate":"later","_meta":{value},"x":{value}}}"#),
                format!(
                    r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{value},"_meta":{value}}}}}"#
                ),
            ] {
                let line = format!(
                    r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
                );
                let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
                let before = MemoryBaseline::now();
                peer.send_line(&line).await;
                wait_until_idle().await;
                let shape = line.get(..160).unwrap_or(&line);
                let what = format!("{name} of {bytes} bytes in {shape}");
                // The message that is delivered, and what the thread stores of it.
                let estimate = acp::__internals::estimate_memory(line.as_bytes());
                before.assert_peak_within(&what, 3 * line.len() + 2 * estimate);
                drop((session, peer));
                wait_until_idle().await;
            }
        }
    }
}

/// A function that returns the update with the given number.
type NumberedUpdate = fn(usize) -> serde_json::Value;

/// Returns updates that each make a thread grow in a different way.
fn growing_updates() -> Vec<(&'static str, NumberedUpdate)> {
    vec![
        (
            "one message",
            |_| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x".repeat(1000)}}),
        ),
        (
            "messages",
            |n| json!({"sessionUpdate": "agent_message_chunk", "messageId": n.to_string(), "content": {"type": "text", "text": ""}}),
        ),
        (
            "images",
            |_| json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "image", "mimeType": "image/png", "data": "x".repeat(1000)}}),
        ),
        (
            "tool calls",
            |n| json!({"sessionUpdate": "tool_call", "toolCallId": n.to_string(), "title": "", "rawInput": {"a": {}}}),
        ),
        (
            "terminals",
            |n| json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": {"terminal_output": {"terminal_id": n.to_string(), "data": "x"}}}),
        ),
        (
            "a terminal",
            |_| json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": {"terminal_output": {"data": "x".repeat(1000)}}}),
        ),
        (
            "plans",
            |n| json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": n.to_string(), "entries": []}}),
        ),
        (
            "notices",
            |_| json!({"sessionUpdate": "notice", "severity": "info", "title": ""}),
        ),
        (
            "compactions",
            |n| json!({"sessionUpdate": "compaction_update", "compactionId": n.to_string(), "status": "in_progress"}),
        ),
        (
            "a compaction",
            |_| json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": {"type": "text", "text": ""}}),
        ),
        (
            "updates of another time",
            |_| json!({"sessionUpdate": "later"}),
        ),
        (
            "long names",
            |n| json!({"sessionUpdate": "tool_call", "toolCallId": format!("{n}{}", "x".repeat(1000)), "title": "x".repeat(1000)}),
        ),
    ]
}

async fn check_memory_of_threads() {
    for (name, update) in growing_updates() {
        let before = MemoryBaseline::now();
        let (session, mut peer) =
            TestPeer::open_client_session_with(NoopClient, small_limits(), json!({})).await;
        for n in 0..4_000 {
            let params = json!({"sessionId": "s", "update": update(n)});
            peer.notify("session/update", params).await;
        }
        wait_until_idle().await;
        before.assert_peak_within(name, small_limits().max_client_memory(1));
        before.assert_current_usage_within(name, small_limits().thread * 5 / 2);
        let dropped = session.thread().read(acp::Thread::truncation);
        // The output of one terminal has its own limit.
        assert!(!dropped.is_empty() || name == "a terminal", "{name}");
        drop((session, peer));
        wait_until_idle().await;
    }
}

async fn check_memory_of_unopened_sessions() {
    let before = MemoryBaseline::now();
    let (session, mut peer) =
        TestPeer::open_client_session_with(NoopClient, small_limits(), json!({})).await;
    for n in 0..5_000 {
        peer.send_text(&format!("nobody's {}", n % 200), &"x".repeat(1000))
            .await;
    }
    peer.send_text(&"x".repeat(100_000), "a long name").await;
    peer.check_alive().await;
    before.assert_current_usage_within("sessions of nobody", 2 * small_limits().thread * 5 / 2);
    // Rejected updates are counted.
    assert!(session.agent().connection().noise().unread_notifications > 2_000);
}

/// An agent whose turns never end.
struct EndlessAgent;

impl Agent for EndlessAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }
}

async fn check_memory_of_requests() {
    for (name, value) in dense_messages(20_000) {
        let before = MemoryBaseline::now();
        let (_conn, mut peer, session) =
            TestPeer::open_agent_session_with(EndlessAgent, small_limits(), PIPE_CAPACITY).await;
        let mut refused = 0;
        for id in 0..400 {
            let mut message = prompt_request(id, &session, "wait");
            message["params"]["_meta"] = json!({"a": "META"});
            let line = message.to_string().replace("\"META\"", &value);
            peer.send_line(&line).await;
            wait_until_idle().await;
        }
        peer.notify("session/cancel", json!({"sessionId": session}))
            .await;
        for _ in 0..400 {
            let answer = peer.next().await;
            if let Some(error) = answer["error"]["message"].as_str() {
                assert!(
                    error.contains("too many concurrent requests: the limit is")
                        || error.contains("too many queued prompts"),
                    "{error}"
                );
                refused += 1;
            }
        }
        assert!(refused > 0, "{name}");
        peer.check_alive().await;
        before.assert_peak_within(
            &format!("prompts of {name}"),
            small_limits().max_agent_memory(1),
        );
    }
}

/// A client that never responds to permission requests.
struct HangingClient;

impl Client for HangingClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        std::future::pending().await
    }
}

async fn check_memory_of_permission_requests() {
    let before = MemoryBaseline::now();
    let (session, mut peer) =
        TestPeer::open_client_session_with(HangingClient, small_limits(), json!({})).await;
    // Each request has the whole tool call.
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "", "rawOutput": "x".repeat(300_000)});
    peer.update("s", call).await;
    for id in 0..500 {
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
        peer.send_request(id, "session/request_permission", params)
            .await;
    }
    wait_until_idle().await;
    before.assert_peak_within("permission requests", small_limits().max_client_memory(1));
    let refused = peer.next().await;
    assert!(refused["id"].as_u64() < Some(20), "{refused}");
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("too many concurrent requests: the limit is"),
        "{text}"
    );
    drop(session);
}

/// An agent that starts terminals without releasing them.
struct TerminalLeakAgent(Arc<tokio::sync::Semaphore>);

impl Agent for TerminalLeakAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        for _ in 0..10_000 {
            let none: [&str; 0] = [];
            drop(
                turn.create_terminal(TerminalCommand::new("c", none))
                    .await?,
            );
            self.0.add_permits(1);
        }
        Ok(StopReason::EndTurn)
    }
}

async fn check_memory_of_unanswered_requests() {
    let left = Arc::new(tokio::sync::Semaphore::new(0));
    let (conn, mut peer) = TestPeer::connect_to_agent_with(
        TerminalLeakAgent(Arc::clone(&left)),
        small_limits(),
        PIPE_CAPACITY,
    );
    peer.initialize(json!({"terminal": true})).await;
    let session = peer.new_session().await;
    let before = MemoryBaseline::now();
    peer.send_prompt("p", &session, "go").await;
    for _ in 0..10_000 {
        let (id, _) = peer.expect_request("terminal/create").await;
        peer.answer(&id, json!({"terminalId": "t"})).await;
        // The release is read, but gets no response.
        peer.expect_request("terminal/release").await;
    }
    peer.expect_result("p").await;
    assert_eq!(left.available_permits(), 10_000);
    before.assert_current_usage_within("answers that never come", 0);
    drop(conn);
}
