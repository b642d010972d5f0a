//! Tests in which a peer exceeds a limit. It gets an error, and the connection continues.

use acp::thread::ItemKind;
use acp::v1::{ContentBlock, ContentChunk, SessionUpdate, StopReason, ToolCall, ToolCallUpdate};
use acp::v2;
use acp::{Error, Thread};
use serde_json::{Value, json};

use crate::common::{
    NoopClient, PIPE_CAPACITY, PromptAgent, TestPeer, idle_agent, limits_with, wait_until_idle,
    with_timeout,
};
use crate::hostile::assert_alive;

#[tokio::test(start_paused = true)]
async fn sessions_beyond_the_limit_are_rejected() {
    let limits = limits_with(|l| l.sessions = 2);
    let (_conn, mut peer) =
        TestPeer::connect_to_agent_with(CloseSessionAgent, limits, PIPE_CAPACITY);
    peer.initialize(json!({})).await;
    let first = peer.new_session().await;
    peer.new_session().await;
    for _ in 0..3 {
        let params = json!({"cwd": "/work", "mcpServers": []});
        peer.send_request(1, "session/new", params).await;
        let (code, text) = peer.expect_error(1).await;
        assert_eq!(code, -32603);
        assert!(
            text.contains("too many open sessions: the limit is 2"),
            "{text}"
        );
    }
    // Open sessions continue.
    peer.send_prompt(2, &first, "hi").await;
    peer.expect_result(2).await;
    peer.send_request(3, "session/close", json!({"sessionId": first}))
        .await;
    peer.expect_result(3).await;
    peer.new_session().await;
}

/// An agent that can close sessions.
struct CloseSessionAgent;

impl acp::Agent for CloseSessionAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(
        &self,
        (): &(),
        _: acp::agent::Turn,
        _: acp::agent::Prompt,
    ) -> acp::Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    fn close_session(&self) -> Option<&impl acp::agent::CloseSession> {
        Some(self)
    }
}

impl acp::agent::CloseSession for CloseSessionAgent {
    async fn close(&self, (): &(), _: &acp::v1::SessionId) -> acp::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn queued_prompts_beyond_the_limit_are_rejected() {
    let agent = PromptAgent(async |turn: acp::agent::Turn, _| {
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    });
    let limits = limits_with(|l| l.prompts = 2);
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, limits, PIPE_CAPACITY).await;
    // One prompt is running, and two are queued.
    for id in 0..4 {
        peer.send_prompt(id, &s, "wait").await;
    }
    let (code, text) = peer.expect_error(3).await;
    assert_eq!(code, -32603);
    assert_eq!(
        text,
        "too many queued prompts in this session: the limit is 2"
    );
    // Another session has its own limit.
    let other = peer.new_session().await;
    peer.send_prompt(5, &other, "wait").await;
    for session in [&s, &other] {
        peer.notify("session/cancel", json!({"sessionId": session}))
            .await;
    }
    for _ in 0..4 {
        assert_eq!(peer.next().await["result"]["stopReason"], "cancelled");
    }
    peer.send_prompt(6, &s, "wait").await;
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    peer.expect_result(6).await;
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_requests_in_flight_is_limited() {
    let agent = PromptAgent(async |turn: acp::agent::Turn, _| {
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    });
    let limits = limits_with(|l| l.request_memory = 20_000);
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, limits, PIPE_CAPACITY).await;
    let much: &'static str = Box::leak("x".repeat(50_000).into_boxed_str());
    peer.send_prompt(1, &s, much).await;
    peer.send_prompt(2, &s, "little").await;
    let (code, text) = peer.expect_error(2).await;
    assert_eq!(code, -32603);
    assert_eq!(
        text,
        "too many concurrent requests: the limit is 20000 bytes in total"
    );
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    peer.expect_result(1).await;
    // There is capacity again.
    peer.send_prompt(2, &s, "little").await;
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    peer.expect_result(2).await;
}

/// Returns JSON that takes up far more memory than its text.
fn dense_json() -> String {
    format!("[{}0]", "{},".repeat(1_000))
}

