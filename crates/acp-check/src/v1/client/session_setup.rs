//! Checks how a client opens sessions and uses session ids.

use std::path::Path;

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, SESSION_ID};
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{
    require_none_of, require_responsive, sent_params, wait_for_optional_message_after_turns,
};

checks! { V1 Client "session-setup";
    101 Must "`cwd` is an absolute path." => uses_absolute_cwd;
    102 Must "`mcpServers` is always a list, even if it is empty." => sends_server_list;
    103 Must "HTTP and SSE MCP servers are passed only to agents that support them." => uses_supported_transports;
    104 Must "The command of an MCP server is an absolute path." => uses_absolute_command;
    105 Must "A session id stays a string, even if it looks like a number." => keeps_numeric_id;
    106 Must "Session ids are sent unchanged, whatever characters they contain." => keeps_unusual_id;
    107 Must "Long session ids are sent unchanged." => keeps_long_id;
    108 Should "Additional directories are passed only to agents that support them." => sends_directories_only_if_supported;
    109 Must "No prompt is sent before the session is open." => waits_for_session;
    110 Must "No prompt is sent if the session cannot be opened." => sends_no_prompt_after_failure;
    111 May "Updates before the response to `session/new` are accepted." => accepts_early_updates;
    112 Must "Optional fields in the response to `session/new` may be null." => accepts_null_fields;
    113 Should "Existing sessions are opened only with ids from the agent and with methods that it supports." => opens_only_known_sessions;
}

async fn uses_absolute_cwd(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("session/new").await?;
    let cwd = params["cwd"].as_str().unwrap_or_default();
    require(is_absolute_on_any_platform(cwd), || {
        format!("`cwd` is {}, which is not an absolute path", params["cwd"])
    })
}

/// Returns `true` if a path is absolute on Unix or on Windows.
fn is_absolute_on_any_platform(path: &str) -> bool {
    let drive = path.as_bytes().get(1..3);
    Path::new(path).is_absolute()
        || path.starts_with(['/', '\\'])
        || drive.is_some_and(|drive| drive == b":\\" || drive == b":/")
}

async fn sends_server_list(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("session/new").await?;
    require(params["mcpServers"].is_array(), || {
        format!(
            "`mcpServers` is {}, which is not a list",
            params["mcpServers"]
        )
    })
}

async fn uses_supported_transports(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("session/new").await?;
    for server in params["mcpServers"].as_array().into_iter().flatten() {
        let transport = server["type"].as_str().unwrap_or("stdio");
        require(transport == "stdio", || {
            format!(
                "the client passed an MCP server that uses {transport}, which the agent does not support"
            )
        })?;
    }
    Ok(())
}

async fn uses_absolute_command(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("session/new").await?;
    let servers = params["mcpServers"].as_array();
    let mut commands = servers
        .into_iter()
        .flatten()
        .filter_map(|server| server["command"].as_str())
        .peekable();
    if commands.peek().is_none() {
        return skip("the client passed no stdio MCP server");
    }
    match commands.find(|command| !is_absolute_on_any_platform(command)) {
        Some(command) => fail(format!("the command {command:?} is not an absolute path")),
        None => Ok(()),
    }
}

async fn require_session_id_used(harness: &mut ClientHarness, id: &str) -> Result<(), CheckStop> {
    harness.session["sessionId"] = json!(id);
    let prompted = harness.wait_for_prompt().await?;
    let params = sent_params(harness, "session/prompt").next();
    let said = params.map_or(&Value::Null, |params| &params["sessionId"]);
    require(*said == id, || {
        format!("session {id:?} became {said} in `session/prompt`")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn keeps_numeric_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(harness, "0").await
}

async fn keeps_unusual_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(harness, "file:///a b/\"ç\"\\{0}?x=%41&y=<é>#🦀\t").await
}

async fn keeps_long_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(harness, &"0123456789abcdef".repeat(64)).await
}

async fn sends_directories_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = harness.wait_for_message("session/new").await?;
    let directories = params["additionalDirectories"].as_array();
    require(directories.is_none_or(Vec::is_empty), || {
        "the client passed `additionalDirectories`, which the agent does not support".to_owned()
    })
}

async fn waits_for_session(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = harness.wait_for_message("session/new").await?;
    let in_a_session = ["session/prompt", "session/set_mode"];
    require_none_of(
        harness,
        &in_a_session,
        "before the response to `session/new`",
    )
    .await?;
    let session = harness.session.clone();
    harness.wire.send_result(&id, session).await?;
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn sends_no_prompt_after_failure(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = harness.wait_for_message("session/new").await?;
    harness
        .wire
        .send_error(&id, -32603, "Too many sessions")
        .await?;
    require_none_of(
        harness,
        &["session/prompt"],
        "although `session/new` failed",
    )
    .await
}

async fn accepts_early_updates(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = harness.wait_for_message("session/new").await?;
    let commands = json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "early", "description": "Early title"}],
    });
    harness.send_update(SESSION_ID, commands).await?;
    harness.send_text(SESSION_ID, "Good morning.").await?;
    require_responsive(harness, "updates before the response to `session/new`").await?;
    let session = harness.session.clone();
    harness.wire.send_result(&id, session).await?;
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_null_fields(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["modes"] = Value::Null;
    harness.session["configOptions"] = Value::Null;
    harness.session["_meta"] = Value::Null;
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn opens_only_known_sessions(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    const OLD_SESSION_ID: &str = "sess_old";
    harness.initialize_result["agentCapabilities"] = json!({
        "loadSession": true,
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
        "auth": {"logout": {}},
    });
    let (id, params) = harness.wait_for_message("session/new").await?;
    let old = json!({"sessionId": OLD_SESSION_ID, "cwd": params["cwd"], "title": "Old session"});
    let empty = ["session/load", "session/resume", "session/delete"];
    harness.results = empty
        .into_iter()
        .map(|method| (method, json!({})))
        .collect();
    harness
        .results
        .insert("session/list", json!({"sessions": [old]}));
    let session = harness.session.clone();
    harness.wire.send_result(&id, session).await?;
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    // A client that uses old sessions does so now or has already done so. Logging out is the last step to expect.
    if let Some((id, _)) = wait_for_optional_message_after_turns(harness, "logout").await? {
        harness.wire.send_result(&id, json!({})).await?;
    }
    let about_old = [
        "session/load",
        "session/resume",
        "session/delete",
        "session/close",
    ];
    let mut seen = false;
    for method in about_old {
        for params in sent_params(harness, method) {
            seen = true;
            let named = &params["sessionId"];
            require(*named == OLD_SESSION_ID || *named == SESSION_ID, || {
                format!("`{method}` refers to the unknown session {named}")
            })?;
        }
    }
    require(
        sent_params(harness, "session/fork").next().is_none(),
        || "the client sent `session/fork`, which the agent does not support".to_owned(),
    )?;
    if seen {
        Ok(())
    } else {
        skip("the client did not open an existing session")
    }
}
