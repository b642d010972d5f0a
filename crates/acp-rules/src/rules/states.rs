//! Rules about session states in version 2: running, waiting for the user, or idle.

use serde_json::Value;

use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules};
use super::table::text_field;

rules! {
    IDLE = "idle-twice" Should "prompt-lifecycle" "In version 2, a turn ends with exactly one `idle`.";
    REASON = "idle-without-reason" Should "prompt-lifecycle" "An `idle` that ends a turn has a `stopReason`.";
    ACTION = "requires-action-while-idle" Should "prompt-lifecycle" "An agent reports `requires_action` only while a turn is running.";
    PERMISSION = "permission-while-running" Should "prompt-lifecycle" "An agent that is waiting for permission reports `requires_action`.";
    NEVER = "turn-without-end" Should "prompt-lifecycle" "In version 2, every turn ends with `idle`.";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateKind {
    Running,
    RequiresAction,
    Idle,
}

/// The last reported state of a session, and the prompts in progress.
#[derive(Debug, Default)]
pub(super) struct SessionStates {
    state: Option<(StateKind, MessagePosition)>,
    /// The number of prompts whose turns have not ended.
    prompts: u32,
}

impl SessionStates {
    pub(super) fn begin_turn(&mut self) {
        self.prompts += 1;
    }

    /// Records that a prompt failed and therefore started no turn.
    pub(super) fn fail_prompt(&mut self) {
        self.prompts = self.prompts.saturating_sub(1);
    }

    pub(super) fn update(&mut self, found: &mut Findings, kind: &str, update: &Value) {
        if kind != "state_update" {
            return;
        }
        let state = match text_field(update, "state") {
            Some("running") => StateKind::Running,
            Some("requires_action") => StateKind::RequiresAction,
            Some("idle") => StateKind::Idle,
            _ => return,
        };
        match (self.state, state) {
            (Some((StateKind::Idle, before)), StateKind::Idle) if self.prompts == 0 => {
                let text = "reports `idle` again, although no turn ran in between";
                found.report_with_earlier(&IDLE, Side::Agent, before, text);
            }
            (Some((StateKind::Running | StateKind::RequiresAction, _)), StateKind::Idle)
                if update["stopReason"].is_null() =>
            {
                let text = "reports `idle` at the end of a turn without a `stopReason`";
                found.report(&REASON, Side::Agent, text);
            }
            (Some((StateKind::Idle, before)), StateKind::RequiresAction) if self.prompts == 0 => {
                let text = "reports `requires_action` while idle";
                found.report_with_earlier(&ACTION, Side::Agent, before, text);
            }
            _ => {}
        }
        if state == StateKind::Idle {
            self.prompts = self.prompts.saturating_sub(1);
        }
        self.state = Some((state, found.position));
    }

    /// Checks the reported state when the agent requests permission.
    pub(super) fn check_permission(&mut self, found: &mut Findings) {
        // Background work can send permission requests while the agent is idle.
        if found.version == SchemaVersion::V2
            && let Some((StateKind::Running, since)) = self.state
        {
            let text = "requests permission while its reported state is `running`";
            found.report_with_earlier(&PERMISSION, Side::Agent, since, text);
        }
    }

    /// Reports a turn left unfinished when the agent closes its output.
    pub(super) fn agent_closed(&mut self, found: &mut Findings) {
        if let Some((StateKind::Running | StateKind::RequiresAction, since)) = self.state {
            let text = "closed its output without reporting the end of its turn";
            found.report_earlier(&NEVER, Side::Agent, since, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const RUNNING_UPDATE: &str = r#"{"sessionUpdate":"state_update","state":"running"}"#;
    const REQUIRES_ACTION_UPDATE: &str =
        r#"{"sessionUpdate":"state_update","state":"requires_action"}"#;
    const IDLE_UPDATE: &str =
        r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#;
    const PERMISSION_PARAMS: &str =
        r#"{"sessionId":"s","title":"a","options":[{"optionId":"yes"}]}"#;

    fn conversation_with_prompt() -> ExpectedConversation {
        let mut talk = ExpectedConversation::session_v2();
        talk.prompt(1);
        talk.agent_sends_valid(r#"{"id":1,"result":{}}"#);
        talk.update("", RUNNING_UPDATE);
        talk
    }

    #[test]
    fn turn_becomes_idle_only_once() {
        let mut talk = conversation_with_prompt();
        talk.update("", REQUIRES_ACTION_UPDATE);
        talk.agent_requests("p", "session/request_permission", PERMISSION_PARAMS);
        talk.update("", RUNNING_UPDATE);
        talk.update("", IDLE_UPDATE);
        talk.update("idle-twice agent", IDLE_UPDATE);
        talk.update("requires-action-while-idle agent", REQUIRES_ACTION_UPDATE);
    }

    #[test]
    fn idle_update_must_have_a_stop_reason() {
        conversation_with_prompt().update(
            "idle-without-reason agent",
            r#"{"sessionUpdate":"state_update","state":"idle"}"#,
        );
        // The session is idle from the start.
        ExpectedConversation::session_v2()
            .update("", r#"{"sessionUpdate":"state_update","state":"idle"}"#);
    }

    #[test]
    fn permission_request_requires_the_matching_state() {
        conversation_with_prompt().agent_sends(
            "permission-while-running agent",
            &format!(
                r#"{{"id":"p","method":"session/request_permission","params":{PERMISSION_PARAMS}}}"#
            ),
        );
    }

    #[test]
    fn turn_must_end_before_the_agent_exits() {
        conversation_with_prompt().end_agent_first("turn-without-end agent");
        let mut talk = conversation_with_prompt();
        talk.update("", IDLE_UPDATE);
        talk.end_agent_first("");
    }
}
