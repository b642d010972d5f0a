//! Received extension requests and notifications. See the specification's page "Extensibility".

use acp_wire::v1::Extension;
use acp_wire::{Notification, Request, jsonrpc, read_params};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};

/// An extension request from the peer. Its method starts with `_`. See "Custom Requests" on the specification's page
/// "Extensibility".
///
/// [`answer_with`](Self::answer_with) parses it as a type of your own that implements [`Request`]:
///
/// ```
/// use acp::client::{Client, ExtensionRequest};
/// use acp::wire::Request;
/// use acp::Result;
/// use serde::{Deserialize, Serialize};
/// use serde_json::value::RawValue;
///
/// #[derive(Serialize, Deserialize)]
/// struct Sum {
///     numbers: Vec<i64>,
/// }
///
/// impl Request for Sum {
///     const METHOD: &'static str = "_example.com/sum";
///     type Response = i64;
/// }
///
/// struct Calculator;
///
/// impl Client for Calculator {
///     type State = ();
///
///     async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
///         match request.method() {
///             Sum::METHOD => request.answer_with(async |sum: Sum| Ok(sum.numbers.iter().sum())).await,
///             _ => Err(request.not_found()),
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ExtensionRequest(Extension);

impl ExtensionRequest {
    pub(crate) fn new(extension: Extension) -> Self {
        Self(extension)
    }

    /// Returns the method name, including the leading underscore.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the params as JSON text, as received.
    #[must_use]
    pub fn params(&self) -> Option<&RawValue> {
        self.0.params.as_deref()
    }

    /// Returns the params as JSON text, without copying them.
    #[must_use]
    pub fn into_params(self) -> Option<Box<RawValue>> {
        self.0.params
    }

    /// Parses the params as an `R`, passes them to `work`, and serializes the result. The caller must check that the
    /// method is `R::METHOD`. Missing params count as an empty object.
    ///
    /// # Errors
    /// Returns -32602 if the params do not match `R`, or the error that `work` returns.
    pub async fn answer_with<R: Request>(
        self,
        work: impl AsyncFnOnce(R) -> Result<R::Response>,
    ) -> Result<Box<RawValue>> {
        let params = read_params(self.method(), self.params())?;
        let answer = work(params).await?;
        to_raw_value(&answer).map_err(|e| Error::NotSerializable {
            method: self.0.method,
            reason: e.to_string(),
        })
    }

    /// Returns the error for an unknown method (-32601).
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::Rpc(jsonrpc::Error::method_not_found(self.method()))
    }
}

/// An extension notification from the peer. Its method starts with `_`. See "Custom Notifications" on the
/// specification's page "Extensibility".
#[derive(Debug, Clone)]
pub struct ExtensionNotification(Extension);

impl ExtensionNotification {
    pub(crate) fn new(extension: Extension) -> Self {
        Self(extension)
    }

    /// Returns the method name, including the leading underscore.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the params as JSON text, as received.
    #[must_use]
    pub fn params(&self) -> Option<&RawValue> {
        self.0.params.as_deref()
    }

    /// Parses the params as an `N`, or returns `None` if the notification has another method.
    ///
    /// # Errors
    /// Fails if the params do not match `N`.
    pub fn read<N: Notification>(&self) -> Result<Option<N>> {
        if self.method() != N::METHOD {
            return Ok(None);
        }
        Ok(Some(read_params(self.method(), self.params())?))
    }
}
