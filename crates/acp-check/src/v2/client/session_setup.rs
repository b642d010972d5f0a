//! Checks how a client opens, uses and closes sessions.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, SESSION_ID};
use crate::verdict::{CheckStop, fail, require};
use acp_rules::schema::Envelope;

checks! { V2 Client "session-setup";
    101 Must "MCP servers are passed only with transports the agent supports." => uses_supported_transports;
    102 Must "Additional directories are passed only to agents that support them." => sends_directories_only_if_supported;
    103 Must "The client uses the session id from the agent." => uses_session_id;
    104 Must "Session ids are sent unchanged, whatever characters they contain." => keeps_unusual_id;
    105 Must "Updates are accepted at any time, even before the first prompt." => accepts_early_updates;
    106 Must "Requests refer only to known sessions." => names_known_sessions;
    107 Must "`session/delete` is sent only if the agent supports it." => deletes_only_if_supported;
}

async fn new_session_params(harness: &mut ClientHarness) -> Result<Value, CheckStop> {
    harness.initialize_v2().await?;
    let (_, params) = harness.wait_for_message("session/new").await?;
    Ok(params)
}

async fn uses_supported_transports(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let params = new_session_params(harness).await?;
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    let mut transports = servers.filter_map(|server| server["type"].as_str());
    match transports.find(|transport| matches!(*transport, "http" | "stdio")) {
        Some(transport) => fail(format!(
            "`session/new` has an MCP server of type `{transport}`, but the agent does not support `session.mcp.{transport}`"
        )),
        None => Ok(()),
    }
}

async fn sends_directories_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let params = new_session_params(harness).await?;
    let more = params["additionalDirectories"].as_array();
    require(more.is_none_or(Vec::is_empty), || {
        "`session/new` has `additionalDirectories`, which the agent does not support".to_owned()
    })
}

async fn require_session_id_used(harness: &mut ClientHarness, id: &str) -> Result<(), CheckStop> {
    harness.session["sessionId"] = json!(id);
    let prompted = harness.wait_for_prompt_v2().await?;
    require(prompted.session == id, || {
        format!(
            "the session id is {id:?}, but the prompt is for {:?}",
            prompted.session
        )
    })
}

async fn uses_session_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(harness, SESSION_ID).await
}

async fn keeps_unusual_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(harness, " Äß/0:\"\\\u{1F600} ").await
}

async fn accepts_early_updates(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_v2().await?;
    let (id, _) = harness.wait_for_message("session/new").await?;
    let session = harness.session.clone();
    harness.wire.send_result(&id, session).await?;
    for update in [
        json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 1000}),
        json!({"sessionUpdate": "session_info_update", "title": "Checked"}),
        json!({"sessionUpdate": "state_update", "state": "idle"}),
    ] {
        harness.send_update(SESSION_ID, update).await?;
    }
    harness.wait_for_prompt_v2().await.map(drop)
}

/// Ends the client's first turn, and responds to its requests until it closes the connection or goes quiet.
async fn serve_until_quiet(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    harness.end_turn_v2(&prompted, "end_turn").await?;
    let patience = harness.wire.timeout();
    let watching = async {
        while let Some(message) = harness.next().await? {
            let Some(Envelope::Request { id, method, params }) = message.envelope() else {
                continue;
            };
            let session = params.map_or(&Value::Null, |params| &params["sessionId"]);
            if !session.is_null() {
                require(*session == SESSION_ID, || {
                    format!("`{method}` refers to the unknown session {session}")
                })?;
            }
            let response = match method {
                "session/list" => {
                    let info = json!({"sessionId": SESSION_ID, "cwd": "/"});
                    json!({"sessions": [info]})
                }
                "session/set_config_option" => {
                    json!({"configOptions": harness.session["configOptions"]})
                }
                "session/new" => json!({"sessionId": SESSION_ID}),
                _ => json!({}),
            };
            harness.wire.send_result(id, response).await?;
            if method == "session/prompt" {
                let session = session.as_str().unwrap_or_default().to_owned();
                let idle = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"});
                harness.send_update(&session, idle).await?;
            }
        }
        Ok(())
    };
    tokio::time::timeout(patience, watching)
        .await
        .unwrap_or(Ok(()))
}

async fn names_known_sessions(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["capabilities"]["session"]["delete"] = json!({});
    harness.initialize_result["authMethods"] =
        json!([{"type": "agent", "methodId": "acp-check-key", "name": "Key"}]);
    harness.session["configOptions"] = json!([
        {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": false},
    ]);
    serve_until_quiet(harness).await
}

async fn deletes_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_until_quiet(harness).await?;
    let deleted = harness
        .messages
        .iter()
        .any(|message| message.method() == "session/delete");
    require(!deleted, || {
        "the client called `session/delete`, but the agent does not support `session.delete`"
            .to_owned()
    })
}
