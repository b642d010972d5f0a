//! Checks how a client handles config options and slash commands.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "session-config-options";
    101 Must "Missing and unknown categories are accepted." => accepts_any_category;
    102 Should "Config options of unknown type are ignored." => ignores_unknown_type;
    103 Must "Config option updates are accepted at any time." => accepts_changed_options;
    104 Should "Commands with an unknown input type are accepted." => accepts_unknown_input;
}

/// Returns a select option with two values.
fn select_option(id: &str) -> Value {
    json!({
        "configId": id, "name": id, "type": "select", "currentValue": "a",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
    })
}

async fn require_options_accepted(
    harness: &mut ClientHarness,
    options: Value,
) -> Result<(), CheckStop> {
    harness.session["configOptions"] = options;
    harness.wait_for_prompt_v2().await.map(drop)
}

async fn accepts_any_category(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let mut own = select_option("smell");
    own["category"] = json!("_acp-check/smell");
    let mut later = select_option("weather");
    later["category"] = json!("weather");
    require_options_accepted(harness, json!([select_option("none"), own, later])).await
}

async fn ignores_unknown_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({
        "configId": "heat", "name": "Heat", "type": "_acp-check/slider", "currentValue": 0.5, "most": 1,
    });
    require_options_accepted(harness, json!([own, select_option("plain")])).await
}

async fn accepts_changed_options(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        |options: Value| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    let updates = [
        update(json!([select_option("one"), select_option("two")])),
        update(json!([])),
    ];
    harness
        .require_tolerance_v2("changed config options", &updates)
        .await
}

async fn accepts_unknown_input(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let input = json!({"type": "_acp-check/form", "fields": 3});
    let commands = json!([
        {"name": "plain", "description": "Plain"},
        {"name": "odd", "description": "Odd", "input": input},
    ]);
    let update =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    harness
        .require_tolerance_v2("a command with an unknown input type", &[update])
        .await
}
