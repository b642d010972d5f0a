//! What was fetched.

use reqwest::StatusCode;

/// What a server sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) status: StatusCode,
    /// Without parameters, in lower case; empty if the server did not say.
    pub(crate) media_type: String,
    /// The charset that the server says it has.
    pub(crate) charset: Option<String>,
    pub(crate) body: Vec<u8>,
}
