//! Session config options. See the specification's page "Session Config Options".

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SessionId;
use crate::lenient::{Lenient, read_via_raw};
use crate::{Meta, RawObject};

string_id! {
    /// The id of a config option, unique in its session.
    pub struct SessionConfigId;
    /// The id of a value that a select option can have.
    pub struct SessionConfigValueId;
    /// The id of a group of values in a config option.
    pub struct SessionConfigGroupId;
}

/// A setting of a session that the agent offers, such as its model or mode.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SessionConfigOption {
    /// The id used to set the option.
    pub id: SessionConfigId,
    /// The name to show to the user.
    pub name: String,
    /// A description to show to the user.
    pub description: Option<String>,
    /// The category, a hint about where to show the option.
    pub category: Option<SessionConfigOptionCategory>,
    /// The option's type (`type`), with its current value and the values to choose from.
    pub kind: SessionConfigKind,
    /// Custom data (`_meta`).
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SessionConfigOption {
    /// Creates a config option without a description or category.
    pub fn new(
        id: impl Into<SessionConfigId>,
        name: impl Into<String>,
        kind: impl Into<SessionConfigKind>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: None,
            category: None,
            kind: kind.into(),
            meta: None,
        }
    }

    /// Sets the description to show to the user.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the category, a hint about where to show the option.
    #[must_use]
    pub fn category(mut self, category: SessionConfigOptionCategory) -> Self {
        self.category = Some(category);
        self
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The type of a config option, with its current value.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum SessionConfigKind {
    /// One of several values (`select`).
    Select(SessionConfigSelect),
    /// A switch (`boolean`). Agents send it only to clients that support `session.configOptions.boolean`.
    Boolean {
        /// Whether the switch is on.
        current_value: bool,
    },
    /// An unknown type, with its fields as received. Clients ignore it.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

impl From<SessionConfigSelect> for SessionConfigKind {
    fn from(select: SessionConfigSelect) -> Self {
        Self::Select(select)
    }
}

/// A config option with several possible values, one of which is selected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionConfigSelect {
    /// The id of the currently selected value.
    pub current_value: SessionConfigValueId,
    /// The possible values.
    pub options: SessionConfigSelectOptions,
}

impl SessionConfigSelect {
    /// Creates a select option from its current value and the possible values.
    pub fn new(
        current_value: impl Into<SessionConfigValueId>,
        options: Vec<SessionConfigSelectOption>,
    ) -> Self {
        Self {
            current_value: current_value.into(),
            options: SessionConfigSelectOptions::Ungrouped(options),
        }
    }
}

/// The possible values of a select option, of which there is at least one. In JSON, an empty list of groups is the same
/// as an empty list of values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum SessionConfigSelectOptions {
    /// A flat list of values.
    Ungrouped(
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        Vec<SessionConfigSelectOption>,
    ),
    /// A list of groups of values.
    Grouped(
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        Vec<SessionConfigSelectGroup>,
    ),
}

impl SessionConfigSelectOptions {
    /// Returns all values in order, across groups.
    pub fn iter(&self) -> impl Iterator<Item = &SessionConfigSelectOption> {
        let (plain, groups) = match self {
            Self::Ungrouped(options) => (&options[..], &[][..]),
            Self::Grouped(groups) => (&[][..], &groups[..]),
        };
        plain
            .iter()
            .chain(groups.iter().flat_map(|group| &group.options))
    }

    fn from_items(items: Vec<RawObject>, names: ConfigFieldNames) -> Self {
        let items: Vec<RawObject> = items
            .into_iter()
            .map(|item| item.rename(names.group, ConfigFieldNames::V1.group))
            .collect();
        if !items
            .iter()
            .any(|item| item.has(ConfigFieldNames::V1.group))
        {
            return Self::Ungrouped(items.iter().filter_map(|item| item.read().ok()).collect());
        }
        let groups: Vec<_> = items.iter().filter_map(|item| item.read().ok()).collect();
        if groups.is_empty() {
            // An empty list is always ungrouped.
            return Self::Ungrouped(Vec::new());
        }
        Self::Grouped(groups)
    }
}

impl<'de> Deserialize<'de> for SessionConfigSelectOptions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self::from_items(
            crate::lenient::list(d)?,
            ConfigFieldNames::V1,
        ))
    }
}

record! {
    /// A possible value of a select option.
    pub struct SessionConfigSelectOption {
        /// The id used to select the value.
        required value: SessionConfigValueId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// A group of values, shown under one heading.
    pub struct SessionConfigSelectGroup {
        /// The id of the group, unique in its option.
        required group: SessionConfigGroupId,
        /// The heading of the group.
        required name: String,
        /// The values. There is at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required_list options: SessionConfigSelectOption,
    }
}

open_enum! {
    /// The category of a config option, a hint about where to show it. Agents can define further categories that start
    /// with `_`.
    pub enum SessionConfigOptionCategory {
        /// The session's mode: what the agent may do without asking.
        Mode = "mode",
        /// The language model that the session uses.
        Model = "model",
        /// A setting of the session's model.
        ModelConfig = "model_config",
        /// How much the model thinks.
        ThoughtLevel = "thought_level",
    }
}

/// The two field names that depend on the protocol version.
#[derive(Clone, Copy)]
pub(crate) struct ConfigFieldNames {
    /// The name of the field that contains an option's id.
    pub(crate) option: &'static str,
    /// The name of the field that contains a group's id.
    pub(crate) group: &'static str,
}

impl ConfigFieldNames {
    const V1: Self = Self {
        option: "id",
        group: "group",
    };
}

impl SessionConfigOption {
    pub(crate) fn read<E: serde::de::Error>(
        object: RawObject,
        names: ConfigFieldNames,
    ) -> Result<Self, E> {
        const COMMON_FIELDS: [&str; 4] = ["name", "description", "category", "_meta"];
        let kind = match object.field::<String>("type").as_deref() {
            Some("boolean") => SessionConfigKind::Boolean {
                current_value: object.required("currentValue")?,
            },
            Some("select") | None => SessionConfigKind::Select(SessionConfigSelect {
                current_value: object.required("currentValue")?,
                options: SessionConfigSelectOptions::from_items(
                    object.list("options").unwrap_or_default(),
                    names,
                ),
            }),
            Some(_) => SessionConfigKind::Unknown(
                object
                    .clone()
                    .without(&COMMON_FIELDS)
                    .without(&[names.option]),
            ),
        };
        Ok(Self {
            id: object.required(names.option)?,
            name: object.required("name")?,
            description: object.field("description"),
            category: object.field("category"),
            kind,
            meta: object.field("_meta"),
        })
    }

