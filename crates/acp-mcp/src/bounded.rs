//! Limits the number of messages that an MCP server or client handles at once.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    ClientNotification, ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleClient, RoleServer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of requests in flight on a connection. The same as the default for ACP connections. Further
/// requests are rejected.
pub(crate) const MAX_REQUESTS: usize = 1024;

/// The maximum number of notifications to handle at once. No more are read until one of them has been handled.
const MAX_NOTIFICATIONS: usize = 64;

/// A transport that limits the number of messages in flight.
///
/// `rmcp` starts a task for each message that it reads, and another one for each response that it writes. A peer that
/// keeps sending requests but does not read responses would therefore exhaust the memory. Here, each request acquires a
/// permit. The permit is released once the request was cancelled, or has been handled and its response written.
pub struct BoundedTransport<R: ServiceRole, T> {
    inner: T,
    requests: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// Permits for requests whose responses have not been written yet.
    in_flight: HashMap<RequestId, WorkPermit>,
    /// The next message, if it is waiting for a permit.
    next_message: Option<RxJsonRpcMessage<R>>,
    /// The pending write of an error response to a rejected request.
    rejection: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Returns the id of the request that a notification cancels, if any. Cancellations need no permit, because they
    /// free one.
    cancelled_request_id: fn(&R::PeerNot) -> Option<&RequestId>,
}

impl<R: ServiceRole, T> std::fmt::Debug for BoundedTransport<R, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bounded").finish_non_exhaustive()
    }
}

/// A permit for a message in flight, released when its last clone is dropped. One clone belongs to the handler, and the
/// other to the transport until the response is written.
#[derive(Clone)]
struct WorkPermit(
    #[allow(dead_code, reason = "never read; dropping it releases the permit")]
    Arc<OwnedSemaphorePermit>,
);

impl<T: Transport<RoleServer>> BoundedTransport<RoleServer, T> {
    /// Creates a transport for a server that handles at most `requests` requests at once.
    pub fn for_server(inner: T, requests: usize) -> Self {
        Self::new(inner, requests, |notification| match notification {
            ClientNotification::CancelledNotification(it) => it.params.request_id.as_ref(),
            _ => None,
        })
    }
}

impl<T: Transport<RoleClient>> BoundedTransport<RoleClient, T> {
    /// Creates a transport for a client that handles at most `requests` requests at once.
    pub fn for_client(inner: T, requests: usize) -> Self {
        Self::new(inner, requests, |notification| match notification {
            ServerNotification::CancelledNotification(it) => it.params.request_id.as_ref(),
            _ => None,
        })
    }
}

impl<R: ServiceRole, T: Transport<R>> BoundedTransport<R, T> {
    fn new(inner: T, requests: usize, cancelled: fn(&R::PeerNot) -> Option<&RequestId>) -> Self {
        Self {
            inner,
            requests: Arc::new(Semaphore::new(requests)),
            notifications: Arc::new(Semaphore::new(MAX_NOTIFICATIONS)),
            in_flight: HashMap::new(),
            next_message: None,
            rejection: None,
            cancelled_request_id: cancelled,
        }
    }

    /// Starts writing an error response to a request that exceeds the limit.
    fn reject(&mut self, id: RequestId) {
        let error = ErrorData::internal_error("too many concurrent requests", None);
        let sending = self.inner.send(JsonRpcMessage::error(error, Some(id)));
        self.rejection = Some(Box::pin(async move {
            if let Err(error) = sending.await {
                tracing::debug!(%error, "cannot send an error response");
            }
        }));
    }
}

