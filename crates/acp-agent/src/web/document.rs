//! Defines a document from the web.

use reqwest::StatusCode;

/// A document received from a web server.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) status: StatusCode,
    /// The media type reported by the server, in lowercase and without parameters. Empty if the server sent none.
    pub(crate) media_type: String,
    /// The character encoding specified by the server, if any.
    pub(crate) charset: Option<String>,
    pub(crate) body: Vec<u8>,
}