    pub(crate) fn write<S: Serializer>(
        &self,
        s: S,
        names: ConfigFieldNames,
    ) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry(names.option, &self.id)?;
        map.serialize_entry("name", &self.name)?;
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(category) = &self.category {
            map.serialize_entry("category", category)?;
        }
        match &self.kind {
            SessionConfigKind::Select(select) => {
                map.serialize_entry("type", "select")?;
                map.serialize_entry("currentValue", &select.current_value)?;
                match &select.options {
                    SessionConfigSelectOptions::Ungrouped(options) => {
                        map.serialize_entry("options", options)?;
                    }
                    SessionConfigSelectOptions::Grouped(groups) => {
                        let groups: Vec<SelectGroupWriter<'_>> = groups
                            .iter()
                            .map(|group| SelectGroupWriter(group, names))
                            .collect();
                        map.serialize_entry("options", &groups)?;
                    }
                }
            }
            SessionConfigKind::Boolean { current_value } => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("currentValue", current_value)?;
            }
            SessionConfigKind::Unknown(rest) => {
                for (key, value) in rest.iter() {
                    map.serialize_entry(key, value)?;
                }
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

/// A group to write, with its field names.
struct SelectGroupWriter<'a>(&'a SessionConfigSelectGroup, ConfigFieldNames);

impl Serialize for SelectGroupWriter<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self(group, names) = self;
        let mut map = s.serialize_map(None)?;
        map.serialize_entry(names.group, &group.group)?;
        map.serialize_entry("name", &group.name)?;
        map.serialize_entry("options", &group.options)?;
        if let Some(meta) = &group.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SessionConfigOption {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::read(RawObject::deserialize(d)?, ConfigFieldNames::V1)
    }
}

impl Serialize for SessionConfigOption {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.write(s, ConfigFieldNames::V1)
    }
}

impl Lenient for SessionConfigOption {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        read_via_raw(d)
    }
}

/// A new value for a config option, as version 1 writes it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum SessionConfigOptionValue {
    /// The id of one of a select option's possible values.
    Id(SessionConfigValueId),
    /// A boolean (`type: "boolean"`).
    Boolean(bool),
}

impl From<bool> for SessionConfigOptionValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<&str> for SessionConfigOptionValue {
    fn from(value: &str) -> Self {
        Self::Id(value.into())
    }
}

impl From<SessionConfigValueId> for SessionConfigOptionValue {
    fn from(value: SessionConfigValueId) -> Self {
        Self::Id(value)
    }
}

impl std::fmt::Display for SessionConfigOptionValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id.as_str()),
            Self::Boolean(value) => value.fmt(f),
        }
    }
}

/// The `session/set_config_option` request, which sets a config option.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SetSessionConfigOptionRequest {
    /// The session to set the config option in.
    pub session_id: SessionId,
    /// The config option to set.
    pub config_id: SessionConfigId,
    /// The new value of the option.
    pub value: SessionConfigOptionValue,
    /// Custom data (`_meta`).
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SetSessionConfigOptionRequest {
    /// Creates a request that sets a config option of a session.
    pub fn new(
        session_id: impl Into<SessionId>,
        config_id: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigOptionValue>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            config_id: config_id.into(),
            value: value.into(),
            meta: None,
        }
    }
}

impl Serialize for SetSessionConfigOptionRequest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("sessionId", &self.session_id)?;
        map.serialize_entry("configId", &self.config_id)?;
        match &self.value {
            SessionConfigOptionValue::Id(id) => map.serialize_entry("value", id)?,
            SessionConfigOptionValue::Boolean(value) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", value)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for SetSessionConfigOptionRequest {
    /// Chooses the variant by the JSON type of `value`, and ignores `type`.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum SetConfigValue {
            Boolean(bool),
            Id(SessionConfigValueId),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SetConfigFields {
            session_id: SessionId,
            config_id: SessionConfigId,
            value: SetConfigValue,
            #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
            meta: Option<Meta>,
        }
        let SetConfigFields {
            session_id,
            config_id,
            value,
            meta,
        } = crate::object_only::deserialize::<D, SetConfigFields>(d)?;
        let value = match value {
            SetConfigValue::Boolean(value) => SessionConfigOptionValue::Boolean(value),
            SetConfigValue::Id(id) => SessionConfigOptionValue::Id(id),
        };
        Ok(Self {
            session_id,
            config_id,
            value,
            meta,
        })
    }
}

record! {
    /// The response to `session/set_config_option`. It lists all options, because setting one can change others.
    pub struct SetSessionConfigOptionResponse {
        /// All config options of the session, with their current values.
        required_list config_options: SessionConfigOption,
    }
}

record! {
    /// An update with all config options, which replace the previous ones.
    pub struct ConfigOptionUpdate {
        /// All config options of the session, with their current values.
        required_list config_options: SessionConfigOption,
    }
}
