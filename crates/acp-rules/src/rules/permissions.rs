//! Rules about permission requests and their responses.

use serde_json::Value;

use crate::redaction::REDACTED;
use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::requests::RuleRequest;
use super::rule::{Findings, rules};
use super::table::{list_items, text_field};

rules! {
    OPTION = "option-not-offered" Must "tool-calls" "A response to a permission request selects one of its options.";
    CANCELLED = "permission-not-cancelled" Must "prompt-turn" "A client that cancels a turn responds to its pending permission requests with `cancelled`.";
    NONE = "permission-without-options" Must "tool-calls" "A permission request has at least one option.";
    TWICE = "option-id-twice" Should "tool-calls" "The options of a permission request have unique ids.";
}

pub(super) fn check_request(found: &mut Findings, params: &Value) {
    let ids: Vec<&str> = list_items(params, "options")
        .filter_map(|option| text_field(option, "optionId"))
        .collect();
    if found.version == SchemaVersion::V2 && params["options"].as_array().is_some_and(Vec::is_empty)
    {
        found.report(&NONE, Side::Agent, "requests permission without options");
    }
    let twice = ids
        .iter()
        .enumerate()
        .find(|(n, id)| ids.iter().take(*n).any(|other| other == *id));
    if let Some((_, id)) = twice.filter(|(_, id)| !id.contains(REDACTED)) {
        let text = format!("requests permission with duplicate option id {id:?}");
        found.report(&TWICE, Side::Agent, text);
    }
}

pub(super) fn check_response(
    found: &mut Findings,
    open: &RuleRequest,
    result: Result<&Value, &Value>,
) {
    let outcome = result.map(|result| &result["outcome"]);
    let said = outcome
        .ok()
        .and_then(|outcome| text_field(outcome, "outcome"));
    if let (Some("selected"), Ok(outcome)) = (said, outcome)
        && let Some(chosen) = text_field(outcome, "optionId").filter(|id| !id.contains(REDACTED))
        && !open.ids.iter().any(|id| id == chosen)
    {
        let text = format!("selects {chosen:?}, which is not one of the options");
        found.report_with_earlier(&OPTION, Side::Client, open.sent_at, text);
    }
    let Some(cancelled) = open.turn_cancelled_at else {
        return;
    };
    // When the client cancelled the turn, it may not have read the request yet.
    let pending =
        cancelled.time_us.saturating_sub(open.sent_at.time_us) >= super::rule::MAX_TRANSIT_US;
    if said != Some("cancelled") && pending && open.cancelled_at.is_none() {
        let text =
            "cancelled the turn, but did not respond to its permission request with `cancelled`";
        found.report_with_earlier(&CANCELLED, Side::Client, cancelled, text);
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const PERMISSION_PARAMS: &str = r#"{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes"},{"optionId":"no"}]}"#;

    fn conversation_with_request() -> ExpectedConversation {
        let mut talk = ExpectedConversation::session();
        talk.prompt(1);
        talk.update("", r#"{"sessionUpdate":"tool_call","toolCallId":"c"}"#);
        talk.agent_requests("p", "session/request_permission", PERMISSION_PARAMS);
        talk
    }

    #[test]
    fn selected_option_must_have_been_offered() {
        let mut talk = conversation_with_request();
        talk.client_sends(
            "option-not-offered client",
            r#"{"id":"p","result":{"outcome":{"outcome":"selected","optionId":"maybe"}}}"#,
        );
        talk.agent_requests("p", "session/request_permission", PERMISSION_PARAMS);
        talk.client_sends_valid(
            r#"{"id":"p","result":{"outcome":{"outcome":"selected","optionId":"no"}}}"#,
        );
    }

    #[test]
    fn cancelled_turn_requires_a_cancelled_outcome() {
        for (waits, answer, expected) in [
            (
                2,
                r#"{"outcome":"selected","optionId":"yes"}"#,
                "permission-not-cancelled client",
            ),
            (2, r#"{"outcome":"cancelled"}"#, ""),
            (0, r#"{"outcome":"selected","optionId":"yes"}"#, ""),
        ] {
            let mut talk = conversation_with_request();
            talk.wait(waits);
            talk.client_sends_valid(r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#);
            talk.client_sends(
                expected,
                &format!(r#"{{"id":"p","result":{{"outcome":{answer}}}}}"#),
            );
        }
    }

    #[test]
    fn options_must_exist_and_have_unique_ids() {
        let mut talk = conversation_with_request();
        talk.agent_sends("option-id-twice agent",
            r#"{"id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},
                "options":[{"optionId":"yes"},{"optionId":"yes"}]}}"#);
        let mut talk = ExpectedConversation::session_v2();
        talk.agent_sends("permission-without-options agent",
            r#"{"id":"q","method":"session/request_permission","params":{"sessionId":"s","title":"a","options":[]}}"#);
        talk.agent_requests(
            "r",
            "session/request_permission",
            r#"{"sessionId":"s","title":"a","options":[{"optionId":"yes"}]}"#,
        );
    }
}
