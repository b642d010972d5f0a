//! Checks for requests and their statuses: "Content Negotiation and Validation" and "Unified Endpoint Routing".

use hyper::Method;
use serde_json::{Value, json};

use crate::agent_harness::UNKNOWN_METHOD;
use crate::check::remote_checks;
use crate::remote::http::RawHttpRequest;
use crate::remote::server_harness::{ServerHarness, UNKNOWN_CONNECTION};
use crate::verdict::{CheckStop, fail, require, skip};

remote_checks! { Server "requests";
    1 Must "`initialize` gets status 200." => answers_initialize;
    2 Must "The body of the response to `initialize` is JSON." => answers_initialize_with_json;
    3 Must "The response to `initialize` has the header `Acp-Connection-Id`." => returns_connection_id_in_header;
    4 Should "The result of `initialize` contains the connection's id as `connectionId`." => returns_connection_id_in_result;
    5 Must "Each `initialize` opens a separate connection." => opens_connection_for_each_initialize;
    6 Must "A request other than `initialize` gets status 202 and an empty body." => accepts_requests;
    7 Must "A notification gets status 202 and an empty body." => accepts_notifications;
    8 Must "A POST whose `Content-Type` is not `application/json` gets status 415." => rejects_wrong_content_type;
    9 Must "A POST without `Content-Type` gets status 415." => rejects_missing_content_type;
    10 Should "`Content-Type` may have a parameter." => accepts_content_type_parameter;
    11 Must "A POST other than `initialize` gets status 400 if it has no `Acp-Connection-Id`." => rejects_post_without_connection;
    12 Must "A POST for an unknown connection gets status 404." => rejects_post_for_unknown_connection;
    13 Must "A request about a session gets status 400 if it has no `Acp-Session-Id`." => rejects_post_without_session;
    14 Must "A batch gets status 501." => rejects_batch;
    15 Must "A GET whose `Accept` does not include `text/event-stream` gets status 406." => rejects_accept_without_event_stream;
    16 Must "`Accept` may include other types." => accepts_additional_types_in_accept;
    17 Must "A GET without `Acp-Connection-Id` gets status 400." => rejects_get_without_connection;
    18 Must "A GET for an unknown connection gets status 404." => rejects_get_for_unknown_connection;
    19 Must "A DELETE without `Acp-Connection-Id` gets status 400." => rejects_delete_without_connection;
    20 Should "A DELETE for an unknown connection gets status 404." => rejects_delete_for_unknown_connection;
    21 Should "A POST whose body is not JSON gets a 4xx status, and the connection continues." => rejects_invalid_json;
    22 Must "HTTP/2 is supported." => supports_http2;
    23 Should "A GET with `Upgrade: websocket` opens a WebSocket on the same path." => offers_websocket;
}

/// Returns the POST request for `initialize`.
fn initialize_request(harness: &mut ServerHarness) -> RawHttpRequest {
    let params = ServerHarness::initialize_params();
    let (_, message) = harness.request_message("initialize", params);
    RawHttpRequest::post(message.to_string())
}

/// Returns a request with an unknown method. Every agent must respond to it with an error.
fn unknown_request(harness: &mut ServerHarness) -> String {
    let (_, message) = harness.request_message(UNKNOWN_METHOD, json!({}));
    message.to_string()
}

async fn answers_initialize(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = initialize_request(harness);
    harness.require_status("`initialize`", request, 200).await?;
    Ok(())
}

async fn answers_initialize_with_json(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let (id, message) = harness.request_message("initialize", ServerHarness::initialize_params());
    let request = RawHttpRequest::post(message.to_string());
    let response = harness.send(&request).await?;
    let kind = response.content_type();
    require(kind == "application/json", || {
        format!("the Content-Type of the response is `{kind}`; expected application/json")
    })?;
    let body = harness.read_body(response).await?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    require(message["id"] == id && message["result"].is_object(), || {
        format!(
            "the body is not the response to `initialize`: {}",
            String::from_utf8_lossy(&body)
        )
    })
}

async fn returns_connection_id_in_header(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.initialize().await.map(drop)
}

async fn returns_connection_id_in_result(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (id, result) = harness.initialize().await?;
    let said = &result["connectionId"];
    require(*said == json!(id), || {
        format!("`connectionId` is {said}; Acp-Connection-Id is \"{id}\"")
    })
}

async fn opens_connection_for_each_initialize(
    harness: &mut ServerHarness,
) -> Result<(), CheckStop> {
    let (one, _) = harness.initialize().await?;
    let (two, _) = harness.initialize().await?;
    require(one != two, || {
        format!("two connections have the same id: {one}")
    })
}

async fn require_accepted(
    harness: &mut ServerHarness,
    what: &str,
    request: RawHttpRequest,
) -> Result<(), CheckStop> {
    let response = harness.require_status(what, request, 202).await?;
    let body = harness.read_body(response).await?;
    require(body.is_empty(), || {
        format!(
            "the body of the response to {what} is not empty: {}",
            String::from_utf8_lossy(&body)
        )
    })
}

async fn accepts_requests(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let params = harness.session_params();
    let (_, message) = harness.request_message("session/new", params);
    let request = RawHttpRequest::post(message.to_string()).connection(&connection.id);
    require_accepted(harness, "`session/new`", request).await
}

