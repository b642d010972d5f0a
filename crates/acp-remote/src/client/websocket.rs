//! A client's WebSocket connections. Each of them may use several sockets in succession.

use std::sync::Arc;
use std::time::Duration;

use acp::Transport;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming as IncomingBody;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::timeout;

use super::dial::{ALPN_H2, ALPN_HTTP_1, dial};
use super::error::{ConnectError, rejected_error};
use super::options::{ConnectionStatus, HttpVersion};
use super::reconnect::ReconnectBackoff;
use super::target::Target;
use crate::header::{self, ResumeTerms};
use crate::pipe::{Retention, pipe_transport};
use crate::websocket::{
    Link, LinkEnd, LinkOptions, LinkRole, SocketPipes, accept_key, generate_key,
};

/// A newly opened WebSocket, and the headers of the server's handshake response.
struct OpenedSocket {
    socket: Upgraded,
    headers: HeaderMap,
}

/// Opens a WebSocket and returns the connection's transport.
pub(super) async fn connect(target: Arc<Target>) -> Result<Transport, ConnectError> {
    let opened = open(&target, None).await?;
    let wants_resume = target.options.reconnect_for != Some(Duration::ZERO);
    let id = opened.headers.get(header::CONNECTION_ID).cloned();
    let terms = ResumeTerms::from_headers(&opened.headers).filter(|_| wants_resume && id.is_some());
    let window = terms.map_or(target.options.window, |terms| {
        terms.window.min(target.options.window)
    });
    let wire = Arc::new(SocketPipes::new(window, LinkRole::Client));
    if terms.is_some() {
        wire.outgoing.set_retention(Retention::UntilAcknowledged);
    }
    target.options.report(&ConnectionStatus::Connected {
        connection_id: id
            .as_ref()
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned),
        resumes_within: terms.map(|terms| terms.grace),
    });
    let transport = pipe_transport(Arc::clone(&wire.incoming), Arc::clone(&wire.outgoing));
    let life = ClientConnectionTask {
        target,
        wire,
        terms,
        id,
    };
    tokio::spawn(life.run(opened.socket));
    Ok(transport)
}

/// The task that runs a connection from its first socket to its last.
struct ClientConnectionTask {
    target: Arc<Target>,
    wire: Arc<SocketPipes>,
    terms: Option<ResumeTerms>,
    id: Option<HeaderValue>,
}

impl ClientConnectionTask {
    async fn run(self, first: Upgraded) {
        let failure = self.move_messages_over_sockets(first).await.err();
        self.wire.incoming.finish(failure.clone().map(Into::into));
        self.wire.outgoing.close_after(failure.map(Into::into));
    }

    /// Transfers messages, using one socket after another, until the connection ends.
    async fn move_messages_over_sockets(&self, first: Upgraded) -> Result<(), ConnectError> {
        let options = &self.target.options;
        let link_options = LinkOptions {
            role: LinkRole::Client,
            resumes: self.terms.is_some(),
            // The library has its own limit, and handles messages that are too long.
            max_message: usize::MAX,
            heartbeat: options.heartbeat,
            dead_after: options.dead_after,
        };
        let mut socket = first;
        loop {
            let end = Link::new(&self.wire, &link_options)
                .run(TokioIo::new(socket))
                .await;
            let reason = match end {
                LinkEnd::Closed => return Ok(()),
                LinkEnd::PeerClosed(status) => {
                    options.report(&ConnectionStatus::Closed(status.clone()));
                    if status.is_normal() {
                        return Ok(());
                    }
                    return Err(ConnectError::Closed(status));
                }
                LinkEnd::Violation(status) => return Err(ConnectError::Protocol(status.reason)),
                LinkEnd::Cut(reason) => reason,
            };
            if self.wire.gone.are_both_dropped() {
                // Nobody reads the messages any more, so none can be lost.
                return Ok(());
            }
            options.report(&ConnectionStatus::Lost {
                reason: reason.clone(),
            });
            socket = self.resume(reason).await?;
            options.report(&ConnectionStatus::Restored);
        }
    }

