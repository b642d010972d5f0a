//! A scripted peer: the other end of a connection, as the lines that go over it.

use std::panic::Location;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::DuplexStream;

use super::record::LineHistory;
use super::{PATIENCE, start_agent, start_client};
use crate::client::AgentConnection;
use crate::{Agent, Client, Connection, Options, Transport};

/// How much each direction holds, in bytes: what a pipe does.
const PIPE: usize = 64 * 1024;

/// The other end of a connection, as the lines that go over it. It does what it is told and nothing
/// else: it answers no request by itself, and looks at what comes one message after the other.
///
/// Methods that begin with `expect_` read the next message, and panic if it is another one.
///
/// Each direction is a pipe of its own, so that either can be closed alone.
#[derive(Debug)]
pub struct ScriptedPeer {
    pub(super) input: Option<DuplexStream>,
    pub(super) output: Option<DuplexStream>,
    /// What has been read and not been looked at.
    pub(super) buffer: Vec<u8>,
    pub(super) patience: Duration,
    pub(super) history: LineHistory,
    pub(super) last_id: i64,
}

/// Making one.
impl ScriptedPeer {
    /// A peer, and the transport that it is at the other end of.
    #[must_use]
    pub fn pair() -> (Transport, Self) {
        Self::pair_with(PIPE)
    }

    /// As [`pair`](Self::pair); each direction holds so many bytes, and more waits to be read.
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

    /// A client of this agent, which has not said anything yet; and the agent's end of the connection.
    /// Must be called within a Tokio runtime.
    #[must_use]
    pub fn connect_agent(agent: impl Agent) -> (Connection, Self) {
        Self::client_of_with(agent, Options::default())
    }

    /// As [`connect_agent`](Self::connect_agent), with options for the agent.
    #[must_use]
    pub fn client_of_with(agent: impl Agent, options: impl Into<Options>) -> (Connection, Self) {
        let (transport, peer) = Self::pair();
        (start_agent(transport, agent, options), peer)
    }

    /// An agent that this client has connected to: it speaks version 1 and offers nothing beyond it.
    ///
    /// # Panics
    /// The client does not connect.
    #[track_caller]
    pub fn connect_client(client: impl Client) -> impl Future<Output = (AgentConnection, Self)> {
        Self::agent_of_with(client, Options::default(), json!({"protocolVersion": 1}))
    }

    /// As [`connect_client`](Self::connect_client), with options for the client, and with the agent's answer to
    /// `initialize`.
    ///
    /// # Panics
    /// As [`connect_client`](Self::connect_client).
    #[track_caller]
    pub fn agent_of_with(
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

    /// Sets how long a message may take to come, or to be taken: [`PATIENCE`] if it is not set.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

/// The pipes themselves.
impl ScriptedPeer {
    /// Writes nothing more: the other side reads the end.
    pub fn stop_writing(&mut self) {
        self.output = None;
    }

    /// Reads nothing more: what the other side writes fails.
    pub fn stop_reading(&mut self) {
        self.input = None;
    }

    /// What is written to, for what has no method here: to see how much the other side takes, for
    /// example. `None` when the peer has stopped writing.
    pub fn output(&mut self) -> Option<&mut DuplexStream> {
        self.output.as_mut()
    }

    /// What is read from, for what has no method here. What has been read with a line that was looked at
    /// is not in it any more. `None` when the peer has stopped reading.
    pub fn input(&mut self) -> Option<&mut DuplexStream> {
        self.input.as_mut()
    }

    /// A peer that only reads, and one that only writes, for a test that does both at once.
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

    /// The two of [`split`](Self::split) together again.
    #[must_use]
    pub fn join(mut self, writing: Self) -> Self {
        self.output = writing.output;
        self.last_id = writing.last_id;
        self
    }
}