#[tokio::test(start_paused = true)]
async fn messages_that_need_too_much_memory_are_rejected() {
    let small = || limits_with(|l| l.message_memory = 200_000);
    let (conn, mut peer, s) =
        TestPeer::open_agent_session_with(idle_agent(), small(), PIPE_CAPACITY).await;
    let dense = dense_json();
    for message in [
        format!(r#"{{"id":7,"method":"_x","params":{dense}}}"#),
        format!(r#"{{"params":{{"_meta":{dense}}},"method":"session/new","id":7}}"#),
    ] {
        peer.send_line(&message).await;
        let (code, text) = peer.expect_error(7).await;
        assert_eq!(code, -32600);
        assert!(text.contains("limit: 200000 bytes"), "{text}");
    }
    // A notification gets no response.
    peer.send_line(format!(r#"{{"method":"_x","params":{dense}}}"#))
        .await;
    peer.send_prompt(5, &s, "still there?").await;
    peer.expect_result(5).await;
    assert_eq!(conn.noise().unread_notifications, 1);
    // The same characters inside a string count as text.
    let text = json!([{"type": "text", "text": dense}]);
    peer.send_request(6, "session/prompt", json!({"sessionId": s, "prompt": text}))
        .await;
    peer.expect_result(6).await;

    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, small(), PIPE_CAPACITY, json!({})).await;
    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session("/work").await }
    });
    let (id, _) = peer.expect_request("session/new").await;
    peer.send_line(format!(
        r#"{{"id":{id},"result":{{"sessionId":"s","_meta":{{"a":{dense}}}}}}}"#
    ))
    .await;
    let error = with_timeout("the request fails", opening)
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::InvalidResponse { .. }), "{error}");
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    assert_alive(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn ids_and_paths_have_a_maximum_length() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
    peer.initialize(json!({})).await;
    let long = format!("/{}", "x".repeat(300 * 1024));
    for params in [
        json!({"cwd": long, "mcpServers": []}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": vec!["/"; 20_000]}),
    ] {
        peer.send_request(1, "session/new", params).await;
        let (code, text) = peer.expect_error(1).await;
        assert_eq!(code, -32602);
        assert!(text.contains("limit: 262144 bytes"), "{text}");
    }
    peer.new_session().await;

    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let agent = session.agent().clone();
    let error = agent.new_session(&long).await.unwrap_err();
    assert!(matches!(error, Error::InvalidRequest(_)), "{error}");
    // There is no session with such an id.
    peer.send_text(&long, "hello").await;
    peer.check_alive().await;
    assert_eq!(agent.connection().noise().unread_notifications, 1);
    assert_alive(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn error_messages_truncate_the_peers_input() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    let long = "x".repeat(100_000);
    for (method, params) in [
        (long.as_str(), json!({})),
        ("session/prompt", json!({"sessionId": s, "prompt": long})),
        ("session/prompt", json!({"sessionId": [long], "prompt": []})),
    ] {
        peer.send_request(1, method, params).await;
        let (_, text) = peer.expect_error(1).await;
        assert!(text.len() < 2_000, "{} bytes", text.len());
    }
    peer.send_line(format!("{{{long}")).await;
    assert!(peer.expect_error(json!(null)).await.1.len() < 2_000);
}

#[tokio::test(start_paused = true)]
async fn rejections_of_oversized_messages_are_not_lost() {
    let limits = || {
        limits_with(|l| {
            l.outbox = 1_000;
            l.message = 500;
        })
    };
    let line = format!(
        "{{\"id\":1,\"method\":\"_x\",\"params\":\"{}\"}}\n",
        "x".repeat(600)
    );
    let flood = line.repeat(300);
    let (_conn, peer, _) = TestPeer::open_agent_session_with(idle_agent(), limits(), 1024).await;
    assert_each_rejected(peer, &flood).await;
    let (conn, peer) =
        TestPeer::connect_to_client_with(NoopClient, limits(), 1024, json!({})).await;
    assert_each_rejected(peer, &flood).await;
    drop(conn);
}

async fn assert_each_rejected(mut peer: TestPeer, flood: &str) {
    let taken = peer.send_until_blocked(flood.as_bytes()).await;
    assert!(taken < flood.len());
    let (mut reading, mut writing) = peer.split();
    let rest = flood.as_bytes()[taken..].to_vec();
    let write = tokio::spawn(async move {
        writing.send_bytes(rest).await;
        writing
    });
    for _ in 0..300 {
        assert_eq!(reading.expect_error(1).await.0, -32600);
    }
    reading.expect_silence().await;
    reading
        .join(with_timeout("all is written", write).await.unwrap())
        .check_alive()
        .await;
}

fn text_update(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::text(text)))
}

