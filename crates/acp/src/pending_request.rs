//! Requests that have arrived, at either side.

use std::sync::Arc;

use acp_wire::jsonrpc;

use crate::connection::Responder;
use crate::error::{Error, Result};

/// A request that waits for its answer, and the side at which it has arrived. What is done with it is said by the
/// [`MessageHandler`](acp_wire::MessageHandler) for its type: `agent/methods/`, `client/methods/`.
pub(crate) struct PendingRequest<S> {
    pub(crate) side: Arc<S>,
    pub(crate) responder: Responder,
}

impl<S> PendingRequest<S> {
    pub(crate) fn new(side: &Arc<S>, responder: Responder) -> Self {
        let side = Arc::clone(side);
        Self { side, responder }
    }

    /// Answers with an error.
    pub(crate) fn refuse(self, error: Error) {
        self.responder.spawn(async move { Err::<(), _>(error) });
    }
}

/// Stands for what a side does not offer. There is no value of it.
pub(crate) enum UnsupportedMethod {}

/// What a side offers for this method.
///
/// # Errors
/// Nothing: there is no such method then.
pub(crate) fn require_offer<T>(offer: Option<T>, method: &str) -> Result<T> {
    offer.ok_or_else(|| Error::Rpc(jsonrpc::Error::method_not_found(method)))
}
