//! Translates config options, modes and models. Version 2 has only config options, and names two of their fields
//! differently (`configId`, `groupId`). Version 1 also has modes, and older agents have `models`.

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::json::{list_items, to_object, to_raw_value};

/// The maximum size of a session's stored options, in bytes. If an agent's options are larger, the version 1 method
/// cannot set its modes.
const MAX_STORED_BYTES: usize = 1024 * 1024;

/// Converts an option from version 1 to version 2.
pub(super) fn option_to_v2(option: RawObject) -> RawObject {
    rename_groups(option.rename("id", "configId"), "group", "groupId")
}

/// Converts an option from version 2 to version 1.
pub(super) fn option_to_v1(option: RawObject) -> RawObject {
    rename_groups(option.rename("configId", "id"), "groupId", "group")
}

fn rename_groups(mut option: RawObject, from: &str, to: &str) -> RawObject {
    let Some(options) = option.field::<Vec<RawObject>>("options") else {
        return option;
    };
    if options.iter().any(|group| group.has(from)) {
        let groups: Vec<RawObject> = options
            .into_iter()
            .map(|group| group.rename(from, to))
            .collect();
        option.set("options", to_raw_value(&groups));
    }
    option
}

fn to_objects(list: &[Box<RawValue>]) -> impl Iterator<Item = RawObject> {
    list.iter()
        .map(|item| to_object(Some(item)))
        .filter(|item| !item.is_empty())
}

fn has_option_category(option: &RawObject, category: &str) -> bool {
    option.field::<String>("category").as_deref() == Some(category)
}

/// A setting of version 1 agents that predates config options: modes or models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LegacySetting {
    Mode,
    Model,
}

impl LegacySetting {
    /// Returns the names for this setting: its category, which is also the option's id; the option's display name; the
    /// version 1 field that contains the setting; and that field's keys for the current value, the list of values, and
    /// the id of a list item.
    fn field_names(self) -> [&'static str; 6] {
        match self {
            Self::Mode => [
                "mode",
                "Mode",
                "modes",
                "currentModeId",
                "availableModes",
                "id",
            ],
            Self::Model => [
                "model",
                "Model",
                "models",
                "currentModelId",
                "availableModels",
                "modelId",
            ],
        }
    }

    pub(super) fn category(self) -> &'static str {
        self.field_names()[0]
    }

    /// Converts the setting from version 1 form to a config option.
    fn to_config_option(self, state: &RawObject) -> Option<RawObject> {
        let [category, name, _, current, available, id] = self.field_names();
        let options: Vec<RawObject> = to_objects(&list_items(state, available))
            .map(|value| value.rename(id, "value"))
            .collect();
        Some(object! {
            "configId": category,
            "name": name,
            "category": category,
            "type": "select",
            "currentValue": state.get(current)?,
            "options": options,
        })
    }
}

/// The config options of a session with a version 1 agent, in version 2 form.
#[derive(Debug, Default)]
pub(super) struct V1ConfigOptions {
    /// The agent's own options, in version 2 form.
    agent_options: Vec<RawObject>,
    /// The options that represent the agent's modes and models.
    legacy_options: Vec<(LegacySetting, RawObject)>,
}

impl V1ConfigOptions {
    /// Replaces the options, modes and models in a response with a single list of options.
    pub(super) fn rewrite_response(&mut self, result: &mut RawObject) {
        if result.has("configOptions") {
            self.set_agent_options(&list_items(result, "configOptions"));
        }
        for switch in [LegacySetting::Mode, LegacySetting::Model] {
            let state = to_object(result.take(switch.field_names()[2]).as_deref());
            if let Some(option) = switch.to_config_option(&state) {
                self.legacy_options.retain(|(known, _)| *known != switch);
                self.legacy_options.push((switch, option));
            }
        }
        result.retain(|key, _| key != "configOptions");
        let list = self.list();
        if !list.is_empty() {
            result.set("configOptions", to_raw_value(&list));
        }
        self.drop_oversized();
    }

    /// Stores the agent's own options.
    pub(super) fn set_agent_options(&mut self, options: &[Box<RawValue>]) {
        self.agent_options = to_objects(options).map(option_to_v2).collect();
    }

    /// Drops the stored options if they are too large. Call this after sending them to the client.
    pub(super) fn drop_oversized(&mut self) {
        clear_if_oversized(&mut self.agent_options);
        self.legacy_options
            .retain(|(_, option)| option_size(option) <= MAX_STORED_BYTES);
    }

    /// Returns all options: first the agent's own, then those for its modes and models.
    pub(super) fn list(&self) -> Vec<RawObject> {
        let mut list = self.agent_options.clone();
        for (switch, option) in &self.legacy_options {
            if self.is_shown(*switch) {
                list.push(self.set_unused_id(*switch, option));
            }
        }
        list
    }

