//! Decides which client messages to pass on to the agent.
//!
//! An agent does what its client says, so the directories that a client may open must be checked here, on every
//! message. The check is strict: what this program cannot read as one JSON-RPC message, the agent does not get either,
//! because it might read something else in it.

use std::borrow::Cow;

use acp::jsonrpc::{self, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::roots::AllowedRoots;

/// The method that uses its directory only as a filter.
const LIST_SESSIONS: &str = "session/list";

/// The decision about a client's line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineDecision {
    /// Pass the line on. If it is a request, it is in flight until its response arrives.
    Forward(Option<ClientRequest>),
    /// Ignore the line.
    Drop,
    /// Reject the line with this response, which ends with a line feed.
    Reject(Vec<u8>),
}

/// A request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientRequest {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) session: Option<String>,
}

/// The members of a JSON-RPC message that are checked. Duplicate members cause an error, so the agent cannot read a
/// value other than the one that was checked.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cwd: Option<&'a RawValue>,
    #[serde(borrow, default)]
    additional_directories: Option<&'a RawValue>,
}

/// Decides whether to pass on a client's line, given without its line feed.
pub(crate) fn decide(line: &[u8], roots: &AllowedRoots) -> LineDecision {
    if line.trim_ascii().is_empty() {
        return LineDecision::Drop;
    }
    let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else {
        return LineDecision::Reject(invalid_message(line));
    };
    let Some(method) = &message.method else {
        // A response. It names no directory.
        return LineDecision::Forward(None);
    };
    let params = match message.params.map(RawValue::get) {
        Some(text) if text.starts_with('{') => serde_json::from_str::<Params<'_>>(text),
        _ => Ok(Params::default()),
    };
    let checked = match &params {
        Ok(params) if method != LIST_SESSIONS => check_directories(params, roots),
        Ok(_) => Ok(()),
        Err(e) => Err(format!("invalid params: {e}")),
    };
    if let Err(reason) = checked {
        return match message.id {
            Some(id) => LineDecision::Reject(invalid_params(id, reason)),
            None => LineDecision::Drop,
        };
    }
    let Some(Ok(id)) = message.id.map(|id| serde_json::from_str(id.get())) else {
        return LineDecision::Forward(None);
    };
    let session = params.ok().and_then(|params| params.session_id);
    let session = session.and_then(|id| serde_json::from_str::<String>(id.get()).ok());
    LineDecision::Forward(Some(ClientRequest {
        id,
        method: method.clone().into_owned(),
        session,
    }))
}

/// Checks the directories in the params. If a value has the wrong type, the error contains the name of its field.
fn check_directories(params: &Params<'_>, roots: &AllowedRoots) -> Result<(), String> {
    let cwd = params.cwd.map(RawValue::get).unwrap_or("null");
    let cwd: Option<Cow<'_, str>> =
        serde_json::from_str(cwd).map_err(|e| format!("invalid `cwd`: {e}"))?;
    let more = params
        .additional_directories
        .map(RawValue::get)
        .unwrap_or("null");
    let more: Option<Vec<Cow<'_, str>>> =
        serde_json::from_str(more).map_err(|e| format!("invalid `additionalDirectories`: {e}"))?;
    for directory in cwd.iter().chain(more.iter().flatten()) {
        roots.check(directory).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn invalid_params(id: &RawValue, reason: String) -> Vec<u8> {
    let error = serde_json::json!({
        "code": jsonrpc::Error::INVALID_PARAMS,
        "message": reason,
    });
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n",
        id.get()
    )
    .into_bytes()
}

/// Returns the response to a line that is not exactly one message.
fn invalid_message(line: &[u8]) -> Vec<u8> {
    let (id, error) = match jsonrpc::parse(line) {
        Err(error) => error.to_response(),
        // It can be read as a message, but perhaps not by everyone as the same one.
        Ok(_) => {
            let reason = "invalid request: duplicate or malformed member";
            let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, reason);
            (RequestId::Null, error)
        }
    };
    let mut response = Vec::new();
    // Only data of an error can fail to be written, and these have none.
    let _ = jsonrpc::write_error(&mut response, &id, &error);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide_line(line: &str, roots: &AllowedRoots) -> LineDecision {
        decide(line.as_bytes(), roots)
    }

    #[test]
    fn only_directories_below_the_roots_can_be_opened() {
        let temp = tempfile::tempdir().unwrap();
        let roots = AllowedRoots::new([temp.path()]).unwrap();
        let inside = temp.path().to_string_lossy();
        let request = |method: &str, params: &str| {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
            decide_line(&line, &roots)
        };
        let good = [
            ("session/new", format!(r#"{{"cwd":"{inside}"}}"#)),
            (
                "session/prompt",
                r#"{"sessionId":"s","prompt":[]}"#.to_owned(),
            ),
            ("session/list", r#"{"cwd":"/"}"#.to_owned()),
            ("initialize", "[]".to_owned()),
        ];
        for (method, params) in good {
            let decision = request(method, &params);
            assert!(matches!(decision, LineDecision::Forward(_)), "{method}");
        }
        let bad = [
            r#"{"cwd":"/"}"#.to_owned(),
            r#"{"cwd":7}"#.to_owned(),
            r#"{"cw\u0064":"/"}"#.to_owned(),
            format!(r#"{{"cwd":"{inside}","cwd":"/"}}"#),
            format!(r#"{{"cwd":"{inside}","additionalDirectories":["/"]}}"#),
            format!(r#"{{"cwd":"{inside}","additionalDirectories":"/"}}"#),
        ];
        for params in bad {
            for method in ["session/new", "session/load", "_other/open"] {
                let LineDecision::Reject(response) = request(method, &params) else {
                    panic!("{method} {params}");
                };
                let response: serde_json::Value = serde_json::from_slice(&response).unwrap();
                assert_eq!(response["id"], 7);
                assert_eq!(response["error"]["code"], -32602, "{params}");
            }
            let notification = format!(r#"{{"method":"session/new","params":{params}}}"#);
            assert_eq!(decide_line(&notification, &roots), LineDecision::Drop);
        }
    }

    #[test]
    fn only_single_messages_are_passed_on() {
        let invalid = [
            ("no json", -32700),
            ("{", -32700),
            (r#"{"id":1,"method":"a"} {"id":2,"method":"b"}"#, -32700),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}]"#,
                -32600,
            ),
            (r#"{"id":1,"method":"a","method":"session/new"}"#, -32600),
            (r#"{"method":7}"#, -32600),
        ];
        for (line, code) in invalid {
            let LineDecision::Reject(response) = decide_line(line, &AllowedRoots::any()) else {
                panic!("{line}");
            };
            let response: serde_json::Value = serde_json::from_slice(&response).unwrap();
            assert_eq!(response["error"]["code"], code, "{line}");
        }
        assert_eq!(decide_line(" \r", &AllowedRoots::any()), LineDecision::Drop);
    }

    #[test]
    fn requests_are_recognized() {
        let line = br#"{"id":"a\u0062","method":"session/prompt","params":{"sessionId":"s"}}"#;
        let expected = ClientRequest {
            id: serde_json::from_str(r#""ab""#).unwrap(),
            method: "session/prompt".to_owned(),
            session: Some("s".to_owned()),
        };
        assert_eq!(
            decide(line, &AllowedRoots::any()),
            LineDecision::Forward(Some(expected))
        );
        let response = br#"{"id":1,"result":{}}"#;
        assert_eq!(
            decide(response, &AllowedRoots::any()),
            LineDecision::Forward(None)
        );
    }
}
