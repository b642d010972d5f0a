//! A scripted peer: the other end of a connection, as the lines that go over it.

use std::panic::Location;
use std::time::Duration;

use acp_wire::jsonrpc;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::PATIENCE;
use super::record::{Record, excerpt};
use crate::client::{AgentConnection, connect_with};
use crate::{Agent, Client, Connection, Options, Transport};

/// How much each direction holds, in bytes: what a pipe does.
const PIPE: usize = 64 * 1024;

/// The longest line that is read, in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// A request that has come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Its id, for the answer.
    pub id: Value,
    /// Its params; `null` if it has none.
    pub params: Value,
}

/// The other end of a connection, as the lines that go over it. It does what it is told and nothing
/// else: it answers no request by itself, and looks at what comes one message after the other.
///
/// Methods that begin with `expect_` read the next message, and panic if it is another one.
///
/// Each direction is a pipe of its own, so that either can be closed alone.
#[derive(Debug)]
pub struct Peer {
    input: Option<DuplexStream>,
    output: Option<DuplexStream>,
    /// What has been read and not been looked at.
    buffer: Vec<u8>,
    patience: Duration,
    record: Record,
    last_id: i64,
}

/// Making one.
impl Peer {
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
            record: Record::default(),
            last_id: 0,
        };
        (Transport::new(their_input, their_output), peer)
    }

    /// A client of this agent, which has not said anything yet; and the agent's end of the connection.
    /// Must be called within a Tokio runtime.
    #[must_use]
    pub fn client_of(agent: impl Agent) -> (Connection, Self) {
        Self::client_of_with(agent, Options::default())
    }

    /// As [`client_of`](Self::client_of), with options for the agent.
    #[must_use]
    pub fn client_of_with(agent: impl Agent, options: impl Into<Options>) -> (Connection, Self) {
        let (transport, peer) = Self::pair();
        (crate::agent::start(transport, agent, options), peer)
    }

    /// An agent that this client has connected to: it speaks version 1 and offers nothing beyond it.
    ///
    /// # Panics
    /// The client does not connect.
    #[track_caller]
    pub fn agent_of(client: impl Client) -> impl Future<Output = (AgentConnection, Self)> {
        Self::agent_of_with(client, Options::default(), json!({"protocolVersion": 1}))
    }

    /// As [`agent_of`](Self::agent_of), with options for the client, and with the agent's answer to
    /// `initialize`.
    ///
    /// # Panics
    /// As [`agent_of`](Self::agent_of).
    #[track_caller]
    pub fn agent_of_with(
        client: impl Client,
        options: impl Into<Options>,
        initialized: Value,
    ) -> impl Future<Output = (AgentConnection, Self)> {
        let caller = Location::caller();
        let (transport, mut peer) = Self::pair();
        let connecting = connect_with(transport, client, options);
        async move {
            let answering = async {
                let call = peer.expect_request_at(caller, "initialize").await;
                peer.answer(&call.id, initialized).await;
            };
            let (agent, ()) = tokio::join!(connecting, answering);
            match agent {
                Ok(agent) => (agent, peer),
                Err(error) => panic!("{caller}: the client does not connect: {error}"),
            }
        }
    }

    /// Sets how long a message may take to come, or to be taken: [`PATIENCE`] if it is not set.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

/// Sending. What the other side does not take within the peer's patience panics.
impl Peer {
    /// Sends bytes as they are: half a line, or what is no line at all.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let bytes = bytes.as_ref();
            self.record.sent(bytes.trim_ascii_end());
            let Some(output) = &mut self.output else {
                panic!("{caller}: the peer has stopped writing");
            };
            match tokio::time::timeout(self.patience, output.write_all(bytes)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    panic!(
                        "{caller}: the other side reads no more ({error}); {}",
                        self.record
                    )
                }
                Err(_) => panic!(
                    "{caller}: the other side has not read this in {:?}; {}",
                    self.patience, self.record
                ),
            }
        }
    }

    /// Sends a line as it is, and the end of the line.
    #[track_caller]
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.send_bytes(bytes)
    }

    /// Sends a message, whole as it is given.
    #[track_caller]
    pub fn send(&mut self, message: Value) -> impl Future<Output = ()> {
        self.send_line(message.to_string())
    }

    /// Sends a request with an id of its own, and gives the id.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> impl Future<Output = i64> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let sending = self.send(message);
        async move {
            sending.await;
            id
        }
    }

    /// Sends a notification.
    #[track_caller]
    pub fn tell(&mut self, method: &str, params: Value) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Sends the answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: &Value, result: Value) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Sends an error as the answer to a request.
    #[track_caller]
    pub fn answer_error(&mut self, id: &Value, error: &jsonrpc::Error) -> impl Future<Output = ()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// As an agent: sends an update of a session.
    #[track_caller]
    pub fn update(&mut self, session: &str, update: Value) -> impl Future<Output = ()> {
        self.tell(
            "session/update",
            json!({"sessionId": session, "update": update}),
        )
    }

    /// As an agent: sends a piece of its message. The pieces of a session make one message.
    #[track_caller]
    pub fn say(&mut self, session: &str, text: &str) -> impl Future<Output = ()> {
        let content = json!({"type": "text", "text": text});
        self.update(
            session,
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "msg", "content": content}),
        )
    }

    /// As a client: initializes version 1 and offers nothing; gives the agent's answer.
    #[track_caller]
    pub fn initialize(&mut self) -> impl Future<Output = Value> {
        self.initialize_with(json!({"protocolVersion": 1, "clientCapabilities": {}}))
    }

    /// As a client: initializes with these params; gives the agent's answer.
    #[track_caller]
    pub fn initialize_with(&mut self, params: Value) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            let id = self.ask("initialize", params).await;
            self.expect_answer_at(caller, id.into()).await
        }
    }

    /// As a client: opens a session in `/`, and gives its id.
    #[track_caller]
    pub fn open_session(&mut self) -> impl Future<Output = String> {
        let caller = Location::caller();
        async move {
            let params = json!({"cwd": "/", "mcpServers": []});
            let id = self.ask("session/new", params).await;
            let result = self.expect_answer_at(caller, id.into()).await;
            match result["sessionId"].as_str() {
                Some(id) => id.to_owned(),
                None => panic!("{caller}: expected the id of a session; {}", self.record),
            }
        }
    }

    /// As a client: sends a prompt, and gives the request's id.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> impl Future<Output = i64> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// As an agent: answers the next message, which must be `session/new`, with a session of this id.
    #[track_caller]
    pub fn give_session(&mut self, id: &str) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let call = self.expect_request_at(caller, "session/new").await;
            self.answer(&call.id, json!({"sessionId": id})).await;
        }
    }
}

