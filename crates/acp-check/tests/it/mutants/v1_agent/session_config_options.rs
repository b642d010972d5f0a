//! Mutants that mishandle config options.

use serde_json::{Value, json};

use crate::mutants::changes::respond_instead;
use crate::mutants::layer::{
    Mutant, change_incoming, change_result, change_update, mutant, reject_request,
};

const SET_METHOD: &str = "session/set_config_option";

/// Removes all options except one.
fn keep_one_option(of: &mut Value) {
    if let Some(options) = of["configOptions"].as_array_mut() {
        options.truncate(1);
    }
}

/// Sets the first config option to an invalid value.
fn set_invalid_option_value(of: &mut Value) {
    of["configOptions"][0]["currentValue"] = json!("lunch");
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = reported_option_mutants();
    mutants.extend(set_option_mutants());
    mutants.extend(mode_mutants());
    mutants
}

fn reported_option_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-config-options/1",
            "duplicate config option id \"mode\"",
            "the agent's config options all have the same id",
            change_result("session/new", |result| {
                result["configOptions"][1]["id"] = json!("mode");
            }),
        ),
        mutant(
            "v1/session-config-options/2",
            "at first, option \"mode\" has the invalid value \"lunch\"",
            "the agent's config option has an invalid initial value",
            change_result("session/new", set_invalid_option_value),
        ),
        mutant(
            "v1/session-config-options/3",
            "category \"lunch\" is not in the specification and does not start with `_`",
            "the agent's custom category does not start with `_`",
            change_result("session/new", |result| {
                result["configOptions"][0]["category"] = json!("lunch");
            }),
        ),
        mutant(
            "v1/session-config-options/9",
            "option \"tone\" is missing from the update",
            "the agent's update contains only the changed option",
            change_update("config_option_update", keep_one_option),
        ),
        mutant(
            "v1/session-config-options/10",
            "in the update, option \"mode\" has the invalid value \"lunch\"",
            "the agent changes an option to an invalid value",
            change_update("config_option_update", set_invalid_option_value),
        ),
        mutant(
            "v1/session-config-options/11",
            "option \"loud\" is boolean, but the client does not support boolean options",
            "the agent sends boolean options to clients that do not support them",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["session"] = json!({"configOptions": {"boolean": {}}});
            }),
        ),
        mutant(
            "v1/session-config-options/18",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "a loaded session has a config option with an invalid value",
            change_result("session/load", set_invalid_option_value),
        ),
        mutant(
            "v1/session-config-options/19",
            "after the session was opened again, option \"mode\" has the invalid value \"lunch\"",
            "a resumed session has a config option with an invalid value",
            change_result("session/resume", set_invalid_option_value),
        ),
    ]
}

fn set_option_mutants() -> Vec<Mutant> {
    let nothing = json!({"result": {"configOptions": []}});
    vec![
        mutant(
            "v1/session-config-options/4",
            "the response does not contain option \"tone\"",
            "the agent's response contains only the option that was set",
            change_result(SET_METHOD, keep_one_option),
        ),
        mutant(
            "v1/session-config-options/5",
            "was set to \"code\", but the response contains \"ask\"",
            "the agent's response has the previous value",
            change_result(SET_METHOD, |result| {
                result["configOptions"][0]["currentValue"] = json!("ask");
            }),
        ),
        mutant(
            "v1/session-config-options/6",
            "in the response, option \"mode\" has the invalid value \"lunch\"",
            "the agent's response has an invalid value",
            change_result(SET_METHOD, set_invalid_option_value),
        ),
        mutant(
            "v1/session-config-options/7",
            "an unknown option was set",
            "the agent accepts unknown options",
            respond_instead(
                SET_METHOD,
                |params| params["configId"] == "no-such-option",
                nothing.clone(),
            ),
        ),
        mutant(
            "v1/session-config-options/8",
            "an invalid value was set",
            "the agent accepts invalid values",
            respond_instead(
                SET_METHOD,
                |params| params["value"] == "no-such-value",
                nothing,
            ),
        ),
        mutant(
            "v1/session-config-options/12",
            "error -32602",
            "the agent rejects boolean values",
            respond_instead(
                SET_METHOD,
                |params| params["value"].is_boolean(),
                json!({"error": {"code": -32602, "message": "no string"}}),
            ),
        ),
        mutant(
            "v1/session-config-options/13",
            "while the agent was working:",
            "the agent does not allow setting options during a turn",
            reject_request(SET_METHOD, -32603),
        ),
        mutant(
            "v1/session-config-options/14",
            "in one session changed it to \"code\" in another",
            "the agent shares its options between sessions",
            change_result(SET_METHOD, |result| {
                result["configOptions"][0]["currentValue"] = json!("code");
            }),
        ),
    ]
}

fn mode_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-config-options/15",
            "the session has a config option of category `mode`, but no `modes`",
            "the agent reports modes only as a config option",
            change_result("session/new", |result| {
                result.as_object_mut().unwrap().remove("modes");
            }),
        ),
        mutant(
            "v1/session-config-options/15",
            "the session has `modes`, but no config option of category `mode`",
            "the agent reports modes only as `modes`",
            change_result("session/new", |result| result["configOptions"] = json!([])),
        ),
        mutant(
            "v1/session-config-options/16",
            "the mode is \"code\" in `modes`, but \"ask\" in the config option",
            "the agent reports two different current modes",
            change_result("session/new", |result| {
                result["modes"]["currentModeId"] = json!("code");
            }),
        ),
        mutant(
            "v1/session-config-options/17",
            "but the value of the config option is \"ask\"",
            "the agent does not update the config option when the mode is set",
            respond_instead("session/set_mode", |_| true, json!({"result": {}})),
        ),
    ]
}
