//! Tests of the scripted peer and the in-memory connection, as used through the `testing` module.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use acp::agent::{Prompt, Turn};
use acp::client::Update;
use acp::testing::{NoopClient, PromptAgent, ScriptedPeer, connect, connect_with, wait_for_thread};
use acp::thread::ItemKind;
use acp::v1::{ProtocolVersion, StopReason};
use acp::{Agent, Client, CloseReason, Options, Result, jsonrpc};
use serde_json::{Value, json};

/// An agent that repeats the prompt.
struct EchoingAgent;

impl Agent for EchoingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        turn.send_message(prompt.text()).await?;
        Ok(StopReason::EndTurn)
    }
}

fn agent_texts(session: &acp::client::ClientSession) -> Vec<String> {
    session.thread().read(|thread| {
        let said = thread.items().iter().filter_map(|item| match &item.kind {
            ItemKind::Agent(message) => Some(message.text()),
            _ => None,
        });
        said.collect()
    })
}

/// Returns the panic message of `work`.
async fn panic_message(work: impl Future<Output = ()>) -> String {
    let mut work = std::pin::pin!(work);
    // Checks the message, not the output of the test.
    let panicked = std::future::poll_fn(|cx| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled.map(|()| None),
            Err(panic) => std::task::Poll::Ready(Some(panic)),
        }
    });
    let panic = panicked.await.expect("it panics");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[tokio::test]
async fn an_agent_and_a_client_connect_in_memory_in_both_versions() {
    for (options, version) in [
        (Options::new(), ProtocolVersion::V1),
        (Options::new().draft_version_2(), ProtocolVersion::V2),
    ] {
        let (agent, theirs) = connect_with(EchoingAgent, NoopClient, options).await;
        assert_eq!(agent.version(), version);
        let session = agent.new_session("/").await.unwrap();
        assert_eq!(session.prompt("hi").await.unwrap(), StopReason::EndTurn);
        assert_eq!(agent_texts(&session), ["hi"]);
        drop((agent, session));
        assert!(matches!(theirs.closed().await, CloseReason::Peer));
    }
}

