//! Rules about URL elicitations, which are completed by a notification.

use serde_json::Value;

use crate::side::Side;

use super::rule::{Findings, rules};
use super::table::{BoundedTable, id};

rules! {
    UNKNOWN = "elicitation-unknown" Should "elicitation" "An agent completes only elicitations it created.";
}

/// The maximum number of elicitations to remember.
const MAX_ELICITATIONS: usize = 1024;

/// The URL elicitations that the agent has created, by id.
#[derive(Debug)]
pub(super) struct Elicitations(BoundedTable<()>);

impl Elicitations {
    pub(super) fn new() -> Self {
        Self(BoundedTable::of(MAX_ELICITATIONS))
    }

    pub(super) fn create(&mut self, params: &Value) {
        if let Some(id) = id(params, "elicitationId") {
            self.0.insert(id, ());
        }
    }

    pub(super) fn complete(&mut self, found: &mut Findings, params: &Value) {
        if let Some(id) = id(params, "elicitationId").filter(|id| self.0.is_new(id)) {
            let text = format!("completes elicitation {id:?}, which it did not create");
            found.add(&UNKNOWN, Side::Agent, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    #[test]
    fn what_is_completed_was_created() {
        let mut talk = ExpectedConversation::with(r#"{"elicitation":{"url":{}}}"#, "{}");
        let complete = r#"{"method":"elicitation/complete","params":{"elicitationId":"e"}}"#;
        talk.says("elicitation-unknown agent", complete);
        talk.asks(
            1,
            "elicitation/create",
            r#"{"mode":"url","elicitationId":"e","message":"a","url":"https://a/"}"#,
        );
        talk.keeps(complete);
    }
}
