//! Detects which transports a server offers.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;
use tokio::time::timeout;

use super::http::{HttpClient, RawHttpRequest};
use super::server_harness::ServerHarness;
use super::server_target::{OfferedTransports, RemoteServer};
use super::websocket::request_upgrade;
use crate::options::CheckOptions;

/// Returns the transports that a server offers.
///
/// A server offers streamable HTTP if it does not reject a POST as such, and WebSocket if it accepts an upgrade.
///
/// # Errors
/// The reason why the server cannot be reached, rejects everything, or offers neither.
pub async fn detect_transports(
    server: &RemoteServer,
    options: &CheckOptions,
) -> Result<OfferedTransports, String> {
    let server = Arc::new(server.clone());
    let late = || format!("no response within {:?}", options.timeout);
    let (http, post) = match timeout(options.timeout, post_status(&server, false)).await {
        Ok(Ok(status)) => (is_offered(status), format!("POST: status {status}")),
        Ok(Err(why)) => (false, why),
        Err(_) => (false, late()),
    };
    let http2 = timeout(options.timeout, post_status(&server, true)).await;
    let http2 = matches!(http2, Ok(Ok(status)) if is_offered(status));
    let (websocket, upgrade) = match timeout(options.timeout, request_upgrade(&server)).await {
        Ok(Ok(response)) if response.status == 101 => (true, String::new()),
        Ok(Ok(response)) => (false, format!("upgrade: status {}", response.status)),
        Ok(Err(why)) => (false, why),
        Err(_) => (false, late()),
    };
    let offered = OfferedTransports {
        http: http || http2,
        http2,
        websocket,
    };
    if offered.http || websocket {
        Ok(offered)
    } else if post == upgrade {
        Err(post)
    } else {
        Err(format!(
            "the server supports neither HTTP nor WebSocket ({post}; {upgrade})"
        ))
    }
}

/// Returns `false` if the status of a POST means that the server accepts no POST requests at all, or none from this
/// client.
fn is_offered(status: u16) -> bool {
    !matches!(status, 401 | 403 | 404 | 405 | 421 | 426)
}

/// Sends `initialize` and returns the status. If this opens a connection, closes it again.
async fn post_status(server: &Arc<RemoteServer>, uses_http2: bool) -> Result<u16, String> {
    let mut client = HttpClient::new(Arc::clone(server), uses_http2);
    let params = ServerHarness::initialize_params();
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = client
        .send(&RawHttpRequest::post(message.to_string()))
        .await?;
    let connection = response.header("acp-connection-id");
    if !connection.is_empty() {
        let request = RawHttpRequest::new(Method::DELETE).connection(connection);
        let _ = client.send(&request).await;
    }
    Ok(response.status)
}
