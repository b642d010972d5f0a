//! Elicitation: the agent asks the person for input, by a form or on a web page.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SessionId, ToolCallId};
use crate::jsonrpc::RequestId;
use crate::lenient::{Lenient, via_raw};
use crate::{Meta, RawObject};

string_id! {
    /// Names a URL elicitation.
    pub struct ElicitationId;
}

record! {
    /// Which kinds of elicitation a client can show.
    pub struct ElicitationCapabilities {
        /// Forms.
        optional form: ElicitationFormCapabilities,
        /// Web pages.
        optional url: ElicitationUrlCapabilities,
    }
}

record! {
    /// Present when the client can show forms.
    pub struct ElicitationFormCapabilities {}
}

record! {
    /// Present when the client can show web pages.
    pub struct ElicitationUrlCapabilities {}
}

/// `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct CreateElicitationRequest {
    /// What the agent wants to know, for the user.
    pub message: String,
    /// How it asks (`mode` and the fields that come with it).
    pub mode: ElicitationMode,
    /// What it belongs to.
    pub scope: ElicitationScope,
    /// Custom data.
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl CreateElicitationRequest {
    /// An elicitation.
    pub fn new(message: impl Into<String>, mode: ElicitationMode, scope: ElicitationScope) -> Self {
        Self {
            message: message.into(),
            mode,
            scope,
            meta: None,
        }
    }
}

/// How an elicitation asks.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ElicitationMode {
    /// By a form (`form`).
    Form {
        /// The form's fields.
        requested_schema: ElicitationSchema,
    },
    /// On a web page (`url`). The user must see the whole address before it is opened.
    Url {
        /// Its id, for `elicitation/complete`.
        elicitation_id: ElicitationId,
        /// The page.
        url: String,
    },
    /// A mode this library does not know, with its fields as they came.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

/// What an elicitation belongs to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum ElicitationScope {
    /// A session, and maybe a tool call in it.
    Session {
        /// The session.
        session_id: SessionId,
        /// The tool call.
        tool_call_id: Option<ToolCallId>,
    },
    /// A request of the client's, such as `authenticate`.
    Request {
        /// The request's id.
        request_id: RequestId,
    },
}

impl Serialize for CreateElicitationRequest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        match &self.mode {
            ElicitationMode::Form { requested_schema } => {
                map.serialize_entry("mode", "form")?;
                map.serialize_entry("requestedSchema", requested_schema)?;
            }
            ElicitationMode::Url {
                elicitation_id,
                url,
            } => {
                map.serialize_entry("mode", "url")?;
                map.serialize_entry("elicitationId", elicitation_id)?;
                map.serialize_entry("url", url)?;
            }
            ElicitationMode::Unknown(rest) => {
                for (key, value) in rest.iter() {
                    map.serialize_entry(key, value)?;
                }
            }
        }
        match &self.scope {
            ElicitationScope::Session {
                session_id,
                tool_call_id,
            } => {
                map.serialize_entry("sessionId", session_id)?;
                if let Some(id) = tool_call_id {
                    map.serialize_entry("toolCallId", id)?;
                }
            }
            ElicitationScope::Request { request_id } => {
                map.serialize_entry("requestId", request_id)?;
            }
        }
        map.serialize_entry("message", &self.message)?;
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CreateElicitationRequest {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        const COMMON: [&str; 5] = ["message", "sessionId", "toolCallId", "requestId", "_meta"];
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct FormParams {
            requested_schema: ElicitationSchema,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct UrlParams {
            elicitation_id: ElicitationId,
            url: String,
        }
        let object = RawObject::deserialize(d)?;
        let missing = |field| D::Error::missing_field(field);
        let scope = if let Some(session_id) = object.field("sessionId") {
            ElicitationScope::Session {
                session_id,
                tool_call_id: object.field("toolCallId"),
            }
        } else {
            let request_id = object
                .field("requestId")
                .ok_or_else(|| missing("sessionId"))?;
            ElicitationScope::Request { request_id }
        };
        let mode = match object.field::<String>("mode").as_deref() {
            // MCP's form elicitation names no mode.
            Some("form") | None => {
                let FormParams { requested_schema } = object.read().map_err(D::Error::custom)?;
                ElicitationMode::Form { requested_schema }
            }
            Some("url") => {
                let UrlParams {
                    elicitation_id,
                    url,
                } = object.read().map_err(D::Error::custom)?;
                ElicitationMode::Url {
                    elicitation_id,
                    url,
                }
            }
            Some(_) => ElicitationMode::Unknown(object.clone().without(&COMMON)),
        };
        Ok(Self {
            message: object.field("message").ok_or_else(|| missing("message"))?,
            mode,
            scope,
            meta: object.field("_meta"),
        })
    }
}