impl<R: ServiceRole, T: Transport<R>> Transport<R> for BoundedTransport<R, T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<R>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let place = match &message {
            JsonRpcMessage::Response(answer) => self.in_flight.remove(&answer.id),
            JsonRpcMessage::Error(answer) => {
                let id = answer.id.as_ref();
                id.and_then(|id| self.in_flight.remove(id))
            }
            _ => None,
        };
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    /// Receives the next message. Cancel safe, because all progress is stored in `self`.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        let cancelled = self.cancelled_request_id;
        loop {
            if let Some(refusal) = &mut self.rejection {
                refusal.as_mut().await;
                self.rejection = None;
            }
            if self.next_message.is_none() {
                self.next_message = Some(self.inner.receive().await?);
            }
            let place = match &self.next_message {
                Some(JsonRpcMessage::Request(_)) => {
                    Arc::clone(&self.requests).try_acquire_owned().ok()
                }
                Some(JsonRpcMessage::Notification(it)) if cancelled(&it.notification).is_none() => {
                    Arc::clone(&self.notifications).acquire_owned().await.ok()
                }
                _ => None,
            };
            let place = place.map(|permit| WorkPermit(Arc::new(permit)));
            let mut message = self.next_message.take()?;
            match (&mut message, place) {
                (JsonRpcMessage::Request(request), Some(place)) => {
                    request.request.extensions_mut().insert(place.clone());
                    self.in_flight.insert(request.id.clone(), place);
                }
                (JsonRpcMessage::Request(request), None) => {
                    self.reject(request.id.clone());
                    continue;
                }
                (JsonRpcMessage::Notification(it), Some(place)) => {
                    it.notification.extensions_mut().insert(place);
                }
                (JsonRpcMessage::Notification(it), None) => {
                    if let Some(id) = cancelled(&it.notification) {
                        self.in_flight.remove(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::Mutex;

    use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
    use rmcp::service::{NotificationContext, RequestContext};
    use rmcp::transport::async_rw::AsyncRwTransport;
    use rmcp::{ServerHandler, ServiceExt};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf};
    use tokio::sync::watch;

    use super::*;

    /// A server whose tool calls and `notifications/initialized` handler wait for `go`. It counts the calls that have
    /// started.
    struct WaitingServer {
        go: watch::Receiver<bool>,
        begun: watch::Sender<usize>,
    }

    impl WaitingServer {
        async fn wait(&self) {
            self.begun.send_modify(|begun| *begun += 1);
            let mut go = self.go.clone();
            go.wait_for(|go| *go).await.unwrap();
        }
    }

    impl ServerHandler for WaitingServer {
        async fn call_tool(
            &self,
            _: CallToolRequestParams,
            _: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            self.wait().await;
            Ok(CallToolResult::success(Vec::new()).into())
        }

        async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
            self.wait().await;
        }
    }

    /// A client that sends requests to a [`WaitingServer`].
    struct BoundedPeer {
        lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
        writer: tokio::io::WriteHalf<DuplexStream>,
        go: watch::Sender<bool>,
        begun: watch::Receiver<usize>,
        _serving: tokio::task::JoinHandle<()>,
    }

    impl BoundedPeer {
        /// Connects to a server with this limit on concurrent requests.
        async fn connect_to_server(requests: usize) -> Self {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (go, going) = watch::channel(false);
            let (begun, beginning) = watch::channel(0);
            let serving = tokio::spawn(async move {
                let (reader, writer) = tokio::io::split(ours);
                let transport =
                    BoundedTransport::for_server(AsyncRwTransport::new(reader, writer), requests);
                let waits = WaitingServer { go: going, begun };
                waits
                    .serve(transport)
                    .await
                    .unwrap()
                    .waiting()
                    .await
                    .unwrap();
            });
            let (reader, writer) = tokio::io::split(theirs);
            let mut peer = Self {
                lines: BufReader::new(reader).lines(),
                writer,
                go,
                begun: beginning,
                _serving: serving,
            };
            let client = json!({"name": "test", "version": "1"});
            let params =
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
            peer.send_request(0, "initialize", params).await;
            assert!(peer.next().await["result"]["serverInfo"].is_object());
            peer
        }

        async fn send(&mut self, message: Value) {
            let line = format!("{message}\n");
            self.writer.write_all(line.as_bytes()).await.unwrap();
        }

        async fn send_request(&mut self, id: i64, method: &str, params: Value) {
            self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
                .await;
        }

        async fn send_call(&mut self, id: i64) {
            self.send_request(id, "tools/call", json!({"name": "wait"}))
                .await;
        }

        async fn next(&mut self) -> Value {
            let line = self.lines.next_line().await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }

        /// Waits until `count` calls have started.
        async fn wait_for_calls(&mut self, count: usize) {
            self.begun.wait_for(|begun| *begun == count).await.unwrap();
        }

        /// Returns the ids of the next `count` responses, each with `true` for a result and `false` for an error.
        async fn read_responses(&mut self, count: usize) -> Vec<(i64, bool)> {
            let mut answers = Vec::new();
            for _ in 0..count {
                let answer = self.next().await;
                answers.push((
                    answer["id"].as_i64().unwrap(),
                    answer.get("result").is_some(),
                ));
            }
            answers.sort_unstable();
            answers
        }
    }

    #[tokio::test]
    async fn excess_requests_are_rejected_and_the_rest_answered() {
        let mut peer = BoundedPeer::connect_to_server(2).await;
        for id in 1..=4 {
            peer.send_call(id).await;
        }
        let refused = peer.next().await;
        assert_eq!(refused["id"], 3);
        assert_eq!(refused["error"]["message"], "too many concurrent requests");
        assert_eq!(peer.next().await["id"], 4);
        peer.go.send(true).unwrap();
        assert_eq!(peer.read_responses(2).await, [(1, true), (2, true)]);
        // The permits of these requests are free again.
        for id in 5..=6 {
            peer.send_call(id).await;
            assert_eq!(peer.read_responses(1).await, [(id, true)]);
        }
    }

    #[tokio::test]
    async fn cancelled_call_holds_its_permit_until_it_ends() {
        let mut peer = BoundedPeer::connect_to_server(1).await;
        peer.send_call(1).await;
        peer.wait_for_calls(1).await;
        // This tool ignores its cancellation token.
        let params = json!({"requestId": 1});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        peer.send(cancel).await;
        peer.send_call(2).await;
        assert_eq!(peer.read_responses(1).await, [(2, false)]);
        peer.go.send(true).unwrap();
        // The first call ends now, without a message. After a while, there is capacity again.
        for id in 3.. {
            peer.send_call(id).await;
            if peer.read_responses(1).await == [(id, true)] {
                return;
            }
        }
    }

    /// Uses paused time, which advances only while all tasks are waiting.
    #[tokio::test(start_paused = true)]
    async fn slow_notifications_delay_later_ones_without_loss() {
        let mut peer = BoundedPeer::connect_to_server(1).await;
        for _ in 0..=MAX_NOTIFICATIONS {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            peer.send(initialized).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(*peer.begun.borrow(), MAX_NOTIFICATIONS);
        peer.go.send(true).unwrap();
        peer.wait_for_calls(MAX_NOTIFICATIONS + 1).await;
    }

    /// A server that sends requests and records the responses.
    struct FloodingServer {
        asks: VecDeque<u32>,
        sent: Arc<Mutex<Vec<String>>>,
    }

    impl Transport<RoleClient> for FloodingServer {
        type Error = Infallible;

        fn send(
            &mut self,
            message: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            let message = serde_json::to_string(&message).unwrap();
            self.sent.lock().unwrap().push(message);
            async { Ok(()) }
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            let id = self.asks.pop_front()?;
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            Some(serde_json::from_value(asked).unwrap())
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn excess_server_requests_are_rejected() {
        const REQUEST_LIMIT: usize = 64;
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let asks = (0..100).collect();
        let mut bounded = BoundedTransport::for_client(
            FloodingServer {
                asks,
                sent: Arc::clone(&sent),
            },
            REQUEST_LIMIT,
        );
        let mut taken = Vec::new();
        while let Some(message) = bounded.receive().await {
            taken.push(message);
        }
        assert_eq!(taken.len(), REQUEST_LIMIT);
        let refused = sent.lock().unwrap().clone();
        assert_eq!(refused.len(), 100 - REQUEST_LIMIT);
        assert!(
            refused[0].contains("too many concurrent requests"),
            "{}",
            refused[0]
        );
        // A response frees a permit once it is written and the handler has finished.
        drop(taken);
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        bounded.inner.asks.push_back(200);
        let answered = bounded.send(serde_json::from_value(answer).unwrap());
        answered.await.unwrap();
        assert!(bounded.receive().await.is_some());
    }
}
