//! Checks how a client negotiates the version and the capabilities.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::WATCH_TIME;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;
use acp_rules::schema::{Direction, Schema, SchemaVersion};

checks! { V2 Client "initialization";
    101 Must "The client's first message is `initialize`." => starts_with_initialize;
    102 Must "`initialize` has the client's name and version." => reports_name;
    103 Should "A client that does not support the agent's version closes the connection." => closes_on_unsupported_version;
    104 Must "Unknown capabilities and fields are ignored." => ignores_unknown_capabilities;
    105 Must "No session methods are sent to agents without the `session` capability." => uses_sessions_only_if_supported;
    106 Must "If the agent responds with version 1, version 1 is used." => negotiates_version_1;
    107 Must "A prompt contains only content types the agent supports." => sends_supported_content;
    108 Must "In version 2, the file methods of version 1 are rejected." => rejects_file_methods;
    109 Must "In version 2, the terminal methods of version 1 are rejected." => rejects_terminal_methods;
}

async fn starts_with_initialize(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.receive_initialize_v2().await?;
    require(harness.messages.len() == 1, || {
        "the first message is not `initialize`".to_owned()
    })
}

async fn reports_name(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.receive_initialize_v2().await?;
    let says = |name: &str| {
        let said = params["info"][name].as_str();
        said.is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`info` with `name` and `version` is missing from `initialize`".to_owned()
    })
}

/// Requires that the client closes the connection without sending another request.
async fn require_closed(harness: &mut ClientHarness) -> Result<(), CheckStop> {
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

async fn closes_on_unsupported_version(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["protocolVersion"] = json!(999);
    harness.initialize_v2().await?;
    require_closed(harness).await
}

async fn ignores_unknown_capabilities(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["capabilities"]["telepathy"] = json!({"range": 7});
    harness.initialize_result["capabilities"]["session"]["prompt"] = json!({"smell": {}});
    harness.initialize_result["authMethods"] =
        json!([{"type": "_acp-check/retina", "methodId": "eye", "name": "Eye"}]);
    harness.initialize_result["mood"] = json!("good");
    harness.wait_for_prompt_v2().await.map(drop)
}

async fn uses_sessions_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["capabilities"] = json!({});
    harness.initialize_v2().await?;
    let watching = async {
        while let Some(message) = harness.next().await? {
            if message.method().starts_with("session/") {
                return fail(format!(
                    "the client sent `{}`, although the agent does not support sessions",
                    message.method()
                ));
            }
            harness.serve(&message).await?;
        }
        Ok(())
    };
    // A client that stays connected and sends nothing is also correct.
    tokio::time::timeout(WATCH_TIME, watching)
        .await
        .unwrap_or(Ok(()))
}

async fn negotiates_version_1(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = harness.receive_initialize_v2().await?;
    let introduction = json!({
        "protocolVersion": 1,
        "agentCapabilities": {},
        "authMethods": [],
        "agentInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
    });
    harness.wire.send_result(&id, introduction).await?;
    let before = harness.messages.len();
    match harness.wait_for_prompt().await {
        Ok(prompted) => harness.end_turn(&prompted, "end_turn").await?,
        // The client does not support version 1, and has closed the connection.
        Err(_) if harness.wire.has_ended() && harness.messages.len() == before => return Ok(()),
        Err(stop) => return Err(stop),
    }
    let schema = Schema::for_version(SchemaVersion::V1);
    for message in harness.messages.iter().skip(before) {
        let faults = schema.check_message(Direction::ToAgent, &message.0, None);
        if let Some(fault) = faults.first() {
            return fail(format!(
                "the agent responded with version 1, but `{}` is not valid in version 1: {fault}",
                message.method()
            ));
        }
    }
    Ok(())
}

async fn sends_supported_content(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt_v2().await?;
    let blocks = prompted.prompt.as_array().into_iter().flatten();
    let mut kinds = blocks.filter_map(|block| block["type"].as_str());
    let baseline = |kind: &str| matches!(kind, "text" | "resource_link") || kind.starts_with('_');
    match kinds.find(|kind| !baseline(kind)) {
        Some(kind) => fail(format!(
            "the prompt contains content of type `{kind}`, which the agent does not support"
        )),
        None => Ok(()),
    }
}

/// Calls a version 1 method, and requires that the client rejects it as unknown.
async fn require_method_not_found(
    harness: &mut ClientHarness,
    method: &str,
    params: Value,
) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    match harness.request(method, params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail(format!(
            "`{method}` succeeded, although it does not exist in version 2"
        )),
    }
}

async fn rejects_file_methods(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let path = harness.directory().file("notes.txt");
    let session = harness.session["sessionId"].clone();
    let params = json!({"sessionId": session, "path": path});
    require_method_not_found(harness, "fs/read_text_file", params).await
}

async fn rejects_terminal_methods(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let session = harness.session["sessionId"].clone();
    let params = json!({"sessionId": session, "command": "echo", "args": ["checked"]});
    require_method_not_found(harness, "terminal/create", params).await
}
