//! Session config options.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{lives, maybe, sent, takes};

checks! { V1 Client "session-config-options";
    101 Must "A config option is set by its id, to one of its values." => known_value;
    102 Must "Missing and unknown categories are accepted." => categories;
    103 Should "Options of unknown type are ignored." => unknown_type;
    104 Must "Options changed by the agent are accepted." => follows_option_change;
    105 Must "Grouped values are accepted." => groups;
    106 Should "If the agent has both, a client that uses config options does not use modes." => not_both;
}

fn mode(value: &str) -> Value {
    json!({
        "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": value,
        "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code", "description": "Writes"}],
    })
}

/// Lets the client open the session, send a prompt, and set options.
async fn setting(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = harness.session["configOptions"].clone();
    harness.answers.insert(
        "session/set_config_option",
        json!({"configOptions": options}),
    );
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    let method = "session/set_config_option";
    if sent(harness, method).next().is_some() {
        return Ok(());
    }
    match maybe(harness, method).await? {
        Some((id, _)) => {
            let answer = harness.answers.get(method).cloned().unwrap_or_default();
            harness.wire.answer(&id, answer).await
        }
        None => skip("the client has set no config option"),
    }
}

async fn known_value(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode("ask")]);
    setting(harness).await?;
    for params in sent(harness, "session/set_config_option") {
        let value = params["value"].as_str().unwrap_or_default();
        require(
            params["configId"] == "mode" && ["ask", "code"].contains(&value),
            || {
                format!(
                    "it set {} to {}, which does not exist",
                    params["configId"], params["value"]
                )
            },
        )?;
    }
    Ok(())
}

async fn opens_with(
    harness: &mut ClientHarness,
    what: &str,
    options: Value,
) -> Result<(), CheckStop> {
    harness.session["configOptions"] = options;
    let prompted = harness.wait_for_prompt().await?;
    lives(harness, what).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn categories(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let categories = [
        json!("model"),
        json!("thought_level"),
        json!("weather"),
        json!("_example.org/mood"),
        Value::Null,
    ];
    let mut options: Vec<Value> = Vec::new();
    for (number, category) in categories.into_iter().enumerate() {
        let mut option = mode("ask");
        option["id"] = json!(format!("option-{number}"));
        option["category"] = category;
        options.push(option);
    }
    let mut without = mode("ask");
    without["id"] = json!("without");
    if let Some(fields) = without.as_object_mut() {
        fields.remove("category");
    }
    options.push(without);
    opens_with(harness, "unknown categories", json!(options)).await
}

async fn unknown_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let slider = json!({
        "id": "heat", "name": "Heat", "type": "slider", "currentValue": 0.5, "minimum": 0, "maximum": 1,
    });
    opens_with(
        harness,
        "an option of an unknown type",
        json!([slider, mode("ask")]),
    )
    .await
}

async fn follows_option_change(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode("ask")]);
    let update =
        |options: Value| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    let updates = [update(json!([mode("code")])), update(json!([]))];
    takes(harness, "a change of the config options", updates).await
}

async fn groups(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let model = json!({
        "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "large",
        "options": [
            {"group": "near", "name": "Here", "options": [{"value": "small", "name": "Small"}]},
            {"group": "far", "name": "There", "options": [{"value": "large", "name": "Large"}]},
        ],
    });
    opens_with(harness, "values in groups", json!([model])).await
}

async fn not_both(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.session["configOptions"] = json!([mode("ask")]);
    harness.session["modes"] = json!({
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
    });
    setting(harness).await?;
    // A request that sets a mode would come before the response.
    if !harness.wire.has_ended() {
        let _ = harness.request("_acp_check/alive", json!({})).await;
    }
    require(sent(harness, "session/set_mode").next().is_none(), || {
        "it sent both `session/set_mode` and `session/set_config_option`".to_owned()
    })
}
