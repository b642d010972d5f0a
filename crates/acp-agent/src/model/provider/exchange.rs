//! Sends a request to a provider and receives the events of its response, with limits on size and time.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::time::timeout;

use crate::sse::{EventTooLarge, SseEvent, SseReader};

/// The maximum number of bytes to read from an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// How long to continue reading after the last event of a response. At most [`MAX_DRAIN_BYTES`] bytes are read.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
const MAX_DRAIN_BYTES: usize = 16 * 1024;

/// A request to a provider, with the limits on its response.
pub(super) struct HttpRequest {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// The body of the request, as JSON.
    pub(super) body: Vec<u8>,
    /// How long the provider may stay silent before the request fails.
    pub(super) idle_timeout: Duration,
    /// The maximum size of an event, in bytes.
    pub(super) max_bytes: usize,
}

/// A request whose response is being received.
pub(super) struct Exchange {
    response: Response,
    reader: SseReader,
    idle_timeout: Duration,
}

/// Why a response did not arrive or is incomplete.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The server cannot be reached, or the connection was lost.
    Web(reqwest::Error),
    /// No response arrived in time.
    NoResponse,
    /// The response stalled: no more data arrived in time.
    IdleTimeout,
    /// The server responded with an error. Contains the status, the headers and the start of the body.
    Status(StatusCode, HeaderMap, String),
    /// An event is larger than this many bytes.
    TooLarge(usize),
}

impl Exchange {
    /// Sends the request and waits until the response starts.
    pub(super) async fn send(http_request: HttpRequest) -> Result<Self, ExchangeError> {
        let idle_timeout = http_request.idle_timeout;
        let json = HeaderValue::from_static("application/json");
        let request = http_request
            .client
            .post(http_request.url)
            .headers(http_request.headers)
            .header(CONTENT_TYPE, json)
            .body(http_request.body);
        let response = timeout(idle_timeout, request.send()).await;
        let response = response
            .map_err(|_| ExchangeError::NoResponse)?
            .map_err(web_error)?;
        if !response.status().is_success() {
            let (status, headers) = (response.status(), response.headers().clone());
            let body_start = read_body_head(response, idle_timeout).await;
            return Err(ExchangeError::Status(status, headers, body_start));
        }
        Ok(Self {
            response,
            reader: SseReader::new(http_request.max_bytes),
            idle_timeout,
        })
    }

    /// Returns the next event, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, ExchangeError> {
        loop {
            let event = self.reader.next();
            let event = event.map_err(|EventTooLarge(most)| ExchangeError::TooLarge(most))?;
            if event.is_some() {
                return Ok(event);
            }
            let piece = timeout(self.idle_timeout, self.response.chunk()).await;
            match piece
                .map_err(|_| ExchangeError::IdleTimeout)?
                .map_err(web_error)?
            {
                Some(piece) => self.reader.push(&piece),
                None => return Ok(None),
            }
        }
    }

    /// Reads the response to its end. Nothing should follow the last event, but the connection cannot be reused until
    /// the end has been read.
    pub(super) async fn drain(mut self) {
        let reading = async {
            let mut left = MAX_DRAIN_BYTES;
            while let Ok(Some(piece)) = self.response.chunk().await {
                match left.checked_sub(piece.len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        let _ = timeout(DRAIN_TIMEOUT, reading).await;
    }
}

/// Converts an HTTP error. Removes the URL, because its query may contain a key. The message to the user has a safe
/// form of the URL instead.
fn web_error(error: reqwest::Error) -> ExchangeError {
    ExchangeError::Web(error.without_url())
}

/// Reads the start of a response body, within limits on time and size.
async fn read_body_head(mut response: Response, time: Duration) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = MAX_ERROR_BODY_BYTES.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() >= room {
                break;
            }
        }
    };
    // The part that has arrived by then is enough.
    let _ = timeout(time, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}
