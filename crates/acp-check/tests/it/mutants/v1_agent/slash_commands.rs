//! Mutants that handle slash commands wrongly.

use serde_json::json;

use super::prompt_turn::has_prompt_text;
use crate::mutants::changes::{drop_request_if, respond_instead};
use crate::mutants::layer::{Mutant, change_update, mutant};

const COMMANDS_UPDATE: &str = "available_commands_update";

pub(crate) fn mutants() -> Vec<Mutant> {
    let error = json!({"error": {"code": -32602, "message": "a command is text"}});
    vec![
        mutant(
            "v1/slash-commands/1",
            "invalid command name \"/help\"",
            "the agent's command names start with a slash",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][0]["name"] = json!("/help");
            }),
        ),
        mutant(
            "v1/slash-commands/2",
            "\"help\" has no description",
            "the agent's command has no description",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][0]["description"] = json!("");
            }),
        ),
        mutant(
            "v1/slash-commands/3",
            "command \"say\" has an empty hint",
            "the agent's input hint is empty",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][1]["input"]["hint"] = json!("");
            }),
        ),
        mutant(
            "v1/slash-commands/4",
            "error -32602",
            "the agent rejects its own commands",
            respond_instead("session/prompt", has_prompt_text("/help"), error.clone()),
        ),
        mutant(
            "v1/slash-commands/5",
            "error -32602",
            "the agent rejects a command followed by other content",
            respond_instead(
                "session/prompt",
                |params| params["prompt"][1].is_object(),
                error,
            ),
        ),
        mutant(
            "v1/slash-commands/6",
            "the turn did not end",
            "the agent does not respond to an unknown command",
            drop_request_if("session/prompt", has_prompt_text("/no-such-command")),
        ),
    ]
}
