//! Support for testing agents and clients, with an in-memory connection and a scripted peer.
//!
//! Requires the cargo feature `testing`. Enable it only in `dev-dependencies`:
//!
//! ```toml
//! [dev-dependencies]
//! acp-sdk = { version = "0.1", features = ["testing"] }
//! ```
//!
//! - [`connect`] connects an agent and a client written with this library, as if the client had started the agent.
//! - [`ScriptedPeer`] reads and writes the lines on the wire. Use it to send what this library would never send, and to
//!   check the exact text of a message.
//! - [`NoopClient`] is the client for a test of an agent, [`PromptAgent`] the agent for a test of a client.
//!
//! A failed expectation **panics**. The panic message shows what was expected, what was received instead, and the
//! earlier messages. Use this module only in tests.
//!
//! No call waits forever: each wait has a [timeout](ScriptedPeer::set_timeout). With Tokio's paused time
//! (`#[tokio::test(start_paused = true)]`), the timeout elapses as soon as every task is waiting, so a failing test
//! fails at once.
//!
//! The chapter [`guide::testing`](crate::guide::testing) shows how to use this module.

#![allow(clippy::panic, reason = "a failed expectation must fail the test")]

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

/// How long a test waits by default for a message or a state.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects an agent and a client in memory, using protocol version 1.
///
/// Returns the client's connection to the agent, and the agent's end of the connection. You can close or inspect the
/// connection with the agent's end, or drop that end. The connection ends when the [`AgentConnection`] and all its
/// sessions are dropped.
///
/// # Panics
/// The handshake fails, which would be a bug in this library.
#[track_caller]
pub fn connect(
    agent: impl Agent,
    client: impl Client,
) -> impl Future<Output = (AgentConnection, Connection)> {
    connect_with(agent, client, Options::default())
}

/// Connects an agent and a client like [`connect`], with options for each side. To use protocol version 2, set
/// [`Options::draft_version_2`].
///
/// # Panics
/// Under the same conditions as [`connect`].
#[track_caller]
pub fn connect_with(
    agent: impl Agent,
    client: impl Client,
    options: impl Into<Options>,
) -> impl Future<Output = (AgentConnection, Connection)> {
    let caller = Location::caller();
    let options = options.into();
    async move {
        let (client_transport, agent_transport) = transport::memory();
        let serving = start_agent(agent_transport, agent, options.clone());
        let connecting = start_client(client_transport, client, options);
        match tokio::time::timeout(DEFAULT_TIMEOUT, connecting).await {
            Ok(Ok(agent)) => (agent, serving),
            Ok(Err(error)) => {
                panic!("{caller}: the agent and the client failed to connect: {error}")
            }
            Err(_) => {
                panic!(
                    "{caller}: the agent and the client did not connect within {DEFAULT_TIMEOUT:?}"
                )
            }
        }
    }
}

/// Starts an agent like [`agent::start`](crate::agent::start), and spawns its driver on tokio.
pub fn start_agent(
    transport: Transport,
    agent: impl Agent,
    options: impl Into<Options>,
) -> Connection {
    let (conn, driver) = crate::agent::start(transport, agent, options);
    tokio::spawn(driver);
    conn
}

/// Connects a client like [`client::connect_with`](crate::client::connect_with), and spawns its driver on tokio.
pub fn start_client(
    transport: Transport,
    client: impl Client,
    options: impl Into<Options>,
) -> Handshake {
    let (handshake, driver) = crate::client::connect_with(transport, client, options);
    tokio::spawn(driver);
    handshake
}

/// Waits until `found` returns `true` for a session's thread.
///
/// # Panics
/// `found` does not return `true` within [`DEFAULT_TIMEOUT`].
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
        if tokio::time::timeout(DEFAULT_TIMEOUT, looking)
            .await
            .is_err()
        {
            let shown = thread.read(|thread| format!("{:#?}", thread.items()));
            panic!(
                "{caller}: the thread did not reach the expected state within {DEFAULT_TIMEOUT:?}; its items are {shown}"
            );
        }
    }
}

/// A client without optional capabilities. It rejects permission requests and ignores updates.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoopClient;

impl Client for NoopClient {
    type State = ();
}

/// An agent defined by a single function that handles its prompts.
///
/// ```
/// use acp::testing::{NoopClient, PromptAgent, connect};
/// use acp::v1::StopReason;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> acp::Result<()> {
/// let agent = PromptAgent(async |turn: acp::agent::Turn, _| {
///     turn.send_message("done").await?;
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
