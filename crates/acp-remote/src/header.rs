//! Names of HTTP headers. The first two are defined by the draft. Most of the others belong to the extension (decision
//! 19).

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that contains the connection id.
pub(crate) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");

/// The header that contains the session id.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// The header with which a client requests the extension, and a server confirms that it supports it.
pub(crate) const RESUME: HeaderName = HeaderName::from_static("acp-resume");

/// The header that contains the position up to which a stream's or connection's data has arrived.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("acp-last-event-id");

/// The header that contains the position of a POST's first byte.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("acp-position");

/// The header that contains the position up to which an SSE stream's events have arrived. See the HTML Living Standard,
/// "Server-sent events".
pub(crate) const SSE_LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The header that goose sends the token in.
pub(crate) const SECRET_KEY: HeaderName = HeaderName::from_static("x-secret-key");

/// The key for this crate's object in the `_meta` field of the `initialize` response.
pub(crate) const META_KEY: &str = "acp-sdk/remote";

/// The terms of the extension. Each side sends its own in [`RESUME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResumeTerms {
    /// The number of unacknowledged bytes that the side accepts.
    pub(crate) window: usize,
    /// How long a server waits for a client whose connection was cut. Clients do not send this.
    pub(crate) grace: Duration,
}

impl ResumeTerms {
    /// Parses the terms in a request or response. Ignores unknown parameters, so that future versions can add some.
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

    /// Formats the terms as a header value.
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
