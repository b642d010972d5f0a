//! Methods of extensions: extensibility, "Extension Methods".

use serde_json::value::RawValue;

/// A message of a method whose name starts with `_`.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(transparent)]
pub struct Extension {
    /// The name, its underscore included.
    #[serde(skip)]
    pub method: String,
    /// Its `params` as JSON text.
    pub params: Option<Box<RawValue>>,
}

impl Extension {
    /// A message of `method`.
    #[must_use]
    pub fn new(method: &str, params: Option<&RawValue>) -> Self {
        Self {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        }
    }
}
