//! The names of the headers. The first two are the draft's, the others belong to the extension (decision 18).

use http::HeaderName;

/// Names a connection.
pub(crate) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// Names a session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// Asks for the extension, and answers that it is supported.
pub(crate) const RESUME: HeaderName = HeaderName::from_static("acp-resume");

/// Tells how much was received.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("acp-last-event-id");

/// Tells the position of a POST's first byte.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("acp-position");

/// Tells how much of an SSE stream was received. HTML Living Standard, "Server-sent events".
pub(crate) const SSE_LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The token as goose sends it.
pub(crate) const SECRET_KEY: HeaderName = HeaderName::from_static("x-secret-key");

/// The key of this crate's object in `_meta` of the response to `initialize`.
pub(crate) const META: &str = "acp-sdk/remote";
