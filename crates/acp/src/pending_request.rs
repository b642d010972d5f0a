//! Received requests that need a response.

use std::sync::Arc;

use acp_wire::jsonrpc;

use crate::connection::Responder;
use crate::error::{Error, Result};

/// A received request and the side that handles it. The [`MessageHandler`](acp_wire::MessageHandler) of each type of
/// request is in `agent/methods/` and `client/methods/`.
pub(crate) struct PendingRequest<S> {
    pub(crate) side: Arc<S>,
    pub(crate) responder: Responder,
}

impl<S> PendingRequest<S> {
    /// Creates a request that `side` handles.
    pub(crate) fn new(side: &Arc<S>, responder: Responder) -> Self {
        let side = Arc::clone(side);
        Self { side, responder }
    }

    /// Responds with an error.
    pub(crate) fn refuse(self, error: Error) {
        self.responder.spawn(async move { Err::<(), _>(error) });
    }
}

/// The handler type of a method that a side does not support. It has no values.
pub(crate) enum UnsupportedMethod {}

/// Returns the handler that a side offers for this method.
///
/// # Errors
/// Fails if the side does not support the method.
pub(crate) fn require_offer<T>(offer: Option<T>, method: &str) -> Result<T> {
    offer.ok_or_else(|| Error::Rpc(jsonrpc::Error::method_not_found(method)))
}
