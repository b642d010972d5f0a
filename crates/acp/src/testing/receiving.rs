//! The receiving half of a scripted peer.

use std::panic::Location;
use std::time::Duration;

use acp_wire::jsonrpc;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::ScriptedPeer;
use super::record::truncate_line;

/// The maximum length of a line, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A request that the peer received and must respond to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The id, which the response must repeat.
    pub id: Value,
    /// The params, or `null` if there are none.
    pub params: Value,
}

/// Methods that receive messages.
impl ScriptedPeer {
    /// Returns the next line without its line ending, or `None` if the other side has closed the connection. Unlike
    /// [`next_message`](Self::next_message) and the `expect_…` methods, it never times out.
    ///
    /// # Panics
    /// The other side closes the connection within a line, or a line is longer than 64 MiB.
    pub async fn next_line(&mut self) -> Option<Vec<u8>> {
        let Some(input) = &mut self.input else {
            panic!(
                "cannot receive: the scripted peer's input is closed or belongs to its other half"
            );
        };
        let mut looked_at = 0;
        loop {
            let unseen = self.buffer.get(looked_at..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', unseen) {
                let mut line: Vec<u8> = self.buffer.drain(..=looked_at + end).collect();
                line.pop();
                self.history.record_received(&line);
                return Some(line);
            }
            looked_at = self.buffer.len();
            assert!(
                looked_at <= MAX_LINE_BYTES,
                "line too long: the limit is {MAX_LINE_BYTES} bytes"
            );
            match input.read_buf(&mut self.buffer).await {
                Ok(0) if self.buffer.is_empty() => return None,
                Ok(0) => panic!(
                    "the other side closed the connection in the middle of the line {:?}",
                    truncate_line(&self.buffer)
                ),
                Ok(_) => {}
                Err(error) => panic!("cannot read from the pipe: {error}"),
            }
        }
    }

