//! Handles POST, which sends messages to the agent.

use std::fmt;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::initialize::initialize;
use super::streams::RegisterError;
use super::{HttpConnection, find_connection, parse_session_header};
use crate::header;
use crate::message::{
    MessageHead, MessageHeadError, MessageHeadKind, is_about_stored_session, parse_head,
};
use crate::server::access::Refusal;
use crate::server::body::ResponseBody;
use crate::server::config::ServerConfig;
use crate::server::handler::{ConnectionHandler, ConnectionInfo};
use crate::server::registry::{Registry, increment};
use crate::server::responses::text_response;
use crate::websocket::replace_line_feeds;

/// The number of bytes that one permit covers. Permits enforce the limit on the total size of all bodies.
pub(in crate::server) const PERMIT_BYTES: usize = 4096;

type HttpResponse = Response<ResponseBody>;

/// Responds to a POST that contains messages or an acknowledgement.
pub(in crate::server) async fn handle_post<H: ConnectionHandler, B>(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    bodies: &Semaphore,
    handler: &Arc<H>,
    info: ConnectionInfo,
    request: Request<B>,
) -> HttpResponse
where
    B: Body<Data = Bytes> + Send,
    B::Error: fmt::Display + Send,
{
    let (parts, body) = request.into_parts();
    match receive_messages(
        config,
        registry,
        bodies,
        handler,
        info,
        &parts.headers,
        body,
    )
    .await
    {
        Ok(answer) => answer,
        Err(refusal) => refusal.into(),
    }
}

async fn receive_messages<H: ConnectionHandler, B>(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    bodies: &Semaphore,
    handler: &Arc<H>,
    info: ConnectionInfo,
    headers: &HeaderMap,
    body: B,
) -> Result<HttpResponse, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: fmt::Display + Send,
{
    // Reject everything that is known to be wrong before the body arrives.
    let known = headers
        .contains_key(header::CONNECTION_ID)
        .then(|| find_connection(registry, headers))
        .transpose()?;
    if let Some((_, connection)) = &known {
        if !connection.is_within_rate() {
            increment(&registry.counters.limited);
            return Err(Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests per second",
            ));
        }
        if headers.contains_key(header::LAST_EVENT_ID) {
            return handle_acknowledgement(connection, headers);
        }
    }
    let position = match headers.get(header::POSITION) {
        None => None,
        Some(value) => Some(
            value
                .to_str()
                .ok()
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| {
                    Refusal::new(StatusCode::BAD_REQUEST, "Acp-Position is not a number")
                })?,
        ),
    };
    let is_list = check_content_type(headers, position.is_some())?;
    let session = parse_session_header(headers)?;
    let _post = known
        .as_ref()
        .map(|(_, connection)| connection.begin_post());
    let (mut body, _permits) = read_body(config, registry, bodies, body).await?;

    let Some((_, connection)) = known else {
        replace_line_feeds(&mut body);
        let head = parse_message(&body)?;
        return match &head.kind {
            MessageHeadKind::Request { id, method } if method == "initialize" => {
                Ok(initialize(config, registry, handler, info, headers, &body, id).await)
            }
            _ => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "the Acp-Connection-Id header is missing; only initialize may be sent without it",
            )),
        };
    };
    if !is_list {
        replace_line_feeds(&mut body);
    }
    let lines: Vec<&[u8]> = body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .collect();
    if lines.is_empty() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is empty"));
    }
    let mut messages = Vec::with_capacity(lines.len());
    for line in lines {
        let head = parse_message(line)?;
        if !is_list {
            check_session(&head, session.as_deref())?;
        }
        messages.push((line, head));
    }
    deliver(
        registry,
        &connection,
        session.as_deref(),
        position,
        &messages,
    )
    .await
}

/// Checks the content type of the body. Returns `true` if the body is a list of messages.
fn check_content_type(headers: &HeaderMap, is_numbered: bool) -> Result<bool, Refusal> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(false);
    }
    if is_numbered && kind.eq_ignore_ascii_case("application/x-ndjson") {
        return Ok(true);
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the Content-Type must be application/json",
    ))
}

