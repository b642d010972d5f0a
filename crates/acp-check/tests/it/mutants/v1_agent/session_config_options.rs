//! Wrong in session config options.

use serde_json::{Value, json};

use crate::mutants::changes::instead;
use crate::mutants::layer::{Mutant, answer, hear, mutant, refuse, update};

const SET: &str = "session/set_config_option";

/// Leaves one option of those that are told.
fn one_option(of: &mut Value) {
    if let Some(options) = of["configOptions"].as_array_mut() {
        options.truncate(1);
    }
}

/// The first option has a value that it cannot have.
fn lunch(of: &mut Value) {
    of["configOptions"][0]["currentValue"] = json!("lunch");
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = told();
    mutants.extend(set());
    mutants.extend(modes());
    mutants
}

fn told() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-config-options/1",
            "duplicate config option id \"mode\"",
            "its options cannot be told apart",
            answer("session/new", |result| {
                result["configOptions"][1]["id"] = json!("mode");
            }),
        ),
        mutant(
            "v1/session-config-options/2",
            "at first, option \"mode\" has the invalid value \"lunch\"",
            "the agent has a value that there is not",
            answer("session/new", lunch),
        ),
        mutant(
            "v1/session-config-options/3",
            "category \"lunch\" is not in the specification and does not start with `_`",
            "the agent has a category of its own",
            answer("session/new", |result| {
                result["configOptions"][0]["category"] = json!("lunch");
            }),
        ),
        mutant(
            "v1/session-config-options/9",
            "option \"tone\" is missing in the update",
            "the agent tells what has changed, and no more",
            update("config_option_update", one_option),
        ),
        mutant(
            "v1/session-config-options/10",
            "in the update, option \"mode\" has the invalid value \"lunch\"",
            "the agent changes to a value that there is not",
            update("config_option_update", lunch),
        ),
        mutant(
            "v1/session-config-options/11",
            "option \"loud\" is boolean, but the client does not support boolean options",
            "the agent shows such options to every client",
            hear("initialize", |params| {
                params["clientCapabilities"]["session"] = json!({"configOptions": {"boolean": {}}});
            }),
        ),
        mutant(
            "v1/session-config-options/18",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "what it loads has a value that there is not",
            answer("session/load", lunch),
        ),
        mutant(
            "v1/session-config-options/19",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "what it resumes has a value that there is not",
            answer("session/resume", lunch),
        ),
    ]
}

fn set() -> Vec<Mutant> {
    let nothing = json!({"result": {"configOptions": []}});
    vec![
        mutant(
            "v1/session-config-options/4",
            "the response does not contain option \"tone\"",
            "the agent answers with what was set, and no more",
            answer(SET, one_option),
        ),
        mutant(
            "v1/session-config-options/5",
            "was set to \"code\", but the response says \"ask\"",
            "the agent answers with what has been",
            answer(SET, |result| {
                result["configOptions"][0]["currentValue"] = json!("ask");
            }),
        ),
        mutant(
            "v1/session-config-options/6",
            "in the response, option \"mode\" has the invalid value \"lunch\"",
            "the agent answers with a value that there is not",
            answer(SET, lunch),
        ),
        mutant(
            "v1/session-config-options/7",
            "an unknown option was set",
            "the agent takes any option",
            instead(
                SET,
                |params| params["configId"] == "no-such-option",
                nothing.clone(),
            ),
        ),
        mutant(
            "v1/session-config-options/8",
            "an invalid value was set",
            "the agent takes any value",
            instead(SET, |params| params["value"] == "no-such-value", nothing),
        ),
        mutant(
            "v1/session-config-options/12",
            "error -32602",
            "the agent takes no booleans",
            instead(
                SET,
                |params| params["value"].is_boolean(),
                json!({"error": {"code": -32602, "message": "no string"}}),
            ),
        ),
        mutant(
            "v1/session-config-options/13",
            "while the agent was working:",
            "the agent lets nothing be set",
            refuse(SET, -32603),
        ),
        mutant(
            "v1/session-config-options/14",
            "in one session, and changed to \"code\" in another",
            "all of its sessions are in one mode",
            answer(SET, |result| {
                result["configOptions"][0]["currentValue"] = json!("code");
            }),
        ),
    ]
}

fn modes() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-config-options/15",
            "the session has a config option of category `mode`, but no `modes`",
            "the agent shows modes as an option only",
            answer("session/new", |result| {
                result.as_object_mut().unwrap().remove("modes");
            }),
        ),
        mutant(
            "v1/session-config-options/15",
            "the session has `modes`, but no config option of category `mode`",
            "the agent shows modes as modes only",
            answer("session/new", |result| result["configOptions"] = json!([])),
        ),
        mutant(
            "v1/session-config-options/16",
            "the mode is \"code\" in `modes`, but \"ask\" in the config option",
            "the agent is in two modes at once",
            answer("session/new", |result| {
                result["modes"]["currentModeId"] = json!("code");
            }),
        ),
        mutant(
            "v1/session-config-options/17",
            "but the config option says \"ask\"",
            "its option does not know what its modes do",
            instead("session/set_mode", |_| true, json!({"result": {}})),
        ),
    ]
}
