//! Session setup: sessions are opened, used and closed.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, SESSION};
use crate::verdict::{CheckStop, fail, require};
use acp_rules::schema::Envelope;

checks! { V2 Client "session-setup";
    101 Must "MCP servers are passed only with transports the agent supports." => offered_servers;
    102 Must "Additional directories are passed only to agents that support them." => offered_directories;
    103 Must "The client uses the session id from the agent." => given_id;
    104 Must "Session ids are sent unchanged, whatever characters they contain." => odd_id;
    105 Must "Updates are accepted at any time, even before the first prompt." => early_updates;
    106 Must "Requests refer only to known sessions." => later_requests;
    107 Must "`session/delete` is sent only if the agent supports it." => offered_delete;
}

async fn new_session_params(play: &mut ClientHarness) -> Result<Value, CheckStop> {
    play.initialize_v2().await?;
    let (_, params) = play.expect("session/new").await?;
    Ok(params)
}

async fn offered_servers(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let params = new_session_params(play).await?;
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    let mut transports = servers.filter_map(|server| server["type"].as_str());
    match transports.find(|transport| matches!(*transport, "http" | "stdio")) {
        Some(transport) => fail(format!(
            "`session/new` has an MCP server of type `{transport}`, but the agent does not support `session.mcp.{transport}`"
        )),
        None => Ok(()),
    }
}

async fn offered_directories(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let params = new_session_params(play).await?;
    let more = params["additionalDirectories"].as_array();
    require(more.is_none_or(Vec::is_empty), || {
        "`session/new` has `additionalDirectories`, which the agent does not support".to_owned()
    })
}

async fn require_session_id_used(play: &mut ClientHarness, id: &str) -> Result<(), CheckStop> {
    play.session["sessionId"] = json!(id);
    let prompted = play.prompted_v2().await?;
    require(prompted.session == id, || {
        format!(
            "the session id is {id:?}, but the prompt is for {:?}",
            prompted.session
        )
    })
}

async fn given_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(play, SESSION).await
}

async fn odd_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    require_session_id_used(play, " Äß/0:\"\\\u{1F600} ").await
}

async fn early_updates(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.initialize_v2().await?;
    let (id, _) = play.expect("session/new").await?;
    let session = play.session.clone();
    play.wire.answer(&id, session).await?;
    for update in [
        json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 1000}),
        json!({"sessionUpdate": "session_info_update", "title": "Checked"}),
        json!({"sessionUpdate": "state_update", "state": "idle"}),
    ] {
        play.update(SESSION, update).await?;
    }
    play.prompted_v2().await.map(drop)
}

/// Ends the client's first turn, and answers what it asks for after that, until it closes the connection or asks no
/// more.
async fn later(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.working_v2().await?;
    play.idle_v2(&prompted, "end_turn").await?;
    let patience = play.wire.patience();
    let watching = async {
        while let Some(message) = play.next().await? {
            let Some(Envelope::Request { id, method, params }) = message.envelope() else {
                continue;
            };
            let session = params.map_or(&Value::Null, |params| &params["sessionId"]);
            if !session.is_null() {
                require(*session == SESSION, || {
                    format!("`{method}` refers to unknown session {session}")
                })?;
            }
            let answer = match method {
                "session/list" => {
                    let info = json!({"sessionId": SESSION, "cwd": "/"});
                    json!({"sessions": [info]})
                }
                "session/set_config_option" => {
                    json!({"configOptions": play.session["configOptions"]})
                }
                "session/new" => json!({"sessionId": SESSION}),
                _ => json!({}),
            };
            play.wire.answer(id, answer).await?;
            if method == "session/prompt" {
                let session = session.as_str().unwrap_or_default().to_owned();
                let idle = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"});
                play.update(&session, idle).await?;
            }
        }
        Ok(())
    };
    tokio::time::timeout(patience, watching)
        .await
        .unwrap_or(Ok(()))
}

async fn later_requests(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction["capabilities"]["session"]["delete"] = json!({});
    play.introduction["authMethods"] =
        json!([{"type": "agent", "methodId": "acp-check-key", "name": "Key"}]);
    play.session["configOptions"] = json!([
        {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": false},
    ]);
    later(play).await
}

async fn offered_delete(play: &mut ClientHarness) -> Result<(), CheckStop> {
    later(play).await?;
    let deleted = play
        .messages
        .iter()
        .any(|message| message.method() == "session/delete");
    require(!deleted, || {
        "it called `session/delete`, but the agent does not support `session.delete`".to_owned()
    })
}
