//! Config options, modes and models. Version 2 has config options only, and two of their names differ
//! (`configId`, `groupId`); version 1 has modes beside them, and agents of old have `models`, too.

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::json::{items, object, raw};

/// How much of a session's options is remembered, in bytes. An agent that has more than this can be
/// used, but its modes cannot be set by version 1's method.
const KEPT: usize = 1024 * 1024;

/// An option as version 2 writes it.
pub(super) fn option_to_v2(option: RawObject) -> RawObject {
    with_groups(option.renamed("id", "configId"), "group", "groupId")
}

/// An option as version 1 writes it.
pub(super) fn option_to_v1(option: RawObject) -> RawObject {
    with_groups(option.renamed("configId", "id"), "groupId", "group")
}

fn with_groups(mut option: RawObject, from: &str, to: &str) -> RawObject {
    let Some(options) = option.field::<Vec<RawObject>>("options") else {
        return option;
    };
    if options.iter().any(|group| group.has(from)) {
        let groups: Vec<RawObject> = options
            .into_iter()
            .map(|group| group.renamed(from, to))
            .collect();
        option.set("options", raw(&groups));
    }
    option
}

fn objects(list: &[Box<RawValue>]) -> impl Iterator<Item = RawObject> {
    list.iter()
        .map(|item| object(Some(item)))
        .filter(|item| !item.is_empty())
}

fn category_is(option: &RawObject, category: &str) -> bool {
    option.field::<String>("category").as_deref() == Some(category)
}

/// What an agent of version 1 has as modes or as models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    Mode,
    Model,
}

impl Switch {
    /// Names: of the category, which is also the id; of the option, for people; of the field that
    /// version 1 has it in; of the current one and the list there; of an id in that list.
    fn names(self) -> [&'static str; 6] {
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
        self.names()[0]
    }

    /// Version 1's state as a config option.
    fn option(self, state: &RawObject) -> Option<RawObject> {
        let [category, name, _, current, available, id] = self.names();
        let options: Vec<RawObject> = objects(&items(state, available))
            .map(|value| value.renamed(id, "value"))
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

/// The config options of a session of a version 1 agent, as version 2 has them.
#[derive(Debug, Default)]
pub(super) struct ConfigOfV1 {
    /// The agent's own, in version 2's words.
    own: Vec<RawObject>,
    /// What it has as modes and as models.
    made: Vec<(Switch, RawObject)>,
}

impl ConfigOfV1 {
    /// Takes options, modes and models out of an answer and puts all of them back as options.
    pub(super) fn answer(&mut self, result: &mut RawObject) {
        if result.has("configOptions") {
            self.set_own(&items(result, "configOptions"));
        }
        for switch in [Switch::Mode, Switch::Model] {
            let state = object(result.take(switch.names()[2]).as_deref());
            if let Some(option) = switch.option(&state) {
                self.made.retain(|(known, _)| *known != switch);
                self.made.push((switch, option));
            }
        }
        result.retain(|key, _| key != "configOptions");
        let list = self.list();
        if !list.is_empty() {
            result.set("configOptions", raw(&list));
        }
        self.bound();
    }

    /// The agent has told its options anew.
    pub(super) fn set_own(&mut self, options: &[Box<RawValue>]) {
        self.own = objects(options).map(option_to_v2).collect();
    }

    /// Forgets what is too large to be remembered, once it has been passed on.
    pub(super) fn bound(&mut self) {
        bound(&mut self.own);
        self.made.retain(|(_, option)| size(option) <= KEPT);
    }

    /// All options: the agent's own, then those made of what it has no option for.
    pub(super) fn list(&self) -> Vec<RawObject> {
        let mut list = self.own.clone();
        for (switch, option) in &self.made {
            if self.stands_for(*switch) {
                list.push(self.named(*switch, option));
            }
        }
        list
    }

    /// Whether the option made for this is shown: not if the agent has one itself.
    fn stands_for(&self, switch: Switch) -> bool {
        !self
            .own
            .iter()
            .any(|option| category_is(option, switch.category()))
    }

    /// The made option, under an id that none of the agent's has.
    fn named(&self, switch: Switch, option: &RawObject) -> RawObject {
        let mut option = option.clone();
        option.set("configId", raw(&self.id_of(switch)));
        option
    }

    fn id_of(&self, switch: Switch) -> String {
        let mut id = switch.category().to_owned();
        let taken = |id: &str| {
            let mut own = self.own.iter();
            own.any(|option| option.field::<String>("configId").as_deref() == Some(id))
        };
        while taken(&id) {
            id.push('_');
        }
        id
    }

    /// What the option of this id was made of, if it is none of the agent's.
    pub(super) fn switch_of(&self, id: &str) -> Option<Switch> {
        let made = self.made.iter().map(|(switch, _)| *switch);
        made.filter(|switch| self.stands_for(*switch))
            .find(|switch| self.id_of(*switch) == id)
    }

    /// The mode or model has changed. Says whether that is news.
    pub(super) fn switched(&mut self, switch: Switch, value: &RawValue) -> bool {
        let own = self
            .own
            .iter_mut()
            .filter(|option| category_is(option, switch.category()));
        let made = self.made.iter_mut().filter(|(known, _)| *known == switch);
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

/// The config options of a session of a version 2 agent.
#[derive(Debug, Default)]
pub(super) struct ConfigOfV2 {
    /// As version 2 has them.
    options: Vec<RawObject>,
}

impl ConfigOfV2 {
    pub(super) fn set(&mut self, options: &[Box<RawValue>]) {
        self.options = objects(options).collect();
    }

    pub(super) fn bound(&mut self) {
        bound(&mut self.options);
    }

    /// The options as version 1 has them. Yes-or-no options are only for clients that know them.
    pub(super) fn list(&self, booleans: bool) -> Vec<RawObject> {
        let select = |option: &&RawObject| {
            booleans || option.field::<String>("type").as_deref() == Some("select")
        };
        let shown = self.options.iter().filter(select);
        shown.cloned().map(option_to_v1).collect()
    }

    /// The choice of this category.
    fn choice(&self, switch: Switch) -> Option<&RawObject> {
        self.options.iter().find(|option| {
            category_is(option, switch.category())
                && option.field::<String>("type").as_deref() == Some("select")
        })
    }

    /// The id of the option that stands for modes, or for models.
    pub(super) fn id_of(&self, switch: Switch) -> Option<Box<RawValue>> {
        self.choice(switch)?.get("configId").map(ToOwned::to_owned)
    }

    /// The current mode.
    pub(super) fn mode(&self) -> Option<&RawValue> {
        self.choice(Switch::Mode)?.get("currentValue")
    }

    /// The modes, as version 1 has them beside the options.
    pub(super) fn modes(&self) -> Option<RawObject> {
        let option = self.choice(Switch::Mode)?;
        let mut modes = Vec::new();
        for value in objects(&items(option, "options")) {
            if value.has("groupId") || value.has("options") {
                modes.extend(objects(&items(&value, "options")));
            } else {
                modes.push(value);
            }
        }
        let modes: Vec<RawObject> = modes
            .into_iter()
            .map(|mode| mode.renamed("value", "id"))
            .collect();
        Some(object! {
            "currentModeId": option.get("currentValue")?,
            "availableModes": modes,
        })
    }
}

fn size(option: &RawObject) -> usize {
    option
        .iter()
        .map(|(key, value)| key.len() + value.get().len())
        .sum()
}

fn bound(options: &mut Vec<RawObject>) {
    if options.iter().map(size).sum::<usize>() > KEPT {
        options.clear();
    }
}
