//! Checks for a client's HTTP requests: "Content Negotiation and Validation", "Identity Model", and cookies.

use hyper::{Method, Version};
use serde_json::json;

use crate::check::remote_checks;
use crate::client_harness::SESSION_ID;
use crate::remote::client_harness::{
    CONNECTION_ID, RemoteClientEvent, RemoteClientHarness, SeenRequest,
};
use crate::verdict::{CheckStop, fail, require, skip};

remote_checks! { RemoteClient "requests";
    101 Must "`initialize` is sent first, without `Acp-Connection-Id`." => sends_initialize_first_without_connection_id;
    102 Must "Each POST has `Content-Type: application/json`." => sends_content_type;
    103 Must "Each GET accepts `text/event-stream`." => accepts_event_streams;
    104 Must "Each request after `initialize` has the connection's id in `Acp-Connection-Id`." => sends_connection_id;
    105 Must "A prompt has the session's id in `Acp-Session-Id`." => sends_session_id_with_prompt;
    106 Must "The response to a permission request has the session's id in `Acp-Session-Id`." => sends_session_id_with_responses;
    107 Must "HTTP/2 is used with a server that supports it." => uses_http2;
    108 Must "A cookie that the server sets is sent with each later request." => sends_cookie;
    109 Must "If a cookie is set again, later requests send its new value." => replaces_cookie;
    110 Should "A DELETE ends the connection." => ends_connection_with_delete;
    111 Should "The client does not wait for a response to a prompt whose POST was rejected." => does_not_wait_for_rejected_prompt;
}

/// Runs a whole conversation over HTTP: one turn, followed by the end of the connection. A client that does not end the
/// connection in time causes no error here.
async fn run_conversation(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.start("http").await?;
    let prompt = harness.wait_for_prompt().await?;
    harness.end_turn(&prompt).await?;
    match harness.wait_until_ended("the turn").await {
        // A check of its own is about that.
        Err(CheckStop::Fail(_)) | Ok(()) => Ok(()),
        Err(stop) => Err(stop),
    }
}

/// Requires that the header `name` is valid in each request that `chosen` selects.
fn require_header(
    harness: &RemoteClientHarness,
    chosen: impl Fn(&SeenRequest) -> bool,
    name: &str,
    is_right: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<(), CheckStop> {
    let mut requests = harness.requests.iter().filter(|request| chosen(request));
    match requests.find(|request| !is_right(request.header(name))) {
        None => Ok(()),
        Some(request) => {
            let (what, value) = (request.describe(), request.header(name));
            if value.is_empty() {
                fail(format!("{what} has no {name}; expected `{expected}`"))
            } else {
                fail(format!(
                    "{what} has {name} `{value}`; expected `{expected}`"
                ))
            }
        }
    }
}

async fn sends_initialize_first_without_connection_id(
    harness: &mut RemoteClientHarness,
) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    let Some(first) = harness.requests.first() else {
        return fail("the client sent no request");
    };
    require(first.message["method"] == "initialize", || {
        format!("the first request is {}", first.describe())
    })?;
    let id = first.header("acp-connection-id");
    require(id.is_empty(), || {
        format!("`initialize` has Acp-Connection-Id `{id}`")
    })
}

async fn sends_content_type(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    };
    let is_post = |request: &SeenRequest| request.method == Method::POST;
    let expected = "application/json";
    require_header(harness, is_post, "Content-Type", is_json, expected)
}

async fn accepts_event_streams(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    let accepts = |accept: &str| accept.contains("text/event-stream");
    let is_get = |request: &SeenRequest| request.method == Method::GET;
    require_header(harness, is_get, "Accept", accepts, "text/event-stream")
}

fn is_initialize(request: &SeenRequest) -> bool {
    request.message["method"] == "initialize"
}

async fn sends_connection_id(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    require_header(
        harness,
        |request| !is_initialize(request),
        "Acp-Connection-Id",
        |id| id == CONNECTION_ID,
        CONNECTION_ID,
    )
}

