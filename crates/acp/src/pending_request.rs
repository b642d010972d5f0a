//! Received requests without a response yet.

use std::sync::Arc;

use acp_wire::jsonrpc;

use crate::connection::Responder;
use crate::error::{Error, Result};

/// A received request and the side that handles it. The [`MessageHandler`](acp_wire::MessageHandler) for each type of
/// request is in `agent/methods/` or `client/methods/`.
pub(crate) struct PendingRequest<S> {
    pub(crate) side: Arc<S>,
    pub(crate) responder: Responder,
}

impl<S> PendingRequest<S> {
    /// Creates a pending request for `side` to handle.
    pub(crate) fn new(side: &Arc<S>, responder: Responder) -> Self {
        let side = Arc::clone(side);
        Self { side, responder }
    }

    /// Responds to the request with an error.
    pub(crate) fn reject(self, error: Error) {
        self.responder.spawn(async move { Err::<(), _>(error) });
    }
}

/// The handler type for methods that a side does not support. It has no values.
pub(crate) enum UnsupportedMethod {}

/// Returns a method's handler, or the error -32601 if the side does not support the method.
///
/// # Errors
/// Fails if the side does not support the method.
pub(crate) fn require_handler<T>(offer: Option<T>, method: &str) -> Result<T> {
    offer.ok_or_else(|| Error::Rpc(jsonrpc::Error::method_not_found(method)))
}
