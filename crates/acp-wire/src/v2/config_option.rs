//! Session config options. See the specification's page "Session Config Options".
//!
//! An option contains an option of version 1. Only two field names differ on the wire (`configId`, `groupId`). A
//! program that supports both versions writes to the inner option.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SessionConfigId, SessionConfigValueId, SessionId};
use crate::lenient::{Lenient, read_via_raw};
use crate::v1::{self, ConfigFieldNames};
use crate::{Meta, RawObject};

/// A setting of a session that the agent offers, such as its model or mode.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct SessionConfigOption(pub v1::SessionConfigOption);

impl From<v1::SessionConfigOption> for SessionConfigOption {
    fn from(option: v1::SessionConfigOption) -> Self {
        Self(option)
    }
}

const FIELD_NAMES: ConfigFieldNames = ConfigFieldNames {
    option: "configId",
    group: "groupId",
};

impl Serialize for SessionConfigOption {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.write(s, FIELD_NAMES)
    }
}

impl<'de> Deserialize<'de> for SessionConfigOption {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        v1::SessionConfigOption::read(RawObject::deserialize(d)?, FIELD_NAMES).map(Self)
    }
}

impl Lenient for SessionConfigOption {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        read_via_raw(d)
    }
}

/// The `session/set_config_option` request: sets a config option.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SetSessionConfigOptionRequest {
    /// The session in which to set the option.
    pub session_id: SessionId,
    /// The config option to set.
    pub config_id: SessionConfigId,
    /// The new value of the option (`type` and `value`).
    pub value: SessionConfigOptionValue,
    /// Custom data (`_meta`).
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

/// A new value for a config option, in the form used by version 2.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum SessionConfigOptionValue {
    /// The id of one of a select option's values (`id`).
    Id(SessionConfigValueId),
    /// A boolean (`boolean`).
    Boolean(bool),
    /// A value of an unknown type, with its fields as received.
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

impl SetSessionConfigOptionRequest {
    /// Creates a request to set a config option.
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
        const COMMON_FIELDS: [&str; 3] = ["sessionId", "configId", "_meta"];
        let object = RawObject::deserialize(d)?;
        let value = match object.field::<String>("type").as_deref() {
            Some("id") => SessionConfigOptionValue::Id(object.required("value")?),
            Some("boolean") => SessionConfigOptionValue::Boolean(object.required("value")?),
            // Version 1 omits the type of ids.
            None => match object.field("value") {
                Some(value) => SessionConfigOptionValue::Boolean(value),
                None => SessionConfigOptionValue::Id(object.required("value")?),
            },
            Some(_) => SessionConfigOptionValue::Unknown(object.clone().without(&COMMON_FIELDS)),
        };
        Ok(Self {
            session_id: object.required("sessionId")?,
            config_id: object.required("configId")?,
            value,
            meta: object.field("_meta"),
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
    /// An update with all config options, which replaces the previous list.
    pub struct ConfigOptionUpdate {
        /// All config options of the session, with their current values.
        required_list config_options: SessionConfigOption,
    }
}
