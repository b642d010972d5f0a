//! The names of HTTP headers. The draft defines the first two, and most of the others belong to the extension (decision
//! 19).

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that contains the id of a connection.
pub(crate) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// The header that contains the id of a session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// The header with which a client requests the extension and a server confirms that it supports the extension.
pub(crate) const RESUME: HeaderName = HeaderName::from_static("acp-resume");

/// The header that contains the position up to which the data of a stream or connection has arrived.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("acp-last-event-id");

/// The header that contains the position of the first byte of a POST.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("acp-position");

/// The header that contains the position up to which the events of an SSE stream have arrived. See the HTML Living
/// Standard, "Server-sent events".
pub(crate) const SSE_LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The header in which goose sends the token.
pub(crate) const SECRET_KEY: HeaderName = HeaderName::from_static("x-secret-key");

/// The key of this crate's object in the `_meta` field of the response to `initialize`.
pub(crate) const META_KEY: &str = "acp-sdk/remote";

/// The terms of the extension, which each side sends in [`RESUME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResumeTerms {
    /// The number of bytes that the side accepts without having acknowledged them.
    pub(crate) window: usize,
    /// How long a server waits for a client whose connection has been cut. Clients do not send this.
    pub(crate) grace: Duration,
}

impl ResumeTerms {
    /// Parses the terms in a request or response. Ignores unknown parameters, so that later versions can add new ones.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parts = headers
            .get(RESUME)?
            .to_str()
            .ok()?
            .split(';')
            .map(str::trim);
        if parts.next() != Some("1") {
            return None;
        }
        let (mut window, mut grace) = (1024 * 1024, 60);
        for part in parts {
            match part.split_once('=') {
                Some(("window", value)) => window = value.parse().ok()?,
                Some(("grace", value)) => grace = value.parse().ok()?,
                _ => {}
            }
        }
        // A window that is too small would need an acknowledgement for each message.
        (window >= MIN_WINDOW_BYTES).then_some(Self {
            window,
            grace: Duration::from_secs(grace),
        })
    }

    /// Formats the terms as the header's value.
    pub(crate) fn header_value(&self) -> HeaderValue {
        let Self { window, grace } = self;
        let text = match grace.as_secs() {
            0 => format!("1; window={window}"),
            grace => format!("1; window={window}; grace={grace}"),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("1"))
    }
}

/// The minimum size of a window, in bytes.
pub(crate) const MIN_WINDOW_BYTES: usize = 4096;
