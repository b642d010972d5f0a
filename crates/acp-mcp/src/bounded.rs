//! A bound for what a peer can make an MCP server do at once.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, GetExtensions, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests of a connection are worked on at once; as many as a connection of the protocol
/// itself takes by default. Further ones are refused.
pub(crate) const REQUESTS: usize = 1024;

/// How many notifications of a connection are worked on at once. Further ones are not read.
const NOTIFICATIONS: usize = 64;

/// A transport that passes on so many messages at once and no more.
///
/// `rmcp` starts a task for each message that it reads, and one more for each answer that it writes:
/// a peer that keeps asking and reads no answers would fill the memory. Here a request takes a place,
/// and gives it back when it has been worked on and its answer is written, or not wanted any more.
pub(crate) struct Bounded<T> {
    inner: T,
    requests: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    /// The requests whose answers have not been written.
    unanswered: HashMap<RequestId, Place>,
    /// What has been read, and may wait for a place.
    next: Option<RxJsonRpcMessage<RoleServer>>,
    /// The refusal that is being written.
    refusal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A place among those that are worked on, until the last clone is dropped. One clone is with the
/// handler, the other waits for the answer.
#[derive(Clone)]
struct Place(#[allow(dead_code, reason = "held, not looked at")] Arc<OwnedSemaphorePermit>);

impl<T: Transport<RoleServer>> Bounded<T> {
    pub(crate) fn new(inner: T, requests: usize) -> Self {
        Self {
            inner,
            requests: Arc::new(Semaphore::new(requests)),
            notifications: Arc::new(Semaphore::new(NOTIFICATIONS)),
            unanswered: HashMap::new(),
            next: None,
            refusal: None,
        }
    }

    /// Writes that there is no place for this request.
    fn refuse(&mut self, id: RequestId) {
        let error = ErrorData::internal_error("too many requests at once", None);
        let sending = self.inner.send(JsonRpcMessage::error(error, Some(id)));
        self.refusal = Some(Box::pin(async move {
            if let Err(error) = sending.await {
                tracing::debug!(%error, "a refusal could not be written");
            }
        }));
    }
}

/// That a request is not wanted any more needs no place: it is what makes room.
fn cancelled(notification: &ClientNotification) -> Option<&RequestId> {
    match notification {
        ClientNotification::CancelledNotification(it) => it.params.request_id.as_ref(),
        _ => None,
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let place = match &message {
            JsonRpcMessage::Response(answer) => self.unanswered.remove(&answer.id),
            JsonRpcMessage::Error(answer) => {
                let id = answer.id.as_ref();
                id.and_then(|id| self.unanswered.remove(id))
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

    /// It is dropped and called again whenever there is something else to do, so that what is begun
    /// is kept in `self`.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                refusal.as_mut().await;
                self.refusal = None;
            }
            if self.next.is_none() {
                self.next = Some(self.inner.receive().await?);
            }
            let place = match &self.next {
                Some(JsonRpcMessage::Request(_)) => {
                    Arc::clone(&self.requests).try_acquire_owned().ok()
                }
                Some(JsonRpcMessage::Notification(it)) if cancelled(&it.notification).is_none() => {
                    Arc::clone(&self.notifications).acquire_owned().await.ok()
                }
                _ => None,
            };
            let place = place.map(|permit| Place(Arc::new(permit)));
            let mut message = self.next.take()?;
            match (&mut message, place) {
                (JsonRpcMessage::Request(request), Some(place)) => {
                    request.request.extensions_mut().insert(place.clone());
                    self.unanswered.insert(request.id.clone(), place);
                }
                (JsonRpcMessage::Request(request), None) => {
                    self.refuse(request.id.clone());
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
