//! Tests of forks that end at a message, in both versions.

use std::sync::Arc;

use acp::agent::{ForkAtMessage, ForkSession, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::testing::{NoopClient, connect_with};
use acp::v1::{MessageId, SessionId, StopReason};
use acp::{Agent, Error, Options, Result, jsonrpc};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::common::{TestPeer, wait_for_thread, with_timeout};

/// An agent that says in a new session from where it was copied. Its turns run until they are let go.
#[derive(Default)]
struct CopyingAgent {
    copies_whole_sessions_only: bool,
    let_go: Arc<Notify>,
}

impl Agent for CopyingAgent {
    type State = String;

    async fn new_session(
        &self,
        _: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<Self::State>> {
        Ok(OpenedSession::with_state("new".to_owned()))
    }

    async fn prompt(&self, state: &Self::State, turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message(state.as_str()).await?;
        self.let_go.notified().await;
        Ok(StopReason::EndTurn)
    }

    fn fork_session(&self) -> Option<&impl ForkSession<Self::State>> {
        Some(self)
    }

    fn fork_at_message(&self) -> Option<&impl ForkAtMessage<Self::State>> {
        (!self.copies_whole_sessions_only).then_some(self)
    }
}

impl ForkSession<String> for CopyingAgent {
    async fn fork(
        &self,
        from: &SessionId,
        _: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<String>> {
        Ok(OpenedSession::with_state(format!("all of {from}")))
    }
}

impl ForkAtMessage<String> for CopyingAgent {
    async fn fork_at(
        &self,
        from: &SessionId,
        last: &MessageId,
        _: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<String>> {
        Ok(OpenedSession::with_state(format!("{from} up to {last}")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_copied_up_to_a_message_but_not_during_a_turn() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let agent = CopyingAgent::default();
        let let_go = Arc::clone(&agent.let_go);
        let (agent, _serving) = connect_with(agent, NoopClient, options).await;
        assert!(agent.supports_fork_at_message());
        let session = agent.new_session("/garden").await.unwrap();
        let turn = tokio::spawn({
            let session = session.clone();
            async move { session.prompt("go").await }
        });
        let says = |text: String| {
            let thread = session.thread().clone();
            async move {
                let says = |thread: &acp::Thread| format!("{:?}", thread.items()).contains(&text);
                wait_for_thread(&thread, says).await
            }
        };
        says("new".to_owned()).await;
        let fork = || agent.fork_session_at(session.id().clone(), "m7", "/garden");
        let error = fork().await.unwrap_err();
        let error = error.peer_error().unwrap();
        assert_eq!(error.code, jsonrpc::Error::INVALID_REQUEST);
        assert!(error.message.contains("a turn is running"), "{error:?}");
        // The whole session can be copied at any time.
        agent
            .fork_session(session.id().clone(), "/garden")
            .await
            .unwrap();

        let_go.notify_one();
        with_timeout("the turn ends", turn).await.unwrap().unwrap();
        let copy = fork().await.unwrap();
        let_go.notify_one();
        copy.prompt("go").await.unwrap();
        let expected = format!("{} up to m7", session.id());
        copy.thread().read(|thread| {
            let shown = format!("{:?}", thread.items());
            assert!(shown.contains(&expected), "{shown}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_copies_only_whole_sessions_is_not_asked_for_less() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let agent = CopyingAgent {
            copies_whole_sessions_only: true,
            ..CopyingAgent::default()
        };
        let (agent, _serving) = connect_with(agent, NoopClient, options).await;
        assert!(!agent.supports_fork_at_message());
        let session = agent.new_session("/garden").await.unwrap();
        let forked = agent.fork_session_at(session.id().clone(), "m7", "/garden");
        let error = forked.await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    }
}

fn fork_params(session: &str, fork: &Value) -> Value {
    json!({
        "sessionId": session,
        "cwd": "/garden",
        "_meta": {"jetbrains": {"air": {"fork": fork}}},
    })
}

#[tokio::test(start_paused = true)]
async fn a_message_is_never_ignored() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(CopyingAgent::default());
    let said = peer.initialize(json!({})).await;
    let declared = &said["agentCapabilities"]["_meta"]["jetbrains"]["air"]["fork"];
    assert_eq!(*declared, json!({"version": 1, "inclusive": true}));
    let known = json!({"version": 1, "messageId": "m7", "messageFingerprint": "sha256:0"});
    peer.send_request(1, "session/fork", fork_params("old", &known))
        .await;
    peer.expect_result(1).await;
    for (id, fork) in (2..).zip([
        json!({"version": 2, "messageId": "m7"}),
        json!({"version": 1, "messageId": ""}),
        json!(true),
    ]) {
        peer.send_request(id, "session/fork", fork_params("old", &fork))
            .await;
        assert_eq!(peer.expect_error(id).await.0, -32602, "{fork}");
    }

    let (_conn, mut peer) = TestPeer::connect_to_agent(CopyingAgent {
        copies_whole_sessions_only: true,
        ..CopyingAgent::default()
    });
    let said = peer.initialize(json!({})).await;
    assert_eq!(said["agentCapabilities"]["_meta"], Value::Null);
    peer.send_request(1, "session/fork", fork_params("old", &known))
        .await;
    let (code, message) = peer.expect_error(1).await;
    assert_eq!(code, -32602);
    assert!(message.contains("only a whole session"), "{message}");
}
