//! Session setup: sessions are opened, used and closed.

use serde_json::{Value, json};

use crate::check::checks;
use crate::verdict::{Stop, fail, require};
use crate::with_client::{ClientPlay, SESSION};
use acp_rules::schema::Envelope;

checks! { V2 Client "session-setup";
    101 Must "MCP servers are given to an agent only by transports that it has offered." => offered_servers;
    102 Must "Additional directories are given only to an agent that has offered to take them." => offered_directories;
    103 Must "The client uses the id that the session was given." => given_id;
    104 Must "Whatever is in the id of a session, the client uses it as it is." => odd_id;
    105 Must "Updates of a session come at any time: also before there was a prompt." => early_updates;
    106 Must "What the client asks for later is about sessions that there are." => later_requests;
    107 Must "A session is deleted only where the agent has offered that." => offered_delete;
}

async fn opened(play: &mut ClientPlay) -> Result<Value, Stop> {
    play.initialize_v2().await?;
    let (_, params) = play.expect("session/new").await?;
    Ok(params)
}

async fn offered_servers(play: &mut ClientPlay) -> Result<(), Stop> {
    let params = opened(play).await?;
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    let mut transports = servers.filter_map(|server| server["type"].as_str());
    match transports.find(|transport| matches!(*transport, "http" | "stdio")) {
        Some(transport) => fail(format!(
            "`session/new` has an MCP server of type `{transport}`, and `session.mcp.{transport}` was not offered"
        )),
        None => Ok(()),
    }
}

async fn offered_directories(play: &mut ClientPlay) -> Result<(), Stop> {
    let params = opened(play).await?;
    let more = params["additionalDirectories"].as_array();
    require(more.is_none_or(Vec::is_empty), || {
        "`session/new` has `additionalDirectories`, and they were not offered".to_owned()
    })
}

async fn uses(play: &mut ClientPlay, id: &str) -> Result<(), Stop> {
    play.session["sessionId"] = json!(id);
    let prompted = play.prompted_v2().await?;
    require(prompted.session == id, || {
        format!(
            "the session was given the id {id:?}, and the prompt is for {:?}",
            prompted.session
        )
    })
}

async fn given_id(play: &mut ClientPlay) -> Result<(), Stop> {
    uses(play, SESSION).await
}

async fn odd_id(play: &mut ClientPlay) -> Result<(), Stop> {
    uses(play, " Äß/0:\"\\\u{1F600} ").await
}

async fn early_updates(play: &mut ClientPlay) -> Result<(), Stop> {
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
async fn later(play: &mut ClientPlay) -> Result<(), Stop> {
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
                    format!("`{method}` is about the session {session}, which there is not")
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

async fn later_requests(play: &mut ClientPlay) -> Result<(), Stop> {
    play.introduction["capabilities"]["session"]["delete"] = json!({});
    play.introduction["authMethods"] =
        json!([{"type": "agent", "methodId": "acp-check-key", "name": "Key"}]);
    play.session["configOptions"] = json!([
        {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": false},
    ]);
    later(play).await
}

async fn offered_delete(play: &mut ClientPlay) -> Result<(), Stop> {
    later(play).await?;
    let deleted = play
        .messages
        .iter()
        .any(|message| message.method() == "session/delete");
    require(!deleted, || {
        "it called `session/delete`, and `session.delete` was not offered".to_owned()
    })
}
