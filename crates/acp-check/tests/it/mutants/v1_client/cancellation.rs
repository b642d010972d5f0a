//! Mutants that cancel requests wrongly.

use serde_json::json;

use crate::mutants::layer::{Mutant, call, ends_at, mutant, withhold};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/cancellation/104",
            "the client cancelled request 4711",
            "the client cancels a request that it has not sent",
            call("$/cancel_request", |params| {
                params["requestId"] = json!(4711)
            }),
        ),
        mutant(
            "v1/cancellation/101",
            "after `$/cancel_request`",
            "the client does not respond to a cancelled permission request",
            withhold("session/request_permission", true),
        ),
        mutant(
            "v1/cancellation/102",
            "after `$/cancel_request`",
            "the client does not respond to a cancelled wait for a command",
            withhold("terminal/wait_for_exit", true),
        ),
        mutant(
            "v1/cancellation/103",
            "after `$/cancel_request` for an unknown request",
            "the client exits when an unknown request is cancelled",
            ends_at(|message| message["params"]["requestId"] == 99_999),
        ),
    ]
}
