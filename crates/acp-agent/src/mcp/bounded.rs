//! A bound for what a server can make the agent do at once.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests of a server are worked on at once. Further ones are refused.
const REQUESTS: usize = 64;

/// How many of its notifications. Further ones are not read until there is room.
const NOTIFICATIONS: usize = 64;

/// A transport that passes on so many messages of a server at once and no more. `rmcp` starts a task for each
/// that it reads: a server that floods the agent, or asks and reads no answers, would fill the memory. The same
/// is done for the other side in `acp-mcp/src/bounded.rs`.
pub(super) struct Bounded<T> {
    inner: T,
    requests: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// The requests whose answers have not been written.
    unanswered: HashMap<RequestId, Place>,
    /// What has been read, and may wait for a place.
    next: Option<RxJsonRpcMessage<RoleClient>>,
    /// The refusal that is being written.
    refusal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A place, until the last clone is dropped: one is with the handler, the other waits for the answer.
#[derive(Clone)]
struct Place(#[allow(dead_code, reason = "held, not looked at")] Arc<OwnedSemaphorePermit>);

impl<T> Bounded<T> {
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            requests: Arc::new(Semaphore::new(REQUESTS)),
            notifications: Arc::new(Semaphore::new(NOTIFICATIONS)),
            unanswered: HashMap::new(),
            next: None,
            refusal: None,
        }
    }
}

/// That a request is not wanted any more makes room, and needs none.
fn cancelled(notification: &ServerNotification) -> Option<&RequestId> {
    match notification {
        ServerNotification::CancelledNotification(it) => it.params.request_id.as_ref(),
        _ => None,
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        let place = answered.and_then(|id| self.unanswered.remove(id));
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    /// Dropped and called again whenever there is something else to do: what is begun is kept in `self`.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                refusal.as_mut().await;
                self.refusal = None;
            }
            if self.next.is_none() {
                self.next = Some(self.inner.receive().await?);
            }
            let permit = match &self.next {
                Some(JsonRpcMessage::Request(_)) => {
                    Arc::clone(&self.requests).try_acquire_owned().ok()
                }
                Some(JsonRpcMessage::Notification(it)) if cancelled(&it.notification).is_none() => {
                    Arc::clone(&self.notifications).acquire_owned().await.ok()
                }
                _ => None,
            };
            let place = permit.map(|permit| Place(Arc::new(permit)));
            let mut message = self.next.take()?;
            match (&mut message, place) {
                (JsonRpcMessage::Request(request), Some(place)) => {
                    request.request.extensions_mut().insert(place.clone());
                    self.unanswered.insert(request.id.clone(), place);
                }
                (JsonRpcMessage::Request(request), None) => {
                    let error = ErrorData::internal_error("too many requests at once", None);
                    let refusal = JsonRpcMessage::error(error, Some(request.id.clone()));
                    let sending = self.inner.send(refusal);
                    self.refusal = Some(Box::pin(async move {
                        if let Err(error) = sending.await {
                            tracing::debug!(%error, "a refusal could not be written");
                        }
                    }));
                    continue;
                }
                (JsonRpcMessage::Notification(it), Some(place)) => {
                    it.notification.extensions_mut().insert(place);
                }
                (JsonRpcMessage::Notification(it), None) => {
                    if let Some(id) = cancelled(&it.notification) {
                        self.unanswered.remove(id);
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
    use super::*;
    use serde_json::json;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::Mutex;

    /// A server that asks so often, and reads no answers until it is told to.
    struct Flood {
        asks: VecDeque<u32>,
        sent: Arc<Mutex<Vec<String>>>,
    }

    impl Transport<RoleClient> for Flood {
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
    async fn what_a_server_asks_beyond_the_limit_is_refused() {
        let sent = Arc::<Mutex<Vec<String>>>::default();
        let asks = (0..100).collect();
        let mut bounded = Bounded::new(Flood {
            asks,
            sent: Arc::clone(&sent),
        });
        let mut taken = Vec::new();
        while let Some(message) = bounded.receive().await {
            taken.push(message);
        }
        assert_eq!(taken.len(), REQUESTS);
        let refused = sent.lock().unwrap().clone();
        assert_eq!(refused.len(), 100 - REQUESTS);
        assert!(refused[0].contains("too many requests"), "{}", refused[0]);
        // An answer makes room, once it is written and the handler is done.
        drop(taken);
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        bounded.inner.asks.push_back(200);
        let answered = bounded.send(serde_json::from_value(answer).unwrap());
        answered.await.unwrap();
        assert!(bounded.receive().await.is_some());
    }
}
