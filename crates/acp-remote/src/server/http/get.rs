//! Handles GET, which opens a stream.

use std::sync::Arc;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::events::EventStream;
use super::streams::OpenStreamError;
use super::{find_connection, parse_session_header};
use crate::header;
use crate::pipe::OutOfWindow;
use crate::server::access::Refusal;
use crate::server::body::ResponseBody;
use crate::server::config::ServerConfig;
use crate::server::registry::{Registry, increment};

/// The header that tells nginx not to buffer the stream.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Responds to a GET that is not a WebSocket upgrade.
pub(in crate::server) fn get(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    match open_stream(config, registry, headers) {
        Ok(response) => response,
        Err(refusal) => refusal.into(),
    }
}

fn open_stream(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    headers: &HeaderMap,
) -> Result<Response<ResponseBody>, Refusal> {
    let accepts = headers.get_all(ACCEPT).into_iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("text/event-stream")
        })
    });
    if !accepts {
        let reason = "the Accept header must include text/event-stream";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, reason));
    }
    let (_, connection) = find_connection(registry, headers)?;
    if !connection.is_within_rate() {
        increment(&registry.counters.limited);
        return Err(Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests per second",
        ));
    }
    let name = parse_session_header(headers)?.unwrap_or_default();
    let received = match headers.get(header::SSE_LAST_EVENT_ID) {
        None => None,
        Some(value) => match value.to_str().unwrap_or_default() {
            // An `EventSource` that has not seen an id sends this.
            "" => None,
            value => Some(value.parse().map_err(|_| {
                Refusal::new(
                    StatusCode::BAD_REQUEST,
                    "the id in Last-Event-ID was not issued by this server",
                )
            })?),
        },
    };
    let (generation, start) =
        connection
            .streams
            .open(&name, received)
            .map_err(|cannot| match cannot {
                OpenStreamError::TooManySessions => {
                    increment(&registry.counters.limited);
                    Refusal::new(
                        StatusCode::TOO_MANY_REQUESTS,
                        "too many sessions with an open stream",
                    )
                }
                OpenStreamError::OutOfWindow(OutOfWindow::Dropped) => Refusal::new(
                    StatusCode::GONE,
                    "the messages after this id are no longer stored",
                ),
                OpenStreamError::OutOfWindow(OutOfWindow::Future) => Refusal::new(
                    StatusCode::BAD_REQUEST,
                    "the server never sent the id in Last-Event-ID",
                ),
            })?;
    if received.is_some() {
        increment(&registry.counters.resumed);
    }
    let events = EventStream::new(connection, name, generation, config.heartbeat);
    let mut response = Response::new(ResponseBody::from(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(header::LAST_EVENT_ID, start.into());
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}
