//! Extension requests and notifications. See "Extension Methods" on the specification's page "Extensibility".

use serde_json::value::RawValue;

/// A request or notification that the specification does not define. Its method starts with `_`.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(transparent)]
pub struct Extension {
    /// The method name, including the leading underscore.
    #[serde(skip)]
    pub method: String,
    /// The parameters as JSON text.
    pub params: Option<Box<RawValue>>,
}

impl Extension {
    /// Creates a message from its method and parameters.
    #[must_use]
    pub fn new(method: &str, params: Option<&RawValue>) -> Self {
        Self {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        }
    }
}