record! {
    /// The fields of a form: a JSON Schema with scalar properties only.
    pub struct ElicitationSchema {
        /// Always `object`.
        #[serde(rename = "type")]
        defaulted schema_type: ElicitationSchemaType,
        /// The form's title.
        optional title: String,
        /// What it is about.
        optional description: String,
        /// The fields by name, in the order in which they are to be asked for.
        defaulted properties: IndexMap<String, ElicitationPropertySchema>,
        /// The names of those that must be filled in.
        optional_list required: String,
    }
}

open_enum! {
    /// The type of a form's schema.
    #[derive(Default)]
    pub enum ElicitationSchemaType {
        /// An object; there is no other.
        #[default]
        Object = "object",
    }
}

tagged! {
    /// A field of a form.
    pub enum ElicitationPropertySchema by "type" {
        /// Text, or one of some strings.
        String(StringPropertySchema) = "string",
        /// A number.
        Number(NumberPropertySchema) = "number",
        /// A whole number.
        Integer(IntegerPropertySchema) = "integer",
        /// A boolean.
        Boolean(BooleanPropertySchema) = "boolean",
        /// Some of some strings.
        Array(MultiSelectPropertySchema) = "array",
    }
}

record! {
    /// Text, or one of some strings.
    pub struct StringPropertySchema {
        /// The field's name for users.
        optional title: String,
        /// What it is.
        optional description: String,
        /// The least number of characters.
        optional min_length: u32,
        /// The greatest number of characters.
        optional max_length: u32,
        /// A regular expression it must match.
        optional pattern: String,
        /// What the text is.
        optional format: StringFormat,
        /// The default value.
        optional default: String,
        /// The strings to choose from; at least one.
        #[serde(rename = "enum")]
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_non_empty_list))]
        optional_list enum_values: String,
        /// The strings to choose from, with titles; at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_non_empty_list))]
        optional_list one_of: EnumOption,
    }
}

open_enum! {
    /// What a text is.
    pub enum StringFormat {
        /// A mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and a time.
        DateTime = "date-time",
    }
}

record! {
    /// A string to choose, with a title.
    pub struct EnumOption {
        /// The string.
        #[serde(rename = "const")]
        required value: String,
        /// What to show.
        required title: String,
        /// What it means.
        optional description: String,
    }
}

record! {
    /// A number.
    pub struct NumberPropertySchema {
        /// The field's name for users.
        optional title: String,
        /// What it is.
        optional description: String,
        /// The least.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional minimum: f64,
        /// The greatest.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional maximum: f64,
        /// The default value.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional default: f64,
    }
}

record! {
    /// A whole number.
    pub struct IntegerPropertySchema {
        /// The field's name for users.
        optional title: String,
        /// What it is.
        optional description: String,
        /// The least.
        optional minimum: i64,
        /// The greatest.
        optional maximum: i64,
        /// The default value.
        optional default: i64,
    }
}

record! {
    /// A boolean.
    pub struct BooleanPropertySchema {
        /// The field's name for users.
        optional title: String,
        /// What it is.
        optional description: String,
        /// The default value.
        optional default: bool,
    }
}

record! {
    /// Some of some strings.
    pub struct MultiSelectPropertySchema {
        /// The strings.
        required items: MultiSelectItems,
        /// The field's name for users.
        optional title: String,
        /// What it is.
        optional description: String,
        /// How many must be chosen.
        optional min_items: u64,
        /// How many may be chosen.
        optional max_items: u64,
        /// The default value.
        optional_list default: String,
    }
}

/// The strings to choose from.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum MultiSelectItems {
    /// Without titles (`type: "string"`).
    Strings(StringMultiSelectItems),
    /// With titles.
    Titled(TitledMultiSelectItems),
    /// A type this library does not know, with its fields as they came.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

