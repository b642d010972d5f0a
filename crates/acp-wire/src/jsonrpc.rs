//! Reads and writes the message envelope: one [JSON-RPC 2.0](https://www.jsonrpc.org/specification) message per line.
//!
//! Parsing takes one message without its line ending, and borrows `params` and `result` from it as text. Writing
//! appends to a buffer, including the line ending. Neither builds a JSON tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::surrogate::read_lossy;

/// The id of a request, chosen by its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum RequestId {
    /// `null`: the id of a response to a message that could not be read.
    #[cfg_attr(feature = "arbitrary", arbitrary(skip))]
    Null,
    /// An id that is an integer.
    Number(i64),
    /// An id that is a string.
    String(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Number(n) => n.fmt(f),
            Self::String(s) => write!(f, "{s:?}"),
        }
    }
}

impl From<i64> for RequestId {
    fn from(n: i64) -> Self {
        Self::Number(n)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => s.serialize_unit(),
            Self::Number(n) => s.serialize_i64(*n),
            Self::String(text) => s.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Id::deserialize(d)? {
            Id::Valid(id) => Ok(id),
            Id::Invalid => Err(serde::de::Error::custom(
                "id must be a string, an integer or null",
            )),
        }
    }
}

/// A received id, which may be invalid.
enum Id {
    Valid(RequestId),
    Invalid,
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl<'de> Visitor<'de> for IdVisitor {
            type Value = Id;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id")
            }
            fn visit_i64<E>(self, n: i64) -> Result<Id, E> {
                Ok(Id::Valid(RequestId::Number(n)))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Id, E> {
                Ok(i64::try_from(n).map_or(Id::Invalid, |n| Id::Valid(RequestId::Number(n))))
            }
            fn visit_f64<E>(self, n: f64) -> Result<Id, E> {
                // Some writers have only floating-point numbers and write 3.0 for 3. Beyond 2^53 these are not exact.
                #[allow(clippy::cast_possible_truncation)]
                Ok(if n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0 {
                    Id::Valid(RequestId::Number(n as i64))
                } else {
                    Id::Invalid
                })
            }
            fn visit_str<E>(self, s: &str) -> Result<Id, E> {
                Ok(Id::Valid(RequestId::String(s.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Id, E> {
                Ok(Id::Valid(RequestId::Null))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Id, E> {
                Ok(Id::Invalid)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Id, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Id::Invalid)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Id, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Id::Invalid)
            }
        }
        d.deserialize_any(IdVisitor)
    }
}

/// The error in a response. See the specification's page "Overview", "Error Handling".
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Error {
    /// The error code, for programs to check. This type has a constant for each standard code.
    pub code: i32,
    /// The error message, to show to users.
    pub message: String,
    /// Additional data about the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl crate::lenient::Lenient for Error {
    fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        crate::lenient::read_via_raw(d)
    }
}

impl Error {
    /// The agent supports neither the requested protocol version nor an older one. `data.supported` lists the versions
    /// that it supports. This code is newer than the schema of August 2026.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;
    /// The input is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The input is JSON, but not a valid request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params do not match the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The receiver failed to process the request.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// The request was cancelled.
    pub const REQUEST_CANCELLED: i32 = -32800;
    /// The client must authenticate first.
    pub const AUTH_REQUIRED: i32 = -32000;
    /// A file or other resource does not exist.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;

    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Sets the additional data about the error.
    #[must_use]
    pub fn data(mut self, data: impl Into<serde_json::Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Creates a [`METHOD_NOT_FOUND`](Self::METHOD_NOT_FOUND) error.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            Self::METHOD_NOT_FOUND,
            format!("Method not found: {}", truncate(method)),
        )
    }

    /// Creates an [`INVALID_PARAMS`](Self::INVALID_PARAMS) error.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// Creates an [`INTERNAL_ERROR`](Self::INTERNAL_ERROR) error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL_ERROR, message)
    }

    /// Creates a [`REQUEST_CANCELLED`](Self::REQUEST_CANCELLED) error.
    #[must_use]
    pub fn request_cancelled() -> Self {
        Self::new(Self::REQUEST_CANCELLED, "Request cancelled")
    }

    /// Creates an [`AUTH_REQUIRED`](Self::AUTH_REQUIRED) error.
    #[must_use]
    pub fn auth_required() -> Self {
        Self::new(Self::AUTH_REQUIRED, "Authentication required")
    }

    /// Creates a [`RESOURCE_NOT_FOUND`](Self::RESOURCE_NOT_FOUND) error.
    pub fn resource_not_found(what: impl fmt::Display) -> Self {
        Self::new(
            Self::RESOURCE_NOT_FOUND,
            format!("Resource not found: {what}"),
        )
    }
}

