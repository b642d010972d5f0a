//! Mutants that handle config options or plans wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{duplicate_first, set_field};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, change_result, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = plan_mutants();
    mutants.extend(config_option_mutants());
    mutants
}

fn config_option_mutants() -> Vec<Mutant> {
    let answered = "session/set_config_option";
    vec![
        mutant(
            "v2/session-config-options/1",
            "duplicate config option id",
            "the agent has two options with the same id",
            change_result("session/new", |result| {
                duplicate_first(&mut result["configOptions"])
            }),
        ),
        mutant(
            "v2/session-config-options/2",
            "duplicate value \"ask\"",
            "the agent's option has the same value twice",
            change_result("session/new", |result| {
                duplicate_first(&mut result["configOptions"][0]["options"])
            }),
        ),
        mutant(
            "v2/session-config-options/3",
            "config option \"mode\" has the invalid value \"nothing\"",
            "the agent's option has an invalid value",
            change_result("session/new", |result| {
                result["configOptions"][0]["currentValue"] = json!("nothing");
            }),
        ),
        mutant(
            "v2/session-config-options/4",
            "is missing from the response",
            "the agent's response contains only the option that was set",
            change_result(answered, |result| {
                result["configOptions"].as_array_mut().unwrap().truncate(1)
            }),
        ),
        mutant(
            "v2/session-config-options/5",
            "was set to \"code\", but is \"ask\" in the response",
            "the agent's response has the previous value",
            change_result(answered, |result| {
                result["configOptions"][0]["currentValue"] = json!("ask")
            }),
        ),
        mutant(
            "v2/session-config-options/6",
            "was set to true, but is false in the response",
            "the agent does not turn on a boolean option",
            change_result(answered, |result| {
                for option in result["configOptions"].as_array_mut().unwrap() {
                    if option["type"] == "boolean" {
                        option["currentValue"] = json!(false);
                    }
                }
            }),
        ),
        mutant(
            "v2/session-config-options/7",
            "option \"mode\" in one session changed it in another",
            "the agent shares its options between sessions",
            report_to_all_sessions,
        ),
    ]
}

/// Reports each config option change in every session, instead of only the session where it was made.
fn report_to_all_sessions() -> Mutation {
    let mut sessions: Vec<Value> = Vec::new();
    Box::new(move |passing| {
        let Some(message) = passing.message else {
            return;
        };
        if passing.said && passing.answers && passing.method == "session/new" {
            sessions.push(message["result"]["sessionId"].clone());
        }
        if passing.said && passing.answers && passing.method == "session/set_config_option" {
            for session in &sessions {
                let options = &message["result"]["configOptions"];
                let update =
                    json!({"sessionUpdate": "config_option_update", "configOptions": options});
                let params = json!({"sessionId": session, "update": update});
                passing.then.push(LayerLine::Json(
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
                ));
            }
        }
    })
}

fn plan_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/agent-plan/1",
            "has no `planId`",
            "the agent's plans have no ids",
            change_update("plan_update", |update| {
                set_field(&mut update["plan"], "planId", None)
            }),
        ),
        mutant(
            "v2/agent-plan/2",
            "unknown plan type \"map\"; custom names must start with `_`",
            "the agent's custom plan type does not start with `_`",
            change_update("plan_update", |update| {
                update["plan"]["type"] = json!("map")
            }),
        ),
        mutant(
            "v2/agent-plan/3",
            "unknown priority \"someday\"; custom names must start with `_`",
            "the agent's custom priority does not start with `_`",
            change_update("plan_update", |update| {
                update["plan"]["entries"][0]["priority"] = json!("someday");
            }),
        ),
        mutant(
            "v2/agent-plan/4",
            "unknown status \"asleep\"; custom names must start with `_`",
            "the agent's custom status does not start with `_`",
            change_update("plan_update", |update| {
                update["plan"]["entries"][0]["status"] = json!("asleep");
            }),
        ),
    ]
}
