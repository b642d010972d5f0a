//! Wrong in slash commands.

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
            "the agent has the slash in the name",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][0]["name"] = json!("/help");
            }),
        ),
        mutant(
            "v1/slash-commands/2",
            "\"help\" has no description",
            "the agent does not say what a command does",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][0]["description"] = json!("");
            }),
        ),
        mutant(
            "v1/slash-commands/3",
            "command \"say\" has an empty hint",
            "the agent has nothing to show for an input",
            change_update(COMMANDS_UPDATE, |update| {
                update["availableCommands"][1]["input"]["hint"] = json!("");
            }),
        ),
        mutant(
            "v1/slash-commands/4",
            "error -32602",
            "the agent has commands, and takes none",
            respond_instead("session/prompt", has_prompt_text("/help"), error.clone()),
        ),
        mutant(
            "v1/slash-commands/5",
            "error -32602",
            "the agent takes commands alone",
            respond_instead(
                "session/prompt",
                |params| params["prompt"][1].is_object(),
                error,
            ),
        ),
        mutant(
            "v1/slash-commands/6",
            "the turn did not end",
            "the agent has no answer to what is no command",
            drop_request_if("session/prompt", has_prompt_text("/no-such-command")),
        ),
    ]
}
