//! Mutants that archive sessions incorrectly.

use serde_json::json;

use crate::mutants::changes::{
    change_error_code, reject_after, result_line, set_field, succeed_without_effect_if,
};
use crate::mutants::layer::{
    LayerLine, Mutant, apply_both, change_incoming, change_result, mutant, mutate_messages,
    reject_from_nth, reject_request,
};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = list_mutants();
    mutants.extend(change_mutants(version));
    mutants
}

fn list_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "session-archive/1",
            "`session/list` failed with error -32601",
            "the agent supports archiving, but not listing",
            reject_request("session/list", -32601),
        ),
        mutant(
            "session-archive/2",
            "is still listed without a filter",
            "the agent accepts a request to archive a session, but does not archive it",
            succeed_without_effect_if("session/archive", |_| true),
        ),
        mutant(
            "session-archive/2",
            "is still listed with \"exclude\"",
            "the agent includes sessions that it should exclude",
            change_incoming("session/list", |params| {
                if params["archived"] == "exclude" {
                    params["archived"] = json!("include");
                }
            }),
        ),
        mutant(
            "session-archive/3",
            "the list that includes archived sessions is missing the archived session",
            "the agent ignores the archive filter",
            change_incoming("session/list", |params| set_field(params, "archived", None)),
        ),
        mutant(
            "session-archive/3",
            "the list that includes archived sessions is missing an unarchived session",
            "the agent lists only archived sessions if they should be included",
            change_incoming("session/list", |params| {
                if params["archived"] == "include" {
                    params["archived"] = json!("only");
                }
            }),
        ),
        mutant(
            "session-archive/4",
            "with only archived sessions requested, a session that is not archived is listed",
            "the agent treats every filter as `include`",
            change_incoming("session/list", |params| {
                if params["archived"] == "only" {
                    params["archived"] = json!("include");
                }
            }),
        ),
        mutant(
            "session-archive/4",
            "with only archived sessions requested, the archived session is missing",
            "the agent ignores the archive filter",
            change_incoming("session/list", |params| set_field(params, "archived", None)),
        ),
        mutant(
            "session-archive/5",
            "is not archived, but its `archived` is null",
            "the agent does not say which sessions are archived",
            change_result("session/list", |result| {
                for info in result["sessions"].as_array_mut().into_iter().flatten() {
                    set_field(info, "archived", None);
                }
            }),
        ),
        mutant(
            "session-archive/5",
            "is archived, but its `archived` is false",
            "the agent says that no session is archived",
            change_result("session/list", |result| {
                for info in result["sessions"].as_array_mut().into_iter().flatten() {
                    info["archived"] = json!(false);
                }
            }),
        ),
        mutant(
            "session-archive/6",
            "succeeded; expected an error",
            "the agent treats an unknown filter as no filter",
            change_incoming("session/list", |params| {
                if params["archived"] == "_acp-check/some" {
                    set_field(params, "archived", None);
                }
            }),
        ),
        mutant(
            "session-archive/6",
            "failed with error -32603 (",
            "the agent uses one error code for everything",
            change_error_code("session/list", -32603),
        ),
    ]
}

fn change_mutants(version: &str) -> Vec<Mutant> {
    let goes_on = match version {
        "v1" => "the turn did not end",
        _ => "the agent continued with `agent_message_chunk`",
    };
    vec![
        mutant(
            "session-archive/7",
            "the unarchived session is not listed",
            "the agent accepts a request to unarchive a session, but does not unarchive it",
            succeed_without_effect_if("session/unarchive", |_| true),
        ),
        mutant(
            "session-archive/8",
            "failed with error -32603: no",
            "the agent deletes the history of archived sessions",
            apply_both(
                reject_after("session/archive", "session/load"),
                reject_after("session/archive", "session/resume"),
            ),
        ),
        mutant(
            "session-archive/9",
            "`session/archive` failed with error -32602: no",
            "the agent rejects archiving an archived session",
            reject_from_nth("session/archive", -32602, 2),
        ),
        mutant(
            "session-archive/10",
            "`session/unarchive` failed with error -32602: no",
            "the agent rejects unarchiving a session that is not archived",
            reject_request("session/unarchive", -32602),
        ),
        mutant(
            "session-archive/11",
            "failed with error -32602 (",
            "the agent uses one error code for everything",
            change_error_code("session/archive", -32602),
        ),
        mutant(
            "session-archive/11",
            "succeeded; expected an error",
            "the agent archives unknown sessions",
            succeed_without_effect_if("session/archive", |_| true),
        ),
        mutant(
            "session-archive/12",
            "failed with error -32602 (",
            "the agent uses one error code for everything",
            reject_request("session/unarchive", -32602),
        ),
        mutant(
            "session-archive/13",
            goes_on,
            "the agent continues the turn of an archived session",
            mutate_messages(|passing| {
                if passing.is_incoming("session/archive") {
                    let message = passing.message.take().unwrap();
                    passing.back.push(result_line(&message, json!({})));
                    let content = json!({"type": "text", "text": "two, "});
                    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "late", "content": content});
                    let params =
                        json!({"sessionId": message["params"]["sessionId"], "update": update});
                    let late =
                        json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                    passing.back.push(LayerLine::Json(late));
                }
            }),
        ),
    ]
}
