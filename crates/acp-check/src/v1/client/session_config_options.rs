//! Checks how a client handles config options.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{
    require_responsive, require_updates_accepted, sent_params, wait_for_optional_message,
};

checks! { V1 Client "session-config-options";
    101 Must "A config option is identified by its id, and set to one of its values." => sets_known_value;
    102 Must "Missing and unknown categories are accepted." => accepts_any_category;
    103 Should "Options of unknown type are ignored." => ignores_unknown_type;
    104 Must "Options changed by the agent are accepted." => follows_option_change;
    105 Must "Grouped values are accepted." => accepts_grouped_values;
    106 Should "If the agent offers config options and modes, a client that uses config options does not use modes." => does_not_mix_options_and_modes;
}

fn mode_option(value: &str) -> Value {
    json!({
        "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": value,
        "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code", "description": "Writes"}],
    })
}

/// Waits until the client sets an option, and meanwhile responds to its other requests. Skips the check if it sets
/// none.
async fn wait_for_setting(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = harness.session["configOptions"].clone();
    harness.results.insert(
        "session/set_config_option",
        json!({"configOptions": options}),
    );
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    let method = "session/set_config_option";
    if sent_params(harness, method).next().is_some() {
        return Ok(());
    }
    match wait_for_optional_message(harness, method).await? {
        Some((id, _)) => {
            let response = harness.results.get(method).cloned().unwrap_or_default();
            harness.wire.send_result(&id, response).await
        }
        None => skip("the client set no config option"),
    }
}

async fn sets_known_value(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode_option("ask")]);
    wait_for_setting(harness).await?;
    for params in sent_params(harness, "session/set_config_option") {
        let value = params["value"].as_str().unwrap_or_default();
        require(
            params["configId"] == "mode" && ["ask", "code"].contains(&value),
            || {
                format!(
                    "the client set {} to {}, which is not one of its values",
                    params["configId"], params["value"]
                )
            },
        )?;
    }
    Ok(())
}

async fn require_options_accepted(
    harness: &mut ClientHarness,
    what: &str,
    options: Value,
) -> Result<(), CheckStop> {
    harness.session["configOptions"] = options;
    let prompted = harness.wait_for_prompt().await?;
    require_responsive(harness, what).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_any_category(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let categories = [
        json!("model"),
        json!("thought_level"),
        json!("weather"),
        json!("_example.org/mood"),
        Value::Null,
    ];
    let mut options: Vec<Value> = Vec::new();
    for (number, category) in categories.into_iter().enumerate() {
        let mut option = mode_option("ask");
        option["id"] = json!(format!("option-{number}"));
        option["category"] = category;
        options.push(option);
    }
    let mut without = mode_option("ask");
    without["id"] = json!("without");
    if let Some(fields) = without.as_object_mut() {
        fields.remove("category");
    }
    options.push(without);
    require_options_accepted(harness, "unknown categories", json!(options)).await
}

async fn ignores_unknown_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let slider = json!({
        "id": "heat", "name": "Heat", "type": "slider", "currentValue": 0.5, "minimum": 0, "maximum": 1,
    });
    require_options_accepted(
        harness,
        "an option of an unknown type",
        json!([slider, mode_option("ask")]),
    )
    .await
}

async fn follows_option_change(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode_option("ask")]);
    let update =
        |options: Value| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    let updates = [update(json!([mode_option("code")])), update(json!([]))];
    require_updates_accepted(harness, "changed config options", updates).await
}

async fn accepts_grouped_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let model = json!({
        "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "large",
        "options": [
            {"group": "near", "name": "Here", "options": [{"value": "small", "name": "Small"}]},
            {"group": "far", "name": "There", "options": [{"value": "large", "name": "Large"}]},
        ],
    });
    require_options_accepted(harness, "grouped values", json!([model])).await
}

async fn does_not_mix_options_and_modes(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode_option("ask")]);
    harness.session["modes"] = json!({
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
    });
    wait_for_setting(harness).await?;
    // A request that sets a mode would arrive before the response.
    if !harness.wire.has_ended() {
        let _ = harness.request("_acp_check/alive", json!({})).await;
    }
    require(
        sent_params(harness, "session/set_mode").next().is_none(),
        || "the client sent both `session/set_mode` and `session/set_config_option`".to_owned(),
    )
}
