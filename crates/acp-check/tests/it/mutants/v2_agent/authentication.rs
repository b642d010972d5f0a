//! Mutants that handle authentication or elicitation wrongly.

use serde_json::json;

use crate::mutants::changes::duplicate_first;
use crate::mutants::layer::{Mutant, change_call, change_result, mutant, reject_request};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/authentication/1",
            "does not support `auth/login`",
            "the agent offers auth methods, but does not support `auth/login`",
            reject_request("auth/login", -32601),
        ),
        mutant(
            "v2/authentication/2",
            "does not support `auth/logout`",
            "the agent does not support `auth/logout`",
            reject_request("auth/logout", -32601),
        ),
        mutant(
            "v2/authentication/3",
            "duplicate auth method id",
            "the agent offers two auth methods with the same id",
            change_result("initialize", |result| {
                duplicate_first(&mut result["authMethods"])
            }),
        ),
        mutant(
            "v2/authentication/4",
            "a `terminal` auth method was offered to a client that does not support `auth.terminal`",
            "the agent offers a `terminal` auth method to every client",
            change_result("initialize", |result| {
                let method = json!({"type": "terminal", "methodId": "tty", "name": "Terminal"});
                result["authMethods"].as_array_mut().unwrap().push(method);
            }),
        ),
        mutant(
            "v2/authentication/5",
            "contains \"CHECKED\" twice",
            "the agent sets an environment variable twice",
            change_result("initialize", |result| {
                duplicate_first(&mut result["authMethods"][1]["env"])
            }),
        ),
        mutant(
            "v2/elicitation/1",
            "the client supports only `elicitation.form`, but the agent used mode \"url\"",
            "the agent sends a URL to a client that supports only forms",
            change_call("elicitation/create", |params| params["mode"] = json!("url")),
        ),
        mutant(
            "v2/elicitation/2",
            "the client supports only `elicitation.url`, but the agent used mode \"form\"",
            "the agent sends a form to a client that supports only URLs",
            change_call("elicitation/create", |params| {
                params["mode"] = json!("form")
            }),
        ),
        mutant(
            "v2/elicitation/3",
            "field \"greeting\" of a form has no choices",
            "the agent's form has a field without choices",
            change_call("elicitation/create", |params| {
                params["requestedSchema"]["properties"]["greeting"]["enum"] = json!([]);
            }),
        ),
        mutant(
            "v2/elicitation/4",
            "the form requires \"nobody\"",
            "the agent's form requires a field that it does not have",
            change_call("elicitation/create", |params| {
                params["requestedSchema"]["required"] = json!(["nobody"]);
            }),
        ),
    ]
}
