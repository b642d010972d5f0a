//! Methods of extensions: the specification's page Extensibility.

use acp_wire::v1::Extension;
use acp_wire::{Notification, Request, jsonrpc, read_params};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};

/// A request of an extension. Its method starts with `_`. Extensibility, "Custom Requests".
///
/// [`answer`](Self::answer) handles it as a type of your own that implements [`Request`]:
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
///             Sum::METHOD => request.answer(async |sum: Sum| Ok(sum.numbers.iter().sum())).await,
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

    /// Returns the method's name, including the underscore.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the `params` as received.
    #[must_use]
    pub fn params(&self) -> Option<&RawValue> {
        self.0.params.as_deref()
    }

    /// Converts the request into its `params` as received.
    #[must_use]
    pub fn into_params(self) -> Option<Box<RawValue>> {
        self.0.params
    }

    /// Reads the params as those of `R`, runs `work` and serializes its result. The caller checks that the method is
    /// that of `R`. Missing params are read as an empty object.
    ///
    /// # Errors
    /// -32602 if the params are not those of `R`; the error of `work`.
    pub async fn answer<R: Request>(
        self,
        work: impl AsyncFnOnce(R) -> Result<R::Response>,
    ) -> Result<Box<RawValue>> {
        let params = read_params(self.method(), self.params())?;
        let answer = work(params).await?;
        to_raw_value(&answer).map_err(|e| Error::Unwritable {
            method: self.0.method,
            reason: e.to_string(),
        })
    }

    /// Returns the error for an unknown method, -32601.
    #[must_use]
    pub fn not_found(&self) -> Error {
        Error::Rpc(jsonrpc::Error::method_not_found(self.method()))
    }
}

/// A notification of an extension. Its method starts with `_`. Extensibility, "Custom Notifications".
#[derive(Debug, Clone)]
pub struct ExtensionNotification(Extension);

impl ExtensionNotification {
    pub(crate) fn new(extension: Extension) -> Self {
        Self(extension)
    }

    /// Returns the method's name, including the underscore.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the `params` as received.
    #[must_use]
    pub fn params(&self) -> Option<&RawValue> {
        self.0.params.as_deref()
    }

    /// Reads the params as those of `N`. Returns `None` if the notification has another method.
    ///
    /// # Errors
    /// The params are not those of `N`.
    pub fn read<N: Notification>(&self) -> Result<Option<N>> {
        if self.method() != N::METHOD {
            return Ok(None);
        }
        Ok(Some(read_params(self.method(), self.params())?))
    }
}
