//! Session config options: the specification's page of that name.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SessionId;
use crate::lenient::{Lenient, via_raw};
use crate::{Meta, RawObject};

string_id! {
    /// Names a config option.
    pub struct SessionConfigId;
    /// Names a value of a config option.
    pub struct SessionConfigValueId;
    /// Names a group of values.
    pub struct SessionConfigGroupId;
}

/// Something about a session that can be set.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SessionConfigOption {
    /// Its id.
    pub id: SessionConfigId,
    /// The name that is shown to the user.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// What sort of thing it is; a hint for where to show it.
    pub category: Option<SessionConfigOptionCategory>,
    /// Its values and the current one (`type` and the fields that come with it).
    pub kind: SessionConfigKind,
    /// Custom data.
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SessionConfigOption {
    /// An option.
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

    /// Sets what it is.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets what sort of thing it is.
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

/// The type of a config option.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum SessionConfigKind {
    /// One of some values (`select`).
    Select(SessionConfigSelect),
    /// Yes or no (`boolean`). Agents send it only to clients with
    /// `session.configOptions.boolean`.
    Boolean {
        /// The current value.
        current_value: bool,
    },
    /// A type this library does not know, with its fields as they came. Clients leave it alone.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

impl From<SessionConfigSelect> for SessionConfigKind {
    fn from(select: SessionConfigSelect) -> Self {
        Self::Select(select)
    }
}

/// One of some values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionConfigSelect {
    /// The current value.
    pub current_value: SessionConfigValueId,
    /// The values there are.
    pub options: SessionConfigSelectOptions,
}

impl SessionConfigSelect {
    /// A choice.
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

/// The values of a choice; at least one. An empty list of groups cannot be told from an empty list
/// of values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum SessionConfigSelectOptions {
    /// A list.
    Ungrouped(
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        Vec<SessionConfigSelectOption>,
    ),
    /// Lists under headings.
    Grouped(
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        Vec<SessionConfigSelectGroup>,
    ),
}

impl SessionConfigSelectOptions {
    /// All values in order, whatever their groups.
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
            .map(|item| item.renamed(names.group, ConfigFieldNames::V1.group))
            .collect();
        if !items
            .iter()
            .any(|item| item.has(ConfigFieldNames::V1.group))
        {
            return Self::Ungrouped(items.iter().filter_map(|item| item.read().ok()).collect());
        }
        let groups: Vec<_> = items.iter().filter_map(|item| item.read().ok()).collect();
        if groups.is_empty() {
            // An empty list has one form only.
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
    /// A value of a choice.
    pub struct SessionConfigSelectOption {
        /// Its id.
        required value: SessionConfigValueId,
        /// The name that is shown to the user.
        required name: String,
        /// What it means.
        optional description: String,
    }
}

record! {
    /// Values under a heading.
    pub struct SessionConfigSelectGroup {
        /// Its id.
        required group: SessionConfigGroupId,
        /// The heading.
        required name: String,
        /// The values; at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required_list options: SessionConfigSelectOption,
    }
}

open_enum! {
    /// What sort of thing a config option is. Names that begin with `_` are free for anyone.
    pub enum SessionConfigOptionCategory {
        /// The session's mode.
        Mode = "mode",
        /// The model.
        Model = "model",
        /// Something about the model.
        ModelConfig = "model_config",
        /// How much the model thinks.
        ThoughtLevel = "thought_level",
    }
}

/// What the versions call two fields by different names.
#[derive(Clone, Copy)]
pub(crate) struct ConfigFieldNames {
    /// The id of an option.
    pub(crate) option: &'static str,
    /// The id of a group.
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
        const COMMON: [&str; 4] = ["name", "description", "category", "_meta"];
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
            Some(_) => {
                SessionConfigKind::Unknown(object.clone().without(&COMMON).without(&[names.option]))
            }
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
                        let groups: Vec<NamedGroup<'_>> = groups
                            .iter()
                            .map(|group| NamedGroup(group, names))
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

/// A group as it is written by these names.
struct NamedGroup<'a>(&'a SessionConfigSelectGroup, ConfigFieldNames);

impl Serialize for NamedGroup<'_> {
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
        via_raw(d)
    }
}

/// What a config option is set to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum SessionConfigOptionValue {
    /// One of the values of a choice.
    Id(SessionConfigValueId),
    /// Yes or no (`type: "boolean"`).
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

/// `session/set_config_option`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SetSessionConfigOptionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The option.
    pub config_id: SessionConfigId,
    /// What to set it to.
    pub value: SessionConfigOptionValue,
    /// Custom data.
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SetSessionConfigOptionRequest {
    /// Sets an option.
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
    /// The value says by itself what it is, whatever `type` says or does not say.
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
    /// The answer to `session/set_config_option`: all options, because one may change others.
    pub struct SetSessionConfigOptionResponse {
        /// All options.
        required_list config_options: SessionConfigOption,
    }
}

record! {
    /// Config options have changed.
    pub struct ConfigOptionUpdate {
        /// All options.
        required_list config_options: SessionConfigOption,
    }
}
