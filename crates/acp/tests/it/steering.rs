//! Tests of `_session/steering` in both versions.

use std::sync::{Arc, Mutex};

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, SteerTurn, Turn};
use acp::testing::{NoopClient, connect, connect_with};
use acp::v1::{SteeringOutcome, StopReason};
use acp::{Error, Options, Result};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::common::{TestPeer, idle_agent, wait_for_thread, with_timeout};

/// An agent that repeats each message during a turn, until it receives `stop`.
struct SteeredAgent {
    mouth: mpsc::UnboundedSender<String>,
    ear: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
}

impl SteeredAgent {
    fn new() -> Self {
        let (mouth, ear) = mpsc::unbounded_channel();
        let ear = Mutex::new(Some(ear));
        Self { mouth, ear }
    }
}

impl Agent for SteeredAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let ear = self.ear.lock().unwrap().take();
        let mut ear = ear.ok_or_else(|| Error::internal("one turn alone"))?;
        turn.send_message("I listen").await?;
        while let Some(heard) = ear.recv().await {
            turn.send_message(format!(" / {heard}")).await?;
            if heard == "stop" {
                break;
            }
        }
        Ok(StopReason::EndTurn)
    }

    fn steer_turn(&self) -> Option<&impl SteerTurn> {
        Some(self)
    }
}

impl SteerTurn for SteeredAgent {
    async fn steer(&self, (): &(), _: &Session, message: &Prompt) -> Result<bool> {
        Ok(self.mouth.send(message.text()).is_ok())
    }
}

#[tokio::test(start_paused = true)]
async fn steering_reaches_only_the_running_turn() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let (agent, _serving) = connect_with(SteeredAgent::new(), NoopClient, options).await;
        assert!(agent.supports_steering());
        let session = agent.new_session("/garden").await.unwrap();
        let early = session.steer("too early").await.unwrap();
        assert_eq!(early.outcome, SteeringOutcome::PromptRequired);
        assert_eq!(early.reason.as_deref(), Some("noRunningTurn"));

        let turn = tokio::spawn({
            let session = session.clone();
            async move { session.prompt("listen").await }
        });
        let says = |text: &'static str| {
            let thread = session.thread().clone();
            async move {
                wait_for_thread(&thread, |thread| {
                    format!("{:?}", thread.items()).contains(text)
                })
                .await
            }
        };
        says("I listen").await;
        for word in ["left", "stop"] {
            let taken = session.steer(word).await.unwrap();
            assert_eq!(taken.outcome, SteeringOutcome::Injected, "{word}");
        }
        let ended = with_timeout("the turn ends", turn).await.unwrap().unwrap();
        assert_eq!(ended, StopReason::EndTurn);
        says(" / stop").await;

        let late = session.steer("too late").await.unwrap();
        assert_eq!(late.outcome, SteeringOutcome::PromptRequired);
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_methods_are_not_sent() {
    let (agent, _serving) = connect(idle_agent(), NoopClient).await;
    assert!(!agent.supports_steering());
    let session = agent.new_session("/garden").await.unwrap();
    let error = session.steer("left").await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");

    // For an agent without steering, this is an unknown extension method.
    let (_conn, mut peer, session) = TestPeer::open_agent_session(idle_agent()).await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "left"}]});
    peer.send_request(1, "_session/steering", params).await;
    assert_eq!(peer.expect_error(1).await.0, -32601);
}

#[tokio::test(start_paused = true)]
async fn an_empty_message_is_rejected() {
    let (_conn, mut peer, session) = TestPeer::open_agent_session(SteeredAgent::new()).await;
    let params = json!({"sessionId": session, "prompt": []});
    peer.send_request(1, "_session/steering", params).await;
    assert_eq!(peer.expect_error(1).await.0, -32602);
    peer.send_request(2, "_session/steering", json!({"sessionId": session}))
        .await;
    assert_eq!(peer.expect_error(2).await.0, -32602);
}

/// An agent that is slow to end a cancelled turn.
struct SlowCancelAgent(Arc<Notify>);

impl Agent for SlowCancelAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let cancelled = turn.take_cancellation();
        turn.send_message("I work").await?;
        cancelled.cancelled().await;
        turn.send_message(", and I stop").await?;
        self.0.notified().await;
        Ok(StopReason::Cancelled)
    }

    fn steer_turn(&self) -> Option<&impl SteerTurn> {
        Some(self)
    }
}

impl SteerTurn for SlowCancelAgent {
    async fn steer(&self, (): &(), _: &Session, _: &Prompt) -> Result<bool> {
        Ok(true)
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_accepts_no_steering() {
    let ended = Arc::new(Notify::new());
    let (agent, _serving) = connect(SlowCancelAgent(Arc::clone(&ended)), NoopClient).await;
    let session = agent.new_session("/garden").await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("work").await }
    });
    let says = async |text: &str| {
        let shows = |thread: &acp::Thread| format!("{:?}", thread.items()).contains(text);
        wait_for_thread(session.thread(), shows).await;
    };
    says("I work").await;
    let taken = session.steer("faster").await.unwrap();
    assert_eq!(taken.outcome, SteeringOutcome::Injected);
    session.cancel().await.unwrap();
    says("I stop").await;
    let refused = session.steer("do something else").await.unwrap();
    assert_eq!(refused.outcome, SteeringOutcome::PromptRequired);
    ended.notify_one();
    let stopped = with_timeout("the turn ends", turn).await.unwrap().unwrap();
    assert_eq!(stopped, StopReason::Cancelled);
}
