//! The two ends of a bridge, which read and write raw lines.
//!
//! Tests run on paused time: the clock moves only when every task waits, so that a test can be
//! sure that nothing arrives, without waiting.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::time::Duration;

use acp::bridge::{Bridge, BridgeEnd};
use acp::wire::{ReadError, v1, v2};
use acp::{Limits, Transport};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// The timeout for each wait in a test.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The capacity of a pipe, in bytes.
pub(crate) const PIPE_CAPACITY: usize = 64 * 1024;

/// A peer's role and protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerRole {
    Client(u8),
    Agent(u8),
}

pub(crate) struct BridgePeer {
    role: PeerRole,
    input: Option<DuplexStream>,
    output: DuplexStream,
    buffer: Vec<u8>,
    /// The methods of the requests sent by this end, by request id.
    asked: HashMap<String, String>,
}

pub(crate) struct BridgedPeers {
    pub(crate) client: BridgePeer,
    pub(crate) agent: BridgePeer,
    pub(crate) end: JoinHandle<BridgeEnd>,
}

/// Starts a bridge to the given version (1 or 2), and returns both of its ends.
pub(crate) fn start_bridge(to: u8) -> BridgedPeers {
    start_bridge_with(to, PIPE_CAPACITY, |bridge| bridge)
}

pub(crate) fn start_bridge_with(
    to: u8,
    pipe: usize,
    with: impl FnOnce(Bridge) -> Bridge,
) -> BridgedPeers {
    let (client_side, client) = bridge_peer(PeerRole::Client(to), pipe);
    let (agent_side, agent) = bridge_peer(PeerRole::Agent(3 - to), pipe);
    let bridge = if to == 2 {
        Bridge::to_v2()
    } else {
        Bridge::to_v1()
    };
    let end = tokio::spawn(with(bridge).run(client_side, agent_side));
    BridgedPeers { client, agent, end }
}

pub(crate) fn limits_with(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    limits.linger = Duration::from_secs(2);
    change(&mut limits);
    limits
}

pub(crate) fn bridge_peer(role: PeerRole, pipe: usize) -> (Transport, BridgePeer) {
    let (their_output, our_input) = tokio::io::duplex(pipe);
    let (our_output, their_input) = tokio::io::duplex(pipe);
    let peer = BridgePeer {
        role,
        input: Some(our_output),
        output: our_input,
        buffer: Vec::new(),
        asked: HashMap::new(),
    };
    (Transport::new(their_input, their_output), peer)
}

/// Returns `true` if a message contains a type that its version lacks. Types invented by the tests do not count.
fn is_stray_message(read: &str) -> bool {
    read.matches("Unknown(").count() > read.matches("_odd").count()
}

