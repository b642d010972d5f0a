//! A scripted peer, which reads and writes raw messages.

use std::panic::Location;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::DuplexStream;

use super::record::LineHistory;
use super::{DEFAULT_TIMEOUT, start_agent, start_client};
use crate::client::AgentConnection;
use crate::{Agent, Client, Connection, Options, Transport};

/// The capacity of the pipe in each direction, in bytes, the same as for pipes on Linux.
const PIPE_CAPACITY: usize = 64 * 1024;

/// A peer that a test controls message by message. It never responds on its own, and reads messages only when the test
/// asks for them.
///
/// Methods that start with `expect_` read the next message, and panic if it is not the expected one.
///
/// Each direction is a separate pipe, so a test can close only one of them.
#[derive(Debug)]
pub struct ScriptedPeer {
    pub(super) input: Option<DuplexStream>,
    pub(super) output: Option<DuplexStream>,
    /// Input that was read but not yet processed.
    pub(super) buffer: Vec<u8>,
    pub(super) patience: Duration,
    pub(super) history: LineHistory,
    pub(super) last_id: i64,
}

/// Methods that create a peer.
impl ScriptedPeer {
    /// Creates a peer, and the transport for the program under test.
    #[must_use]
    pub fn pair() -> (Transport, Self) {
        Self::pair_with(PIPE_CAPACITY)
    }

    /// Creates a peer like [`pair`](Self::pair), with a capacity of `bytes` bytes for each pipe.
    #[must_use]
    pub fn pair_with(bytes: usize) -> (Transport, Self) {
        let (their_output, our_input) = tokio::io::duplex(bytes);
        let (our_output, their_input) = tokio::io::duplex(bytes);
        let peer = Self {
            input: Some(our_input),
            output: Some(our_output),
            buffer: Vec::new(),
            patience: DEFAULT_TIMEOUT,
            history: LineHistory::default(),
            last_id: 0,
        };
        (Transport::new(their_input, their_output), peer)
    }

    /// Connects `agent` to a new peer, which acts as a client that has sent nothing yet. Returns the agent's end of the
    /// connection and the peer. Must be called in a tokio runtime.
    #[must_use]
    pub fn connect_agent(agent: impl Agent) -> (Connection, Self) {
        Self::connect_agent_with(agent, Options::default())
    }

    /// Connects `agent` like [`connect_agent`](Self::connect_agent), with options for the agent.
    #[must_use]
    pub fn connect_agent_with(
        agent: impl Agent,
        options: impl Into<Options>,
    ) -> (Connection, Self) {
        let (transport, peer) = Self::pair();
        (start_agent(transport, agent, options), peer)
    }

    /// Connects `client` to a new peer, which acts as a version 1 agent without capabilities.
    ///
    /// # Panics
    /// The client fails to connect.
    #[track_caller]
    pub fn connect_client(client: impl Client) -> impl Future<Output = (AgentConnection, Self)> {
        Self::connect_client_with(client, Options::default(), json!({"protocolVersion": 1}))
    }

    /// Connects `client` like [`connect_client`](Self::connect_client), with options for the client. The peer responds
    /// to `initialize` with the given response.
    ///
    /// # Panics
    /// Under the same conditions as [`connect_client`](Self::connect_client).
    #[track_caller]
    pub fn connect_client_with(
        client: impl Client,
        options: impl Into<Options>,
        initialized: Value,
    ) -> impl Future<Output = (AgentConnection, Self)> {
        let caller = Location::caller();
        let (transport, mut peer) = Self::pair();
        let connecting = start_client(transport, client, options);
        async move {
            let answering = async {
                let call = peer.expect_request_at(caller, "initialize").await;
                peer.answer(&call.id, initialized).await;
            };
            let (agent, ()) = tokio::join!(connecting, answering);
            match agent {
                Ok(agent) => (agent, peer),
                Err(error) => panic!("{caller}: the client failed to connect: {error}"),
            }
        }
    }

    /// Sets how long the peer waits for a message to arrive, or for the other side to read one. The default is
    /// [`DEFAULT_TIMEOUT`].
    pub fn set_timeout(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

/// Methods that close, split and join the pipes of a peer.
impl ScriptedPeer {
    /// Closes the pipe to the other side, which then reads the end of its input.
    pub fn stop_writing(&mut self) {
        self.output = None;
    }

    /// Closes the pipe from the other side, so that its writes fail from now on.
    pub fn stop_reading(&mut self) {
        self.input = None;
    }

    /// Returns the pipe to the other side, for example to check how much that side has read. Returns `None` after
    /// [`stop_writing`](Self::stop_writing).
    pub fn output(&mut self) -> Option<&mut DuplexStream> {
        self.output.as_mut()
    }

    /// Returns the pipe from the other side, without any input that is already in the peer's buffer. Returns `None`
    /// after [`stop_reading`](Self::stop_reading).
    pub fn input(&mut self) -> Option<&mut DuplexStream> {
        self.input.as_mut()
    }

    /// Splits the peer into a reading half and a writing half, so that a test can do both concurrently.
    #[must_use]
    pub fn split(mut self) -> (Self, Self) {
        let writing = Self {
            input: None,
            output: self.output.take(),
            buffer: Vec::new(),
            patience: self.patience,
            history: LineHistory::default(),
            last_id: self.last_id,
        };
        (self, writing)
    }

    /// Joins the two halves that [`split`](Self::split) returned.
    #[must_use]
    pub fn join(mut self, writing: Self) -> Self {
        self.output = writing.output;
        self.last_id = writing.last_id;
        self
    }
}
