//! A scripted peer, which reads and writes the lines on the wire.

use std::panic::Location;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::DuplexStream;

use super::record::LineHistory;
use super::{PATIENCE, start_agent, start_client};
use crate::client::AgentConnection;
use crate::{Agent, Client, Connection, Options, Transport};

/// The capacity of each direction in bytes, like that of a pipe.
const PIPE: usize = 64 * 1024;

/// A scripted peer, which reads and writes the lines on the wire. It does only what the test calls: it sends no
/// responses itself, and reads messages one after the other.
///
/// Methods that start with `expect_` read the next message, and panic if it is another one.
///
/// Each direction is a separate pipe, so that either can be closed alone.
#[derive(Debug)]
pub struct ScriptedPeer {
    pub(super) input: Option<DuplexStream>,
    pub(super) output: Option<DuplexStream>,
    /// Input that was read and not processed yet.
    pub(super) buffer: Vec<u8>,
    pub(super) patience: Duration,
    pub(super) history: LineHistory,
    pub(super) last_id: i64,
}

/// Creating a peer.
impl ScriptedPeer {
    /// Creates a peer and the transport at the other end.
    #[must_use]
    pub fn pair() -> (Transport, Self) {
        Self::pair_with(PIPE)
    }

    /// Creates a peer like [`pair`](Self::pair), with this capacity of each direction in bytes.
    #[must_use]
    pub fn pair_with(bytes: usize) -> (Transport, Self) {
        let (their_output, our_input) = tokio::io::duplex(bytes);
        let (our_output, their_input) = tokio::io::duplex(bytes);
        let peer = Self {
            input: Some(our_input),
            output: Some(our_output),
            buffer: Vec::new(),
            patience: PATIENCE,
            history: LineHistory::default(),
            last_id: 0,
        };
        (Transport::new(their_input, their_output), peer)
    }

    /// Creates a client of this agent, which has not sent anything yet, and the agent's end of the connection. Must
    /// be called in a Tokio runtime.
    #[must_use]
    pub fn connect_agent(agent: impl Agent) -> (Connection, Self) {
        Self::client_of_with_options(agent, Options::default())
    }

    /// Creates a client like [`connect_agent`](Self::connect_agent), with options for the agent.
    #[must_use]
    pub fn client_of_with_options(
        agent: impl Agent,
        options: impl Into<Options>,
    ) -> (Connection, Self) {
        let (transport, peer) = Self::pair();
        (start_agent(transport, agent, options), peer)
    }

    /// Creates an agent that this client has connected to, with version 1 and no capabilities.
    ///
    /// # Panics
    /// The client does not connect.
    #[track_caller]
    pub fn connect_client(client: impl Client) -> impl Future<Output = (AgentConnection, Self)> {
        Self::agent_of_with_options(client, Options::default(), json!({"protocolVersion": 1}))
    }

    /// Creates an agent like [`connect_client`](Self::connect_client), with options for the client, and with the
    /// agent's response to `initialize`.
    ///
    /// # Panics
    /// As [`connect_client`](Self::connect_client).
    #[track_caller]
    pub fn agent_of_with_options(
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

    /// Sets how long a message may take to arrive or to be read: [`PATIENCE`] by default.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

/// The pipes of a peer.
impl ScriptedPeer {
    /// Stops writing: the other side reads the end of the input.
    pub fn stop_writing(&mut self) {
        self.output = None;
    }

    /// Stops reading: writing fails on the other side.
    pub fn stop_reading(&mut self) {
        self.input = None;
    }

    /// Returns the writing end, for what has no method here, for example to see how much the other side reads. `None`
    /// when the peer has stopped writing.
    pub fn output(&mut self) -> Option<&mut DuplexStream> {
        self.output.as_mut()
    }

    /// Returns the reading end, for what has no method here. Input that was read along with earlier lines is not in
    /// it. `None` when the peer has stopped reading.
    pub fn input(&mut self) -> Option<&mut DuplexStream> {
        self.input.as_mut()
    }

    /// Splits the peer into one that only reads and one that only writes, for a test that does both at once.
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

    /// Joins the halves of [`split`](Self::split).
    #[must_use]
    pub fn join(mut self, writing: Self) -> Self {
        self.output = writing.output;
        self.last_id = writing.last_id;
        self
    }
}
