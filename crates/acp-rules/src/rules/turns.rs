//! Rules about turns in version 1: a session runs one turn at a time, and the response to the prompt ends it.

use serde_json::Value;

use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::requests::RuleRequest;
use super::rule::{Findings, MessagePosition, rules};
use super::table::text_field;

rules! {
    RUNNING = "prompt-while-running" Should "prompt-turn" "A client sends the next prompt only after the previous turn has ended.";
    LATE = "update-after-turn" Should "prompt-turn" "An agent sends all updates of a turn before the response to the prompt.";
    CANCELLED = "cancelled-stop-reason" Must "prompt-turn" "A cancelled prompt gets the stop reason `cancelled`.";
    UNASKED = "cancelled-unasked" Should "prompt-turn" "Only a turn that the client has cancelled ends with `cancelled`.";
}

/// The turns of a session, with the information that the rules need about them.
#[derive(Debug, Default)]
pub(super) struct RuleTurns {
    /// The number of pending prompts.
    running_prompts: u32,
    /// The message that contained the first pending prompt.
    began_at: MessagePosition,
    is_cancelled: bool,
    /// Whether the user has answered a request since the turn began.
    has_user_answered: bool,
    /// The message that ended the last turn. `None` while a turn is running, and once a late update has been reported.
    ended_at: Option<MessagePosition>,
}

impl RuleTurns {
    pub(super) fn is_running(&self) -> bool {
        self.running_prompts > 0
    }

    pub(super) fn begin_turn(&mut self, found: &mut Findings) {
        if found.version == SchemaVersion::V2 {
            return;
        }
        if self.running_prompts > 0 {
            let text = "sends a prompt while a turn is running in the same session";
            found.report_with_earlier(&RUNNING, Side::Client, self.began_at, text);
        } else {
            self.began_at = found.position;
            self.is_cancelled = false;
            self.has_user_answered = false;
        }
        self.running_prompts += 1;
        self.ended_at = None;
    }

    pub(super) fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    pub(super) fn record_user_answer(&mut self) {
        self.has_user_answered = true;
    }

    pub(super) fn check_response(
        &mut self,
        found: &mut Findings,
        open: &RuleRequest,
        result: Result<&Value, &Value>,
    ) {
        self.running_prompts = self.running_prompts.saturating_sub(1);
        self.ended_at = (self.running_prompts == 0).then_some(found.position);
        let reason = match result {
            Ok(result) => text_field(result, "stopReason").unwrap_or_default(),
            Err(_) => "an error",
        };
        match open.turn_cancelled_at {
            // The turn may have ended before the agent could read the cancellation.
            Some(cancelled) if reason != "cancelled" && found.must_have_arrived(cancelled) => {
                let text = format!("responds to a cancelled prompt with {reason}");
                found.report_with_earlier(&CANCELLED, Side::Agent, cancelled, text);
            }
            None if reason == "cancelled"
                && open.cancelled_at.is_none()
                && !self.is_cancelled
                && !self.has_user_answered =>
            {
                let text = "ends a turn with `cancelled`, but the client did not cancel it";
                found.report(&UNASKED, Side::Agent, text);
            }
            _ => {}
        }
    }

    pub(super) fn update(&mut self, found: &mut Findings, kind: &str, replayed: bool) {
        let of_turn = matches!(
            kind,
            "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        );
        if found.version == SchemaVersion::V1
            && of_turn
            && !replayed
            && let Some(ended) = self.ended_at.take()
        {
            let text = format!("sends `{kind}` after the response to the prompt");
            found.report_with_earlier(&LATE, Side::Agent, ended, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const CANCEL_MESSAGE: &str = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    const CHUNK_UPDATE: &str = r#"{"sessionUpdate":"agent_message_chunk","content":{}}"#;

    #[test]
    fn session_must_run_one_turn_at_a_time() {
        let mut talk = ExpectedConversation::session();
        talk.prompt(1);
        talk.client_sends(
            "prompt-while-running client",
            r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
        );
        talk.agent_sends_valid(r#"{"id":1,"result":{"stopReason":"end_turn"}}"#);
        talk.agent_sends_valid(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
        talk.prompt(3);
    }

    #[test]
    fn turn_updates_must_precede_its_response() {
        let mut talk = ExpectedConversation::session();
        talk.prompt(1);
        talk.update("", CHUNK_UPDATE);
        talk.agent_sends_valid(r#"{"id":1,"result":{"stopReason":"end_turn"}}"#);
        talk.update("", r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#);
        talk.update("update-after-turn agent", CHUNK_UPDATE);
        // A late update is reported only once.
        talk.update("", CHUNK_UPDATE);
        talk.prompt(2);
        talk.update("", CHUNK_UPDATE);
    }

    #[test]
    fn cancelled_turn_must_end_as_cancelled_unless_already_over() {
        let mut talk = ExpectedConversation::session();
        talk.prompt(1);
        talk.client_sends_valid(CANCEL_MESSAGE);
        talk.agent_sends_valid(r#"{"id":1,"result":{"stopReason":"end_turn"}}"#);
        for (answer, expected) in [
            (
                r#""result":{"stopReason":"end_turn"}"#,
                "cancelled-stop-reason agent",
            ),
            (
                r#""error":{"code":-32603,"message":"no"}"#,
                "cancelled-stop-reason agent",
            ),
            (r#""result":{"stopReason":"cancelled"}"#, ""),
        ] {
            talk.prompt(2);
            talk.client_sends_valid(CANCEL_MESSAGE);
            talk.wait(3);
            talk.agent_sends(expected, &format!(r#"{{"id":2,{answer}}}"#));
        }
    }

    #[test]
    fn uncancelled_turn_must_not_end_as_cancelled() {
        let mut talk = ExpectedConversation::session();
        talk.prompt(1);
        talk.agent_sends(
            "cancelled-unasked agent",
            r#"{"id":1,"result":{"stopReason":"cancelled"}}"#,
        );
        talk.prompt(2);
        talk.client_sends_valid(r#"{"method":"$/cancel_request","params":{"requestId":2}}"#);
        talk.agent_sends_valid(r#"{"id":2,"result":{"stopReason":"cancelled"}}"#);
    }
}
