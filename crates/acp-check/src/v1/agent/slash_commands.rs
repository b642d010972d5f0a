//! Checks for an agent's slash commands.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, skip};

checks! { V1 Agent "slash-commands";
    1 Should "A command name is one word without the slash." => has_valid_names, shared;
    2 Should "Every command has a human-readable description." => has_descriptions, shared;
    3 Should "An input hint is not empty." => has_nonempty_hints, shared;
    4 Must "A slash command in a prompt is accepted." => accepts_command, shared;
    5 Must "A slash command followed by other content is accepted." => accepts_command_with_content, shared;
    6 Must "An unknown slash command is treated as a normal prompt." => treats_unknown_command_as_text, shared;
}

/// How long to wait for the agent's commands. An agent does not need to have any.
const COMMANDS_TIMEOUT: Duration = Duration::from_secs(2);

/// Names of commands that are assumed to change nothing.
const SAFE_COMMANDS: [&str; 4] = ["help", "status", "context", "usage"];

/// Opens a session, and returns its id and its commands. Skips the check if the session has none.
async fn wait_for_commands(harness: &mut AgentHarness) -> Result<(String, Vec<Value>), CheckStop> {
    let session = harness.new_session().await?;
    let reported = async {
        loop {
            let update = harness
                .updates()
                .map(|params| &params["update"])
                .find(|update| update["sessionUpdate"] == "available_commands_update");
            if let Some(commands) = update.and_then(|update| update["availableCommands"].as_array())
            {
                return Ok(commands.clone());
            }
            if harness.next().await?.is_none() {
                return fail("the agent closed its output");
            }
        }
    };
    match timeout(COMMANDS_TIMEOUT, reported).await {
        Ok(commands) => match commands? {
            commands if commands.is_empty() => skip("the agent has no commands"),
            commands => Ok((session, commands)),
        },
        Err(_) => skip("the agent announced no commands"),
    }
}

fn command_name(command: &Value) -> &str {
    command["name"].as_str().unwrap_or_default()
}

async fn has_valid_names(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, commands) = wait_for_commands(harness).await?;
    let wrong =
        |name: &str| name.is_empty() || name.starts_with('/') || name.contains(char::is_whitespace);
    match commands.iter().map(command_name).find(|name| wrong(name)) {
        Some(name) => fail(format!("invalid command name {name:?}")),
        None => Ok(()),
    }
}

async fn has_descriptions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, commands) = wait_for_commands(harness).await?;
    let silent = |command: &&Value| {
        command["description"]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    match commands.iter().find(silent) {
        Some(command) => fail(format!(
            "the command {:?} has no description",
            command_name(command)
        )),
        None => Ok(()),
    }
}

async fn has_nonempty_hints(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, commands) = wait_for_commands(harness).await?;
    let mut hints = commands
        .iter()
        .filter(|command| command["input"].is_object())
        .peekable();
    if hints.peek().is_none() {
        return skip("none of the agent's commands takes input");
    }
    let silent = |command: &&Value| {
        command["input"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.trim().is_empty())
    };
    match hints.find(silent) {
        Some(command) => fail(format!(
            "command {:?} has an empty hint",
            command_name(command)
        )),
        None => Ok(()),
    }
}

/// Opens a session, and returns its id and a command that is safe to run. Skips the check if there is none.
async fn find_safe_command(harness: &mut AgentHarness) -> Result<(String, String), CheckStop> {
    let (session, commands) = wait_for_commands(harness).await?;
    match commands
        .iter()
        .map(command_name)
        .find(|name| SAFE_COMMANDS.contains(name))
    {
        Some(name) => Ok((session, format!("/{name}"))),
        None => skip("the agent has no command that is known to be safe to run"),
    }
}

async fn accepts_command(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, command) = find_safe_command(harness).await?;
    let text = json!({"type": "text", "text": command});
    harness.run_prompt(&session, json!([text])).await.map(drop)
}

async fn accepts_command_with_content(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, command) = find_safe_command(harness).await?;
    let text = json!({"type": "text", "text": command});
    let uri = format!("file://{}", harness.directory().file("notes.txt").display());
    let link = json!({"type": "resource_link", "name": "notes.txt", "uri": uri});
    harness
        .run_prompt(&session, json!([text, link]))
        .await
        .map(drop)
}

async fn treats_unknown_command_as_text(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_prompt(&session, "/no-such-command").await?;
    harness.wait_for_turn_response(&prompt).await?;
    harness
        .require_next_prompt(&session, "an unknown command")
        .await
        .map(drop)
}
