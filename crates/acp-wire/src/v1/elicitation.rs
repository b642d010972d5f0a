//! Elicitation: the agent requests input from the user, with a form or on a web page.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SessionId, ToolCallId};
use crate::jsonrpc::RequestId;
use crate::lenient::{Lenient, read_via_raw};
use crate::{Meta, RawObject};

string_id! {
    /// The id of a web page elicitation, chosen by the agent.
    pub struct ElicitationId;
}

record! {
    /// The elicitation modes that a client supports.
    pub struct ElicitationCapabilities {
        /// Support for forms.
        optional form: ElicitationFormCapabilities,
        /// Support for web pages.
        optional url: ElicitationUrlCapabilities,
    }
}

record! {
    /// An empty object that marks support for forms.
    pub struct ElicitationFormCapabilities {}
}

record! {
    /// An empty object that marks support for web pages.
    pub struct ElicitationUrlCapabilities {}
}

/// The `elicitation/create` request, which asks the user for input.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct CreateElicitationRequest {
    /// The message to show to the user.
    pub message: String,
    /// The mode (`mode`), with its fields.
    pub mode: ElicitationMode,
    /// The session, or the client's request, that the elicitation belongs to.
    pub scope: ElicitationScope,
    /// Custom data (`_meta`).
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl CreateElicitationRequest {
    /// Creates an elicitation request without custom data.
    pub fn new(message: impl Into<String>, mode: ElicitationMode, scope: ElicitationScope) -> Self {
        Self {
            message: message.into(),
            mode,
            scope,
            meta: None,
        }
    }
}

/// The mode of an elicitation, which determines how the user provides the input.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ElicitationMode {
    /// The user fills in a form (`form`).
    Form {
        /// The form's fields, as a JSON Schema.
        requested_schema: ElicitationSchema,
    },
    /// The user provides the input on a web page (`url`). The user must see the whole URL before it is opened.
    Url {
        /// The id with which `elicitation/complete` refers to this elicitation.
        elicitation_id: ElicitationId,
        /// The URL of the page.
        url: String,
    },
    /// An unknown mode, with its fields as received.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

/// The session, or the client's request, that an elicitation belongs to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum ElicitationScope {
    /// A session, and optionally a tool call in it.
    Session {
        /// The session for which the input is requested.
        session_id: SessionId,
        /// The tool call that needs the input, if any.
        tool_call_id: Option<ToolCallId>,
    },
    /// A request from the client, such as `authenticate`.
    Request {
        /// The pending request that needs the input.
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
        const COMMON_FIELDS: [&str; 5] =
            ["message", "sessionId", "toolCallId", "requestId", "_meta"];
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
            // In MCP, a form elicitation has no mode.
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
            Some(_) => ElicitationMode::Unknown(object.clone().without(&COMMON_FIELDS)),
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
        /// The type of the schema, which is always `object`.
        #[serde(rename = "type")]
        defaulted schema_type: ElicitationSchemaType,
        /// The title of the form, to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The fields by name, in the order to show them.
        defaulted properties: IndexMap<String, ElicitationPropertySchema>,
        /// The names of the required fields.
        optional_list required: String,
    }
}

open_enum! {
    /// The type of a form's schema, which is always `object`.
    #[derive(Default)]
    pub enum ElicitationSchemaType {
        /// The only possible type, `object`.
        #[default]
        Object = "object",
    }
}

tagged! {
    /// A field of a form.
    pub enum ElicitationPropertySchema by "type" {
        /// A text field, or a choice of one string.
        String(StringPropertySchema) = "string",
        /// A field for a number.
        Number(NumberPropertySchema) = "number",
        /// A field for a whole number.
        Integer(IntegerPropertySchema) = "integer",
        /// A yes-or-no field.
        Boolean(BooleanPropertySchema) = "boolean",
        /// A choice of several strings.
        Array(MultiSelectPropertySchema) = "array",
    }
}

record! {
    /// The schema of a text field, or of a choice of one string.
    pub struct StringPropertySchema {
        /// The title to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The minimum number of characters.
        optional min_length: u32,
        /// The maximum number of characters.
        optional max_length: u32,
        /// A regular expression that the text must match.
        optional pattern: String,
        /// The format that the text must have, such as an email address.
        optional format: StringFormat,
        /// The initial value of the field.
        optional default: String,
        /// The strings to choose from. There is at least one.
        #[serde(rename = "enum")]
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_non_empty_list))]
        optional_list enum_values: String,
        /// The strings to choose from, each with a title. There is at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_non_empty_list))]
        optional_list one_of: EnumOption,
    }
}

open_enum! {
    /// The format that the text in a field must have.
    pub enum StringFormat {
        /// The text must be an email address.
        Email = "email",
        /// The text must be a URI.
        Uri = "uri",
        /// The text must be a date.
        Date = "date",
        /// The text must be a date with a time.
        DateTime = "date-time",
    }
}

