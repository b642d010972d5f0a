//! Extension methods: the specification's page "Extensibility", "Extension Methods".

use serde_json::value::RawValue;

/// A message with an extension method, whose name starts with `_`.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(transparent)]
pub struct Extension {
    /// The name, including the underscore.
    #[serde(skip)]
    pub method: String,
    /// The `params` as JSON text.
    pub params: Option<Box<RawValue>>,
}

impl Extension {
    /// Creates a message with this method.
    #[must_use]
    pub fn new(method: &str, params: Option<&RawValue>) -> Self {
        Self {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        }
    }
}
