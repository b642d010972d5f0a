//! Mutants that misuse the client's terminals.

use serde_json::json;

use crate::mutants::changes::{fail_after_success, intercept_request, reject_after_first};
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, change_call, change_incoming, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/terminals/1",
            "the agent called `terminal/create`",
            "the agent runs commands with clients that do not support terminals",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["terminal"] = json!(true);
            }),
        ),
        mutant(
            "v1/terminals/2",
            "the turn ended, but terminal",
            "the agent does not release terminals",
            intercept_request("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/3",
            "the turn was cancelled, but terminal",
            "the agent does not release the terminals of a cancelled turn",
            intercept_request("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/4",
            "`terminal/output` uses terminal",
            "the agent uses a released terminal",
            call_output_after_release(),
        ),
        mutant(
            "v1/terminals/5",
            "which the client did not create",
            "the agent uses a terminal that it did not create",
            change_call("terminal/output", |params| {
                params["terminalId"] = json!("another")
            }),
        ),
        mutant(
            "v1/terminals/6",
            "the working directory \"project\" is not an absolute path",
            "the agent sends a relative working directory",
            change_call("terminal/create", |params| params["cwd"] = json!("project")),
        ),
        mutant(
            "v1/terminals/7",
            "after a failed `terminal/create`",
            "the agent fails after a failed `terminal/create`",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/terminals/8",
            "after a failed `terminal/wait_for_exit`",
            "the agent fails after a failed `terminal/wait_for_exit`",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/terminals/9",
            "error -32603",
            "the agent requires an exit code",
            fail_after_success("session/prompt"),
        ),
        mutant(
            "v1/terminals/10",
            "error -32603",
            "the agent requires the complete output",
            fail_after_success("session/prompt"),
        ),
    ]
}

fn call_output_after_release() -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(|passing| {
        if passing.is_outgoing("terminal/release")
            && let Some(release) = passing.message
        {
            let params = &release["params"];
            passing.then.push(LayerLine::Json(
                json!({"jsonrpc": "2.0", "id": "late", "method": "terminal/output", "params": params}),
            ));
        }
    })
}