record! {
    /// Strings without titles.
    pub struct StringMultiSelectItems {
        /// The strings; at least one.
        #[serde(rename = "enum")]
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required values: Vec<String>,
    }
}

record! {
    /// Strings with titles.
    pub struct TitledMultiSelectItems {
        /// The strings; at least one.
        #[serde(rename = "anyOf")]
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required options: Vec<EnumOption>,
    }
}

impl Serialize for MultiSelectItems {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type")]
        enum TypedItems<'a> {
            #[serde(rename = "string")]
            Strings(&'a StringMultiSelectItems),
        }
        match self {
            Self::Strings(items) => TypedItems::Strings(items).serialize(s),
            Self::Titled(items) => items.serialize(s),
            Self::Unknown(object) => object.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for MultiSelectItems {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(d)?;
        if object.has("anyOf") {
            object.read().map(Self::Titled).map_err(D::Error::custom)
        } else if object.field::<String>("type").is_none_or(|t| t == "string") {
            object.read().map(Self::Strings).map_err(D::Error::custom)
        } else {
            Ok(Self::Unknown(object))
        }
    }
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct CreateElicitationResponse {
    /// What the user did (`action` and the fields that come with it).
    #[serde(flatten)]
    pub action: ElicitationAction,
    /// Custom data.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl CreateElicitationResponse {
    /// What the user did.
    #[must_use]
    pub fn new(action: ElicitationAction) -> Self {
        Self { action, meta: None }
    }
}

impl<'de> Deserialize<'de> for CreateElicitationResponse {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(d)?;
        let action = object.read().map_err(D::Error::custom)?;
        // In an unknown action `_meta` stays among its fields, to be written once.
        let meta = match action {
            ElicitationAction::Unknown(_) => None,
            _ => object.field("_meta"),
        };
        Ok(Self { action, meta })
    }
}

tagged! {
    /// What the user did.
    pub enum ElicitationAction by "action" {
        /// Filled it in.
        Accept(ElicitationAcceptAction) = "accept",
        /// Said no.
        Decline(ElicitationNoContent) = "decline",
        /// Left without an answer.
        Cancel(ElicitationNoContent) = "cancel",
    }
}

/// Nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct ElicitationNoContent {}

/// What the user filled in.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct ElicitationAcceptAction {
    /// The values by field name.
    #[serde(
        default,
        deserialize_with = "crate::lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<BTreeMap<String, ElicitationContentValue>>,
}

impl ElicitationAcceptAction {
    /// With these values.
    #[must_use]
    pub fn new(content: BTreeMap<String, ElicitationContentValue>) -> Self {
        Self {
            content: Some(content),
        }
    }
}

/// Without what the user filled in, which may be secret.
impl std::fmt::Debug for ElicitationAcceptAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = self.content.as_ref().map(|content| content.keys());
        let fields: Option<Vec<_>> = fields.map(Iterator::collect);
        f.debug_struct("ElicitationAcceptAction")
            .field("content", &fields)
            .finish()
    }
}

/// What the user filled in for one field.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitationContentValue {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(#[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::finite))] f64),
    /// A boolean.
    Boolean(bool),
    /// Some strings.
    StringArray(Vec<String>),
    /// Anything else, for a field of a kind this library does not know. `null` is no value.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Other(serde_json::Value),
}

/// Its type alone: the value may be secret.
impl std::fmt::Debug for ElicitationContentValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::String(_) => "String(..)",
            Self::Integer(_) => "Integer(..)",
            Self::Number(_) => "Number(..)",
            Self::Boolean(_) => "Boolean(..)",
            Self::StringArray(_) => "StringArray(..)",
            Self::Other(_) => "Other(..)",
        })
    }
}

impl Lenient for ElicitationContentValue {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        let read: Option<Self> = via_raw(d)?;
        Ok(read.filter(|value| *value != Self::Other(serde_json::Value::Null)))
    }
}

record! {
    /// `elicitation/complete`: what was asked on a web page has been done there.
    pub struct CompleteElicitationNotification {
        /// The elicitation.
        required elicitation_id: ElicitationId,
    }
}