    /// Opens a new socket for the connection after the previous one was cut.
    async fn resume(&self, reason: String) -> Result<Upgraded, ConnectError> {
        let lost = |why: String| ConnectError::Lost {
            reason: reason.clone(),
            why,
        };
        let (Some(terms), Some(id)) = (self.terms, &self.id) else {
            return Err(lost(
                "the server does not support resuming connections".to_owned(),
            ));
        };
        let time = self.target.options.reconnect_for.unwrap_or(terms.grace);
        let mut backoff = ReconnectBackoff::new(time);
        let mut last = "no attempt was made".to_owned();
        while backoff.wait().await {
            let position = self.wire.incoming.received();
            match open(&self.target, Some((id, position))).await {
                Ok(opened) => {
                    let theirs = opened.headers.get(header::LAST_EVENT_ID);
                    let theirs = theirs.and_then(|value| value.to_str().ok()?.parse().ok());
                    let Some(theirs) = theirs else {
                        return Err(lost(
                            "the server did not report how many bytes it has received".to_owned(),
                        ));
                    };
                    self.wire.outgoing.rewind(theirs).map_err(|_| {
                        lost("the server requested messages that are no longer stored".to_owned())
                    })?;
                    return Ok(opened.socket);
                }
                Err(ConnectError::Status { status, reason }) if status.is_client_error() => {
                    return Err(lost(format!(
                        "the server responded with {status}: {reason}"
                    )));
                }
                Err(error @ (ConnectError::Unauthorized { .. } | ConnectError::Protocol(_))) => {
                    return Err(lost(error.to_string()));
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(lost(format!(
            "the connection could not be restored within {} s: {last}",
            time.as_secs()
        )))
    }
}

/// Opens a WebSocket for a new connection, or to resume one. In the latter case, `position` is the number of bytes that
/// have already arrived.
async fn open(
    target: &Target,
    resume: Option<(&HeaderValue, u64)>,
) -> Result<OpenedSocket, ConnectError> {
    let opening = async {
        let is_h2 = target.options.http_version == HttpVersion::Http2;
        let mut headers = HeaderMap::new();
        target.add_headers(&mut headers);
        headers.insert("sec-websocket-version", HeaderValue::from_static("13"));
        match resume {
            Some((id, position)) => {
                headers.insert(header::CONNECTION_ID, id.clone());
                headers.insert(header::LAST_EVENT_ID, position.into());
            }
            None if target.options.reconnect_for != Some(Duration::ZERO) => {
                let terms = ResumeTerms {
                    window: target.options.window,
                    grace: Duration::ZERO,
                };
                headers.insert(header::RESUME, terms.header_value());
            }
            None => {}
        }
        if is_h2 {
            open_h2(target, headers).await
        } else {
            open_h1(target, headers).await
        }
    };
    match timeout(target.options.connect_timeout, opening).await {
        Ok(opened) => opened,
        Err(_) => Err(ConnectError::Unreachable {
            to: target.address(),
            reason: "the WebSocket handshake timed out".to_owned(),
        }),
    }
}

async fn open_h1(target: &Target, mut headers: HeaderMap) -> Result<OpenedSocket, ConnectError> {
    let socket = dial(target, &[ALPN_HTTP_1]).await?;
    let key = generate_key();
    let invalid = |error: String| ConnectError::Protocol(error);
    headers.insert(HOST, target.host_header().map_err(invalid)?);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(key) = HeaderValue::from_str(&key) {
        headers.insert("sec-websocket-key", key);
    }
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = target.path_uri().map_err(invalid)?;
    *request.headers_mut() = headers;
    let failed = |error: hyper::Error| handshake_error(target, &error);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .map_err(failed)?;
    let driving = tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(request).await.map_err(failed)?;
    target.store_cookies(response.headers());
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let error = read_rejection(response).await;
        driving.abort();
        return Err(error);
    }
    let headers = response.headers().clone();
    let accepted = headers
        .get("sec-websocket-accept")
        .map(HeaderValue::as_bytes);
    if accepted != Some(accept_key(key.as_bytes()).as_bytes()) {
        return Err(ConnectError::Protocol(
            "the server sent an invalid Sec-WebSocket-Accept header in the WebSocket handshake"
                .to_owned(),
        ));
    }
    let socket = hyper::upgrade::on(response).await.map_err(failed)?;
    Ok(OpenedSocket { socket, headers })
}

async fn open_h2(target: &Target, headers: HeaderMap) -> Result<OpenedSocket, ConnectError> {
    let socket = dial(target, &[ALPN_H2]).await?;
    let invalid = |error: String| ConnectError::Protocol(error);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = target.uri().map_err(invalid)?;
    *request.headers_mut() = headers;
    request
        .extensions_mut()
        .insert(hyper::ext::Protocol::from_static("websocket"));
    let failed = |error: hyper::Error| handshake_error(target, &error);
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(2 * 1024 * 1024)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(failed)?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(failed)?;
    target.store_cookies(response.headers());
    if response.status() != StatusCode::OK {
        return Err(read_rejection(response).await);
    }
    let headers = response.headers().clone();
    let socket = hyper::upgrade::on(response).await.map_err(failed)?;
    Ok(OpenedSocket { socket, headers })
}

fn handshake_error(target: &Target, error: &hyper::Error) -> ConnectError {
    ConnectError::Unreachable {
        to: target.address(),
        reason: super::error::error_chain(error),
    }
}

/// Creates the error for an unexpected handshake response.
async fn read_rejection(response: Response<IncomingBody>) -> ConnectError {
    let status = response.status();
    let body = http_body_util::Limited::new(response.into_body(), 4096);
    let body = timeout(Duration::from_secs(2), body.collect()).await;
    let body = body
        .ok()
        .and_then(Result::ok)
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    rejected_error(status, &body)
}