#[test]
fn a_thread_drops_and_counts_its_earliest_items() {
    let mut thread = Thread::with_limit(100_000);
    for n in 0..2_000 {
        thread.apply(
            &SessionUpdate::ToolCall(Box::new(ToolCall::new(
                format!("c{n}"),
                format!("call {n}"),
            )))
            .into(),
        );
    }
    let dropped = thread.truncation();
    assert_eq!(dropped.items + thread.items().len(), 2_000);
    assert!(thread.items().len() > 20, "{}", thread.items().len());
    // Remaining calls are found, and dropped ones are not.
    for n in 0..2_000 {
        let call = thread.tool_call(&format!("c{n}").into());
        assert_eq!(call.is_some(), n >= dropped.items, "{n}");
        if let Some(call) = call {
            assert_eq!(call.title, format!("call {n}"));
        }
    }
    // An update of a dropped call adds the call again.
    thread.apply(
        &SessionUpdate::ToolCallUpdate(Box::new(ToolCallUpdate::new("c0").title("again"))).into(),
    );
    assert_eq!(thread.tool_call(&"c0".into()).unwrap().title, "again");
}

#[test]
fn an_endless_message_keeps_its_end() {
    let mut thread = Thread::with_limit(100_000);
    for n in 0..20_000 {
        thread.apply(&text_update(&format!("{n} é ")).into());
    }
    let [item] = thread.items() else {
        panic!("{:?}", thread.truncation());
    };
    let ItemKind::Agent(message) = &item.kind else {
        panic!("{item:?}");
    };
    assert!(message.is_truncated);
    assert!(thread.truncation().parts > 0);
    assert!(message.text().ends_with("19998 é 19999 é "));
    assert!((10_000..100_000).contains(&message.text().len()));
}

#[test]
fn a_call_too_large_for_its_thread_is_truncated() {
    let mut thread = Thread::with_limit(100_000);
    thread.apply(
        &SessionUpdate::ToolCall(Box::new(
            ToolCall::new("c", "Read it")
                .raw_output("x".repeat(200_000))
                .raw_input("small"),
        ))
        .into(),
    );
    let call = thread.tool_call(&"c".into()).unwrap();
    assert!(call.is_truncated && call.raw_output.is_none());
    assert_eq!(
        (call.title.as_str(), &call.raw_input),
        ("Read it", &Some(Value::from("small")))
    );
    // In version 2, in chunks.
    let piece = |n: usize| {
        json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
               "content": {"type": "content", "content": {"type": "text", "text": n.to_string()}}})
    };
    for n in 0..1_000 {
        let update: v2::SessionUpdate = serde_json::from_value(piece(n)).unwrap();
        thread.apply(&update.into());
    }
    let call = thread.tool_call(&"c".into()).unwrap();
    assert!(call.content.len() < 200, "{}", call.content.len());
    assert_eq!(thread.items().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn threads_respect_the_configured_limit() {
    let limits = limits_with(|l| l.thread = 50_000);
    let (session, mut peer) =
        TestPeer::open_client_session_with(NoopClient, limits, json!({})).await;
    for n in 0..500 {
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": n.to_string(), "title": "T"});
        peer.update("s", call).await;
    }
    wait_until_idle().await;
    let dropped = session.thread().read(Thread::truncation);
    assert!(dropped.items > 400, "{dropped:?}");
    assert_alive(&session, &mut peer).await;
}
