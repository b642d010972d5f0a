//! Mutants that exit on an update that they should accept.

use serde_json::Value;

use crate::mutants::layer::{Mutant, Mutation, end_when, mutant};

/// Returns a mutant that exits when it receives an update for which `at` returns true.
fn end_at_update(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    at: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> Mutant {
    let at = move |message: &Value| {
        message["method"] == "session/update" && at(&message["params"]["update"])
    };
    mutant(kills, why, what, end_when(at))
}

/// Returns a predicate that matches updates of this type.
fn is_update_of_kind(kind: &'static str) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |update| update["sessionUpdate"] == kind
}

/// Returns a mutant that exits if `at` returns true for any config option in the `session/new` response.
fn end_at_session_response(at: fn(&Value) -> bool) -> impl Fn() -> Mutation + Send + Sync {
    end_when(move |message| {
        let options = message["result"]["configOptions"].as_array();
        options.into_iter().flatten().any(at)
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = message_mutants();
    mutants.extend(tool_call_mutants());
    mutants.extend(session_update_mutants());
    mutants
}

fn message_mutants() -> Vec<Mutant> {
    let said = |kind: &'static str| move |update: &Value| update["content"]["type"] == kind;
    vec![
        end_at_update(
            "v1/prompt-turn/102",
            "after message chunks",
            "the client exits on a thought",
            is_update_of_kind("agent_thought_chunk"),
        ),
        end_at_update(
            "v1/prompt-turn/103",
            "after updates of the session's title and usage",
            "the client exits on a usage update",
            is_update_of_kind("usage_update"),
        ),
        end_at_update(
            "v1/prompt-turn/104",
            "after unknown update types",
            "the client exits on an unknown update type",
            is_update_of_kind("mood_update"),
        ),
        mutant(
            "v1/prompt-turn/105",
            "after updates for an unknown session",
            "the client exits on an update for an unknown session",
            end_when(|message| message["params"]["sessionId"] == "sess_nobodys"),
        ),
        end_at_update(
            "v1/content/101",
            "after text with annotations",
            "the client exits on annotations",
            |update| update["content"]["annotations"].is_object(),
        ),
        end_at_update(
            "v1/content/102",
            "after images",
            "the client exits on an image",
            said("image"),
        ),
        end_at_update(
            "v1/content/103",
            "after sound",
            "the client exits on audio",
            said("audio"),
        ),
        end_at_update(
            "v1/content/104",
            "after links to resources",
            "the client exits on a resource link",
            said("resource_link"),
        ),
        end_at_update(
            "v1/content/105",
            "after embedded resources",
            "the client exits on a binary resource",
            |update| update["content"]["resource"]["blob"].is_string(),
        ),
        end_at_update(
            "v1/content/106",
            "after an unknown content type",
            "the client exits on an unknown content type",
            said("smell"),
        ),
        mutant(
            "v1/content/107",
            "the agent supports text, links and images, but the prompt contains \"audio\"",
            "the client sends audio to an agent that supports only images",
            crate::mutants::layer::change_call("session/prompt", |params| {
                let sound =
                    serde_json::json!({"type": "audio", "mimeType": "audio/wav", "data": ""});
                params["prompt"] = serde_json::json!([sound]);
            }),
        ),
    ]
}

fn tool_call_mutants() -> Vec<Mutant> {
    let id = |id: &'static str| move |update: &Value| update["toolCallId"] == id;
    let shows = |kind: &'static str| move |update: &Value| update["content"][0]["type"] == kind;
    vec![
        end_at_update(
            "v1/tool-calls/101",
            "after tool calls of every kind",
            "the client exits on a mode change in a tool call",
            |update| update["kind"] == "switch_mode",
        ),
        end_at_update(
            "v1/tool-calls/102",
            "after partial updates of a tool call",
            "the client exits on an update without all fields",
            |update| update.as_object().is_some_and(|fields| fields.len() == 2),
        ),
        end_at_update(
            "v1/tool-calls/103",
            "after diffs",
            "the client exits on a diff",
            shows("diff"),
        ),
        end_at_update(
            "v1/tool-calls/104",
            "after tool call content",
            "the client exits on a location without a line",
            |update| {
                update["locations"][0]["path"].is_string()
                    && update["locations"][0]["line"].is_null()
            },
        ),
        end_at_update(
            "v1/tool-calls/105",
            "after raw input and output",
            "the client exits on raw input that is not an object",
            |update| update["rawInput"].is_array(),
        ),
        end_at_update(
            "v1/tool-calls/106",
            "after unusual tool call ids",
            "the client uses tool call ids as file names",
            id("a/b/../c"),
        ),
        end_at_update(
            "v1/tool-calls/107",
            "after updates for a tool call that was not announced",
            "the client exits on an unknown tool call",
            id("never-announced"),
        ),
        end_at_update(
            "v1/tool-calls/108",
            "after a tool call announced twice",
            "the client exits on a tool call that is announced twice",
            |update| update["toolCallId"] == "twice" && update["kind"] == "read",
        ),
        end_at_update(
            "v1/tool-calls/109",
            "after an unknown terminal",
            "the client exits on an unknown terminal",
            shows("terminal"),
        ),
        end_at_update(
            "v1/tool-calls/110",
            "after unknown tool call kinds",
            "the client exits on an unknown tool call kind",
            |update| update["kind"] == "juggle",
        ),
        end_at_update(
            "v1/tool-calls/111",
            "after output from the agent's own terminal",
            "the client exits on output in `_meta`",
            |update| update["_meta"].is_object(),
        ),
    ]
}

fn session_update_mutants() -> Vec<Mutant> {
    vec![
        end_at_update(
            "v1/agent-plan/101",
            "after a plan",
            "the client exits on a plan",
            is_update_of_kind("plan"),
        ),
        end_at_update(
            "v1/agent-plan/102",
            "after a plan that replaces the previous one",
            "the client exits on an empty plan",
            |update| update["entries"].as_array().is_some_and(Vec::is_empty),
        ),
        end_at_update(
            "v1/agent-plan/103",
            "after a plan with an unknown status",
            "the client exits on an unknown plan entry status",
            |update| update["entries"][0]["status"] == "blocked",
        ),
        end_at_update(
            "v1/session-modes/102",
            "after a mode change",
            "the client exits when the agent changes the mode",
            is_update_of_kind("current_mode_update"),
        ),
        end_at_update(
            "v1/session-modes/103",
            "after an unknown mode",
            "the client exits on an unknown mode",
            |update| update["currentModeId"] == "dreaming",
        ),
        mutant(
            "v1/session-config-options/102",
            "closed its output",
            "the client exits on an unknown category",
            end_at_session_response(|option| option["category"] == "weather"),
        ),
        mutant(
            "v1/session-config-options/103",
            "closed its output",
            "the client exits on an unknown option type",
            end_at_session_response(|option| option["type"] == "slider"),
        ),
        end_at_update(
            "v1/session-config-options/104",
            "after changed config options",
            "the client exits when the agent changes options",
            is_update_of_kind("config_option_update"),
        ),
        mutant(
            "v1/session-config-options/105",
            "closed its output",
            "the client exits on grouped values",
            end_at_session_response(|option| option["options"][0]["group"].is_string()),
        ),
        end_at_update(
            "v1/slash-commands/101",
            "after commands",
            "the client exits on a command without input",
            |update| update["availableCommands"][1]["input"].is_null(),
        ),
        end_at_update(
            "v1/slash-commands/102",
            "after changed commands",
            "the client exits on an empty list of commands",
            |update| {
                update["availableCommands"]
                    .as_array()
                    .is_some_and(Vec::is_empty)
            },
        ),
        end_at_update(
            "v1/slash-commands/103",
            "after a command with an unknown input type",
            "the client exits on an unknown input type",
            |update| update["availableCommands"][0]["input"]["canvas"].is_array(),
        ),
    ]
}
