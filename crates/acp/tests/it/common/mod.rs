//! Helpers for several test modules: a scripted peer for raw lines, and handlers defined by closures.
//!
//! Tests with a scripted peer run on paused time: the clock moves only when every task waits, so
//! that a test can be sure that nothing arrives or that something hangs, without waiting.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use acp::client::{AgentConnection, ClientSession, Update, UpdateContext};
#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use acp::testing::{NoopClient, PromptAgent};
use acp::v1::StopReason;
use acp::{
    Agent, Client, Connection, Limits, Result, Thread, ThreadHandle, Transport, jsonrpc, testing,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The timeout for each wait in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until `found` returns `true` for a thread.
pub(crate) async fn wait_for_thread(thread: &ThreadHandle, found: impl Fn(&Thread) -> bool) {
    let mut seen = 0;
    while !thread.read(&found) {
        seen = with_timeout("the thread shows what is looked for", thread.changed(seen)).await;
    }
}

/// Waits for a future, and panics if the timeout expires first.
#[track_caller]
pub(crate) fn with_timeout<T>(
    what: &str,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(TIMEOUT, work).await {
            Ok(done) => done,
            Err(_) => panic!("{caller}: it does not happen that {what}"),
        }
    }
}

/// Lets all other tasks run until each of them is waiting. Works only while tokio's time is paused.
pub(crate) async fn wait_until_idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The default capacity of a pipe, in bytes.
pub(crate) const PIPE_CAPACITY: usize = 64 * 1024;

/// A scripted peer with short helper methods for these tests.
pub(crate) struct TestPeer(testing::ScriptedPeer);

impl Deref for TestPeer {
    type Target = testing::ScriptedPeer;
    fn deref(&self) -> &testing::ScriptedPeer {
        &self.0
    }
}

impl DerefMut for TestPeer {
    fn deref_mut(&mut self) -> &mut testing::ScriptedPeer {
        &mut self.0
    }
}

/// Returns a transport and the peer at its other end, with a buffer of `pipe` bytes in each direction.
pub(crate) fn connect_pipes(pipe: usize) -> (Transport, TestPeer) {
    let (transport, mut peer) = testing::ScriptedPeer::pair_with(pipe);
    peer.set_timeout(TIMEOUT);
    (transport, TestPeer(peer))
}

impl TestPeer {
    /// Returns a peer that acts as the agent's client and has sent nothing yet.
    pub(crate) fn connect_to_agent(agent: impl Agent) -> (Connection, Self) {
        Self::connect_to_agent_with(agent, Limits::default(), PIPE_CAPACITY)
    }

    pub(crate) fn connect_to_agent_with(
        agent: impl Agent,
        limits: Limits,
        pipe: usize,
    ) -> (Connection, Self) {
        let (transport, peer) = connect_pipes(pipe);
        (acp::testing::start_agent(transport, agent, limits), peer)
    }

    /// Returns a peer that acts as the agent's client and has opened a session.
    pub(crate) async fn open_agent_session(agent: impl Agent) -> (Connection, Self, String) {
        Self::open_agent_session_with(agent, Limits::default(), PIPE_CAPACITY).await
    }

    pub(crate) async fn open_agent_session_with(
        agent: impl Agent,
        limits: Limits,
        pipe: usize,
    ) -> (Connection, Self, String) {
        let (conn, mut peer) = Self::connect_to_agent_with(agent, limits, pipe);
        peer.initialize(json!({})).await;
        let session = peer.new_session().await;
        (conn, peer, session)
    }

    /// Returns a peer that acts as the client's agent.
    pub(crate) async fn connect_to_client(client: impl Client) -> (AgentConnection, Self) {
        Self::connect_to_client_with(client, Limits::default(), PIPE_CAPACITY, json!({})).await
    }

    pub(crate) async fn connect_to_client_with(
        client: impl Client,
        limits: Limits,
        pipe: usize,
        capabilities: Value,
    ) -> (AgentConnection, Self) {
        let (transport, mut peer) = connect_pipes(pipe);
        let connecting = tokio::spawn(acp::testing::start_client(transport, client, limits));
        let (id, params) = peer.expect_request("initialize").await;
        assert_eq!(params["protocolVersion"], 1);
        peer.answer(
            &id,
            json!({"protocolVersion": 1, "agentCapabilities": capabilities}),
        )
        .await;
        let conn = with_timeout("the client connects", connecting)
            .await
            .unwrap()
            .unwrap();
        (conn, peer)
    }

