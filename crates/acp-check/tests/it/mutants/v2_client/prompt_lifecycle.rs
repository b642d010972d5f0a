//! Mutants that handle prompts or cancellation wrongly.

use serde_json::json;

use crate::mutants::changes::{fall_silent_after, fall_silent_at, replace_error};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, change_result, drop_outgoing, mutant};

/// The failure reported when the client stops responding.
const NO_RESPONSE: &str = "no response to request";

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "v2/prompt-lifecycle/101",
            "the client closed the connection when its prompt was acknowledged",
            "the client does not wait for the end of the turn",
            close_on_accepted_prompt,
        ),
        mutant(
            "v2/prompt-lifecycle/102",
            NO_RESPONSE,
            "the client stops responding if there is no stop reason",
            fall_silent_after(|message| {
                let update = &message["params"]["update"];
                update["state"] == "idle" && update["stopReason"].is_null()
            }),
        ),
        mutant(
            "v2/prompt-lifecycle/131",
            "\"optionId\":\"later\"",
            "the client allows a request of a cancelled turn",
            change_result("session/request_permission", |result| {
                result["outcome"] = json!({"outcome": "selected", "optionId": "later"});
            }),
        ),
        mutant(
            "v2/prompt-lifecycle/133",
            NO_RESPONSE,
            "the client does not respond to a cancelled request",
            drop_outgoing("session/request_permission", true),
        ),
        mutant(
            "v2/elicitation/101",
            "invalid action \"perhaps\"",
            "the client responds with an unknown action",
            change_result("elicitation/create", |result| {
                result["action"] = json!("perhaps")
            }),
        ),
        mutant(
            "v2/elicitation/102",
            "the client responded with `accept` to an unknown elicitation mode",
            "the client accepts an unknown elicitation mode",
            replace_error(
                "elicitation/create",
                || json!({"action": "accept", "content": {}}),
            ),
        ),
    ];
    let ends = [
        ("v2/prompt-lifecycle/103", "_acp-check/tired"),
        ("v2/prompt-lifecycle/104", "_acp-check/dreaming"),
        ("v2/prompt-lifecycle/105", "_acp-check/weather"),
        ("v2/prompt-lifecycle/105", "\"weather_update\""),
        ("v2/prompt-lifecycle/106", "by-id-agent_thought"),
        ("v2/prompt-lifecycle/107", "\"content\":null"),
        ("v2/prompt-lifecycle/108", "first-agent_message_chunk"),
        ("v2/prompt-lifecycle/109", "\"title\":null"),
        ("v2/prompt-lifecycle/132", "\"late\""),
        ("v2/prompt-lifecycle/134", "acp-check-nobodys"),
        ("v2/content/101", "_acp-check/smell"),
        ("v2/content/102", "\"blob\""),
        ("v2/agent-plan/101", "\"two\""),
        ("v2/agent-plan/102", "_acp-check/map"),
        ("v2/agent-plan/103", "_acp-check/someday"),
        ("v2/elicitation/103", "elicitation/complete"),
    ];
    mutants.extend(ends.map(|(check, at)| {
        mutant(
            check,
            NO_RESPONSE,
            "the client stops responding after an unexpected update",
            fall_silent_at(at),
        )
    }));
    mutants
}

fn close_on_accepted_prompt() -> Mutation {
    Box::new(|passing| {
        if !passing.said && passing.answers && passing.method == "session/prompt" {
            passing.back.push(LayerLine::End);
        }
    })
}