#[tokio::test]
async fn a_cancelled_turn_is_visible_in_the_thread() {
    let agent = PromptAgent(async |turn: Turn, _| {
        turn.send_message("begun").await?;
        std::future::pending().await
    });
    let (agent, _) = connect(agent, NoopClient).await;
    let session = agent.new_session("/").await.unwrap();
    let (stopped, ()) = tokio::join!(session.prompt("go on"), async {
        wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
        session.cancel().await.unwrap();
    });
    assert_eq!(stopped.unwrap(), StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn wait_for_thread_reports_the_actual_state() {
    let (agent, _) = connect(EchoingAgent, NoopClient).await;
    let session = agent.new_session("/").await.unwrap();
    session.prompt("hi there").await.unwrap();
    let message = panic_message(wait_for_thread(session.thread(), |thread| {
        thread.title().is_some()
    }))
    .await;
    assert!(message.contains("tests/it/testing.rs:"), "{message}");
    assert!(message.contains("hi there"), "{message}");
}

#[tokio::test]
async fn a_scripted_client_tests_an_agent() {
    let (conn, mut peer) = ScriptedPeer::connect_agent(EchoingAgent);
    assert_eq!(peer.initialize().await["protocolVersion"], 1);
    let session = peer.open_session().await;
    let prompt = peer.prompt(&session, "hi").await;
    let chunk = peer.expect_update("agent_message_chunk").await;
    assert_eq!(chunk["content"]["text"], "hi");
    let result = peer.expect_answer(prompt).await;
    assert_eq!(result, json!({"stopReason": "end_turn"}));

    let again = peer.prompt(&session, "again").await;
    let (updates, result) = peer.expect_updates_until_answer(again).await;
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["sessionId"], *session);
    assert_eq!(result["stopReason"], "end_turn");

    let lost = peer.prompt("no such session", "hi").await;
    let error = peer.expect_error(lost).await;
    assert_eq!(error.code, jsonrpc::Error::RESOURCE_NOT_FOUND);
    peer.send_line("not JSON").await;
    let error = peer.expect_error(Value::Null).await;
    assert_eq!(error.code, jsonrpc::Error::PARSE_ERROR);
    conn.close();
    peer.expect_end().await;
}

/// A client that allows everything, and records updates.
#[derive(Clone, Default)]
struct AllowingClient(std::sync::Arc<std::sync::Mutex<String>>);

impl Client for AllowingClient {
    type State = ();

    async fn update(&self, (): &(), _: &acp::client::UpdateContext, update: &Update) {
        let text = update.message_text().unwrap_or_default();
        self.0.lock().unwrap().push_str(text);
    }
    async fn request_permission(
        &self,
        (): &(),
        request: acp::client::PermissionRequest,
    ) -> Result<acp::v1::RequestPermissionOutcome> {
        Ok(request.allow())
    }
}

#[tokio::test]
async fn a_scripted_agent_tests_a_client() {
    let client = AllowingClient::default();
    let (agent, mut peer) = ScriptedPeer::connect_client(client.clone()).await;
    let (session, ()) = tokio::join!(agent.new_session("/"), peer.answer_new_session("s"));
    let session = session.unwrap();
    let script = async {
        let prompt = peer.expect_request("session/prompt").await;
        assert_eq!(prompt.params["prompt"][0]["text"], "hi");
        peer.send_message_chunk("s", "one ").await;
        peer.send_message_chunk("s", "two").await;
        let params = json!({
            "sessionId": "s",
            "toolCall": {"toolCallId": "c"},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
        });
        let asked = peer.request("session/request_permission", params).await;
        let outcome = &peer.expect_answer(asked).await["outcome"];
        assert_eq!(*outcome, json!({"outcome": "selected", "optionId": "y"}));
        let done = json!({"stopReason": "end_turn"});
        peer.answer(&prompt.id, done).await;
    };
    let (stopped, ()) = tokio::join!(session.prompt("hi"), script);
    assert_eq!(stopped.unwrap(), StopReason::EndTurn);
    assert_eq!(*client.0.lock().unwrap(), "one two");
    assert_eq!(agent_texts(&session), ["one two"]);

    let (failed, ()) = tokio::join!(session.prompt("again"), async {
        let prompt = peer.expect_request("session/prompt").await;
        let error = jsonrpc::Error::internal("no more");
        peer.answer_error(&prompt.id, &error).await;
    });
    assert!(failed.unwrap_err().to_string().contains("no more"));
    session.cancel().await.unwrap();
    peer.expect_nothing(Duration::from_millis(1)).await;
}

#[tokio::test]
async fn a_scripted_agent_can_use_version_2() {
    let answer = json!({
        "protocolVersion": 2,
        "info": {"name": "scripted", "version": "1"},
        "capabilities": {"session": {}},
    });
    let options = Options::new().draft_version_2();
    let (agent, mut peer) = ScriptedPeer::connect_client_with(NoopClient, options, answer).await;
    assert_eq!(agent.version(), ProtocolVersion::V2);
    let (session, ()) = tokio::join!(agent.new_session("/"), peer.answer_new_session("s"));
    let session = session.unwrap();
    let (stopped, ()) = tokio::join!(session.prompt("hi"), async {
        let prompt = peer.expect_request("session/prompt").await;
        let answer = json!({"messageId": "user"});
        peer.answer(&prompt.id, answer).await;
        let running = json!({"sessionUpdate": "state_update", "state": "running"});
        peer.update("s", running).await;
        peer.send_message_chunk("s", "done").await;
        let idle =
            json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"});
        peer.update("s", idle).await;
    });
    assert_eq!(stopped.unwrap(), StopReason::EndTurn);
    assert_eq!(agent_texts(&session), ["done"]);
}

#[tokio::test(start_paused = true)]
async fn unexpected_messages_are_reported_with_earlier_ones() {
    let (_conn, mut peer) = ScriptedPeer::connect_agent(EchoingAgent);
    peer.initialize().await;
    let session = peer.open_session().await;
    peer.prompt(&session, "surprise").await;
    let message = panic_message(async {
        peer.expect_request("session/request_permission").await;
    })
    .await;
    let (instead, before) = message.split_once("earlier messages").unwrap();
    assert!(instead.contains("tests/it/testing.rs:"), "{message}");
    assert!(
        instead.contains("expected the request session/request_permission, but received:"),
        "{message}"
    );
    assert!(instead.contains("\"surprise\""), "{message}");
    // What was sent, and what was received.
    let lines: Vec<&str> = before.lines().skip(1).collect();
    let ways: Vec<&str> = lines.iter().map(|line| &line[2..4]).collect();
    assert_eq!(ways, ["->", "<-", "->", "<-", "->"], "{message}");
    assert!(lines[4].contains("session/prompt"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn missing_messages_are_reported_after_the_timeout() {
    let (_conn, mut peer) =
        ScriptedPeer::connect_agent(PromptAgent(async |_, _| std::future::pending().await));
    peer.initialize().await;
    let session = peer.open_session().await;
    let prompt = peer.prompt(&session, "hang").await;
    peer.set_timeout(Duration::from_secs(3));
    let begun = tokio::time::Instant::now();
    let message = panic_message(async {
        peer.expect_answer(prompt).await;
    })
    .await;
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert!(
        message.contains("expected the response to request 3, but received nothing within 3s"),
        "{message}"
    );
    assert!(message.contains("session/prompt"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn closed_and_full_pipes_are_reported() {
    let (transport, mut peer) = ScriptedPeer::pair_with(16);
    let message = panic_message(peer.send_line("longer than sixteen bytes")).await;
    assert!(
        message.contains("the other side did not read the message within 10s"),
        "{message}"
    );
    drop(transport);
    let message = panic_message(async {
        peer.next_message().await;
    })
    .await;
    assert!(
        message
            .contains("expected a JSON-RPC 2.0 message, but the other side closed the connection"),
        "{message}"
    );
    let message = panic_message(peer.send_line("any")).await;
    assert!(
        message.contains("the other side stopped reading"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_most_recent_messages_are_reported() {
    let (_conn, mut peer) = ScriptedPeer::connect_agent(EchoingAgent);
    peer.initialize().await;
    let session = peer.open_session().await;
    for n in 0..20 {
        let prompt = peer.prompt(&session, &n.to_string().repeat(500)).await;
        peer.expect_updates_until_answer(prompt).await;
    }
    let message = panic_message(peer.expect(json!({"jsonrpc": "2.0"}))).await;
    assert!(message.contains("earlier lines omitted"), "{message}");
    assert!(message.len() < 20_000, "{}", message.len());
}
