//! For tests of agents and clients: a connection in memory, and a scripted peer.
//!
//! Behind the cargo feature `testing`, for `dev-dependencies` alone:
//!
//! ```toml
//! [dev-dependencies]
//! acp-sdk = { version = "0.1", features = ["testing"] }
//! ```
//!
//! - [`connect`] joins an agent and a client of this library, as if one had started the other.
//! - [`ScriptedPeer`] is the other end itself, as the lines that go over the wire: for what a peer of this
//!   library would never do, and for the exact words of a message.
//! - [`NoopClient`] is the client for a test of an agent, [`PromptAgent`] the agent for a test of a client.
//!
//! What does not happen as it must **panics**, with what was expected, what came instead, and what had
//! been exchanged before. So none of this belongs into a program.
//!
//! Nothing here waits for ever: each wait has its [patience](ScriptedPeer::set_patience). On Tokio's paused time
//! (`#[tokio::test(start_paused = true)]`) it is over as soon as every task waits, so a test that fails
//! fails at once.
//!
//! The chapter [`guide::testing`](crate::guide::testing) shows how to use it.

// What it is for.
#![allow(clippy::panic, reason = "it is for tests, which end so")]

mod peer;
mod receiving;
mod record;
mod sending;

use std::panic::Location;
use std::time::Duration;

use acp_wire::v1::StopReason;

pub use peer::ScriptedPeer;
pub use receiving::ReceivedRequest;

use crate::agent::{OpenedSession, Prompt, Session, SessionSetup, Turn};
use crate::client::{AgentConnection, Handshake};
use crate::error::Result;
use crate::{Agent, Client, Connection, Options, Thread, ThreadHandle, Transport, transport};

/// How long something that must happen may take, unless said otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An agent and a client, connected to each other in memory. Version 1 is spoken.
///
/// Gives the agent as the client has it, and the agent's end of the connection, which is there to be
/// closed or looked at; it may be dropped. The connection ends when the [`AgentConnection`] is dropped
/// with all its sessions.
///
/// # Panics
/// The two do not agree, which can only be a mistake of this library's.
#[track_caller]
pub fn connect(
    agent: impl Agent,
    client: impl Client,
) -> impl Future<Output = (AgentConnection, Connection)> {
    connect_with(agent, client, Options::default())
}

/// As [`connect`], with options of your own for both: version 2 is spoken with
/// [`Options::draft_version_2`].
///
/// # Panics
/// As [`connect`].
#[track_caller]
pub fn connect_with(
    agent: impl Agent,
    client: impl Client,
    options: impl Into<Options>,
) -> impl Future<Output = (AgentConnection, Connection)> {
    let caller = Location::caller();
    let options = options.into();
    async move {
        let (ours, theirs) = transport::memory();
        let serving = start_agent(theirs, agent, options.clone());
        let connecting = start_client(ours, client, options);
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(Ok(agent)) => (agent, serving),
            Ok(Err(error)) => panic!("{caller}: the two do not connect: {error}"),
            Err(_) => panic!("{caller}: the two have not connected in {PATIENCE:?}"),
        }
    }
}

/// As [`agent::start`](crate::agent::start), with the driver spawned on tokio.
pub fn start_agent(
    transport: Transport,
    agent: impl Agent,
    options: impl Into<Options>,
) -> Connection {
    let (conn, driver) = crate::agent::start(transport, agent, options);
    tokio::spawn(driver);
    conn
}

/// As [`client::connect_with`](crate::client::connect_with), with the driver spawned on tokio.
pub fn start_client(
    transport: Transport,
    client: impl Client,
    options: impl Into<Options>,
) -> Handshake {
    let (handshake, driver) = crate::client::connect_with(transport, client, options);
    tokio::spawn(driver);
    handshake
}

/// Waits until a session's thread shows what is looked for.
///
/// # Panics
/// It does not within [`PATIENCE`].
#[track_caller]
pub fn wait_for_thread(
    thread: &ThreadHandle,
    found: impl Fn(&Thread) -> bool,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let looking = async {
            let mut seen = 0;
            while !thread.read(&found) {
                seen = thread.changed(seen).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            let shown = thread.read(|thread| format!("{:#?}", thread.items()));
            panic!(
                "{caller}: in {PATIENCE:?} the thread has not come to show it; it shows {shown}"
            );
        }
    }
}

/// A client that offers nothing and does nothing: permission requests are rejected.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopClient;

impl Client for NoopClient {
    type State = ();
}

/// An agent that is what it does with a prompt.
///
/// ```
/// use acp::testing::{NoopClient, PromptAgent, connect};
/// use acp::v1::StopReason;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> acp::Result<()> {
/// let agent = PromptAgent(async |turn: acp::agent::Turn, _| {
///     turn.message("done").await?;
///     Ok(StopReason::EndTurn)
/// });
/// let (agent, _) = connect(agent, NoopClient).await;
/// let session = agent.new_session("/").await?;
/// assert_eq!(session.prompt("do it").await?, StopReason::EndTurn);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PromptAgent<F>(pub F);

impl<F, Fut> Agent for PromptAgent<F>
where
    F: Fn(Turn, Prompt) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<StopReason>> + Send,
{
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    fn prompt(
        &self,
        (): &(),
        turn: Turn,
        prompt: Prompt,
    ) -> impl Future<Output = Result<StopReason>> + Send {
        (self.0)(turn, prompt)
    }
}
