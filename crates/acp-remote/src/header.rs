//! The names of the headers. The first two are the draft's, the others belong to the extension (decision 19).

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

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
pub(crate) const META_KEY: &str = "acp-sdk/remote";

/// What a side offers in [`RESUME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResumeTerms {
    /// How many bytes it takes before they are acknowledged.
    pub(crate) window: usize,
    /// How long a server waits for a client. Clients send none.
    pub(crate) grace: Duration,
}

impl ResumeTerms {
    /// Reads the header. Unknown parameters are ignored, so that later versions can add some.
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

    /// Returns the value of the header.
    pub(crate) fn header_value(&self) -> HeaderValue {
        let Self { window, grace } = self;
        let text = match grace.as_secs() {
            0 => format!("1; window={window}"),
            grace => format!("1; window={window}; grace={grace}"),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("1"))
    }
}

/// The smallest window, in bytes.
pub(crate) const MIN_WINDOW_BYTES: usize = 4096;
