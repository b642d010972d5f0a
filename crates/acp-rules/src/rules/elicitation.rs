//! Rules about URL elicitations, which are completed by a notification.

use serde_json::Value;

use crate::side::Side;

use super::rule::{Findings, rules};
use super::table::{BoundedTable, id_field};

rules! {
    UNKNOWN = "elicitation-unknown" Should "elicitation" "An agent completes only elicitations that it created.";
}

/// The maximum number of URL elicitations to remember.
const MAX_ELICITATIONS: usize = 1024;

/// The URL elicitations that the agent has created, by id.
#[derive(Debug)]
pub(super) struct Elicitations(BoundedTable<()>);

impl Elicitations {
    pub(super) fn new() -> Self {
        Self(BoundedTable::with_capacity(MAX_ELICITATIONS))
    }

    pub(super) fn create(&mut self, params: &Value) {
        if let Some(id) = id_field(params, "elicitationId") {
            self.0.insert(id, ());
        }
    }

    pub(super) fn complete(&mut self, found: &mut Findings, params: &Value) {
        if let Some(id) = id_field(params, "elicitationId").filter(|id| self.0.is_new(id)) {
            let text = format!("completes elicitation {id:?}, which it did not create");
            found.report(&UNKNOWN, Side::Agent, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    #[test]
    fn completed_elicitation_must_have_been_created() {
        let mut talk = ExpectedConversation::with(r#"{"elicitation":{"url":{}}}"#, "{}");
        let complete = r#"{"method":"elicitation/complete","params":{"elicitationId":"e"}}"#;
        talk.agent_sends("elicitation-unknown agent", complete);
        talk.agent_requests(
            1,
            "elicitation/create",
            r#"{"mode":"url","elicitationId":"e","message":"a","url":"https://a/"}"#,
        );
        talk.agent_sends_valid(complete);
    }
}
