//! Session config options and slash commands: what a session offers.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "session-config-options";
    101 Must "Missing and unknown categories are accepted." => categories;
    102 Should "Config options of unknown type are ignored." => types;
    103 Must "Config option updates are accepted at any time." => changes;
    104 Should "Commands with an unknown input type are accepted." => commands;
}

/// Returns a select option with two values.
fn choice(id: &str) -> Value {
    json!({
        "configId": id, "name": id, "type": "select", "currentValue": "a",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
    })
}

async fn opens_with(harness: &mut ClientHarness, options: Value) -> Result<(), CheckStop> {
    harness.session["configOptions"] = options;
    harness.prompted_v2().await.map(drop)
}

async fn categories(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let mut own = choice("smell");
    own["category"] = json!("_acp-check/smell");
    let mut later = choice("weather");
    later["category"] = json!("weather");
    opens_with(harness, json!([choice("none"), own, later])).await
}

async fn types(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({
        "configId": "heat", "name": "Heat", "type": "_acp-check/slider", "currentValue": 0.5, "most": 1,
    });
    opens_with(harness, json!([own, choice("plain")])).await
}

async fn changes(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        |options: Value| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    let updates = [
        update(json!([choice("one"), choice("two")])),
        update(json!([])),
    ];
    harness
        .tolerates_v2("changed config options", &updates)
        .await
}

async fn commands(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let input = json!({"type": "_acp-check/form", "fields": 3});
    let commands = json!([
        {"name": "plain", "description": "Plain"},
        {"name": "odd", "description": "Odd", "input": input},
    ]);
    let update =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    harness
        .tolerates_v2("a command with an input of an unknown type", &[update])
        .await
}
