//! Rules about modes and config options: a client sets only values that the agent offers.

use serde_json::Value;

use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules};
use super::table::{id_field, list_items, text_field};

rules! {
    MODE = "mode-unavailable" Must "session-modes" "A client sets only modes that are available.";
    CURRENT = "current-mode-unavailable" Should "session-modes" "The current mode of a session is one of its available modes.";
    VALUE = "config-value-unavailable" Must "session-config-options" "A client sets only config options that exist, to one of their values.";
    CURRENT_VALUE = "config-current-value" Should "session-config-options" "The current value of a config option is one of its possible values.";
}

/// The modes and config options that a session offers.
#[derive(Debug, Default)]
pub(super) struct SessionConfig {
    modes: Option<Vec<String>>,
    options: Option<Vec<ConfigOption>>,
    /// The previous options, and the message that replaced them. The client may not have received the new ones yet.
    previous: Option<(Vec<ConfigOption>, MessagePosition)>,
}

/// A config option of a session, with its possible values.
#[derive(Debug)]
struct ConfigOption {
    id: String,
    /// The ids of a select option's values. `None` for other types.
    values: Option<Vec<String>>,
}

impl ConfigOption {
    fn from_value(option: &Value) -> Option<Self> {
        let id = id_field(option, "id").or_else(|| id_field(option, "configId"))?;
        let mut values = Vec::new();
        for value in list_items(option, "options") {
            let of_group = list_items(value, "options");
            values.extend(
                of_group
                    .chain([value])
                    .filter_map(|value| text_field(value, "value")),
            );
        }
        Some(Self {
            id: id.to_owned(),
            values: (option["type"] == "select")
                .then(|| values.into_iter().map(str::to_owned).collect()),
        })
    }

    fn has_value(&self, value: &str) -> bool {
        let values = self.values.as_ref();
        values.is_none_or(|values| values.iter().any(|known| known == value))
    }
}

impl SessionConfig {
    /// Records and checks the modes and options in the response that opened a session.
    pub(super) fn apply_session_setup(&mut self, found: &mut Findings, result: &Value) {
        let modes = &result["modes"];
        if modes["availableModes"].is_array() {
            let ids = list_items(modes, "availableModes").filter_map(|mode| text_field(mode, "id"));
            self.modes = Some(ids.map(str::to_owned).collect());
            self.check_current_mode(found, modes);
        }
        self.apply_options(found, result);
    }

    /// Records and checks the config options in a result or update.
    pub(super) fn apply_options(&mut self, found: &mut Findings, what: &Value) {
        if !what["configOptions"].is_array() {
            return;
        }
        let mut options = Vec::new();
        for (option, value) in list_items(what, "configOptions")
            .filter_map(|option| Some((ConfigOption::from_value(option)?, option)))
        {
            if let Some(current) =
                id_field(value, "currentValue").filter(|value| !option.has_value(value))
            {
                let text = format!(
                    "reports value {current:?} for option {:?}, but that is not one of its possible values",
                    option.id
                );
                found.report(&CURRENT_VALUE, Side::Agent, text);
            }
            options.push(option);
        }
        self.previous = self
            .options
            .replace(options)
            .map(|before| (before, found.position));
    }

    pub(super) fn update(&mut self, found: &mut Findings, kind: &str, update: &Value) {
        match kind {
            "current_mode_update" => self.check_current_mode(found, update),
            "config_option_update" => self.apply_options(found, update),
            _ => {}
        }
    }

    fn check_current_mode(&self, found: &mut Findings, value: &Value) {
        if let (Some(modes), Some(mode)) = (&self.modes, id_field(value, "currentModeId"))
            && !modes.iter().any(|known| known == mode)
        {
            let text = format!("reports mode {mode:?}, which is not available");
            found.report(&CURRENT, Side::Agent, text);
        }
    }

    pub(super) fn set_mode(&self, found: &mut Findings, params: &Value) {
        if let (Some(modes), Some(mode)) = (&self.modes, id_field(params, "modeId"))
            && !modes.iter().any(|known| known == mode)
        {
            let text = format!("sets mode {mode:?}, which is not available");
            found.report(&MODE, Side::Client, text);
        }
    }

    pub(super) fn set_option(&self, found: &mut Findings, params: &Value) {
        let (Some(options), Some(option)) = (&self.options, id_field(params, "configId")) else {
            return;
        };
        let value = id_field(params, "value");
        let fits = |options: &[ConfigOption]| {
            let known = options.iter().find(|known| known.id == option);
            known.is_some_and(|known| value.is_none_or(|value| known.has_value(value)))
        };
        let before = self.previous.as_ref();
        let crossed =
            before.is_some_and(|(before, until)| !found.must_have_arrived(*until) && fits(before));
        if !fits(options) && !crossed {
            let value = &params["value"];
            let text = format!(
                "sets option {option:?} to {value}, but that option or value does not exist"
            );
            found.report(&VALUE, Side::Client, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    fn session_with_setup(setup: &str, expected: &str) -> ExpectedConversation {
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/new", "{}");
        talk.agent_sends(
            expected,
            &format!(r#"{{"id":1,"result":{{"sessionId":"s",{setup}}}}}"#),
        );
        talk
    }

    #[test]
    fn mode_must_be_available() {
        let modes =
            r#""modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"code"}]}"#;
        session_with_setup(
            &modes.replace(":\"ask\",", ":\"x\","),
            "current-mode-unavailable agent",
        );
        let mut talk = session_with_setup(modes, "");
        talk.client_requests(
            2,
            "session/set_mode",
            r#"{"sessionId":"s","modeId":"code"}"#,
        );
        talk.client_sends(
            "mode-unavailable client",
            r#"{"id":3,"method":"session/set_mode","params":{"sessionId":"s","modeId":"fly"}}"#,
        );
        talk.update(
            "",
            r#"{"sessionUpdate":"current_mode_update","currentModeId":"code"}"#,
        );
        talk.update(
            "current-mode-unavailable agent",
            r#"{"sessionUpdate":"current_mode_update","currentModeId":"fly"}"#,
        );
    }

    #[test]
    fn value_must_be_offered_by_its_option() {
        let option = r#""configOptions":[{"id":"model","type":"select","currentValue":"a","options":[
            {"value":"a"},{"group":"g","options":[{"value":"b"}]}]}]"#;
        session_with_setup(
            &option.replace(":\"a\",\"o", ":\"x\",\"o"),
            "config-current-value agent",
        );
        let mut talk = session_with_setup(option, "");
        let set = |id: &str, value: &str| {
            format!(
                r#"{{"id":9,"method":"session/set_config_option","params":{{"sessionId":"s","configId":"{id}","value":"{value}"}}}}"#
            )
        };
        talk.client_sends("config-value-unavailable client", &set("model", "c"));
        talk.agent_sends_valid(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.client_sends("config-value-unavailable client", &set("mood", "a"));
        talk.agent_sends_valid(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.client_sends_valid(&set("model", "b"));
        talk.agent_sends_valid(r#"{"id":9,"result":{"configOptions":[]}}"#);
        // The client may not know yet that the option was removed.
        talk.client_sends_valid(&set("model", "b"));
        talk.agent_sends_valid(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.wait(2);
        talk.client_sends("config-value-unavailable client", &set("model", "b"));
    }
}
