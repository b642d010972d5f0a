//! Finds the type and the id of a message that is too large to parse.

use acp_wire::jsonrpc::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The type and id of an oversized message, if its first and last bytes show them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageOutline {
    /// A response, with the id of its request.
    Response(RequestId),
    /// A request, with its id, or `Null` if no id was found.
    Request(RequestId),
    /// A line that is not a message.
    Noise,
}

/// The members of a message that come after its large member.
#[derive(Deserialize)]
struct TrailingMembers {
    id: RequestId,
    #[serde(rename = "method")]
    _method: Option<IgnoredAny>,
}

/// Reads a message's type and id from its first and last bytes.
pub(crate) fn read_outline(head: &[u8], tail: &[u8]) -> MessageOutline {
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    if !head.trim_start().starts_with(['{', '[']) {
        return MessageOutline::Noise;
    }
    // The message's own id and method are before or after its body.
    let body = ["\"params\"", "\"result\"", "\"error\""]
        .into_iter()
        .filter_map(|key| Some((head.find(key)?, key)))
        .min();
    let before = body.and_then(|(at, _)| head.get(..at)).unwrap_or(&head);
    let id = find_leading_id(before)
        .or_else(|| find_trailing_id(&tail))
        .unwrap_or(RequestId::Null);
    let answers = matches!(body, Some((_, "\"result\"" | "\"error\"")));
    if answers && !before.contains("\"method\"") {
        MessageOutline::Response(id)
    } else {
        MessageOutline::Request(id)
    }
}

/// Finds the id among the members at the start of a message.
fn find_leading_id(body: &str) -> Option<RequestId> {
    let (_, rest) = body.split_once("\"id\"")?;
    let value = rest.trim_start().strip_prefix(':')?;
    let end = value.find([',', '}'])?;
    serde_json::from_str(value.get(..end)?.trim()).ok()
}

/// Finds the id among the members at the end of a message.
fn find_trailing_id(tail: &str) -> Option<RequestId> {
    tail.match_indices("\"id\"").find_map(|(at, _)| {
        let rest = tail.get(at..)?;
        serde_json::from_str::<TrailingMembers>(&format!("{{{rest}"))
            .ok()
            .map(|behind| behind.id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_is_read_from_both_ends() {
        use MessageOutline::{Noise, Request, Response};
        use RequestId::{Null, Number};
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"id":9,"#,
                r#"","id":3}}"#,
                Request(Number(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","result":{"content":"..."#,
                r#"..."}}"#,
                Response(RequestId::String("a".to_owned())),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"method":"..."#,
                r#"..."}}"#,
                Response(Number(7)),
            ),
            (
                r#"{"jsonrpc":"2.0","result":{"id":3,"x":"..."#,
                r#"","id":4},"id":7}"#,
                Response(Number(7)),
            ),
            (
                r#"{"method":"session/update","params":{"id":3,"#,
                r#"..","id":4}}"#,
                Request(Null),
            ),
            (
                r#"{"params":{"id":3,"#,
                r#"..."},"id":7,"method":"a"} "#,
                Request(Number(7)),
            ),
            (
                r#"{"params":{"id":3,"#,
                r#"..."},"method":"a","id":7}"#,
                Request(Number(7)),
            ),
            (
                r#"{"id":7,"error":{"code":1,"message":"..."#,
                r#"..."}}"#,
                Response(Number(7)),
            ),
            ("garbage", "garbage", Noise),
            ("", "", Noise),
        ];
        for (head, tail, expected) in cases {
            assert_eq!(
                read_outline(head.as_bytes(), tail.as_bytes()),
                expected,
                "{head} ... {tail}"
            );
        }
    }
}