    /// Returns `true` if the setting appears as an option, because the agent itself has none of that category.
    fn is_shown(&self, switch: LegacySetting) -> bool {
        !self
            .agent_options
            .iter()
            .any(|option| has_option_category(option, switch.category()))
    }

    /// Returns a copy of the option with an id that does not clash with the agent's own options.
    fn set_unused_id(&self, switch: LegacySetting, option: &RawObject) -> RawObject {
        let mut option = option.clone();
        option.set("configId", to_raw_value(&self.legacy_setting_id(switch)));
        option
    }

    fn legacy_setting_id(&self, switch: LegacySetting) -> String {
        let mut id = switch.category().to_owned();
        let taken = |id: &str| {
            let mut own = self.agent_options.iter();
            own.any(|option| option.field::<String>("configId").as_deref() == Some(id))
        };
        while taken(&id) {
            id.push('_');
        }
        id
    }

    /// Returns the setting that the option with this id represents, or `None` for one of the agent's own options.
    pub(super) fn find_legacy_setting(&self, id: &str) -> Option<LegacySetting> {
        let made = self.legacy_options.iter().map(|(switch, _)| *switch);
        made.filter(|switch| self.is_shown(*switch))
            .find(|switch| self.legacy_setting_id(*switch) == id)
    }

    /// Sets the current mode or model. Returns `true` if the value changed.
    pub(super) fn set_current(&mut self, switch: LegacySetting, value: &RawValue) -> bool {
        let own = self
            .agent_options
            .iter_mut()
            .filter(|option| has_option_category(option, switch.category()));
        let made = self
            .legacy_options
            .iter_mut()
            .filter(|(known, _)| *known == switch);
        let mut changed = false;
        for option in own.chain(made.map(|(_, option)| option)) {
            if option.get("currentValue").map(RawValue::get) != Some(value.get()) {
                option.set("currentValue", value.to_owned());
                changed = true;
            }
        }
        changed
    }
}

/// The config options of a session with a version 2 agent.
#[derive(Debug, Default)]
pub(super) struct V2ConfigOptions {
    /// The options, in version 2 form.
    options: Vec<RawObject>,
}

impl V2ConfigOptions {
    pub(super) fn set(&mut self, options: &[Box<RawValue>]) {
        self.options = to_objects(options).collect();
    }

    pub(super) fn drop_oversized(&mut self) {
        clear_if_oversized(&mut self.options);
    }

    /// Returns the options in version 1 form. Boolean options are included only if `booleans` is `true`.
    pub(super) fn list(&self, booleans: bool) -> Vec<RawObject> {
        let select = |option: &&RawObject| {
            booleans || option.field::<String>("type").as_deref() == Some("select")
        };
        let shown = self.options.iter().filter(select);
        shown.cloned().map(option_to_v1).collect()
    }

    /// Returns the select option for the mode or model setting.
    fn find_select(&self, switch: LegacySetting) -> Option<&RawObject> {
        self.options.iter().find(|option| {
            has_option_category(option, switch.category())
                && option.field::<String>("type").as_deref() == Some("select")
        })
    }

    /// Returns the id of the option for the mode or model setting.
    pub(super) fn legacy_setting_id(&self, switch: LegacySetting) -> Option<Box<RawValue>> {
        self.find_select(switch)?
            .get("configId")
            .map(ToOwned::to_owned)
    }

    /// Returns the id of the current mode.
    pub(super) fn mode(&self) -> Option<&RawValue> {
        self.find_select(LegacySetting::Mode)?.get("currentValue")
    }

    /// Returns the session modes that version 1 has in addition to config options.
    pub(super) fn modes(&self) -> Option<RawObject> {
        let option = self.find_select(LegacySetting::Mode)?;
        let mut modes = Vec::new();
        for value in to_objects(&list_items(option, "options")) {
            if value.has("groupId") || value.has("options") {
                modes.extend(to_objects(&list_items(&value, "options")));
            } else {
                modes.push(value);
            }
        }
        let modes: Vec<RawObject> = modes
            .into_iter()
            .map(|mode| mode.rename("value", "id"))
            .collect();
        Some(object! {
            "currentModeId": option.get("currentValue")?,
            "availableModes": modes,
        })
    }
}

fn option_size(option: &RawObject) -> usize {
    option
        .iter()
        .map(|(key, value)| key.len() + value.get().len())
        .sum()
}

fn clear_if_oversized(options: &mut Vec<RawObject>) {
    if options.iter().map(option_size).sum::<usize>() > MAX_STORED_BYTES {
        options.clear();
    }
}