/// Truncates `text` to 1024 bytes. An error message must not echo a peer's input in full.
fn truncate(text: &str) -> Cow<'_, str> {
    const MAX_MESSAGE_BYTES: usize = 1024;
    if text.len() <= MAX_MESSAGE_BYTES {
        return Cow::Borrowed(text);
    }
    let mut end = MAX_MESSAGE_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!(
        "{}… ({} bytes)",
        text.get(..end).unwrap_or_default(),
        text.len()
    ))
}

/// Writes the message and the details in `data`, for users. Writes the code only if there is no message.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.trim().is_empty() {
            write!(f, "error {}", self.code)?;
        } else {
            f.write_str(&self.message)?;
        }
        // Agents put the useful part into `data`, as a string or in one of these fields.
        let details = self.data.as_ref().and_then(|data| {
            let named = ["details", "message", "error"]
                .iter()
                .find_map(|key| data.get(key));
            named.unwrap_or(data).as_str().map(str::to_owned)
        });
        match details {
            Some(details) if details != self.message => write!(f, ": {details}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::ReadError> for Error {
    fn from(error: crate::ReadError) -> Self {
        match error {
            crate::ReadError::UnknownMethod(method) => Self::method_not_found(&method),
            crate::ReadError::Invalid { .. } => {
                let error = error.to_string();
                Self::invalid_params(format!("Invalid params: {}", truncate(&error)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Error {
    /// Reads any object as an error, so that a malformed error response is still recognized.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct ErrorFields {
            #[serde(default, deserialize_with = "crate::lenient::option")]
            code: Option<i64>,
            #[serde(default, deserialize_with = "crate::lenient::option")]
            message: Option<String>,
            #[serde(default, deserialize_with = "crate::lenient::option")]
            data: Option<serde_json::Value>,
        }
        let ErrorFields {
            code,
            message,
            data,
        } = crate::object_only::deserialize::<D, ErrorFields>(d)?;
        Ok(Self {
            code: code
                .and_then(|code| i32::try_from(code).ok())
                .unwrap_or(Self::INTERNAL_ERROR),
            message: message.unwrap_or_else(|| "error without a message".to_owned()),
            data,
        })
    }
}

/// A received message.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request, which expects a response.
    Request {
        /// The id to repeat in the response.
        id: RequestId,
        /// The method, such as `session/prompt`.
        method: Cow<'a, str>,
        /// The parameters as JSON text, if present.
        params: Option<&'a RawValue>,
    },
    /// A notification, which expects no response.
    Notification {
        /// The method, such as `session/prompt`.
        method: Cow<'a, str>,
        /// The parameters as JSON text, if present.
        params: Option<&'a RawValue>,
    },
    /// A response to a request.
    Response {
        /// The id of the request that the response belongs to.
        id: RequestId,
        /// The result as JSON text, or the error.
        result: Result<&'a RawValue, Error>,
    },
}

/// The reason why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The line is not JSON (code -32700).
    #[error("not JSON: {0}")]
    NotJson(serde_json::Error),
    /// The line is JSON, but not a message (code -32600).
    #[error("not a JSON-RPC message: {reason}")]
    NotAMessage {
        /// The id to use in the response.
        id: RequestId,
        /// The reason why the line is not a message.
        reason: &'static str,
    },
}

impl ParseError {
    /// Returns the id and error for the response that JSON-RPC requires.
    #[must_use]
    pub fn to_response(self) -> (RequestId, Error) {
        match self {
            Self::NotJson(e) => (
                RequestId::Null,
                Error::new(
                    Error::PARSE_ERROR,
                    format!("Parse error: {}", truncate(&e.to_string())),
                ),
            ),
            Self::NotAMessage { id, reason } => (
                id,
                Error::new(Error::INVALID_REQUEST, format!("Invalid request: {reason}")),
            ),
        }
    }
}

/// The members of a JSON-RPC object, as unparsed JSON text.
#[derive(Default)]
struct MessageMembers<'a> {
    id: Option<Id>,
    method: Option<MethodMember<'a>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

enum MethodMember<'a> {
    Name(Cow<'a, str>),
    NotAString,
}

/// A known member of a message, or `Other`.
enum Member {
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MemberVisitor;
        impl Visitor<'_> for MemberVisitor {
            type Value = Member;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_bytes<E>(self, name: &[u8]) -> Result<Member, E> {
                Ok(match name {
                    b"id" => Member::Id,
                    b"method" => Member::Method,
                    b"params" => Member::Params,
                    b"result" => Member::Result,
                    b"error" => Member::Error,
                    _ => Member::Other,
                })
            }
        }
        // As bytes, so that a name with a lone surrogate is ignored like any other unknown name.
        d.deserialize_bytes(MemberVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = MessageMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = MessageMembers::default();
                while let Some(member) = map.next_key::<Member>()? {
                    match member {
                        Member::Id => {
                            // Read as text first: a number outside the range of floats is JSON, but not an id.
                            let raw = map.next_value::<&'de RawValue>()?;
                            members.id =
                                Some(serde_json::from_str(raw.get()).unwrap_or(Id::Invalid));
                        }
                        Member::Method => {
                            let raw = map.next_value::<&'de RawValue>()?;
                            members.method = Some(read_method_name(raw));
                        }
                        Member::Params => members.params = Some(map.next_value()?),
                        Member::Result => members.result = Some(map.next_value()?),
                        Member::Error => members.error = Some(map.next_value()?),
                        Member::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(members)
            }
        }
        d.deserialize_map(MembersVisitor)
    }
}

fn read_method_name(raw: &RawValue) -> MethodMember<'_> {
    let text = raw.get();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(name) if !name.contains('\\') => MethodMember::Name(Cow::Borrowed(name)),
        Some(_) => serde_json::from_str::<String>(text).map_or(MethodMember::NotAString, |name| {
            MethodMember::Name(Cow::Owned(name))
        }),
        None => MethodMember::NotAString,
    }
}

