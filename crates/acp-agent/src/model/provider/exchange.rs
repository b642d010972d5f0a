//! A request to a provider, and the events of its answer, which are measured as they come.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::time::timeout;

use crate::sse::{EventTooLarge, SseEvent, SseReader};

/// How much of what a provider says about a failure is read, in bytes.
const OF_A_FAILURE: usize = 64 * 1024;

/// How long, and for how many bytes, the end of an answer is waited for of which all is known.
const REST: Duration = Duration::from_millis(100);
const REST_BYTES: usize = 16 * 1024;

/// What is asked, and what may come back.
pub(super) struct HttpRequest {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// JSON.
    pub(super) body: Vec<u8>,
    /// How long the provider may say nothing.
    pub(super) idle_timeout: Duration,
    /// How many bytes one event may have.
    pub(super) max_bytes: usize,
}

/// An answer that comes.
pub(super) struct Exchange {
    response: Response,
    reader: SseReader,
    idle_timeout: Duration,
}

/// Why an answer did not come, or not to its end.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// It cannot be reached, or the connection broke.
    Web(reqwest::Error),
    /// Nothing came at all.
    NoResponse,
    /// Nothing came any more.
    IdleTimeout,
    /// It refuses, and says why. Of that, the beginning.
    Status(StatusCode, HeaderMap, String),
    /// An event has more bytes than this.
    TooLarge(usize),
}

impl Exchange {
    /// Asks, and waits until the answer begins.
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

    /// The next event; none at the end.
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

    /// Reads what is behind the last event, which is nothing if all is well: only then can the connection be used for
    /// the next request.
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

/// An error without the address, of which a person sees elsewhere what may be seen: a key may be in its query.
fn web_error(error: reqwest::Error) -> ExchangeError {
    ExchangeError::Web(error.without_url())
}

/// As much of an answer as has come in this time, and is not too much.
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
    // What has come by then is enough.
    let _ = timeout(time, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}
