//! Rules about message ids in version 2.

use serde_json::Value;

use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules};
use super::table::{BoundedTable, id_field};

rules! {
    SENDER = "message-of-both-sides" Should "prompt-lifecycle" "A message id belongs to either a user message or an agent message, not both.";
}

/// The maximum number of messages to remember for each session.
const MAX_MESSAGES: usize = 1024;

/// A session's messages, by id. Each entry records whether the user sent the message, and where it first appeared.
#[derive(Debug)]
pub(super) struct SessionMessages(BoundedTable<(bool, MessagePosition)>);

impl SessionMessages {
    pub(super) fn new() -> Self {
        Self(BoundedTable::with_capacity(MAX_MESSAGES))
    }

    pub(super) fn update(&mut self, found: &mut Findings, kind: &str, update: &Value) {
        // A message and a thought of the agent can have the same id, because models produce both in one response.
        let of_user = match kind {
            "user_message" | "user_message_chunk" => true,
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                false
            }
            _ => return,
        };
        let Some(id) = id_field(update, "messageId") else {
            return;
        };
        match self.0.get(id) {
            Some((before, when)) if *before != of_user => {
                let text =
                    format!("sends `{kind}` for message {id:?}, which belongs to the other side");
                found.report_with_earlier(&SENDER, Side::Agent, *when, text);
            }
            Some(_) => {}
            None => self.0.insert(id, (of_user, found.position)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    #[test]
    fn message_id_belongs_to_one_role() {
        let mut talk = ExpectedConversation::session_v2();
        talk.update("", r#"{"sessionUpdate":"user_message","messageId":"a"}"#);
        talk.update(
            "",
            r#"{"sessionUpdate":"agent_thought_chunk","messageId":"b","content":{}}"#,
        );
        talk.update(
            "",
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{}}"#,
        );
        talk.update(
            "message-of-both-sides agent",
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{}}"#,
        );
    }
}
