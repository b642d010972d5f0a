//! Checks how a client negotiates the version and the capabilities.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};

use super::steps::{require_none_of, require_responsive, sent_params};

checks! { V1 Client "initialization";
    101 Must "The client's first message is `initialize`." => starts_with_initialize;
    102 Must "`initialize` requests the client's latest protocol version." => requests_latest_version;
    103 Should "A client that does not support the agent's version closes the connection." => closes_on_unsupported_version;
    104 Must "Capabilities omitted by the agent are treated as unsupported." => requires_no_capabilities;
    105 Should "The client reports its name and version." => reports_name;
    106 Must "Unknown capabilities and fields are ignored." => ignores_unknown_capabilities;
    107 Must "`initialize` is sent once, at the beginning." => initializes_once;
    108 Must "Optional fields of the response may be omitted or null." => accepts_minimal_initialize;
    109 Must "No session is opened before the response to `initialize`." => waits_for_initialize_response;
    110 Must "No session is opened when `initialize` fails." => opens_no_session_after_failure;
}

async fn starts_with_initialize(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.wait_for_message("initialize").await?;
    require(harness.messages.len() == 1, || {
        "the first message is not `initialize`".to_owned()
    })
}

async fn requests_latest_version(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("initialize").await?;
    match params.get("protocolVersion").and_then(Value::as_u64) {
        Some(1..=2) => Ok(()),
        _ => fail(format!(
            "the client requested version {}",
            params["protocolVersion"]
        )),
    }
}

async fn closes_on_unsupported_version(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["protocolVersion"] = json!(999);
    let (id, _) = harness.wait_for_message("initialize").await?;
    let introduction = harness.initialize_result.clone();
    harness.wire.send_result(&id, introduction).await?;
    let patience = harness.wire.timeout();
    let ending = async {
        while let Some(message) = harness.next().await? {
            if !message.method().is_empty() {
                return fail(format!(
                    "the client did not close the connection, but sent `{}`",
                    message.method()
                ));
            }
        }
        Ok(())
    };
    match tokio::time::timeout(patience, ending).await {
        Ok(ended) => ended,
        Err(_) => fail(format!(
            "the client did not close the connection within {patience:?}"
        )),
    }
}

async fn requires_no_capabilities(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let blocks = prompted.prompt.as_array().into_iter().flatten();
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        require(matches!(kind, "text" | "resource_link"), || {
            format!(
                "the prompt contains content of type {kind:?}, which the agent does not support"
            )
        })?;
    }
    let sent = harness.messages.iter().map(|message| message.method());
    let baseline = [
        "initialize",
        "authenticate",
        "session/new",
        "session/prompt",
        "session/cancel",
        "",
    ];
    let mut others =
        sent.filter(|method| !baseline.contains(method) && !method.starts_with(['_', '$']));
    match others.next() {
        Some(method) => fail(format!(
            "the client sent `{method}`, which the agent does not support"
        )),
        None => harness.end_turn(&prompted, "end_turn").await,
    }
}

async fn reports_name(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("initialize").await?;
    let says = |name: &str| {
        let said = params["clientInfo"][name].as_str();
        said.is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`clientInfo` with `name` and `version` is missing".to_owned()
    })
}

async fn ignores_unknown_capabilities(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["agentCapabilities"]["telepathy"] = json!({"range": 7});
    harness.initialize_result["agentCapabilities"]["promptCapabilities"] = json!({"smell": true});
    harness.initialize_result["agentCapabilities"]["_meta"] =
        json!({"example.org": {"telepathy": true}});
    harness.initialize_result["mood"] = json!("good");
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn initializes_once(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    require_responsive(harness, "its prompt").await?;
    let times = sent_params(harness, "initialize").count();
    require(times == 1, || {
        format!("the client sent `initialize` {times} times")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_minimal_initialize(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result = json!({"protocolVersion": 1, "agentInfo": null});
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn waits_for_initialize_response(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, params) = harness.wait_for_message("initialize").await?;
    harness.initialize_params = Some(params);
    require_none_of(
        harness,
        &["session/new", "session/load", "session/prompt"],
        "before the response to `initialize`",
    )
    .await?;
    let introduction = harness.initialize_result.clone();
    harness.wire.send_result(&id, introduction).await?;
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn opens_no_session_after_failure(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = harness.wait_for_message("initialize").await?;
    harness
        .wire
        .send_error(&id, -32603, "Internal error")
        .await?;
    require_none_of(
        harness,
        &["session/new", "session/load", "session/prompt"],
        "although `initialize` failed",
    )
    .await
}