    /// Returns a peer that acts as the client's agent, with the session `s` already open.
    pub(crate) async fn open_client_session(client: impl Client) -> (ClientSession, Self) {
        Self::open_client_session_with(client, Limits::default(), json!({})).await
    }

    pub(crate) async fn open_client_session_with(
        client: impl Client,
        limits: Limits,
        capabilities: Value,
    ) -> (ClientSession, Self) {
        let (conn, mut peer) =
            Self::connect_to_client_with(client, limits, PIPE_CAPACITY, capabilities).await;
        let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
        (session, peer)
    }

    // Methods that send.

    #[track_caller]
    pub(crate) fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        self.0.send_bytes(bytes)
    }

    /// Writes until all tasks are waiting, and returns the number of bytes accepted.
    pub(crate) async fn send_until_blocked(&mut self, bytes: &[u8]) -> usize {
        let output = self.output().expect("the peer still writes");
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match tokio::time::timeout(Duration::from_millis(1), output.write(rest)).await {
                Ok(written) => taken += written.unwrap(),
                Err(_) => break,
            }
        }
        taken
    }

    #[track_caller]
    pub(crate) fn send_line(&mut self, line: impl AsRef<[u8]>) -> impl Future<Output = ()> {
        self.0.send_line(line)
    }

    /// Sends a request with the given id.
    #[track_caller]
    pub(crate) fn send_request(
        &mut self,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) -> impl Future<Output = ()> {
        let id: Value = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    #[track_caller]
    pub(crate) fn send_error(&mut self, id: &Value, code: i32) -> impl Future<Output = ()> {
        let error = jsonrpc::Error::new(code, "refused");
        async move { self.answer_error(id, &error).await }
    }

    #[track_caller]
    pub(crate) fn send_text(&mut self, session: &str, text: &str) -> impl Future<Output = ()> {
        self.send(message_notification(session, text))
    }

    // Methods that receive.

    /// Returns the next line, or `None` at the end of the input.
    pub(crate) async fn try_line(&mut self) -> Option<Vec<u8>> {
        self.next_line().await
    }

    /// Returns the next message.
    #[track_caller]
    pub(crate) fn next(&mut self) -> impl Future<Output = Value> {
        self.next_message()
    }

    /// Returns the next byte.
    pub(crate) async fn read_byte(&mut self) -> u8 {
        let input = self.input().expect("the peer still reads");
        with_timeout("a byte arrives", input.read_u8())
            .await
            .unwrap()
    }

    /// Expects the given message, ignoring its message id.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: Value) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let next = self.next();
        async move {
            let mut message = next.await;
            if let Some(update) = message.pointer_mut("/params/update")
                && let Some(update) = update.as_object_mut()
                && let Some(id) = update.remove("messageId")
            {
                assert!(id.as_str().unwrap().starts_with("msg_"), "{caller}: {id}");
            }
            assert_eq!(message, expected, "{caller}");
        }
    }

    /// Expects a `method` request, and returns its id and params.
    #[track_caller]
    pub(crate) fn expect_request(&mut self, method: &str) -> impl Future<Output = (Value, Value)> {
        let call = self.0.expect_request(method);
        async move {
            let call = call.await;
            (call.id, call.params)
        }
    }

    /// Expects a `method` notification, and returns its params.
    #[track_caller]
    pub(crate) fn expect_notification(&mut self, method: &str) -> impl Future<Output = Value> {
        self.0.expect_notification(method)
    }

    /// Expects the response to the given request, and returns its result.
    #[track_caller]
    pub(crate) fn expect_result(&mut self, id: impl Into<Value>) -> impl Future<Output = Value> {
        self.expect_answer(id)
    }

    /// Expects an error response to the given request, and returns its code and message.
    #[track_caller]
    pub(crate) fn expect_error(
        &mut self,
        id: impl Into<Value>,
    ) -> impl Future<Output = (i64, String)> {
        let error = self.0.expect_error(id);
        async move {
            let error = error.await;
            (error.code.into(), error.message)
        }
    }

    /// Expects nothing ever to arrive. Works only while tokio's time is paused.
    #[track_caller]
    pub(crate) fn expect_silence(&mut self) -> impl Future<Output = ()> {
        self.expect_nothing(Duration::from_millis(1))
    }

    /// Checks that the other side has sent nothing else and still responds, by sending an unknown request and expecting
    /// the response to it next.
    #[track_caller]
    pub(crate) fn check_alive(&mut self) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            self.send_request("alive", "_test/nothing", json!({})).await;
            let message = self.next().await;
            assert_eq!(
                (&message["id"], &message["error"]["code"]),
                (&json!("alive"), &json!(-32601)),
                "{caller}: {message}"
            );
        }
    }

    /// Expects the other side to close the connection without sending another message.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) -> impl Future<Output = ()> {
        self.0.expect_end()
    }

    /// Splits the peer into a reading and a writing half.
    pub(crate) fn split(self) -> (Self, Self) {
        let (reading, writing) = self.0.split();
        (Self(reading), Self(writing))
    }

    /// Joins the two halves.
    pub(crate) fn join(self, writing: Self) -> Self {
        Self(self.0.join(writing.0))
    }

    // Sequences of messages.

    /// Initializes the connection, as a client.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.send_request("init", "initialize", params).await;
        let result = self.expect_result("init").await;
        assert_eq!(result["protocolVersion"], 1);
        result
    }

    /// Opens a session, as a client.
    pub(crate) async fn new_session(&mut self) -> String {
        self.send_request(
            "new",
            "session/new",
            json!({"cwd": "/work", "mcpServers": []}),
        )
        .await;
        let result = self.expect_result("new").await;
        result["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, as a client.
    pub(crate) async fn send_prompt(&mut self, id: impl Into<Value>, session: &str, text: &str) {
        self.send(prompt_request(id, session, text)).await;
    }

    /// Opens a session with the client, and responds to `session/new` as the agent.
    pub(crate) async fn open_session(
        &mut self,
        conn: &AgentConnection,
        answer: Value,
    ) -> ClientSession {
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session("/work").await }
        });
        let (id, _) = self.expect_request("session/new").await;
        self.answer(&id, answer).await;
        with_timeout("the session opens", opening)
            .await
            .unwrap()
            .unwrap()
    }

    /// Sends a prompt with the client, and receives it as the agent.
    pub(crate) async fn start_prompt(
        &mut self,
        session: &ClientSession,
        text: &'static str,
    ) -> (Value, tokio::task::JoinHandle<Result<StopReason>>) {
        let turn = tokio::spawn({
            let session = session.clone();
            async move { session.prompt(text).await }
        });
        let (id, params) = self.expect_request("session/prompt").await;
        assert_eq!(params["prompt"][0]["text"], text);
        (id, turn)
    }
}

