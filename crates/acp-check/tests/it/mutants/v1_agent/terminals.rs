//! Wrong in using the client's terminals.

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
            "the agent runs commands in every client",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["terminal"] = json!(true);
            }),
        ),
        mutant(
            "v1/terminals/2",
            "the turn ended, but terminal",
            "the agent keeps its terminals",
            intercept_request("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/3",
            "the turn was cancelled, but terminal",
            "the agent keeps its terminals when it is cancelled",
            intercept_request("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/4",
            "`terminal/output` uses terminal",
            "the agent asks what a terminal has printed that is gone",
            call_output_after_release(),
        ),
        mutant(
            "v1/terminals/5",
            "which the client did not create",
            "the agent asks for another's output",
            change_call("terminal/output", |params| {
                params["terminalId"] = json!("another")
            }),
        ),
        mutant(
            "v1/terminals/6",
            "the working directory \"project\" is not an absolute path",
            "the agent says where to run by a name",
            change_call("terminal/create", |params| params["cwd"] = json!("project")),
        ),
        mutant(
            "v1/terminals/7",
            "after a command that failed to start",
            "the agent does not get over an unknown command",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/terminals/8",
            "after a command that could not be waited for",
            "the agent does not get over a command that it lost",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/terminals/9",
            "error -32603",
            "the agent wants an exit code",
            fail_after_success("session/prompt"),
        ),
        mutant(
            "v1/terminals/10",
            "error -32603",
            "the agent wants all of the output",
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
