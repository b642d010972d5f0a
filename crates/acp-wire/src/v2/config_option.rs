//! Session config options: the specification's page of that name.
//!
//! An option is that of version 1, but two of its names differ on the wire (`configId`, `groupId`). A
//! program that serves both versions writes to version 1's, which is inside.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SessionConfigGroupId, SessionConfigId, SessionConfigValueId, SessionId};
use crate::lenient::{Lenient, via_raw};
use crate::v1::{self, SessionConfigKind, SessionConfigSelectOption, SessionConfigSelectOptions};
use crate::{Meta, RawObject};

/// Something about a session that can be set.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct SessionConfigOption(pub v1::SessionConfigOption);

impl From<v1::SessionConfigOption> for SessionConfigOption {
    fn from(option: v1::SessionConfigOption) -> Self {
        Self(option)
    }
}

impl Serialize for SessionConfigOption {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let option = &self.0;
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("configId", &option.id)?;
        map.serialize_entry("name", &option.name)?;
        if let Some(description) = &option.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(category) = &option.category {
            map.serialize_entry("category", category)?;
        }
        match &option.kind {
            SessionConfigKind::Select(select) => {
                map.serialize_entry("type", "select")?;
                map.serialize_entry("currentValue", &select.current_value)?;
                match &select.options {
                    SessionConfigSelectOptions::Ungrouped(options) => {
                        map.serialize_entry("options", options)?;
                    }
                    SessionConfigSelectOptions::Grouped(groups) => {
                        let groups: Vec<Group<'_>> = groups.iter().map(Group::from).collect();
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
        if let Some(meta) = &option.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

/// A group of values, as version 2 writes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    group_id: &'a SessionConfigGroupId,
    name: &'a str,
    options: &'a [SessionConfigSelectOption],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Meta>,
}

impl<'a> From<&'a v1::SessionConfigSelectGroup> for Group<'a> {
    fn from(group: &'a v1::SessionConfigSelectGroup) -> Self {
        Self {
            group_id: &group.group,
            name: &group.name,
            options: &group.options,
            meta: group.meta.as_ref(),
        }
    }
}

impl<'de> Deserialize<'de> for SessionConfigOption {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut object = RawObject::deserialize(d)?.renamed("configId", "id");
        if let Some(options) = object.field::<Vec<RawObject>>("options")
            && options.iter().any(|group| group.has("groupId"))
        {
            let groups: Vec<RawObject> = options
                .into_iter()
                .map(|group| group.renamed("groupId", "group"))
                .collect();
            let groups = serde_json::value::to_raw_value(&groups).map_err(D::Error::custom)?;
            object.set("options", groups);
        }
        object.read().map(Self).map_err(D::Error::custom)
    }
}

impl Lenient for SessionConfigOption {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        via_raw(d)
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
    /// What to set it to (`type` and `value`).
    pub value: SessionConfigOptionValue,
    /// Custom data.
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

/// What a config option is set to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum SessionConfigOptionValue {
    /// One of the values of a choice (`id`).
    Id(SessionConfigValueId),
    /// Yes or no (`boolean`).
    Boolean(bool),
    /// A type this library does not know, with its fields as they came.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

impl From<v1::SessionConfigOptionValue> for SessionConfigOptionValue {
    fn from(value: v1::SessionConfigOptionValue) -> Self {
        match value {
            v1::SessionConfigOptionValue::Id(id) => Self::Id(id),
            v1::SessionConfigOptionValue::Boolean(value) => Self::Boolean(value),
        }
    }
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
            SessionConfigOptionValue::Id(id) => {
                map.serialize_entry("type", "id")?;
                map.serialize_entry("value", id)?;
            }
            SessionConfigOptionValue::Boolean(value) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", value)?;
            }
            SessionConfigOptionValue::Unknown(rest) => {
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

impl<'de> Deserialize<'de> for SetSessionConfigOptionRequest {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        const COMMON: [&str; 3] = ["sessionId", "configId", "_meta"];
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Common {
            session_id: SessionId,
            config_id: SessionConfigId,
            #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
            meta: Option<Meta>,
        }
        let object = RawObject::deserialize(d)?;
        let Common {
            session_id,
            config_id,
            meta,
        } = object.read().map_err(D::Error::custom)?;
        let missing = || D::Error::custom("the value is not what its type says");
        let value = match object.field::<String>("type").as_deref() {
            Some("id") => SessionConfigOptionValue::Id(object.field("value").ok_or_else(missing)?),
            Some("boolean") => {
                SessionConfigOptionValue::Boolean(object.field("value").ok_or_else(missing)?)
            }
            // Version 1 leaves the type of ids out.
            None => match object.field("value") {
                Some(value) => SessionConfigOptionValue::Boolean(value),
                None => SessionConfigOptionValue::Id(object.field("value").ok_or_else(missing)?),
            },
            Some(_) => SessionConfigOptionValue::Unknown(object.without(&COMMON)),
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
