//! Parses only those parts of a message that are needed to route it.

use std::borrow::Cow;

use acp::jsonrpc::parse_plain_notification;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The parts of a message that are needed to route it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MessageHead<'a> {
    pub(crate) kind: MessageHeadKind<'a>,
    /// The session id in the params, if any.
    pub(crate) session: Option<Cow<'a, str>>,
}

/// The type of a message. Ids are stored as their JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageHeadKind<'a> {
    Request {
        id: &'a str,
        method: Cow<'a, str>,
    },
    Notification {
        method: Cow<'a, str>,
        /// The id of the request to cancel, if the notification is a cancellation.
        cancels: Option<&'a str>,
    },
    Response {
        id: &'a str,
        /// The session id in the result, if any.
        opened: Option<Cow<'a, str>>,
        is_error: bool,
    },
}

/// The reason why a line is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageHeadError {
    /// The line is a JSON-RPC batch.
    Batch,
    /// The line is not JSON, or not a JSON-RPC object.
    Invalid,
}

#[derive(Deserialize)]
struct MessageMembers<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a member that is present, even if it is `null`.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct SessionMember<'a> {
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request_id: Option<&'a RawValue>,
}

/// Reads the ids in params or a result without validating them.
fn parse_session(value: Option<&RawValue>) -> SessionMember<'_> {
    let object = value
        .map(RawValue::get)
        .filter(|text| text.starts_with('{'));
    object
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Reads the parts of a message that are needed to route it.
pub(crate) fn parse_head(line: &[u8]) -> Result<MessageHead<'_>, MessageHeadError> {
    if let Some(head) = parse_update_head(line) {
        return Ok(head);
    }
    let line = line.trim_ascii();
    if line.first() == Some(&b'[') {
        return Err(MessageHeadError::Batch);
    }
    let members: MessageMembers<'_> =
        serde_json::from_slice(line).map_err(|_| MessageHeadError::Invalid)?;
    let id = members.id.map(RawValue::get);
    if let Some(method) = members.method {
        let named = parse_session(members.params);
        let kind = match id {
            Some(id) => MessageHeadKind::Request { id, method },
            None => MessageHeadKind::Notification {
                cancels: named
                    .request_id
                    .map(RawValue::get)
                    .filter(|_| method == "$/cancel_request"),
                method,
            },
        };
        return Ok(MessageHead {
            kind,
            session: named.session_id,
        });
    }
    match (id, members.result, members.error) {
        (Some(id), Some(result), None) => Ok(MessageHead {
            kind: MessageHeadKind::Response {
                id,
                opened: parse_session(Some(result)).session_id,
                is_error: false,
            },
            session: None,
        }),
        (Some(id), _, Some(_)) => Ok(MessageHead {
            kind: MessageHeadKind::Response {
                id,
                opened: None,
                is_error: true,
            },
            session: None,
        }),
        _ => Err(MessageHeadError::Invalid),
    }
}

/// Recognizes an update, the most frequent kind of message, by its first bytes. Does not validate the rest.
fn parse_update_head(line: &[u8]) -> Option<MessageHead<'_>> {
    let (method, params) = parse_plain_notification(line)?;
    if method != "session/update" {
        return None;
    }
    let (session, _) = params.strip_prefix("{\"sessionId\":\"")?.split_once('"')?;
    (!session.contains('\\')).then_some(MessageHead {
        kind: MessageHeadKind::Notification {
            method: Cow::Borrowed(method),
            cancels: None,
        },
        session: Some(Cow::Borrowed(session)),
    })
}

/// Returns `true` for methods that open a session.
pub(crate) fn opens_session(method: &str) -> bool {
    matches!(
        method,
        "session/new" | "session/load" | "session/resume" | "session/fork"
    )
}

/// Returns `true` for methods that apply to a session even if it is not open.
pub(crate) fn is_about_stored_session(method: &str) -> bool {
    opens_session(method)
        || matches!(
            method,
            "session/delete"
                | "session/archive"
                | "session/unarchive"
                | "session/status"
                | "session/set_title"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified() {
        let session = |name: &'static str| Some(Cow::Borrowed(name));
        let request = parse_head(
            br#"{"jsonrpc":"2.0","id":"a","method":"session/prompt","params":{"sessionId":"s"}}"#,
        );
        let kind = MessageHeadKind::Request {
            id: "\"a\"",
            method: "session/prompt".into(),
        };
        assert_eq!(
            request,
            Ok(MessageHead {
                kind,
                session: session("s")
            })
        );
        for text in [
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{}}}"#,
            r#"{"method":"session/update","jsonrpc":"2.0","params":{"update":{},"sessionId":"\u0073"}}"#,
        ] {
            let kind = MessageHeadKind::Notification {
                method: "session/update".into(),
                cancels: None,
            };
            assert_eq!(
                parse_head(text.as_bytes()),
                Ok(MessageHead {
                    kind,
                    session: session("s")
                })
            );
        }
        let kind = MessageHeadKind::Response {
            id: "1",
            opened: session("s"),
            is_error: false,
        };
        assert_eq!(
            parse_head(br#"{"id":1,"result":{"sessionId":"s"}}"#),
            Ok(MessageHead {
                kind,
                session: None
            })
        );
        let kind = MessageHeadKind::Response {
            id: "null",
            opened: None,
            is_error: false,
        };
        assert_eq!(
            parse_head(br#"{"id":null,"result":null}"#),
            Ok(MessageHead {
                kind,
                session: None
            })
        );
        let kind = MessageHeadKind::Notification {
            method: "$/cancel_request".into(),
            cancels: Some("7"),
        };
        assert_eq!(
            parse_head(br#"{"method":"$/cancel_request","params":{"requestId":7}}"#),
            Ok(MessageHead {
                kind,
                session: None
            })
        );
        assert_eq!(parse_head(b" [{}]"), Err(MessageHeadError::Batch));
        for text in [
            "",
            "x",
            "{}",
            "1",
            "{\"id\":1}",
            "{\"method\":1}",
            "{\"id\":1,\"method\":\"a\"",
            "{} {}",
        ] {
            assert_eq!(
                parse_head(text.as_bytes()),
                Err(MessageHeadError::Invalid),
                "{text}"
            );
        }
    }
}
