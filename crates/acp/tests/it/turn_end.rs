//! Tests that a client is notified when turns and sessions end, even if nothing is waiting for them.

use std::sync::{Arc, Mutex};

use acp::agent::{CloseSession, Prompt, Turn};
use acp::client::{AgentConnection, Client, ClientState};
use acp::testing::connect_with;
use acp::v1::{SessionId, StopReason};
use acp::{Agent, Connection, Error, Options, Result, ThreadHandle};

/// An agent whose prompts determine how each turn ends.
struct TurnEndAgent;

impl Agent for TurnEndAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        match prompt.text().as_str() {
            "fail" => Err(Error::internal("as you like")),
            "hang" => {
                turn.send_message("hanging").await?;
                std::future::pending().await
            }
            reason => Ok(StopReason::from(reason)),
        }
    }

    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }
}

impl CloseSession for TurnEndAgent {
    async fn close(&self, (): &(), _: &SessionId) -> Result<()> {
        Ok(())
    }
}

/// A client that records the notifications it receives.
#[derive(Clone, Default)]
struct TurnEndClient {
    said: Arc<Mutex<Vec<String>>>,
    more: Arc<tokio::sync::Notify>,
}

impl TurnEndClient {
    fn record(&self, what: String) {
        self.said.lock().unwrap().push(what);
        self.more.notify_one();
    }

    /// Returns the next notification.
    async fn next(&self) -> String {
        loop {
            {
                let mut said = self.said.lock().unwrap();
                if !said.is_empty() {
                    return said.remove(0);
                }
            }
            self.more.notified().await;
        }
    }
}

/// A session state that records how the session's turns end and when the session is closed.
struct TurnEndSession(TurnEndClient);

impl ClientState<TurnEndClient> for TurnEndSession {
    fn new(client: &TurnEndClient, _: &SessionId, _: &ThreadHandle) -> Self {
        Self(client.clone())
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let reason = stop_reason.map_or("failed", StopReason::as_str);
        self.0.record(reason.to_owned());
    }
}

impl Drop for TurnEndSession {
    fn drop(&mut self) {
        self.0.record("closed".to_owned());
    }
}

impl Client for TurnEndClient {
    type State = TurnEndSession;
}

async fn start_client(version: u16) -> (TurnEndClient, AgentConnection, Connection) {
    let options = match version {
        2 => Options::new().draft_version_2(),
        _ => Options::new(),
    };
    let told = TurnEndClient::default();
    let (agent, theirs) = connect_with(TurnEndAgent, told.clone(), options).await;
    (told, agent, theirs)
}

#[tokio::test(start_paused = true)]
async fn turn_ended_gets_the_stop_reason() {
    for version in [1, 2] {
        let (told, agent, _theirs) = start_client(version).await;
        let session = agent.new_session("/work").await.unwrap();
        for reason in ["end_turn", "max_tokens", "refusal"] {
            assert_eq!(session.prompt(reason).await.unwrap().as_str(), reason);
            assert_eq!(told.next().await, reason, "version {version}");
        }
        session.prompt("fail").await.unwrap_err();
        assert_eq!(told.next().await, "failed", "version {version}");
        session.close().await.unwrap();
        assert_eq!(told.next().await, "closed", "version {version}");
    }
}

#[tokio::test(start_paused = true)]
async fn turn_ended_is_called_for_dropped_prompts() {
    for version in [1, 2] {
        let (told, agent, _theirs) = start_client(version).await;
        let session = agent.new_session("/work").await.unwrap();
        let thread = session.thread().clone();
        let mut turn = Box::pin(session.prompt("hang"));
        let hanging = async {
            let mut seen = 0;
            while thread.read(|thread| thread.items().len() < 2) {
                seen = thread.changed(seen).await;
            }
        };
        tokio::select! {
            ended = &mut turn => panic!("{ended:?}"),
            () = hanging => {}
        }
        drop(turn);
        assert_eq!(told.next().await, "cancelled", "version {version}");
    }
}

#[tokio::test(start_paused = true)]
async fn turn_ended_is_called_when_the_connection_ends() {
    for version in [1, 2] {
        let (told, agent, theirs) = start_client(version).await;
        let session = agent.new_session("/work").await.unwrap();
        let turn = tokio::spawn(async move { session.prompt("hang").await });
        tokio::task::yield_now().await;
        theirs.close();
        turn.await.unwrap().unwrap_err();
        assert_eq!(told.next().await, "failed", "version {version}");
    }
}