/// Parses a line as one message.
///
/// # Errors
/// The line is not a message. The [`ParseError`] contains the response to send.
pub fn parse(line: &[u8]) -> Result<Incoming<'_>, ParseError> {
    // Validating the whole line as UTF-8 once is cheaper than validating each part.
    let text =
        std::str::from_utf8(line).map_err(|e| ParseError::NotJson(serde::de::Error::custom(e)))?;
    let invalid = |id, reason| ParseError::NotAMessage { id, reason };
    let members: MessageMembers<'_> = match serde_json::from_str(text) {
        Ok(members) => members,
        // Other JSON: an array, a scalar, or an object with a malformed member.
        Err(e) if e.is_data() => {
            let reason = if text.trim_start().starts_with('[') {
                "batches are not supported; send one message per line"
            } else {
                "not an object"
            };
            return Err(match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => invalid(RequestId::Null, reason),
                Err(e) => ParseError::NotJson(e),
            });
        }
        Err(e) => return Err(ParseError::NotJson(e)),
    };
    let id = match members.id {
        Some(Id::Invalid) => {
            return Err(invalid(
                RequestId::Null,
                "id must be a string, an integer or null",
            ));
        }
        Some(Id::Valid(id)) => Some(id),
        None => None,
    };
    match (members.method, id) {
        (Some(MethodMember::NotAString), id) => Err(invalid(
            id.unwrap_or(RequestId::Null),
            "method must be a string",
        )),
        (Some(MethodMember::Name(method)), Some(id)) => Ok(Incoming::Request {
            id,
            method,
            params: members.params,
        }),
        (Some(MethodMember::Name(method)), None) => Ok(Incoming::Notification {
            method,
            params: members.params,
        }),
        (None, id) => {
            let id = id.unwrap_or(RequestId::Null);
            // Some writers send `"error": null` beside a result.
            let error = members.error.filter(|raw| raw.get() != "null");
            match (members.result, error) {
                (_, Some(raw)) => {
                    let error = read_lossy(raw.get(), |text| serde_json::from_str(text))
                        .unwrap_or_else(|_| Error::internal(raw.get().to_owned()));
                    Ok(Incoming::Response {
                        id,
                        result: Err(error),
                    })
                }
                (Some(result), None) => Ok(Incoming::Response {
                    id,
                    result: Ok(result),
                }),
                (None, None) => Err(invalid(id, "no method, result or error")),
            }
        }
    }
}

