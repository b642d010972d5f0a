//! Wrong in authentication.

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
            "the agent names every method to everybody",
            change_result("initialize", |result| {
                let terminal = json!({"type": "terminal", "id": "tui", "name": "Terminal"});
                result["authMethods"].as_array_mut().unwrap().push(terminal);
            }),
        ),
        mutant(
            "v1/authentication/2",
            "duplicate auth method id \"check\"",
            "all its methods have one id",
            change_result("initialize", |result| {
                for method in result["authMethods"].as_array_mut().unwrap() {
                    method["id"] = json!("check");
                }
            }),
        ),
        mutant(
            "v1/authentication/3",
            "the agent accepted an auth method it did not offer",
            "the agent logs in by any method",
            mutate_messages(|passing| {
                respond_done(passing, "authenticate", "acp-check-no-such-method")
            }),
        ),
        mutant(
            "v1/authentication/4",
            "`authenticate` succeeded, but `session/new` still requires a login",
            "the agent forgets who has logged in",
            reject_request("session/new", -32000),
        ),
        mutant(
            "v1/authentication/5",
            "opened a session without a login",
            "the agent logs out in words only",
            mutate_messages(|passing| respond_done(passing, "logout", "")),
        ),
        mutant(
            "v1/authentication/6",
            "after `logout`, `session/new` failed with error -32603; expected -32000",
            "the agent does not say that a login is wanted",
            change_code(-32000, -32603),
        ),
    ]
}

/// Says that it has done what it has not heard of: `method`, and of a login that by `id`.
fn respond_done(passing: &mut crate::mutants::layer::PassingMessage<'_>, method: &str, id: &str) {
    let by_id = |message: &Value| id.is_empty() || message["params"]["methodId"] == id;
    if !passing.said
        && passing.method == method
        && let Some(message) = passing.message.take_if(|message| by_id(message))
    {
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
        passing.back.push(LayerLine::Json(answer));
    }
}