pub(crate) fn prompt_request(id: impl Into<Value>, session: &str, text: &str) -> Value {
    let id: Value = id.into();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
}

pub(crate) fn message_notification(session: &str, text: &str) -> Value {
    let update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})
}

/// Returns the default limits, modified by `change`.
pub(crate) fn limits_with(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Returns an agent that ends every turn at once.
pub(crate) fn idle_agent() -> impl Agent {
    PromptAgent(async |_, _| Ok(StopReason::EndTurn))
}

/// A client defined by its update handler.
pub(crate) struct UpdateClient<F>(pub(crate) F);

impl<F, Fut> Client for UpdateClient<F>
where
    F: Fn(UpdateContext, Update) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send,
{
    type State = ();

    fn update(
        &self,
        (): &(),
        cx: &UpdateContext,
        update: &Update,
    ) -> impl Future<Output = ()> + Send {
        (self.0)(cx.clone(), update.clone())
    }
}

/// Returns a thread's items as lines of text.
pub(crate) fn thread_lines(thread: &ThreadHandle) -> Vec<String> {
    use acp::thread::ItemKind;
    thread.read(|thread| {
        let items = thread.items().iter();
        items
            .map(|item| match &item.kind {
                ItemKind::User(m) => format!("user: {}", m.text()),
                ItemKind::Agent(m) => format!("agent: {}", m.text()),
                ItemKind::Thought(m) => format!("thought: {}", m.text()),
                ItemKind::ToolCall(call) => {
                    let cancelled = if call.is_cancelled { ", cancelled" } else { "" };
                    format!("{} ({}): {:?}{cancelled}", call.id, call.title, call.status)
                }
                other => format!("{other:?}"),
            })
            .collect()
    })
}
