//! Session modes.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{maybe, sent, takes};

checks! { V1 Client "session-modes";
    101 Must "A mode is set by the id of one that the agent has, whatever characters are in it." => known_mode;
    102 Must "A mode that the agent has changed to is taken." => follows_mode_change;
    103 May "A mode that the agent never named does no harm." => unknown_mode;
    104 Must "A mode may be set in no session but one of the agent's." => known_session;
}

/// The agent has modes.
fn with_modes(play: &mut ClientHarness) {
    play.session["modes"] = json!({
        "currentModeId": "https://example.org/modes#ask",
        "availableModes": [
            {"id": "https://example.org/modes#ask", "name": "Ask", "description": "Asks first"},
            {"id": "https://example.org/modes#code", "name": "Code", "description": null},
        ],
    });
}

/// A client that sets modes, if it does.
async fn setting(play: &mut ClientHarness) -> Result<(), CheckStop> {
    with_modes(play);
    let prompted = play.wait_for_prompt().await?;
    play.end_turn(&prompted, "end_turn").await?;
    if sent(play, "session/set_mode").next().is_none()
        && maybe(play, "session/set_mode").await?.is_none()
    {
        return skip("the client has set no mode");
    }
    Ok(())
}

async fn known_mode(play: &mut ClientHarness) -> Result<(), CheckStop> {
    setting(play).await?;
    for params in sent(play, "session/set_mode") {
        let mode = params["modeId"].as_str().unwrap_or_default();
        let known = [
            "https://example.org/modes#ask",
            "https://example.org/modes#code",
        ];
        require(known.contains(&mode), || {
            format!("it set the mode {}, which there is not", params["modeId"])
        })?;
    }
    Ok(())
}

async fn follows_mode_change(play: &mut ClientHarness) -> Result<(), CheckStop> {
    with_modes(play);
    let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
    let modes = [
        mode("https://example.org/modes#code"),
        mode("https://example.org/modes#ask"),
    ];
    takes(play, "a change of the mode", modes).await
}

async fn unknown_mode(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "dreaming"});
    takes(play, "a mode that there is not", [mode]).await
}

async fn known_session(play: &mut ClientHarness) -> Result<(), CheckStop> {
    setting(play).await?;
    for params in sent(play, "session/set_mode") {
        require(params["sessionId"] == play.session["sessionId"], || {
            format!(
                "it set a mode of the session {}, which there is not",
                params["sessionId"]
            )
        })?;
    }
    Ok(())
}
