//! Rules about modes and config options: a client sets only values that the agent offers.

use serde_json::Value;

use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules};
use super::table::{id, items, text};

rules! {
    MODE = "mode-unavailable" Must "session-modes" "A client sets a mode that is available.";
    CURRENT = "current-mode-unavailable" Should "session-modes" "The current mode is one of the available modes.";
    VALUE = "config-value-unavailable" Must "session-config-options" "A client sets an existing config option to one of its values.";
    CURRENT_VALUE = "config-current-value" Should "session-config-options" "The current value of an option is one of its values.";
}

/// The modes and config options that a session offers.
#[derive(Debug, Default)]
pub(super) struct SessionConfig {
    modes: Option<Vec<String>>,
    options: Option<Vec<ConfigOption>>,
    /// The previous options, and when they were replaced. The client may not have received the new ones yet.
    previous: Option<(Vec<ConfigOption>, MessagePosition)>,
}

/// A config option of a session, with its possible values.
#[derive(Debug)]
struct ConfigOption {
    id: String,
    /// The values of a select option; `None` for other types.
    values: Option<Vec<String>>,
}

impl ConfigOption {
    fn read(option: &Value) -> Option<Self> {
        let id = id(option, "id").or_else(|| id(option, "configId"))?;
        let mut values = Vec::new();
        for value in items(option, "options") {
            let of_group = items(value, "options");
            values.extend(
                of_group
                    .chain([value])
                    .filter_map(|value| text(value, "value")),
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
    /// Records the modes and options in the response that opened a session.
    pub(super) fn apply_session_setup(&mut self, found: &mut Findings, result: &Value) {
        let modes = &result["modes"];
        if modes["availableModes"].is_array() {
            let ids = items(modes, "availableModes").filter_map(|mode| text(mode, "id"));
            self.modes = Some(ids.map(str::to_owned).collect());
            self.check_current_mode(found, modes);
        }
        self.apply_options(found, result);
    }

    /// Records the config options in a result or update.
    pub(super) fn apply_options(&mut self, found: &mut Findings, what: &Value) {
        if !what["configOptions"].is_array() {
            return;
        }
        let mut options = Vec::new();
        for (option, value) in items(what, "configOptions")
            .filter_map(|option| Some((ConfigOption::read(option)?, option)))
        {
            if let Some(current) =
                id(value, "currentValue").filter(|value| !option.has_value(value))
            {
                let text = format!(
                    "reports option {:?} as {current:?}, which is not one of its values",
                    option.id
                );
                found.add(&CURRENT_VALUE, Side::Agent, text);
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
        if let (Some(modes), Some(mode)) = (&self.modes, id(value, "currentModeId"))
            && !modes.iter().any(|known| known == mode)
        {
            let text = format!("reports mode {mode:?}, which is not available");
            found.add(&CURRENT, Side::Agent, text);
        }
    }

    pub(super) fn set_mode(&self, found: &mut Findings, params: &Value) {
        if let (Some(modes), Some(mode)) = (&self.modes, id(params, "modeId"))
            && !modes.iter().any(|known| known == mode)
        {
            let text = format!("sets mode {mode:?}, which is not available");
            found.add(&MODE, Side::Client, text);
        }
    }

    pub(super) fn set_option(&self, found: &mut Findings, params: &Value) {
        let (Some(options), Some(option)) = (&self.options, id(params, "configId")) else {
            return;
        };
        let value = id(params, "value");
        let fits = |options: &[ConfigOption]| {
            let known = options.iter().find(|known| known.id == option);
            known.is_some_and(|known| value.is_none_or(|value| known.has_value(value)))
        };
        let before = self.previous.as_ref();
        let crossed =
            before.is_some_and(|(before, until)| !found.has_arrived(*until) && fits(before));
        if !fits(options) && !crossed {
            let value = &params["value"];
            let text = format!(
                "sets option {option:?} to {value}, but that option or value does not exist"
            );
            found.add(&VALUE, Side::Client, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    fn opened(setup: &str, expected: &str) -> ExpectedConversation {
        let mut talk = ExpectedConversation::v1();
        talk.ask(1, "session/new", "{}");
        talk.says(
            expected,
            &format!(r#"{{"id":1,"result":{{"sessionId":"s",{setup}}}}}"#),
        );
        talk
    }

    #[test]
    fn modes_are_those_that_are_available() {
        let modes =
            r#""modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"code"}]}"#;
        opened(
            &modes.replace(":\"ask\",", ":\"x\","),
            "current-mode-unavailable agent",
        );
        let mut talk = opened(modes, "");
        talk.ask(
            2,
            "session/set_mode",
            r#"{"sessionId":"s","modeId":"code"}"#,
        );
        talk.hears(
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
    fn values_are_among_those_of_the_option() {
        let option = r#""configOptions":[{"id":"model","type":"select","currentValue":"a","options":[
            {"value":"a"},{"group":"g","options":[{"value":"b"}]}]}]"#;
        opened(
            &option.replace(":\"a\",\"o", ":\"x\",\"o"),
            "config-current-value agent",
        );
        let mut talk = opened(option, "");
        let set = |id: &str, value: &str| {
            format!(
                r#"{{"id":9,"method":"session/set_config_option","params":{{"sessionId":"s","configId":"{id}","value":"{value}"}}}}"#
            )
        };
        talk.hears("config-value-unavailable client", &set("model", "c"));
        talk.keeps(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.hears("config-value-unavailable client", &set("mood", "a"));
        talk.keeps(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.keeps_hearing(&set("model", "b"));
        talk.keeps(r#"{"id":9,"result":{"configOptions":[]}}"#);
        // The client may not know yet that the option was removed.
        talk.keeps_hearing(&set("model", "b"));
        talk.keeps(r#"{"id":9,"error":{"code":-32602,"message":"no"}}"#);
        talk.waits(2);
        talk.hears("config-value-unavailable client", &set("model", "b"));
    }
}