record! {
    /// A string to choose, with its title.
    pub struct EnumOption {
        /// The string to return for this choice.
        #[serde(rename = "const")]
        required value: String,
        /// The title to show to the user.
        required title: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The schema of a field for a number.
    pub struct NumberPropertySchema {
        /// The title to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The smallest valid number.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional minimum: f64,
        /// The largest valid number.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional maximum: f64,
        /// The initial value of the field.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_finite))]
        optional default: f64,
    }
}

record! {
    /// The schema of a field for a whole number.
    pub struct IntegerPropertySchema {
        /// The title to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The smallest valid number.
        optional minimum: i64,
        /// The largest valid number.
        optional maximum: i64,
        /// The initial value of the field.
        optional default: i64,
    }
}

record! {
    /// The schema of a yes-or-no field.
    pub struct BooleanPropertySchema {
        /// The title to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The initial value of the field.
        optional default: bool,
    }
}

record! {
    /// The schema of a choice of several strings.
    pub struct MultiSelectPropertySchema {
        /// The strings to choose from.
        required items: MultiSelectItems,
        /// The title to show to the user.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The minimum number of strings to choose.
        optional min_items: u64,
        /// The maximum number of strings to choose.
        optional max_items: u64,
        /// The strings chosen by default.
        optional_list default: String,
    }
}

/// The strings to choose from, with or without titles.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum MultiSelectItems {
    /// Strings without titles (`type: "string"`).
    Strings(StringMultiSelectItems),
    /// Strings with titles.
    Titled(TitledMultiSelectItems),
    /// An unknown type, with its fields as received.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Unknown(RawObject),
}

record! {
    /// Strings to choose from, without titles.
    pub struct StringMultiSelectItems {
        /// The strings. There is at least one.
        #[serde(rename = "enum")]
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required values: Vec<String>,
    }
}

record! {
    /// Strings to choose from, with titles.
    pub struct TitledMultiSelectItems {
        /// The strings. There is at least one.
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

/// The response to `elicitation/create`. It contains the user's action.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct CreateElicitationResponse {
    /// The user's action (`action`), with its fields.
    #[serde(flatten)]
    pub action: ElicitationAction,
    /// Custom data (`_meta`).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl CreateElicitationResponse {
    /// Creates a response with the user's action.
    #[must_use]
    pub fn new(action: ElicitationAction) -> Self {
        Self { action, meta: None }
    }
}

impl<'de> Deserialize<'de> for CreateElicitationResponse {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(d)?;
        let action = object.read().map_err(D::Error::custom)?;
        // In an unknown action, `_meta` stays among the fields, so that it is written once.
        let meta = match action {
            ElicitationAction::Unknown(_) => None,
            _ => object.field("_meta"),
        };
        Ok(Self { action, meta })
    }
}

tagged! {
    /// The action that the user took.
    pub enum ElicitationAction by "action" {
        /// The user submitted the form, or agreed to open the web page.
        Accept(ElicitationAcceptAction) = "accept",
        /// The user explicitly declined.
        Decline(ElicitationNoContent) = "decline",
        /// The user dismissed the question without answering.
        Cancel(ElicitationNoContent) = "cancel",
    }
}

/// The empty content of a declined or cancelled elicitation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct ElicitationNoContent {}

/// The content of [`ElicitationAction::Accept`]: the values that the user entered.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct ElicitationAcceptAction {
    /// The user's values, by field name.
    #[serde(
        default,
        deserialize_with = "crate::lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<BTreeMap<String, ElicitationContentValue>>,
}

impl ElicitationAcceptAction {
    /// Creates an accept action from the user's values, by field name.
    #[must_use]
    pub fn new(content: BTreeMap<String, ElicitationContentValue>) -> Self {
        Self {
            content: Some(content),
        }
    }
}

/// Omits the values, which may be secret.
impl std::fmt::Debug for ElicitationAcceptAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = self.content.as_ref().map(|content| content.keys());
        let fields: Option<Vec<_>> = fields.map(Iterator::collect);
        f.debug_struct("ElicitationAcceptAction")
            .field("content", &fields)
            .finish()
    }
}

/// The value that the user entered for one field.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitationContentValue {
    /// The value of a text field.
    String(String),
    /// The value of a field for whole numbers.
    Integer(i64),
    /// The value of a field for numbers.
    Number(#[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::finite))] f64),
    /// The value of a yes-or-no field.
    Boolean(bool),
    /// The strings that the user chose.
    StringArray(Vec<String>),
    /// Any other value except `null`, from a field of an unknown type.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Other(serde_json::Value),
}

/// Writes only the type, because the value may be secret.
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
        let read: Option<Self> = read_via_raw(d)?;
        Ok(read.filter(|value| *value != Self::Other(serde_json::Value::Null)))
    }
}

record! {
    /// The `elicitation/complete` notification, which reports that the user has finished on the web page.
    pub struct CompleteElicitationNotification {
        /// The elicitation that the user has completed.
        required elicitation_id: ElicitationId,
    }
}
