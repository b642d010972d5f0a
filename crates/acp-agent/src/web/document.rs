//! A fetched document.

use reqwest::StatusCode;

/// A document that a server sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) status: StatusCode,
    /// The media type in lower case, without parameters. Empty if the server gave none.
    pub(crate) media_type: String,
    /// The charset that the server gave.
    pub(crate) charset: Option<String>,
    pub(crate) body: Vec<u8>,
}