/// Reads a body up to the maximum message length, and counts its size against the limit for all bodies.
async fn read_body<'a, B>(
    config: &ServerConfig,
    registry: &Registry,
    bodies: &'a Semaphore,
    body: B,
) -> Result<(Vec<u8>, Option<SemaphorePermit<'a>>), Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: fmt::Display + Send,
{
    let most = config.limits.message;
    let too_large = || {
        increment(&registry.counters.limited);
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the message is too long: the limit is {most} bytes"),
        )
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let reading = async {
        let mut body = std::pin::pin!(body);
        let mut bytes = Vec::new();
        let mut permits: Option<SemaphorePermit<'a>> = None;
        while let Some(frame) = body.as_mut().frame().await {
            let frame = frame.map_err(|error| {
                Refusal::new(
                    StatusCode::BAD_REQUEST,
                    format!("cannot read the body: {error}"),
                )
            })?;
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                return Err(too_large());
            }
            let held = permits.as_ref().map_or(0, SemaphorePermit::num_permits) * PERMIT_BYTES;
            let needed = (bytes.len() + data.len())
                .saturating_sub(held)
                .div_ceil(PERMIT_BYTES);
            if needed > 0 {
                let needed = u32::try_from(needed).unwrap_or(u32::MAX);
                // The semaphore is never closed.
                if let Ok(more) = bodies.acquire_many(needed).await {
                    match &mut permits {
                        Some(permits) => permits.merge(more),
                        None => permits = Some(more),
                    }
                }
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                bytes.extend_from_slice(chunk);
                let length = chunk.len();
                data.advance(length);
            }
        }
        Ok((bytes, permits))
    };
    match timeout(config.limits.body_time, reading).await {
        Ok(read) => read,
        Err(_) => {
            increment(&registry.counters.limited);
            Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body took too long to arrive",
            ))
        }
    }
}

fn parse_message(line: &[u8]) -> Result<MessageHead<'_>, Refusal> {
    parse_head(line).map_err(|not| match not {
        MessageHeadError::Batch => {
            Refusal::new(StatusCode::NOT_IMPLEMENTED, "batches are not supported")
        }
        MessageHeadError::Invalid => Refusal::new(
            StatusCode::BAD_REQUEST,
            "the body is not a JSON-RPC 2.0 message",
        ),
    })
}

/// Checks that the session id in a message matches the one in the header.
fn check_session(head: &MessageHead<'_>, header: Option<&str>) -> Result<(), Refusal> {
    let Some(session) = &head.session else {
        return Ok(());
    };
    match header {
        Some(header) if header == session => Ok(()),
        Some(_) => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "Acp-Session-Id differs from the message's sessionId",
        )),
        None => match &head.kind {
            MessageHeadKind::Request { method, .. }
            | MessageHeadKind::Notification { method, .. }
                if !is_about_stored_session(method) && !method.starts_with('_') =>
            {
                Err(Refusal::new(
                    StatusCode::BAD_REQUEST,
                    "the Acp-Session-Id header is missing",
                ))
            }
            _ => Ok(()),
        },
    }
}

/// Passes messages to the agent once there is space for them.
async fn deliver(
    registry: &Registry,
    connection: &HttpConnection,
    session: Option<&str>,
    position: Option<u64>,
    messages: &[(&[u8], MessageHead<'_>)],
) -> Result<HttpResponse, Refusal> {
    let mut inbox = connection.inbox.lock().await;
    let mut skip = match position {
        None => 0,
        Some(position) if position <= *inbox => *inbox - position,
        Some(_) => {
            let reason = "messages before this Acp-Position are missing";
            return Err(Refusal::new(StatusCode::CONFLICT, reason));
        }
    };
    for (line, head) in messages {
        let length = line.len() as u64 + 1;
        if skip >= length {
            // The message was already received.
            skip -= length;
            continue;
        }
        if skip > 0 {
            return Err(Refusal::new(
                StatusCode::CONFLICT,
                "Acp-Position is in the middle of a message",
            ));
        }
        connection.incoming.wait_for_room().await;
        let session = head.session.as_deref().or(session);
        connection
            .streams
            .register(head, session)
            .map_err(|refused| match refused {
                RegisterError::TooManyRequests => {
                    increment(&registry.counters.limited);
                    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many requests in flight")
                }
                RegisterError::DuplicateId => Refusal::new(
                    StatusCode::BAD_REQUEST,
                    "a request with this id is already in flight",
                ),
            })?;
        connection.incoming.push_message(line, true);
        *inbox += length;
    }
    Ok(text_response(StatusCode::ACCEPTED, ""))
}

/// Handles a POST that acknowledges a position of a stream.
fn handle_acknowledgement(
    connection: &HttpConnection,
    headers: &HeaderMap,
) -> Result<HttpResponse, Refusal> {
    let name = parse_session_header(headers)?.unwrap_or_default();
    let position = headers
        .get(header::LAST_EVENT_ID)
        .and_then(|value| value.to_str().ok());
    let is_valid = position
        .and_then(|position| position.parse().ok())
        .is_some_and(|position| connection.streams.acknowledge(&name, position));
    if is_valid {
        Ok(text_response(StatusCode::ACCEPTED, ""))
    } else {
        Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the server never sent the id in Acp-Last-Event-Id",
        ))
    }
}
