//! Rules about tool calls: ids are unique, calls are announced before they are updated, and statuses never go
//! backwards.

use serde_json::Value;

use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules};
use super::table::{BoundedTable, id_field, text_field};

rules! {
    UNANNOUNCED = "tool-call-unannounced" Should "tool-calls" "An agent reports a tool call before updating it or requesting permission for it.";
    TWICE = "tool-call-id-twice" Should "tool-calls" "A tool call's id is unique within its session.";
    BACKWARDS = "tool-call-status-backwards" Should "tool-calls" "A tool call's status never goes backwards.";
}

/// The maximum number of tool calls to remember for each session.
const MAX_CALLS: usize = 1024;

/// A tool call, with the information that the rules need about it.
#[derive(Debug)]
struct RuleToolCall {
    status: Option<(String, MessagePosition)>,
    announced_at: MessagePosition,
}

/// The tool calls of a session.
#[derive(Debug)]
pub(super) struct RuleToolCalls(BoundedTable<RuleToolCall>);

impl RuleToolCalls {
    pub(super) fn new() -> Self {
        Self(BoundedTable::with_capacity(MAX_CALLS))
    }

    pub(super) fn update(
        &mut self,
        found: &mut Findings,
        kind: &str,
        update: &Value,
        replayed: bool,
    ) {
        let Some(id) = id_field(update, "toolCallId") else {
            return;
        };
        match (found.version, kind) {
            (SchemaVersion::V1, "tool_call") => {
                if let Some(call) = self.0.get(id).filter(|_| !replayed) {
                    let text = format!("announces tool call {id:?} again");
                    found.report_with_earlier(&TWICE, Side::Agent, call.announced_at, text);
                }
                self.add_call(found, id);
                self.check_status(found, id, update);
            }
            (SchemaVersion::V1, "tool_call_update") => {
                self.check_known(found, id, "updates");
                self.check_status(found, id, update);
            }
            (SchemaVersion::V2, "tool_call_update") => {
                if self.0.get(id).is_none() {
                    self.add_call(found, id);
                }
                self.check_status(found, id, update);
            }
            (SchemaVersion::V2, "tool_call_content_chunk") => {
                self.check_known(found, id, "adds content to");
            }
            _ => {}
        }
    }

    /// Checks the tool call in a permission request.
    pub(super) fn check_permission(&mut self, found: &mut Findings, params: &Value) {
        let call = match found.version {
            SchemaVersion::V1 => &params["toolCall"],
            SchemaVersion::V2 => &params["subject"]["toolCall"],
        };
        let Some(id) = id_field(call, "toolCallId") else {
            return;
        };
        if found.version == SchemaVersion::V1 {
            self.check_known(found, id, "requests permission for");
        } else if self.0.get(id).is_none() {
            self.add_call(found, id);
        }
    }

    fn add_call(&mut self, found: &Findings, id: &str) {
        let call = RuleToolCall {
            status: None,
            announced_at: found.position,
        };
        self.0.insert(id, call);
    }

    fn check_known(&mut self, found: &mut Findings, id: &str, does: &str) {
        if self.0.is_new(id) {
            let text = format!("{does} tool call {id:?}, which it did not report");
            found.report(&UNANNOUNCED, Side::Agent, text);
        }
        // Remember the tool call, so that it is reported only once.
        if self.0.get(id).is_none() {
            self.add_call(found, id);
        }
    }

    fn check_status(&mut self, found: &mut Findings, id: &str, update: &Value) {
        let (Some(status), Some(call)) = (text_field(update, "status"), self.0.get_mut(id)) else {
            return;
        };
        let Some(new) = status_rank(status) else {
            return;
        };
        if let Some((before, when)) = &call.status
            && status_rank(before).is_some_and(|old| new < old || (new == old && status != before))
        {
            let text = format!("reports tool call {id:?} as `{status}` after `{before}`");
            found.report_with_earlier(&BACKWARDS, Side::Agent, *when, text);
        }
        call.status = Some((status.to_owned(), found.position));
    }
}

/// Returns the rank of a tool call's status, which must not decrease. Returns `None` for an unknown status.
fn status_rank(status: &str) -> Option<u8> {
    match status {
        "pending" => Some(0),
        "in_progress" => Some(1),
        "completed" | "failed" | "cancelled" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const TOOL_CALL: &str =
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"a","status":"pending"}"#;

    #[test]
    fn tool_call_must_be_reported_before_its_updates() {
        let mut talk = ExpectedConversation::session();
        talk.update(
            "tool-call-unannounced agent",
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c"}"#,
        );
        let mut talk = ExpectedConversation::session();
        talk.update("", TOOL_CALL);
        talk.update(
            "",
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}"#,
        );
        talk.agent_sends("tool-call-unannounced agent",
            r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"d"},"options":[]}}"#);
    }

    #[test]
    fn tool_call_ids_are_unique_except_in_replays() {
        let mut talk = ExpectedConversation::session();
        talk.update("", TOOL_CALL);
        talk.update("tool-call-id-twice agent", TOOL_CALL);
        talk.client_requests(1, "session/load", r#"{"sessionId":"s"}"#);
        talk.update("", TOOL_CALL);
    }

    #[test]
    fn tool_call_status_must_not_go_backwards() {
        let update = |status: &str| {
            format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","status":{status}}}"#)
        };
        let upsert = TOOL_CALL.replace("tool_call\"", "tool_call_update\"");
        for (mut talk, call) in [
            (ExpectedConversation::session(), TOOL_CALL),
            (ExpectedConversation::session_v2(), &*upsert),
        ] {
            talk.update("", call);
            talk.update("", &update(r#""in_progress""#));
            talk.update("tool-call-status-backwards agent", &update(r#""pending""#));
            talk.update("", &update("null"));
            talk.update("", &update(r#""completed""#));
            talk.update("tool-call-status-backwards agent", &update(r#""failed""#));
            talk.update("", &update(r#""_paused""#));
        }
    }

    #[test]
    fn version_2_chunks_must_belong_to_a_call() {
        let chunk = r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{}}"#;
        let mut talk = ExpectedConversation::session_v2();
        talk.update("tool-call-unannounced agent", chunk);
        let mut talk = ExpectedConversation::session_v2();
        talk.update(
            "",
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c"}"#,
        );
        talk.update("", chunk);
    }
}
