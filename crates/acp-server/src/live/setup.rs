//! A session's modes, models and config options.
//!
//! The agent reports them when it opens a session, and later reports changes. A client that attaches later must get the
//! current state.

use serde_json::{Map, Value};

/// What the agent has said about a session when it opened it, with all later changes.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveSetup(Map<String, Value>);

impl LiveSetup {
    /// Reads the result of `session/new` or `session/load`.
    pub(super) fn from_result(result: &str) -> Self {
        let mut members: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
        members.remove("sessionId");
        Self(members)
    }

    /// Returns the result for a client that loads the session.
    pub(super) fn to_result(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(super) fn set_mode(&mut self, mode: Value) {
        self.set_current("modes", "currentModeId", mode);
    }

    pub(super) fn set_model(&mut self, model: Value) {
        self.set_current("models", "currentModelId", model);
    }

    pub(super) fn set_config_options(&mut self, options: Value) {
        self.0.insert("configOptions".to_owned(), options);
    }

    fn set_current(&mut self, of: &str, member: &str, value: Value) {
        if let Some(Value::Object(state)) = self.0.get_mut(of) {
            state.insert(member.to_owned(), value);
        }
    }
}