async fn sends_session_id_with_prompt(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    require_header(
        harness,
        |request| request.message["method"] == "session/prompt",
        "Acp-Session-Id",
        |id| id == SESSION_ID,
        SESSION_ID,
    )
}

async fn sends_session_id_with_responses(
    harness: &mut RemoteClientHarness,
) -> Result<(), CheckStop> {
    harness.start("http").await?;
    let prompt = harness.wait_for_prompt().await?;
    let options = json!([
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]);
    let call = json!({"toolCallId": "call_check", "title": "Check"});
    let params = json!({"sessionId": SESSION_ID, "toolCall": call, "options": options});
    let request = json!({
        "jsonrpc": "2.0",
        "id": "question",
        "method": "session/request_permission",
        "params": params,
    });
    harness.send(Some(SESSION_ID), &request).await?;
    harness
        .wait_for_response("question", "a permission request")
        .await?;
    harness.end_turn(&prompt).await?;
    require_header(
        harness,
        |request| request.message["id"] == "question",
        "Acp-Session-Id",
        |id| id == SESSION_ID,
        SESSION_ID,
    )
}

async fn uses_http2(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    run_conversation(harness).await?;
    let mut requests = harness.requests.iter();
    match requests.find(|request| request.version != Version::HTTP_2) {
        None => Ok(()),
        Some(request) => fail(format!(
            "{} uses {:?}, though the server supports HTTP/2 with prior knowledge",
            request.describe(),
            request.version
        )),
    }
}

async fn sends_cookie(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.cookie = Some("acp-check=one; Path=/; HttpOnly");
    run_conversation(harness).await?;
    require_header(
        harness,
        |request| !is_initialize(request),
        "Cookie",
        |cookies| cookies.contains("acp-check=one"),
        "acp-check=one",
    )
}

async fn replaces_cookie(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.cookie = Some("acp-check=one; Path=/");
    harness.start("http").await?;
    let patience = harness.options.turn_timeout;
    harness
        .wait_within(patience, "`initialize`", |_, event| match event {
            RemoteClientEvent::Message(message) => {
                (message["method"] == "initialize").then_some(())
            }
            _ => None,
        })
        .await?;
    harness.cookie = Some("acp-check=two; Path=/");
    let prompt = harness.wait_for_prompt().await?;
    harness.end_turn(&prompt).await?;
    // Requests may have been on their way. The prompt comes after the response that set the cookie.
    require_header(
        harness,
        |request| request.message["method"] == "session/prompt",
        "Cookie",
        |cookies| cookies.contains("acp-check=two") && !cookies.contains("acp-check=one"),
        "acp-check=two",
    )
}

async fn ends_connection_with_delete(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.start("http").await?;
    let prompt = harness.wait_for_prompt().await?;
    harness.end_turn(&prompt).await?;
    let patience = harness.options.timeout;
    harness
        .wait_within(patience, "a DELETE", |_, event| match event {
            RemoteClientEvent::Request(request) => (request.method == Method::DELETE).then_some(()),
            _ => None,
        })
        .await
}

async fn does_not_wait_for_rejected_prompt(
    harness: &mut RemoteClientHarness,
) -> Result<(), CheckStop> {
    harness.rejected = Some(("session/prompt", 400));
    harness.start("http").await?;
    harness.wait_for_prompt().await?;
    match harness.wait_until_ended("a POST that got status 400").await {
        Ok(()) => Ok(()),
        // It may have asked its user, or sent something else.
        Err(CheckStop::Fail(_)) if count_prompts(harness) > 1 => {
            skip("the client sent another prompt")
        }
        Err(stop) => Err(stop),
    }
}

fn count_prompts(harness: &RemoteClientHarness) -> usize {
    let requests = harness.requests.iter();
    requests
        .filter(|request| request.message["method"] == "session/prompt")
        .count()
}