impl BridgePeer {
    /// Sends a line.
    pub(crate) async fn send_line(&mut self, line: &str) {
        if let Ok(message) = serde_json::from_str::<Value>(line)
            && let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str())
        {
            self.asked.insert(id.to_string(), method.to_owned());
        }
        let input = self.input.as_mut().expect("closed");
        let line = format!("{line}\n");
        tokio::time::timeout(TIMEOUT, input.write_all(line.as_bytes()))
            .await
            .expect("the bridge reads")
            .expect("the bridge is there");
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_line(&message.to_string()).await;
    }

    pub(crate) async fn send_request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn send_notification(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn send_response(&mut self, id: impl Into<Value>, result: Value) {
        let id: Value = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    pub(crate) async fn send_error(&mut self, id: impl Into<Value>, code: i32, message: &str) {
        let id: Value = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
            .await;
    }

    /// Sends an update for session `s`.
    pub(crate) async fn send_update(&mut self, update: Value) {
        self.send_notification(
            "session/update",
            json!({"sessionId": "s", "update": update}),
        )
        .await;
    }

    /// Returns the next line as received, or `None` at the end of the input.
    async fn read_line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            if self.output.read_buf(&mut self.buffer).await.unwrap() == 0 {
                assert_eq!(self.buffer, b"", "a line without an end");
                return None;
            }
        }
    }

    /// Returns the next line as received.
    #[track_caller]
    pub(crate) fn expect_line(&mut self) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move {
            match tokio::time::timeout(TIMEOUT, self.read_line()).await {
                Ok(Some(line)) => line,
                Ok(None) => panic!("{caller}: the bridge has closed it"),
                Err(_) => panic!("{caller}: nothing arrives"),
            }
        }
    }

    /// Returns the next message, which must be valid in this end's version.
    #[track_caller]
    pub(crate) fn next(&mut self) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let line = match tokio::time::timeout(TIMEOUT, self.read_line()).await {
                Ok(Some(line)) => line,
                Ok(None) => panic!("{caller}: the bridge has closed it"),
                Err(_) => panic!("{caller}: nothing arrives"),
            };
            if let Err(wrong) = self.check_line(&line) {
                panic!("{caller}: {:?} gets {line}: {wrong}", self.role);
            }
            serde_json::from_str(&line).unwrap()
        }
    }

    /// Expects the given message.
    #[track_caller]
    pub(crate) fn expect_message(&mut self, expected: Value) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let mut expected = expected;
        expected["jsonrpc"] = json!("2.0");
        async move {
            let line = match tokio::time::timeout(TIMEOUT, self.read_line()).await {
                Ok(Some(line)) => line,
                Ok(None) => panic!("{caller}: the bridge has closed it, not said {expected}"),
                Err(_) => panic!("{caller}: nothing arrives instead of {expected}"),
            };
            let found: Value = serde_json::from_str(&line).unwrap();
            assert!(
                found == expected,
                "{caller}:\n   found {found}\nexpected {expected}"
            );
            if let Err(wrong) = self.check_line(&line) {
                panic!("{caller}: {:?} gets {line}: {wrong}", self.role);
            }
        }
    }

    /// Expects the given update for session `s`.
    #[track_caller]
    pub(crate) fn expect_update(&mut self, update: Value) -> impl Future<Output = ()> {
        self.expect_message(json!({"method": "session/update",
            "params": {"sessionId": "s", "update": update}}))
    }

    /// Expects the given response.
    #[track_caller]
    pub(crate) fn expect_response(
        &mut self,
        id: impl Into<Value>,
        result: Value,
    ) -> impl Future<Output = ()> {
        let id: Value = id.into();
        self.expect_message(json!({"id": id, "result": result}))
    }

    /// Expects an error with the given code, and returns its message.
    #[track_caller]
    pub(crate) fn expect_error(
        &mut self,
        id: impl Into<Value>,
        code: i32,
    ) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let id: Value = id.into();
        let next = self.next();
        async move {
            let answer = next.await;
            assert_eq!(answer["id"], id, "{caller}: {answer}");
            assert_eq!(answer["error"]["code"], code, "{caller}: {answer}");
            answer["error"]["message"].as_str().unwrap().to_owned()
        }
    }

    /// Expects nothing to arrive for half a second.
    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let wait = Duration::from_millis(500);
            if let Ok(line) = tokio::time::timeout(wait, self.read_line()).await {
                panic!("{caller}: {line:?} arrives");
            }
        }
    }

    /// Expects the end of the input.
    pub(crate) async fn expect_end(&mut self) {
        let line = tokio::time::timeout(TIMEOUT, self.read_line()).await;
        assert_eq!(line.expect("it is not closed"), None);
    }

    /// Closes this end's output.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Checks that a line is a valid message in this end's version.
    fn check_line(&self, line: &str) -> Result<(), String> {
        #[derive(serde::Deserialize)]
        struct BridgeMessage<'a> {
            id: Option<Value>,
            method: Option<String>,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
        }
        let message: BridgeMessage<'_> = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let id = message.id.map(|id| id.to_string());
        let read = match (&message.method, id, message.result) {
            (Some(method), id, _) => self.check_call(method, id.is_some(), message.params),
            (None, Some(id), Some(result)) => match self.asked.get(&id) {
                Some(method) => self.check_result(method, result),
                None => Ok(Value::Null),
            },
            _ => Ok(Value::Null),
        };
        match read {
            Ok(read) if is_stray_message(&read.to_string()) => Err(read.to_string()),
            Ok(_) | Err(ReadError::UnknownMethod(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn check_call(
        &self,
        method: &str,
        request: bool,
        params: Option<&RawValue>,
    ) -> Result<Value, ReadError> {
        fn to_value<T: std::fmt::Debug>(read: Result<T, ReadError>) -> Result<Value, ReadError> {
            read.map(|read| Value::String(format!("{read:?}")))
        }
        match (self.role, request) {
            (PeerRole::Client(1), true) => to_value(v1::AgentRequest::read(method, params)),
            (PeerRole::Client(1), false) => to_value(v1::AgentNotification::read(method, params)),
            (PeerRole::Client(_), true) => to_value(v2::AgentRequest::read(method, params)),
            (PeerRole::Client(_), false) => to_value(v2::AgentNotification::read(method, params)),
            (PeerRole::Agent(1), true) => to_value(v1::ClientRequest::read(method, params)),
            (PeerRole::Agent(1), false) => to_value(v1::ClientNotification::read(method, params)),
            (PeerRole::Agent(_), true) => to_value(v2::ClientRequest::read(method, params)),
            (PeerRole::Agent(_), false) => to_value(v2::ClientNotification::read(method, params)),
        }
    }

    fn check_result(&self, method: &str, result: &RawValue) -> Result<Value, ReadError> {
        fn to_value<T: std::fmt::Debug>(read: Result<T, ReadError>) -> Result<Value, ReadError> {
            read.map(|read| Value::String(format!("{read:?}")))
        }
        match self.role {
            PeerRole::Client(1) => to_value(v1::AgentResponse::read(method, result)),
            PeerRole::Client(_) => to_value(v2::AgentResponse::read(method, result)),
            PeerRole::Agent(1) => to_value(v1::ClientResponse::read(method, result)),
            PeerRole::Agent(_) => to_value(v2::ClientResponse::read(method, result)),
        }
    }
}
