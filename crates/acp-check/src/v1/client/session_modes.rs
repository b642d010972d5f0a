//! Checks how a client handles session modes.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{require_updates_accepted, sent_params, wait_for_optional_message};

checks! { V1 Client "session-modes";
    101 Must "Mode ids are sent unchanged, whatever characters they contain." => keeps_mode_ids;
    102 Must "Mode changes by the agent are accepted." => follows_mode_change;
    103 May "Unknown modes are accepted." => accepts_unknown_mode;
    104 Must "`session/set_mode` refers to a known session." => sets_mode_of_known_session;
}

/// Adds modes to the response to `session/new`.
fn add_modes(harness: &mut ClientHarness) {
    harness.session["modes"] = json!({
        "currentModeId": "https://example.org/modes#ask",
        "availableModes": [
            {"id": "https://example.org/modes#ask", "name": "Ask", "description": "Asks first"},
            {"id": "https://example.org/modes#code", "name": "Code", "description": null},
        ],
    });
}

/// Waits until the client sets a mode. Skips the check if it sets none.
async fn wait_for_setting(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    add_modes(harness);
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    if sent_params(harness, "session/set_mode").next().is_none()
        && wait_for_optional_message(harness, "session/set_mode")
            .await?
            .is_none()
    {
        return skip("the client set no mode");
    }
    Ok(())
}

async fn keeps_mode_ids(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    wait_for_setting(harness).await?;
    for params in sent_params(harness, "session/set_mode") {
        let mode = params["modeId"].as_str().unwrap_or_default();
        let known = [
            "https://example.org/modes#ask",
            "https://example.org/modes#code",
        ];
        require(known.contains(&mode), || {
            format!("the client set the unknown mode {}", params["modeId"])
        })?;
    }
    Ok(())
}

async fn follows_mode_change(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    add_modes(harness);
    let mode = |id: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": id});
    let modes = [
        mode("https://example.org/modes#code"),
        mode("https://example.org/modes#ask"),
    ];
    require_updates_accepted(harness, "a mode change", modes).await
}

async fn accepts_unknown_mode(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "dreaming"});
    require_updates_accepted(harness, "an unknown mode", [mode]).await
}

async fn sets_mode_of_known_session(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    wait_for_setting(harness).await?;
    for params in sent_params(harness, "session/set_mode") {
        require(params["sessionId"] == harness.session["sessionId"], || {
            format!(
                "the client set a mode for the unknown session {}",
                params["sessionId"]
            )
        })?;
    }
    Ok(())
}
