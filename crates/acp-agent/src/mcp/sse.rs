//! The HTTP transport with server-sent events from MCP version 2024-11-05, which some servers still use. The first
//! event of the server's stream contains the URL to which messages must be posted.
//!
//! `rmcp` no longer has this transport, but clients still configure servers that use it ("Session Setup", "MCP
//! Servers", `sse`). Events are read by [`crate::sse`], with a size limit.

use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::sse::{EventTooLarge, SseEvent, SseReader};

/// The maximum size of an event, in bytes. `rmcp` has the same limit for messages in its other transports.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The reason why a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    #[error("HTTP status {0}")]
    Status(StatusCode),
    /// Authentication is required. Contains the `WWW-Authenticate` header of the response, or is empty.
    #[error("authentication required")]
    Unauthorized(String),
    #[error("the response is not an event stream")]
    NotEventStream,
    #[error("the server did not send its message endpoint")]
    NoEndpoint,
    #[error("the server's message endpoint {0} is on a different origin")]
    OtherOrigin(Url),
    #[error(transparent)]
    TooLarge(#[from] EventTooLarge),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A connection to a server over this transport.
pub(super) struct SseTransport {
    client: Client,
    post: Arc<Url>,
    events: SseEvents<Response>,
}

impl SseTransport {
    pub(super) async fn connect(client: Client, url: Url) -> Result<Self, SseError> {
        let get = client.get(url.clone()).header(ACCEPT, "text/event-stream");
        let response = get.send().await?;
        check_status(&response)?;
        let kind = response.headers().get(CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return Err(SseError::NotEventStream);
        }
        let mut events = SseEvents::new(response);
        let post = loop {
            let event = events.next().await?.ok_or(SseError::NoEndpoint)?;
            if event.name == "endpoint" {
                break url
                    .join(event.data.trim())
                    .map_err(|_| SseError::NoEndpoint)?;
            }
        };
        // The headers may contain the user's keys, so they are sent to no other origin.
        if post.origin() != url.origin() {
            return Err(SseError::OtherOrigin(post));
        }
        Ok(Self {
            client,
            post: Arc::new(post),
            events,
        })
    }
}

/// Checks that the server has accepted a request.
fn check_status(response: &Response) -> Result<(), SseError> {
    match response.status() {
        status if status.is_success() => Ok(()),
        StatusCode::UNAUTHORIZED => {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.map(|it| String::from_utf8_lossy(it.as_bytes()));
            Err(SseError::Unauthorized(
                challenge.unwrap_or_default().into_owned(),
            ))
        }
        status => Err(SseError::Status(status)),
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let (client, post) = (self.client.clone(), Arc::clone(&self.post));
        async move {
            let body = serde_json::to_vec(&message)?;
            let request = client.post(post.as_ref().clone());
            let request = request.header(CONTENT_TYPE, "application/json").body(body);
            // The response arrives as an event.
            check_status(&request.send().await?)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await {
                Ok(event) => event?,
                Err(error) => {
                    tracing::warn!(%error, "lost an MCP server's event stream");
                    return None;
                }
            };
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            match serde_json::from_str(&event.data) {
                Ok(message) => return Some(message),
                Err(error) => tracing::warn!(%error, "an MCP server sent an invalid message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), SseError> {
        self.events.has_ended = true;
        Ok(())
    }
}

/// A source of bytes, such as a response body.
trait ByteSource: Send {
    /// Returns the next bytes, or `None` at the end. No bytes are lost if the future is dropped.
    fn next_bytes(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, SseError>> + Send;
}

impl ByteSource for Response {
    async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, SseError> {
        Ok(self.chunk().await?.map(Vec::from))
    }
}

/// Reads events from a stream of bytes.
struct SseEvents<S> {
    source: S,
    reader: SseReader,
    has_ended: bool,
}

impl<S: ByteSource> SseEvents<S> {
    fn new(source: S) -> Self {
        Self {
            source,
            reader: SseReader::new(MAX_EVENT_BYTES),
            has_ended: false,
        }
    }

    /// Returns the next event, or `None` at the end. No event is lost if the future is dropped.
    async fn next(&mut self) -> Result<Option<SseEvent>, SseError> {
        loop {
            let event = self.reader.next().inspect_err(|_| self.has_ended = true)?;
            if event.is_some() || self.has_ended {
                return Ok(event);
            }
            match self.source.next_bytes().await? {
                Some(bytes) => self.reader.push(&bytes),
                None => self.has_ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestByteSource(Vec<Vec<u8>>);

    impl ByteSource for TestByteSource {
        async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, SseError> {
            Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
        }
    }

    async fn read_events(pieces: &[&str]) -> Vec<(String, String)> {
        let pieces = pieces.iter().map(|piece| piece.as_bytes().to_vec());
        let mut events = SseEvents::new(TestByteSource(pieces.collect()));
        let mut all = Vec::new();
        while let Some(event) = events.next().await.unwrap() {
            all.push((event.name, event.data));
        }
        all
    }

    #[tokio::test]
    async fn events_split_across_chunks_are_parsed() {
        let stream = ": hello\r\nevent: endpoint\r\ndata: /post?x=é\r\n\r\nid: 7\ndata:{\"a\":\ndata: 1}\n\nretry: 5\n\ndata: lost";
        let expected = [("endpoint", "/post?x=é"), ("", "{\"a\":\n1}")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        assert_eq!(read_events(&[stream]).await, expected);
        for at in (0..stream.len()).filter(|at| stream.is_char_boundary(*at)) {
            let (one, other) = stream.split_at(at);
            assert_eq!(
                read_events(&[one, other]).await,
                expected,
                "stream split at byte {at}"
            );
        }
    }

    #[tokio::test]
    async fn unterminated_event_above_the_limit_is_an_error() {
        let piece = "a".repeat(1024 * 1024);
        for line_end in ["", "\ndata: "] {
            let pieces = std::iter::repeat_with(|| format!("{line_end}{piece}").into_bytes());
            let mut events = SseEvents::new(TestByteSource(pieces.take(20).collect()));
            let error = events.next().await.unwrap_err();
            assert!(matches!(error, SseError::TooLarge(_)), "{error}");
            assert!(events.next().await.is_ok_and(|event| event.is_none()));
        }
    }
}
