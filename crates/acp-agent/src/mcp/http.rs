//! The Streamable HTTP transport of `rmcp`, with a client that notices when the server is lost. By itself, `rmcp` does
//! not end the connection if a request cannot be delivered, and does not notice a loss while there are no requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};

use super::handler::McpConnectionState;
use crate::causes::error_chain;

type HttpClientError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The maximum wait before a failed event stream is reopened. A lost server is detected independently.
const MAX_STREAM_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(60);

/// Returns the configuration of the transport for the server at `url`.
pub(super) fn transport_config(url: &str) -> StreamableHttpClientTransportConfig {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        // An expired session counts as a lost connection, so that the server's tools and prompts are listed again.
        .reinit_on_expired_session(false);
    let mut retry = ExponentialBackoff::default();
    retry.max_delay = Some(MAX_STREAM_RETRY_DELAY);
    config.retry_config = Arc::new(retry);
    config
}

/// An HTTP client for one connection to a server. It reports when the connection is lost.
#[derive(Clone)]
pub(super) struct WatchedClient {
    client: Client,
    name: Arc<str>,
    shared: Arc<McpConnectionState>,
    /// Whether the server has opened an event stream of its own. If it later refuses to open one, its session has
    /// ended.
    has_stream: Arc<AtomicBool>,
}

impl WatchedClient {
    pub(super) fn new(client: Client, name: &str, shared: Arc<McpConnectionState>) -> Self {
        Self {
            client,
            name: name.into(),
            shared,
            has_stream: Arc::default(),
        }
    }

    fn handle_post_result(
        &self,
        posted: Result<StreamableHttpPostResponse, HttpClientError>,
        request: Option<RequestId>,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        use StreamableHttpPostResponse::Json;
        let names = |named: &Option<RequestId>, id: &RequestId| {
            named
                .as_ref()
                .is_some_and(|named| named.to_string() == id.to_string())
        };
        let posted = match (posted, request.clone()) {
            // This is an error without the id of its request. `rmcp` would drop it, and the caller would wait forever.
            // Many servers respond this way to an unknown session, although they should respond with 404.
            (Ok(Json(ServerJsonRpcMessage::Error(mut error), session)), Some(id))
                if !names(&error.id, &id) =>
            {
                if in_session {
                    let error_message = &error.error.message;
                    tracing::debug!(server = %self.name, %error_message, "the MCP server no longer knows this session");
                    Err(StreamableHttpError::SessionExpired)
                } else {
                    error.id = Some(id);
                    Ok(Json(ServerJsonRpcMessage::Error(error), session))
                }
            }
            (posted, _) => posted,
        };
        let undelivered = match &posted {
            Err(StreamableHttpError::SessionExpired) => true,
            Err(StreamableHttpError::Client(error)) => error.is_connect(),
            _ => false,
        };
        if let (true, Some(request)) = (undelivered, request) {
            // This must happen before the connection is marked as lost.
            self.shared.record_undelivered(request);
        }
        self.check_result(posted, false)
    }

    /// Checks whether the result of an HTTP request means that the connection is lost. `streams` is `true` if the
    /// request was for an event stream.
    fn check_result<T>(
        &self,
        done: Result<T, HttpClientError>,
        streams: bool,
    ) -> Result<T, HttpClientError> {
        match &done {
            Err(StreamableHttpError::SessionExpired) => self.set_expired(),
            Err(StreamableHttpError::Client(error)) if error.is_connect() => {
                let name = &self.name;
                let why = error_chain(error);
                let why = format!("Lost connection to the MCP server `{name}`: {why}.");
                self.shared.set_lost(why, false);
            }
            Err(StreamableHttpError::Client(error))
                if streams
                    && error.status() == Some(StatusCode::NOT_FOUND)
                    && self.has_stream.load(Ordering::Relaxed) =>
            {
                self.set_expired();
            }
            Ok(_) if streams => self.has_stream.store(true, Ordering::Relaxed),
            _ => {}
        }
        done
    }

    /// Handles status 404, which means that the session has ended (MCP: Streamable HTTP, "Session Management").
    fn set_expired(&self) {
        let name = &self.name;
        self.shared
            .set_lost(format!("The MCP server `{name}` ended its session."), true);
    }
}

/// Returns the id of the message, if it is a request.
fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

impl StreamableHttpClient for WatchedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let (request, in_session) = (request_id(&message), session.is_some());
        let posted = self
            .client
            .post_message(uri, message, session, auth, headers);
        self.handle_post_result(posted.await, request, in_session)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let (request, in_session) = (request_id(&message), session.is_some());
        let posted = self
            .client
            .post_message_with_max_sse_event_size(uri, message, session, auth, headers, largest);
        self.handle_post_result(posted.await, request, in_session)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpClientError> {
        // The connection is closing, so do not check the result.
        let client = &self.client;
        client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpClientError> {
        let stream = self.client.get_stream(uri, session, last, auth, headers);
        self.check_result(stream.await, true)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<BoxedSseResponse, HttpClientError> {
        let stream = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last, auth, headers, largest);
        self.check_result(stream.await, true)
    }
}
