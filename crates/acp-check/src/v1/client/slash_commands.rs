//! Checks how a client handles slash commands.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

use super::steps::require_updates_accepted;

checks! { V1 Client "slash-commands";
    101 Must "Commands with and without input are accepted." => accepts_commands;
    102 Must "Commands may change or be removed." => follows_changed_commands;
    103 May "Unknown input types are accepted." => accepts_unknown_input;
}

fn commands_update(commands: Value) -> Value {
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

async fn accepts_commands(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let commands = json!([
        {"name": "web", "description": "Search the web", "input": {"hint": "what to search for"}},
        {"name": "test", "description": "Run the tests", "input": null},
        {"name": "mcp:server/prompt-1", "description": ""},
    ]);
    require_updates_accepted(harness, "commands", [commands_update(commands)]).await
}

async fn follows_changed_commands(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let one = json!([{"name": "plan", "description": "Make a plan"}]);
    let updates = [
        commands_update(one.clone()),
        commands_update(json!([])),
        commands_update(one),
    ];
    require_updates_accepted(harness, "changed commands", updates).await
}

async fn accepts_unknown_input(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let commands =
        json!([{"name": "draw", "description": "Draw", "input": {"canvas": [640, 480]}}]);
    require_updates_accepted(
        harness,
        "a command with an unknown input type",
        [commands_update(commands)],
    )
    .await
}
