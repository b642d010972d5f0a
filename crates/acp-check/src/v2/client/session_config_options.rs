//! Session config options, and slash commands: what a session has to offer.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "session-config-options";
    101 Must "A config option without a category, or with one that the client does not know, is no obstacle." => categories;
    102 Should "A config option of a type that the client does not know is passed over." => types;
    103 Must "The config options may change at any time." => changes;
    104 Should "A command whose input is of a type that the client does not know is passed over, or offered without." => commands;
}

/// A choice between two values.
fn choice(id: &str) -> Value {
    json!({
        "configId": id, "name": id, "type": "select", "currentValue": "a",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
    })
}

async fn opens_with(play: &mut ClientHarness, options: Value) -> Result<(), CheckStop> {
    play.session["configOptions"] = options;
    play.prompted_v2().await.map(drop)
}

async fn categories(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let mut own = choice("smell");
    own["category"] = json!("_acp-check/smell");
    let mut later = choice("weather");
    later["category"] = json!("weather");
    opens_with(play, json!([choice("none"), own, later])).await
}

async fn types(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({
        "configId": "heat", "name": "Heat", "type": "_acp-check/slider", "currentValue": 0.5, "most": 1,
    });
    opens_with(play, json!([own, choice("plain")])).await
}

async fn changes(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        |options: Value| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    let updates = [
        update(json!([choice("one"), choice("two")])),
        update(json!([])),
    ];
    play.tolerates_v2("the config options have changed", &updates)
        .await
}

async fn commands(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let input = json!({"type": "_acp-check/form", "fields": 3});
    let commands = json!([
        {"name": "plain", "description": "Plain"},
        {"name": "odd", "description": "Odd", "input": input},
    ]);
    let update =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    play.tolerates_v2("a command with an input of an unknown type", &[update])
        .await
}
