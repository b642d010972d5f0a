//! Mutants that cancel requests incorrectly.

use serde_json::json;

use crate::mutants::layer::{Mutant, change_call, drop_outgoing, end_when, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/cancellation/104",
            "the client cancelled request 4711",
            "the client cancels a request that it has not sent",
            change_call("$/cancel_request", |params| {
                params["requestId"] = json!(4711)
            }),
        ),
        mutant(
            "v1/cancellation/101",
            "after `$/cancel_request`",
            "the client does not respond to a cancelled permission request",
            drop_outgoing("session/request_permission", true),
        ),
        mutant(
            "v1/cancellation/102",
            "after `$/cancel_request`",
            "the client does not respond to a cancelled wait for a command",
            drop_outgoing("terminal/wait_for_exit", true),
        ),
        mutant(
            "v1/cancellation/103",
            "after `$/cancel_request` for an unknown request",
            "the client exits when an unknown request is cancelled",
            end_when(|message| message["params"]["requestId"] == 99_999),
        ),
    ]
}