/// Receiving.
impl Peer {
    /// The next line as it came, without its end; `None` when the other side has closed. Waits as long
    /// as it takes: [`next_message`](Self::next_message) and all that is called `expect_…` have patience.
    ///
    /// # Panics
    /// The other side closes within a line, or a line is of more than 64 MiB.
    pub async fn next_line(&mut self) -> Option<Vec<u8>> {
        let Some(input) = &mut self.input else {
            panic!("the peer has stopped reading");
        };
        let mut looked_at = 0;
        loop {
            let unseen = self.buffer.get(looked_at..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', unseen) {
                let mut line: Vec<u8> = self.buffer.drain(..=looked_at + end).collect();
                line.pop();
                self.record.received(&line);
                return Some(line);
            }
            looked_at = self.buffer.len();
            assert!(looked_at <= LONGEST, "a line of more than {LONGEST} bytes");
            match input.read_buf(&mut self.buffer).await {
                Ok(0) if self.buffer.is_empty() => return None,
                Ok(0) => panic!("the other side closed within {:?}", excerpt(&self.buffer)),
                Ok(_) => {}
                Err(error) => panic!("the pipe cannot be read: {error}"),
            }
        }
    }

    /// The next line must come within the peer's patience.
    async fn line_at(&mut self, caller: &Location<'_>, expected: &str) -> Vec<u8> {
        let patience = self.patience;
        match tokio::time::timeout(patience, self.next_line()).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!(
                "{caller}: expected {expected}, but the other side has closed; {}",
                self.record
            ),
            Err(_) => panic!(
                "{caller}: expected {expected}, but nothing has come in {patience:?}; {}",
                self.record
            ),
        }
    }

    /// The next message; `look` gives what is wanted of it, or nothing if it is another one.
    async fn meet<T>(
        &mut self,
        caller: &Location<'_>,
        expected: &str,
        look: impl FnOnce(&mut Value) -> Option<T>,
    ) -> T {
        let before = self.record.to_string();
        let line = self.line_at(caller, expected).await;
        let message = serde_json::from_slice::<Value>(&line).ok();
        let wanted = message
            .filter(|message| message["jsonrpc"] == "2.0")
            .and_then(|mut message| look(&mut message));
        match wanted {
            Some(wanted) => wanted,
            None => panic!(
                "{caller}: expected {expected}, but this came instead:\n  <- {}\n{before}",
                excerpt(&line)
            ),
        }
    }

    /// The next message, whatever it is.
    ///
    /// # Panics
    /// None comes, or what comes is no message of JSON-RPC 2.0.
    #[track_caller]
    pub fn next_message(&mut self) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.meet(caller, "a message of JSON-RPC 2.0", |message| {
                Some(message.take())
            })
            .await
        }
    }

    /// The next message must be exactly this one.
    ///
    /// # Panics
    /// It is another one, or none comes.
    #[track_caller]
    pub fn expect(&mut self, message: Value) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let expected = format!("exactly\n  <- {message}\n");
            self.meet(caller, &expected, |came| (*came == message).then_some(()))
                .await;
        }
    }

    /// The next message must be a request of this method.
    ///
    /// # Panics
    /// It is another one, or none comes.
    #[track_caller]
    pub fn expect_request(&mut self, method: &str) -> impl Future<Output = Call> {
        self.expect_request_at(Location::caller(), method)
    }

    async fn expect_request_at(&mut self, caller: &Location<'_>, method: &str) -> Call {
        self.meet(caller, &format!("the request {method}"), |message| {
            let fits = message["method"] == method && message.get("id").is_some();
            fits.then(|| Call {
                id: message["id"].take(),
                params: message["params"].take(),
            })
        })
        .await
    }

    /// The next message must be a notification of this method; gives its params.
    ///
    /// # Panics
    /// It is another one, or none comes.
    #[track_caller]
    pub fn expect_notification(&mut self, method: &str) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.meet(caller, &format!("the notification {method}"), |message| {
                let fits = message["method"] == method && message.get("id").is_none();
                fits.then(|| message["params"].take())
            })
            .await
        }
    }

    /// The next message must be an update of this kind (`agent_message_chunk`, for example); gives it.
    ///
    /// # Panics
    /// It is another one, or none comes.
    #[track_caller]
    pub fn expect_update(&mut self, kind: &str) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.meet(caller, &format!("the update {kind}"), |message| {
                let update = message.pointer_mut("/params/update")?;
                (update["sessionUpdate"] == kind).then(|| update.take())
            })
            .await
        }
    }

    /// The next message must be the answer to this request; gives its result.
    ///
    /// # Panics
    /// It is another one, an error for example, or none comes.
    #[track_caller]
    pub fn expect_answer(&mut self, id: impl Into<Value>) -> impl Future<Output = Value> {
        self.expect_answer_at(Location::caller(), id.into())
    }

    async fn expect_answer_at(&mut self, caller: &Location<'_>, id: Value) -> Value {
        self.meet(caller, &format!("the answer to request {id}"), |message| {
            let fits = message.get("id") == Some(&id);
            fits.then(|| message.get_mut("result").map(Value::take))?
        })
        .await
    }

    /// The next message must be an error as the answer to this request; gives the error.
    ///
    /// # Panics
    /// It is another one, a result for example, or none comes.
    #[track_caller]
    pub fn expect_error(&mut self, id: impl Into<Value>) -> impl Future<Output = jsonrpc::Error> {
        let caller = Location::caller();
        let id = id.into();
        async move {
            let expected = format!("an error as the answer to request {id}");
            self.meet(caller, &expected, |message| {
                let error = message
                    .get("error")
                    .filter(|_| message.get("id") == Some(&id))?;
                let code = i32::try_from(error["code"].as_i64()?).ok()?;
                let mut read = jsonrpc::Error::new(code, error["message"].as_str()?);
                read.data = error.get("data").cloned();
                Some(read)
            })
            .await
        }
    }

    /// Reads notifications, as many as there are, until the answer to this request: gives the
    /// notifications' params, in their order, and the result.
    ///
    /// # Panics
    /// Something else comes, a request for example, or nothing does.
    #[track_caller]
    pub fn until_answer(
        &mut self,
        id: impl Into<Value>,
    ) -> impl Future<Output = (Vec<Value>, Value)> {
        let caller = Location::caller();
        let id = id.into();
        async move {
            let expected = format!("notifications, then the answer to request {id}");
            let mut before = Vec::new();
            loop {
                let next = self.meet(caller, &expected, |message| {
                    match (message.get("id"), message.get("method")) {
                        (None, Some(_)) => Some(Err(message["params"].take())),
                        (Some(came), None) if *came == id => {
                            message.get_mut("result").map(|result| Ok(result.take()))
                        }
                        _ => None,
                    }
                });
                match next.await {
                    Ok(result) => return (before, result),
                    Err(notified) => before.push(notified),
                }
            }
        }
    }

    /// Nothing comes in this time. On Tokio's paused time that is known at once; otherwise it takes as
    /// long as is said.
    ///
    /// # Panics
    /// Something comes, the end for example.
    #[track_caller]
    pub fn expect_nothing(&mut self, within: Duration) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let before = self.record.to_string();
            match tokio::time::timeout(within, self.next_line()).await {
                Err(_) => {}
                Ok(Some(line)) => panic!(
                    "{caller}: expected nothing, but this came:\n  <- {}\n{before}",
                    excerpt(&line)
                ),
                Ok(None) => {
                    panic!("{caller}: expected nothing, but the other side has closed; {before}")
                }
            }
        }
    }

    /// The other side closes, with nothing more to say.
    ///
    /// # Panics
    /// It says something more, or does not close.
    #[track_caller]
    pub fn expect_end(&mut self) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let (patience, before) = (self.patience, self.record.to_string());
            match tokio::time::timeout(patience, self.next_line()).await {
                Ok(None) => {}
                Ok(Some(line)) => panic!(
                    "{caller}: expected the end, but this came instead:\n  <- {}\n{before}",
                    excerpt(&line)
                ),
                Err(_) => panic!(
                    "{caller}: expected the end, but the other side has not closed in {patience:?}; {before}"
                ),
            }
        }
    }
}

/// The pipes themselves.
impl Peer {
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
            record: Record::default(),
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