    /// Returns the next line. Panics if none arrives before the timeout.
    async fn expect_line(&mut self, caller: &Location<'_>, expected: &str) -> Vec<u8> {
        let patience = self.patience;
        match tokio::time::timeout(patience, self.next_line()).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!(
                "{caller}: expected {expected}, but the other side closed the connection; {}",
                self.history
            ),
            Err(_) => panic!(
                "{caller}: expected {expected}, but received nothing within {patience:?}; {}",
                self.history
            ),
        }
    }

    /// Passes the next message to `look` and returns the result. Panics if `look` returns `None`, because a different
    /// message was expected.
    async fn expect_match<T>(
        &mut self,
        caller: &Location<'_>,
        expected: &str,
        look: impl FnOnce(&mut Value) -> Option<T>,
    ) -> T {
        let before = self.history.to_string();
        let line = self.expect_line(caller, expected).await;
        let message = serde_json::from_slice::<Value>(&line).ok();
        let wanted = message
            .filter(|message| message["jsonrpc"] == "2.0")
            .and_then(|mut message| look(&mut message));
        match wanted {
            Some(wanted) => wanted,
            None => panic!(
                "{caller}: expected {expected}, but received:\n  <- {}\n{before}",
                truncate_line(&line)
            ),
        }
    }

    /// Returns the next message.
    ///
    /// # Panics
    /// No message arrives, or the line is not a JSON-RPC 2.0 message.
    #[track_caller]
    pub fn next_message(&mut self) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.expect_match(caller, "a JSON-RPC 2.0 message", |message| {
                Some(message.take())
            })
            .await
        }
    }

    /// Expects the next message to be equal to `message`.
    ///
    /// # Panics
    /// The next message is a different one, or no message arrives.
    #[track_caller]
    pub fn expect(&mut self, message: Value) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let expected = format!("exactly\n  <- {message}\n");
            self.expect_match(caller, &expected, |came| (*came == message).then_some(()))
                .await;
        }
    }

    /// Expects the next message to be a `method` request, and returns it.
    ///
    /// # Panics
    /// The next message is a different one, or no message arrives.
    #[track_caller]
    pub fn expect_request(&mut self, method: &str) -> impl Future<Output = ReceivedRequest> {
        self.expect_request_at(Location::caller(), method)
    }

    pub(super) async fn expect_request_at(
        &mut self,
        caller: &Location<'_>,
        method: &str,
    ) -> ReceivedRequest {
        self.expect_match(caller, &format!("the request {method}"), |message| {
            let fits = message["method"] == method && message.get("id").is_some();
            fits.then(|| ReceivedRequest {
                id: message["id"].take(),
                params: message["params"].take(),
            })
        })
        .await
    }

    /// Expects the next message to be a `method` notification, and returns its params.
    ///
    /// # Panics
    /// The next message is a different one, or no message arrives.
    #[track_caller]
    pub fn expect_notification(&mut self, method: &str) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.expect_match(caller, &format!("the notification {method}"), |message| {
                let fits = message["method"] == method && message.get("id").is_none();
                fits.then(|| message["params"].take())
            })
            .await
        }
    }

    /// Expects the next message to be an update of the given type, such as `agent_message_chunk`, and returns it.
    ///
    /// # Panics
    /// The next message is a different one, or no message arrives.
    #[track_caller]
    pub fn expect_update(&mut self, kind: &str) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            self.expect_match(caller, &format!("the update {kind}"), |message| {
                let update = message.pointer_mut("/params/update")?;
                (update["sessionUpdate"] == kind).then(|| update.take())
            })
            .await
        }
    }

    /// Expects the next message to be the response to a request, and returns its result.
    ///
    /// # Panics
    /// The next message is a different one, for example an error response, or no message arrives.
    #[track_caller]
    pub fn expect_answer(&mut self, id: impl Into<Value>) -> impl Future<Output = Value> {
        self.expect_answer_at(Location::caller(), id.into())
    }

    pub(super) async fn expect_answer_at(&mut self, caller: &Location<'_>, id: Value) -> Value {
        self.expect_match(
            caller,
            &format!("the response to request {id}"),
            |message| {
                let fits = message.get("id") == Some(&id);
                fits.then(|| message.get_mut("result").map(Value::take))?
            },
        )
        .await
    }

    /// Expects the next message to be an error response to a request, and returns the error.
    ///
    /// # Panics
    /// The next message is a different one, for example a response with a result, or no message arrives.
    #[track_caller]
    pub fn expect_error(&mut self, id: impl Into<Value>) -> impl Future<Output = jsonrpc::Error> {
        let caller = Location::caller();
        let id = id.into();
        async move {
            let expected = format!("an error response to request {id}");
            self.expect_match(caller, &expected, |message| {
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

    /// Reads notifications until the response to a request arrives. Returns the notifications' params in order, and the
    /// response's result.
    ///
    /// # Panics
    /// Any other message arrives, for example a request, or no message arrives.
    #[track_caller]
    pub fn expect_updates_until_answer(
        &mut self,
        id: impl Into<Value>,
    ) -> impl Future<Output = (Vec<Value>, Value)> {
        let caller = Location::caller();
        let id = id.into();
        async move {
            let expected = format!("notifications, then the response to request {id}");
            let mut before = Vec::new();
            loop {
                let next = self.expect_match(caller, &expected, |message| {
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

    /// Expects nothing to arrive for the given time. This takes the full time, unless tokio's time is paused.
    ///
    /// # Panics
    /// A message or the end of the input arrives.
    #[track_caller]
    pub fn expect_nothing(&mut self, within: Duration) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let before = self.history.to_string();
            match tokio::time::timeout(within, self.next_line()).await {
                Err(_) => {}
                Ok(Some(line)) => panic!(
                    "{caller}: expected nothing, but received:\n  <- {}\n{before}",
                    truncate_line(&line)
                ),
                Ok(None) => {
                    panic!(
                        "{caller}: expected nothing, but the other side closed the connection; {before}"
                    )
                }
            }
        }
    }

    /// Expects the other side to close the connection without sending another message.
    ///
    /// # Panics
    /// The other side sends another message, or does not close the connection.
    #[track_caller]
    pub fn expect_end(&mut self) -> impl Future<Output = ()> {
        let caller = Location::caller();
        async move {
            let (patience, before) = (self.patience, self.history.to_string());
            match tokio::time::timeout(patience, self.next_line()).await {
                Ok(None) => {}
                Ok(Some(line)) => panic!(
                    "{caller}: expected the end of input, but received:\n  <- {}\n{before}",
                    truncate_line(&line)
                ),
                Err(_) => panic!(
                    "{caller}: expected the end of input, but the connection was not closed within {patience:?}; {before}"
                ),
            }
        }
    }
}
