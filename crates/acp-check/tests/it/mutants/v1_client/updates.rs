//! Mutants that exit on an update that they should accept.

use serde_json::Value;

use crate::mutants::layer::{Mutant, Mutation, ends_at, mutant};

/// Returns a mutant that exits on an update that satisfies `at`.
fn ends(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    at: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> Mutant {
    let at = move |message: &Value| {
        message["method"] == "session/update" && at(&message["params"]["update"])
    };
    mutant(kills, why, what, ends_at(at))
}

/// Returns a predicate that is true for an update of this type.
fn is(kind: &'static str) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |update| update["sessionUpdate"] == kind
}

/// Returns a mutation that exits on an option in the response to `session/new` that satisfies `at`.
fn opens_badly(at: fn(&Value) -> bool) -> impl Fn() -> Mutation + Send + Sync {
    ends_at(move |message| {
        let options = message["result"]["configOptions"].as_array();
        options.into_iter().flatten().any(at)
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = messages();
    mutants.extend(tool_calls());
    mutants.extend(of_the_session());
    mutants
}

fn messages() -> Vec<Mutant> {
    let said = |kind: &'static str| move |update: &Value| update["content"]["type"] == kind;
    vec![
        ends(
            "v1/prompt-turn/102",
            "after message chunks",
            "the client exits on a thought",
            is("agent_thought_chunk"),
        ),
        ends(
            "v1/prompt-turn/103",
            "after updates of the session's title and usage",
            "the client exits on a usage update",
            is("usage_update"),
        ),
        ends(
            "v1/prompt-turn/104",
            "after unknown update types",
            "the client exits on an unknown update type",
            is("mood_update"),
        ),
        mutant(
            "v1/prompt-turn/105",
            "after updates for an unknown session",
            "the client exits on an update for an unknown session",
            ends_at(|message| message["params"]["sessionId"] == "sess_nobodys"),
        ),
        ends(
            "v1/content/101",
            "after text with annotations",
            "the client exits on annotations",
            |update| update["content"]["annotations"].is_object(),
        ),
        ends(
            "v1/content/102",
            "after images",
            "the client exits on an image",
            said("image"),
        ),
        ends(
            "v1/content/103",
            "after sound",
            "the client exits on audio",
            said("audio"),
        ),
        ends(
            "v1/content/104",
            "after links to resources",
            "the client exits on a resource link",
            said("resource_link"),
        ),
        ends(
            "v1/content/105",
            "after embedded resources",
            "the client exits on a binary resource",
            |update| update["content"]["resource"]["blob"].is_string(),
        ),
        ends(
            "v1/content/106",
            "after an unknown content type",
            "the client exits on an unknown content type",
            said("smell"),
        ),
        mutant(
            "v1/content/107",
            "the agent supports text, links and images, but the prompt contains \"audio\"",
            "the client sends audio to an agent that supports only images",
            crate::mutants::layer::call("session/prompt", |params| {
                let sound =
                    serde_json::json!({"type": "audio", "mimeType": "audio/wav", "data": ""});
                params["prompt"] = serde_json::json!([sound]);
            }),
        ),
    ]
}

fn tool_calls() -> Vec<Mutant> {
    let id = |id: &'static str| move |update: &Value| update["toolCallId"] == id;
    let shows = |kind: &'static str| move |update: &Value| update["content"][0]["type"] == kind;
    vec![
        ends(
            "v1/tool-calls/101",
            "after tool calls of every kind",
            "the client exits on a mode change in a tool call",
            |update| update["kind"] == "switch_mode",
        ),
        ends(
            "v1/tool-calls/102",
            "after partial updates of a tool call",
            "the client exits on an update without all fields",
            |update| update.as_object().is_some_and(|fields| fields.len() == 2),
        ),
        ends(
            "v1/tool-calls/103",
            "after diffs",
            "the client exits on a diff",
            shows("diff"),
        ),
        ends(
            "v1/tool-calls/104",
            "after tool call content",
            "the client exits on a location without a line",
            |update| {
                update["locations"][0]["path"].is_string()
                    && update["locations"][0]["line"].is_null()
            },
        ),
        ends(
            "v1/tool-calls/105",
            "after raw input and output",
            "the client exits on raw input that is not an object",
            |update| update["rawInput"].is_array(),
        ),
        ends(
            "v1/tool-calls/106",
            "after unusual tool call ids",
            "the client uses tool call ids as file names",
            id("a/b/../c"),
        ),
        ends(
            "v1/tool-calls/107",
            "after updates for a tool call that was not announced",
            "the client exits on an unknown tool call",
            id("never-announced"),
        ),
        ends(
            "v1/tool-calls/108",
            "after a tool call announced twice",
            "the client exits on a tool call that is announced twice",
            |update| update["toolCallId"] == "twice" && update["kind"] == "read",
        ),
        ends(
            "v1/tool-calls/109",
            "after an unknown terminal",
            "the client exits on an unknown terminal",
            shows("terminal"),
        ),
        ends(
            "v1/tool-calls/110",
            "after unknown tool call kinds",
            "the client exits on an unknown tool call kind",
            |update| update["kind"] == "juggle",
        ),
        ends(
            "v1/tool-calls/111",
            "after an agent terminal",
            "the client exits on output in `_meta`",
            |update| update["_meta"].is_object(),
        ),
    ]
}

fn of_the_session() -> Vec<Mutant> {
    vec![
        ends(
            "v1/agent-plan/101",
            "after a plan",
            "the client exits on a plan",
            is("plan"),
        ),
        ends(
            "v1/agent-plan/102",
            "after a replaced plan",
            "the client exits on an empty plan",
            |update| update["entries"].as_array().is_some_and(Vec::is_empty),
        ),
        ends(
            "v1/agent-plan/103",
            "after a plan with an unknown status",
            "the client exits on an unknown plan entry status",
            |update| update["entries"][0]["status"] == "blocked",
        ),
        ends(
            "v1/session-modes/102",
            "after a changed mode",
            "the client exits when the agent changes the mode",
            is("current_mode_update"),
        ),
        ends(
            "v1/session-modes/103",
            "after an unknown mode",
            "the client exits on an unknown mode",
            |update| update["currentModeId"] == "dreaming",
        ),
        mutant(
            "v1/session-config-options/102",
            "closed its output",
            "the client exits on an unknown category",
            opens_badly(|option| option["category"] == "weather"),
        ),
        mutant(
            "v1/session-config-options/103",
            "closed its output",
            "the client exits on an unknown option type",
            opens_badly(|option| option["type"] == "slider"),
        ),
        ends(
            "v1/session-config-options/104",
            "after changed config options",
            "the client exits when the agent changes options",
            is("config_option_update"),
        ),
        mutant(
            "v1/session-config-options/105",
            "closed its output",
            "the client exits on grouped values",
            opens_badly(|option| option["options"][0]["group"].is_string()),
        ),
        ends(
            "v1/slash-commands/101",
            "after commands",
            "the client exits on a command without input",
            |update| update["availableCommands"][1]["input"].is_null(),
        ),
        ends(
            "v1/slash-commands/102",
            "after changed commands",
            "the client exits on an empty list of commands",
            |update| {
                update["availableCommands"]
                    .as_array()
                    .is_some_and(Vec::is_empty)
            },
        ),
        ends(
            "v1/slash-commands/103",
            "after a command with unknown input",
            "the client exits on an unknown input type",
            |update| update["availableCommands"][0]["input"]["canvas"].is_array(),
        ),
    ]
}
