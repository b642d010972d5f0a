//! Mutants that handle config options wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::instead;
use crate::mutants::layer::{Mutant, answer, hear, mutant, refuse, update};

const SET: &str = "session/set_config_option";

/// Removes all options except one.
fn one_option(of: &mut Value) {
    if let Some(options) = of["configOptions"].as_array_mut() {
        options.truncate(1);
    }
}

/// Gives the first option an invalid value.
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
            "the agent's config options all have the same id",
            answer("session/new", |result| {
                result["configOptions"][1]["id"] = json!("mode");
            }),
        ),
        mutant(
            "v1/session-config-options/2",
            "at first, option \"mode\" has the invalid value \"lunch\"",
            "the agent's config option has an invalid initial value",
            answer("session/new", lunch),
        ),
        mutant(
            "v1/session-config-options/3",
            "category \"lunch\" is not in the specification and does not start with `_`",
            "the agent's custom category does not start with `_`",
            answer("session/new", |result| {
                result["configOptions"][0]["category"] = json!("lunch");
            }),
        ),
        mutant(
            "v1/session-config-options/9",
            "option \"tone\" is missing in the update",
            "the agent's update contains only the changed option",
            update("config_option_update", one_option),
        ),
        mutant(
            "v1/session-config-options/10",
            "in the update, option \"mode\" has the invalid value \"lunch\"",
            "the agent changes an option to an invalid value",
            update("config_option_update", lunch),
        ),
        mutant(
            "v1/session-config-options/11",
            "option \"loud\" is boolean, but the client does not support boolean options",
            "the agent sends boolean options to clients that do not support them",
            hear("initialize", |params| {
                params["clientCapabilities"]["session"] = json!({"configOptions": {"boolean": {}}});
            }),
        ),
        mutant(
            "v1/session-config-options/18",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "a loaded session has a config option with an invalid value",
            answer("session/load", lunch),
        ),
        mutant(
            "v1/session-config-options/19",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "a resumed session has a config option with an invalid value",
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
            "the agent's response contains only the option that was set",
            answer(SET, one_option),
        ),
        mutant(
            "v1/session-config-options/5",
            "was set to \"code\", but the response says \"ask\"",
            "the agent's response has the previous value",
            answer(SET, |result| {
                result["configOptions"][0]["currentValue"] = json!("ask");
            }),
        ),
        mutant(
            "v1/session-config-options/6",
            "in the response, option \"mode\" has the invalid value \"lunch\"",
            "the agent's response has an invalid value",
            answer(SET, lunch),
        ),
        mutant(
            "v1/session-config-options/7",
            "an unknown option was set",
            "the agent accepts unknown options",
            instead(
                SET,
                |params| params["configId"] == "no-such-option",
                nothing.clone(),
            ),
        ),
        mutant(
            "v1/session-config-options/8",
            "an invalid value was set",
            "the agent accepts invalid values",
            instead(SET, |params| params["value"] == "no-such-value", nothing),
        ),
        mutant(
            "v1/session-config-options/12",
            "error -32602",
            "the agent rejects boolean values",
            instead(
                SET,
                |params| params["value"].is_boolean(),
                json!({"error": {"code": -32602, "message": "no string"}}),
            ),
        ),
        mutant(
            "v1/session-config-options/13",
            "while the agent was working:",
            "the agent does not allow setting options during a turn",
            refuse(SET, -32603),
        ),
        mutant(
            "v1/session-config-options/14",
            "in one session, and changed to \"code\" in another",
            "the agent shares its options between sessions",
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
            "the agent reports modes only as a config option",
            answer("session/new", |result| {
                result.as_object_mut().unwrap().remove("modes");
            }),
        ),
        mutant(
            "v1/session-config-options/15",
            "the session has `modes`, but no config option of category `mode`",
            "the agent reports modes only as `modes`",
            answer("session/new", |result| result["configOptions"] = json!([])),
        ),
        mutant(
            "v1/session-config-options/16",
            "the mode is \"code\" in `modes`, but \"ask\" in the config option",
            "the agent reports two different current modes",
            answer("session/new", |result| {
                result["modes"]["currentModeId"] = json!("code");
            }),
        ),
        mutant(
            "v1/session-config-options/17",
            "but the config option says \"ask\"",
            "the agent does not update the config option when the mode is set",
            instead("session/set_mode", |_| true, json!({"result": {}})),
        ),
    ]
}
