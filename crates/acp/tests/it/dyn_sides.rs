//! Tests of agents and clients as trait objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp::agent::{DynAgent, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::client::DynClient;
use acp::testing::NoopClient;
use acp::v1::StopReason;
use acp::{Agent, Client, Options, Result, transport};

use crate::common::{thread_lines, with_timeout};

/// An agent that sends a word and the number of times it has sent that word.
struct WordCountAgent(&'static str, AtomicUsize);

impl Agent for WordCountAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let times = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        turn.send_message(format!("{} {times}", self.0)).await?;
        Ok(StopReason::EndTurn)
    }
}

/// An agent whose type is not `WordCountAgent`.
struct FailingAgent;

impl Agent for FailingAgent {
    type State = u8;

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession<u8>> {
        Ok(OpenedSession::with_state(0))
    }

    async fn prompt(&self, _: &u8, turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message("no").await?;
        Ok(StopReason::Refusal)
    }
}

/// A client whose type is not `NoopClient`.
struct QuietClient;

impl Client for QuietClient {
    type State = ();
}

#[tokio::test(start_paused = true)]
async fn trait_objects_serve_several_connections() {
    let agents: [Arc<dyn DynAgent>; 2] = [
        Arc::new(WordCountAgent("hello", AtomicUsize::new(0))),
        Arc::new(FailingAgent),
    ];
    let clients: [Arc<dyn DynClient>; 2] = [Arc::new(NoopClient), Arc::new(QuietClient)];
    let mut said = Vec::new();
    for agent in &agents {
        for client in &clients {
            let (ours, theirs) = transport::memory();
            let serving = tokio::spawn(Arc::clone(agent).serve(theirs));
            let (handshake, driver) = Arc::clone(client).connect(ours, Options::new());
            tokio::spawn(driver);
            let agent = with_timeout("a connection", handshake).await.unwrap();
            let session = agent.new_session("/").await.unwrap();
            let end = with_timeout("a turn", session.prompt("go")).await.unwrap();
            said.push(format!(
                "{}: {end}",
                thread_lines(session.thread()).join(", ")
            ));
            agent.close();
            drop((agent, session));
            with_timeout("the end", serving).await.unwrap().unwrap();
        }
    }
    assert_eq!(
        said,
        [
            "user: go, agent: hello 1: end_turn",
            "user: go, agent: hello 2: end_turn",
            "user: go, agent: no: refusal",
            "user: go, agent: no: refusal",
        ]
    );
}