/// Parses a notification in its most common form, `{"jsonrpc":"2.0","method":…,"params":…}`. Returns its method and the
/// unchecked text of its `params`, or `None` for any other line. [`parse`] handles those.
///
/// If the text is a JSON value, the line was a message with these `params`: anything after them would be part of the
/// text and make it invalid. So the params are read in a single pass, while [`parse`] takes an extra pass to find their
/// end. If they cannot be read, [`parse`] returns the reason.
#[must_use]
pub fn parse_plain_notification(line: &[u8]) -> Option<(&str, &str)> {
    let rest = std::str::from_utf8(line).ok()?;
    let tokens = ["{", "\"jsonrpc\"", ":", "\"2.0\"", ",", "\"method\"", ":"];
    let rest = strip_tokens(rest, &tokens)?;
    let (method, mut rest) = rest.strip_prefix('"')?.split_once('"')?;
    if method.contains('\\') {
        return None;
    }
    rest = strip_tokens(rest.trim_ascii_start(), &[",", "\"params\"", ":"])?;
    Some((method, rest.strip_suffix('}')?))
}

/// Strips `tokens`, and the whitespace after each, from the start of `text`.
fn strip_tokens<'a>(text: &'a str, tokens: &[&str]) -> Option<&'a str> {
    let strip = |rest: &'a str, token: &&str| Some(rest.strip_prefix(*token)?.trim_ascii_start());
    tokens.iter().try_fold(text, strip)
}

/// Parses the start of a response whose `result` starts with a string, such as
/// `{"jsonrpc":"2.0","id":1,"result":{"content":"`. `field` returns the name of the string's field in the response with
/// this id. Returns the response's id and the position after the string's opening quote, or `None` if the response has
/// another form or `beginning` is too short.
pub fn parse_text_response_start<'f>(
    beginning: &[u8],
    field: impl FnOnce(i64) -> Option<&'f str>,
) -> Option<(i64, usize)> {
    // The input can end in the middle of a character.
    let whole = beginning.utf8_chunks().next()?.valid();
    let rest = strip_tokens(
        whole,
        &["{", "\"jsonrpc\"", ":", "\"2.0\"", ",", "\"id\"", ":"],
    )?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (id, rest) = rest.split_at(digits);
    let rest = strip_tokens(
        rest.trim_ascii_start(),
        &[",", "\"result\"", ":", "{", "\""],
    )?;
    let id = id.parse().ok()?;
    let rest = strip_tokens(rest.strip_prefix(field(id)?)?, &["\"", ":"])?;
    let text = rest.strip_prefix('"')?;
    Some((id, whole.len() - text.len()))
}

/// Appends a request to `out`.
///
/// # Errors
/// `params` cannot be written as JSON; `out` is unchanged.
pub fn write_request<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    write_message(out, |w| {
        w.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut *w, id)?;
        w.extend_from_slice(b",\"method\":");
        serde_json::to_writer(&mut *w, method)?;
        w.extend_from_slice(b",\"params\":");
        serde_json::to_writer(&mut *w, params)
    })
}

/// Appends a notification to `out`.
///
/// # Errors
/// `params` cannot be written as JSON; `out` is unchanged.
pub fn write_notification<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    write_message(out, |w| {
        w.extend_from_slice(b",\"method\":");
        serde_json::to_writer(&mut *w, method)?;
        w.extend_from_slice(b",\"params\":");
        serde_json::to_writer(&mut *w, params)
    })
}

/// Appends a response to `out`.
///
/// # Errors
/// `result` cannot be written as JSON; `out` is unchanged.
pub fn write_result<R: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &R,
) -> Result<(), serde_json::Error> {
    write_message(out, |w| {
        w.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut *w, id)?;
        w.extend_from_slice(b",\"result\":");
        serde_json::to_writer(&mut *w, result)
    })
}

/// Appends an error response to `out`.
///
/// # Errors
/// The error's `data` cannot be written as JSON; `out` is unchanged.
pub fn write_error(
    out: &mut Vec<u8>,
    id: &RequestId,
    error: &Error,
) -> Result<(), serde_json::Error> {
    write_message(out, |w| {
        w.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut *w, id)?;
        w.extend_from_slice(b",\"error\":");
        serde_json::to_writer(&mut *w, error)
    })
}

fn write_message(
    out: &mut Vec<u8>,
    members: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    if let Err(e) = members(out) {
        out.truncate(start);
        return Err(e);
    }
    // Raw values may contain line breaks between their tokens; JSON strings cannot.
    if let Some(added) = out.get_mut(start..)
        && memchr::memchr2(b'\n', b'\r', added).is_some()
    {
        for byte in added {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

record! {
    /// The `$/cancel_request` notification, which cancels a request in either direction.
    pub struct CancelRequestNotification {
        /// The id of the request to cancel.
        required request_id: RequestId,
    }
}
