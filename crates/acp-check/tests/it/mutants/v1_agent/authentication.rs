//! Mutants that handle login and logout incorrectly.

use serde_json::{Value, json};

use super::overview::change_code;
use crate::mutants::layer::{
    LayerLine, Mutant, change_result, mutant, mutate_messages, reject_request,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/authentication/1",
            "the agent offered \"tui\", which requires a terminal, but the client does not support `auth.terminal`",
            "the agent offers all auth methods to every client",
            change_result("initialize", |result| {
                let terminal = json!({"type": "terminal", "id": "tui", "name": "Terminal"});
                result["authMethods"].as_array_mut().unwrap().push(terminal);
            }),
        ),
        mutant(
            "v1/authentication/2",
            "duplicate auth method id \"check\"",
            "the agent's auth methods all have the same id",
            change_result("initialize", |result| {
                for method in result["authMethods"].as_array_mut().unwrap() {
                    method["id"] = json!("check");
                }
            }),
        ),
        mutant(
            "v1/authentication/3",
            "the agent accepted an auth method that it did not offer",
            "the agent accepts unknown auth methods",
            mutate_messages(|passing| {
                respond_without_executing(passing, "authenticate", "acp-check-no-such-method")
            }),
        ),
        mutant(
            "v1/authentication/4",
            "`authenticate` succeeded, but `session/new` still requires a login",
            "the agent forgets that the user has logged in",
            reject_request("session/new", -32000),
        ),
        mutant(
            "v1/authentication/5",
            "opened a session without a login",
            "the agent accepts a logout, but does not log out",
            mutate_messages(|passing| respond_without_executing(passing, "logout", "")),
        ),
        mutant(
            "v1/authentication/6",
            "after `logout`, `session/new` failed with error -32603; expected -32000",
            "the agent's error does not say that a login is required",
            change_code(-32000, -32603),
        ),
    ]
}

/// Responds as if `method` had been executed, without passing the call on to the agent. Affects a login only if it uses
/// the auth method `id`.
fn respond_without_executing(
    passing: &mut crate::mutants::layer::InterceptedMessage<'_>,
    method: &str,
    id: &str,
) {
    let by_id = |message: &Value| id.is_empty() || message["params"]["methodId"] == id;
    if !passing.said
        && passing.method == method
        && let Some(message) = passing.message.take_if(|message| by_id(message))
    {
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
        passing.back.push(LayerLine::Json(answer));
    }
}
