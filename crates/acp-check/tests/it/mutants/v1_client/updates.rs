//! Wrong in taking updates: it ends at one that it should take.

use serde_json::Value;

use crate::mutants::layer::{Mutant, Mutation, end_when, mutant};

/// One that ends at what is in an update.
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

/// Whether an update is of this kind.
fn is_update_of_kind(kind: &'static str) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |update| update["sessionUpdate"] == kind
}

/// One that ends at what is in the answer to `session/new`.
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
            "the client knows no thoughts",
            is_update_of_kind("agent_thought_chunk"),
        ),
        end_at_update(
            "v1/prompt-turn/103",
            "after updates of the session's title and usage",
            "the client knows no usage",
            is_update_of_kind("usage_update"),
        ),
        end_at_update(
            "v1/prompt-turn/104",
            "after unknown update types",
            "the client ends at a kind that it does not know",
            is_update_of_kind("mood_update"),
        ),
        mutant(
            "v1/prompt-turn/105",
            "after updates for an unknown session",
            "the client ends at a session that it does not know",
            end_when(|message| message["params"]["sessionId"] == "sess_nobodys"),
        ),
        end_at_update(
            "v1/content/101",
            "after text with annotations",
            "the client ends at annotations",
            |update| update["content"]["annotations"].is_object(),
        ),
        end_at_update(
            "v1/content/102",
            "after images",
            "the client shows no images",
            said("image"),
        ),
        end_at_update(
            "v1/content/103",
            "after sound",
            "the client plays no sound",
            said("audio"),
        ),
        end_at_update(
            "v1/content/104",
            "after links to resources",
            "the client follows no links",
            said("resource_link"),
        ),
        end_at_update(
            "v1/content/105",
            "after embedded resources",
            "the client shows no binary resource",
            |update| update["content"]["resource"]["blob"].is_string(),
        ),
        end_at_update(
            "v1/content/106",
            "after an unknown content type",
            "the client ends at a block that it does not know",
            said("smell"),
        ),
        mutant(
            "v1/content/107",
            "the agent supports text, links and images, but the prompt contains \"audio\"",
            "the client prompts with sound where images are taken",
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
            "the client knows no change of the mode",
            |update| update["kind"] == "switch_mode",
        ),
        end_at_update(
            "v1/tool-calls/102",
            "after partial updates of a tool call",
            "the client wants every field",
            |update| update.as_object().is_some_and(|fields| fields.len() == 2),
        ),
        end_at_update(
            "v1/tool-calls/103",
            "after diffs",
            "the client shows no diffs",
            shows("diff"),
        ),
        end_at_update(
            "v1/tool-calls/104",
            "after tool call content",
            "the client wants a line for each location",
            |update| {
                update["locations"][0]["path"].is_string()
                    && update["locations"][0]["line"].is_null()
            },
        ),
        end_at_update(
            "v1/tool-calls/105",
            "after raw input and output",
            "the client wants an object for input",
            |update| update["rawInput"].is_array(),
        ),
        end_at_update(
            "v1/tool-calls/106",
            "after unusual tool call ids",
            "the client makes file names of ids",
            id("a/b/../c"),
        ),
        end_at_update(
            "v1/tool-calls/107",
            "after updates for a tool call that was not announced",
            "the client ends at a tool call that it does not know",
            id("never-announced"),
        ),
        end_at_update(
            "v1/tool-calls/108",
            "after a tool call announced twice",
            "the client ends at a tool call that it knows",
            |update| update["toolCallId"] == "twice" && update["kind"] == "read",
        ),
        end_at_update(
            "v1/tool-calls/109",
            "after an unknown terminal",
            "the client ends at a terminal that it does not know",
            shows("terminal"),
        ),
        end_at_update(
            "v1/tool-calls/110",
            "after unknown tool call kinds",
            "the client ends at a kind that it does not know",
            |update| update["kind"] == "juggle",
        ),
        end_at_update(
            "v1/tool-calls/111",
            "after an agent terminal",
            "the client ends at output in `_meta`",
            |update| update["_meta"].is_object(),
        ),
    ]
}

fn session_update_mutants() -> Vec<Mutant> {
    vec![
        end_at_update(
            "v1/agent-plan/101",
            "after a plan",
            "the client knows no plans",
            is_update_of_kind("plan"),
        ),
        end_at_update(
            "v1/agent-plan/102",
            "after a replaced plan",
            "the client wants a plan to have entries",
            |update| update["entries"].as_array().is_some_and(Vec::is_empty),
        ),
        end_at_update(
            "v1/agent-plan/103",
            "after a plan with an unknown status",
            "the client ends at a status that it does not know",
            |update| update["entries"][0]["status"] == "blocked",
        ),
        end_at_update(
            "v1/session-modes/102",
            "after a changed mode",
            "the client wants to change the mode itself",
            is_update_of_kind("current_mode_update"),
        ),
        end_at_update(
            "v1/session-modes/103",
            "after an unknown mode",
            "the client ends at a mode that it does not know",
            |update| update["currentModeId"] == "dreaming",
        ),
        mutant(
            "v1/session-config-options/102",
            "closed its output",
            "the client ends at a category that it does not know",
            end_at_session_response(|option| option["category"] == "weather"),
        ),
        mutant(
            "v1/session-config-options/103",
            "closed its output",
            "the client ends at a type that it does not know",
            end_at_session_response(|option| option["type"] == "slider"),
        ),
        end_at_update(
            "v1/session-config-options/104",
            "after changed config options",
            "the client wants to change options itself",
            is_update_of_kind("config_option_update"),
        ),
        mutant(
            "v1/session-config-options/105",
            "closed its output",
            "the client knows no groups",
            end_at_session_response(|option| option["options"][0]["group"].is_string()),
        ),
        end_at_update(
            "v1/slash-commands/101",
            "after commands",
            "the client wants every command to have input",
            |update| update["availableCommands"][1]["input"].is_null(),
        ),
        end_at_update(
            "v1/slash-commands/102",
            "after changed commands",
            "the client wants commands",
            |update| {
                update["availableCommands"]
                    .as_array()
                    .is_some_and(Vec::is_empty)
            },
        ),
        end_at_update(
            "v1/slash-commands/103",
            "after a command with unknown input",
            "the client ends at input that it does not know",
            |update| update["availableCommands"][0]["input"]["canvas"].is_array(),
        ),
    ]
}
