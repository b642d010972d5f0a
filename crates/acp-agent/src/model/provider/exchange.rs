//! A request to a provider and the events of its response, with limits on size and time.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::time::timeout;

use crate::sse::{EventTooLarge, SseEvent, SseReader};

/// The limit on how much of an error response is read, in bytes.
const OF_A_FAILURE: usize = 64 * 1024;

/// How long to read on after a response is complete. [`REST_BYTES`] limits the bytes.
const REST: Duration = Duration::from_millis(100);
const REST_BYTES: usize = 16 * 1024;

/// A request to a provider, and the limits on its response.
pub(super) struct HttpRequest {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// The JSON body.
    pub(super) body: Vec<u8>,
    /// How long the provider may send nothing.
    pub(super) idle_timeout: Duration,
    /// The limit on one event, in bytes.
    pub(super) max_bytes: usize,
}

/// A response that is being received.
pub(super) struct Exchange {
    response: Response,
    reader: SseReader,
    idle_timeout: Duration,
}

/// Why a response did not arrive, or not completely.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The server cannot be reached, or the connection broke.
    Web(reqwest::Error),
    /// No response arrived in time.
    NoResponse,
    /// The response stalled.
    IdleTimeout,
    /// The server responded with an error status, headers, and a body of which this is the start.
    Status(StatusCode, HeaderMap, String),
    /// An event is larger than this many bytes.
    TooLarge(usize),
}

impl Exchange {
    /// Sends the request and waits until the response starts.
    pub(super) async fn begin(question: HttpRequest) -> Result<Self, ExchangeError> {
        let silence = question.idle_timeout;
        let json = HeaderValue::from_static("application/json");
        let request = question
            .client
            .post(question.url)
            .headers(question.headers)
            .header(CONTENT_TYPE, json)
            .body(question.body);
        let response = timeout(silence, request.send()).await;
        let response = response
            .map_err(|_| ExchangeError::NoResponse)?
            .map_err(web_error)?;
        if !response.status().is_success() {
            let (status, headers) = (response.status(), response.headers().clone());
            let said = read_head(response, silence).await;
            return Err(ExchangeError::Status(status, headers, said));
        }
        Ok(Self {
            response,
            reader: SseReader::new(question.max_bytes),
            idle_timeout: silence,
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

    /// Reads whatever follows the last event, which should be nothing: the connection can only be reused for the next
    /// request after the response is read to its end.
    pub(super) async fn end(mut self) {
        let reading = async {
            let mut left = REST_BYTES;
            while let Ok(Some(piece)) = self.response.chunk().await {
                match left.checked_sub(piece.len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        let _ = timeout(REST, reading).await;
    }
}

/// Removes the URL from an error, because its query may contain a key. What users may see of the URL is shown
/// elsewhere.
fn web_error(error: reqwest::Error) -> ExchangeError {
    ExchangeError::Web(error.without_url())
}

/// Reads the body of a response, within limits on time and size.
async fn read_head(mut response: Response, time: Duration) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = OF_A_FAILURE.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() >= room {
                break;
            }
        }
    };
    // What has arrived by then is enough.
    let _ = timeout(time, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}