async fn accepts_notifications(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let session = harness.open_session(&connection).await?;
    let params = json!({"sessionId": session.id});
    let message = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
    let request = RawHttpRequest::post(message.to_string())
        .connection(&connection.id)
        .session(&session.id);
    require_accepted(harness, "`session/cancel`", request).await
}

async fn rejects_wrong_content_type(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = initialize_request(harness).without("Content-Type");
    let request = request.header("Content-Type", "text/plain");
    let what = "a POST with `Content-Type: text/plain`";
    harness.require_status(what, request, 415).await?;
    Ok(())
}

async fn rejects_missing_content_type(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = initialize_request(harness).without("Content-Type");
    let what = "a POST without `Content-Type`";
    harness.require_status(what, request, 415).await?;
    Ok(())
}

async fn accepts_content_type_parameter(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = initialize_request(harness).without("Content-Type");
    let request = request.header("Content-Type", "application/json; charset=utf-8");
    let what = "a POST with `Content-Type: application/json; charset=utf-8`";
    harness.require_status(what, request, 200).await?;
    Ok(())
}

async fn rejects_post_without_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = RawHttpRequest::post(unknown_request(harness));
    let what = "a POST without `Acp-Connection-Id`";
    harness.require_status(what, request, 400).await?;
    Ok(())
}

async fn rejects_post_for_unknown_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = RawHttpRequest::post(unknown_request(harness)).connection(UNKNOWN_CONNECTION);
    let what = "a POST for an unknown connection";
    harness.require_status(what, request, 404).await?;
    Ok(())
}

async fn rejects_post_without_session(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let session = harness.open_session(&connection).await?;
    let prompt = json!([{"type": "text", "text": "Hello"}]);
    let params = json!({"sessionId": session.id, "prompt": prompt});
    let (_, message) = harness.request_message("session/prompt", params);
    let request = RawHttpRequest::post(message.to_string()).connection(&connection.id);
    let what = "`session/prompt` without `Acp-Session-Id`";
    harness.require_status(what, request, 400).await?;
    Ok(())
}

async fn rejects_batch(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (connection, _) = harness.initialize().await?;
    let batch = format!("[{}]", unknown_request(harness));
    let request = RawHttpRequest::post(batch).connection(&connection);
    harness.require_status("a batch", request, 501).await?;
    Ok(())
}

async fn rejects_accept_without_event_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (connection, _) = harness.initialize().await?;
    let request = RawHttpRequest::get().without("Accept");
    let request = request
        .header("Accept", "application/json")
        .connection(&connection);
    let what = "a GET with `Accept: application/json`";
    harness.require_status(what, request, 406).await?;
    Ok(())
}

async fn accepts_additional_types_in_accept(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (connection, _) = harness.initialize().await?;
    let request = RawHttpRequest::get().without("Accept");
    let request = request
        .header("Accept", "application/json, text/event-stream;q=0.9")
        .connection(&connection);
    let what = "a GET with `Accept: application/json, text/event-stream;q=0.9`";
    harness.require_status(what, request, 200).await?;
    Ok(())
}

async fn rejects_get_without_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let what = "a GET without `Acp-Connection-Id`";
    harness
        .require_status(what, RawHttpRequest::get(), 400)
        .await?;
    Ok(())
}

async fn rejects_get_for_unknown_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = RawHttpRequest::get().connection(UNKNOWN_CONNECTION);
    let what = "a GET for an unknown connection";
    harness.require_status(what, request, 404).await?;
    Ok(())
}

async fn rejects_delete_without_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = RawHttpRequest::new(Method::DELETE);
    let what = "a DELETE without `Acp-Connection-Id`";
    harness.require_status(what, request, 400).await?;
    Ok(())
}

async fn rejects_delete_for_unknown_connection(
    harness: &mut ServerHarness,
) -> Result<(), CheckStop> {
    harness.require_http()?;
    let request = RawHttpRequest::new(Method::DELETE).connection(UNKNOWN_CONNECTION);
    let what = "a DELETE for an unknown connection";
    harness.require_status(what, request, 404).await?;
    Ok(())
}

async fn rejects_invalid_json(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let request = RawHttpRequest::post("{\"jsonrpc\": ").connection(&connection.id);
    let response = harness.send(&request).await?;
    let status = response.status;
    require((400..500).contains(&status), || {
        format!("a POST whose body is not JSON got status {status}; expected 4xx")
    })?;
    let id = harness.post_request(&connection.id, None, UNKNOWN_METHOD, json!({}));
    let id = id.await?;
    match harness.wait_for_response(&id).await {
        Err(CheckStop::Fail(why)) => fail(format!("after a POST whose body is not JSON: {why}")),
        done => done.map(drop),
    }
}

async fn supports_http2(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.require_http()?;
    if harness.offered.http2 {
        return Ok(());
    }
    if harness.server.is_tls() {
        fail("the server does not negotiate HTTP/2")
    } else {
        fail("the server does not support HTTP/2 without TLS (with prior knowledge)")
    }
}

async fn offers_websocket(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    if !harness.offered.http {
        return skip("the server offers only WebSocket");
    }
    let response = harness.upgrade().await?;
    require(response.status == 101, || {
        format!(
            "the WebSocket upgrade got status {}; expected 101",
            response.status
        )
    })
}
