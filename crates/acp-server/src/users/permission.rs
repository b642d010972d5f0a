//! Decides which messages of a client its user may send.
//!
//! | messages | scopes |
//! |---|---|
//! | `initialize`, `session/list`, `load`, `resume`, `close`, `_live/status`, `_live/queue`, `_live/answers` | look |
//! | `session/new`, `session/prompt`, `session/cancel`, `_live/prompt`, `cancel`, `take_back`, `move` | prompt |
//! | `session/delete`, `session/archive` | prompt, for sessions that the user has created; administer for others |
//! | `authenticate`, `logout`, `_live/stop` | administer |
//! | everything else; any message with MCP servers, or with params that are not listed here | prompt and answer |
//! | any message with additional directories | prompt |
//!
//! Modes and options decide what the agent does without asking, and MCP servers are started without a question. Agents
//! also take options in params of their own, and in `_meta`. So whoever may not answer questions may not send them either. Responses need no check here: a client that may not answer
//! is not asked.

use std::collections::BTreeMap;

use acp::jsonrpc::{self, Incoming};
use acp::v1::SessionId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::user::{Scope, User};

/// Whether a client's message is handled.
#[derive(Debug, PartialEq)]
pub(crate) enum MessagePermission {
    /// It is.
    Allowed,
    /// It is, if the user has created this session.
    OfOwnSession(SessionId),
    /// It is not. Notifications get no response.
    Denied(Option<Vec<u8>>),
}

/// The params that need no scope, and those that decide which scopes are needed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PermissionParams {
    session_id: Option<SessionId>,
    mcp_servers: Value,
    additional_directories: Value,
    #[serde(rename = "_meta")]
    meta: Value,
    #[serde(rename = "cwd")]
    _cwd: IgnoredAny,
    #[serde(rename = "cursor")]
    _cursor: IgnoredAny,
    #[serde(rename = "prompt")]
    _prompt: IgnoredAny,
    #[serde(rename = "messageId")]
    _message_id: IgnoredAny,
    #[serde(rename = "position")]
    _position: IgnoredAny,
    #[serde(rename = "questions")]
    _questions: IgnoredAny,
    #[serde(rename = "requestId")]
    _request_id: IgnoredAny,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// The members of `_meta` that agents take no options from.
const HARMLESS_META: [&str; 4] = ["live", "traceparent", "tracestate", "baggage"];

impl PermissionParams {
    /// Returns `true` if the params can contain options of the agent.
    fn has_options(&self) -> bool {
        let is_harmless = match &self.meta {
            Value::Null => true,
            Value::Object(meta) => meta.keys().all(|key| HARMLESS_META.contains(&&**key)),
            _ => false,
        };
        !is_empty(&self.mcp_servers) || !self.others.is_empty() || !is_harmless
    }
}

/// Returns `true` for an empty list, or none.
fn is_empty(list: &Value) -> bool {
    list.is_null() || list.as_array().is_some_and(Vec::is_empty)
}

impl User {
    /// Decides whether the user may send a message. Invalid ones are rejected elsewhere.
    pub(crate) fn permission(&self, line: &[u8]) -> MessagePermission {
        match jsonrpc::parse(line) {
            Ok(Incoming::Request { id, method, params }) => match self.check(&method, params) {
                Ok(permission) => permission,
                Err(missing) => {
                    let error = denied(&method, missing);
                    let mut response = Vec::new();
                    let written = jsonrpc::write_error(&mut response, &id, &error);
                    MessagePermission::Denied(written.is_ok().then_some(response))
                }
            },
            Ok(Incoming::Notification { method, params }) => self
                .check(&method, params)
                .unwrap_or(MessagePermission::Denied(None)),
            Ok(Incoming::Response { .. }) | Err(_) => MessagePermission::Allowed,
        }
    }

    /// Checks a request or a notification. Returns the scope that is missing.
    fn check(&self, method: &str, params: Option<&RawValue>) -> Result<MessagePermission, Scope> {
        if self.is_administrator() {
            return Ok(MessagePermission::Allowed);
        }
        let read: PermissionParams = match params {
            // Of a member that occurs twice, the agent may read the other one. So these are rejected.
            Some(params) => serde_json::from_str(params.get()).map_err(|_| Scope::Administer)?,
            None => PermissionParams::default(),
        };
        // What a client says of itself does not reach the agent.
        let is_initialize = method == "initialize";
        let mut needed = needed_scopes(method).to_vec();
        if !is_initialize && read.has_options() {
            needed.extend([Scope::Prompt, Scope::Answer]);
        }
        if !is_empty(&read.additional_directories) {
            needed.push(Scope::Prompt);
        }
        if let Some(missing) = needed.into_iter().find(|scope| !self.can(*scope)) {
            return Err(missing);
        }
        let is_removed = matches!(method, "session/delete" | "session/archive");
        Ok(match read.session_id {
            Some(session) if is_removed || self.has_own_sessions_only() => {
                MessagePermission::OfOwnSession(session)
            }
            _ => MessagePermission::Allowed,
        })
    }
}

/// Returns the scopes that a method needs.
fn needed_scopes(method: &str) -> &'static [Scope] {
    match method {
        "initialize" | "session/list" | "session/load" | "session/resume" | "session/close"
        | "_live/status" | "_live/queue" | "_live/answers" | "$/cancel_request" => &[Scope::Look],
        "session/new" | "session/prompt" | "session/cancel" | "session/delete"
        | "session/archive" | "_live/prompt" | "_live/cancel" | "_live/take_back"
        | "_live/move" => &[Scope::Prompt],
        "authenticate" | "logout" | "_live/stop" => &[Scope::Administer],
        _ => &[Scope::Prompt, Scope::Answer],
    }
}

/// Returns `true` if a method changes nothing, so that every user may use it.
pub(crate) fn only_looks(method: &str) -> bool {
    needed_scopes(method) == [Scope::Look]
}

/// Returns the response to a request for a session that another user has created. Notifications get none.
pub(crate) fn not_own_session(line: &[u8], session: &SessionId) -> Option<Vec<u8>> {
    let Ok(Incoming::Request { id, .. }) = jsonrpc::parse(line) else {
        return None;
    };
    // As if there were no such session: whether there is one is none of the user's business.
    let error = jsonrpc::Error::resource_not_found(format!("session {session}"));
    let mut response = Vec::new();
    let written = jsonrpc::write_error(&mut response, &id, &error);
    written.is_ok().then_some(response)
}

/// Returns the error for a message that the user may not send.
fn denied(method: &str, missing: Scope) -> jsonrpc::Error {
    let reason = format!("permission denied: {method} needs the scope `{missing}`");
    let mut error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, reason);
    error.data = Some(json!({ "live": "permissionDenied", "scope": missing }));
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::UserLimits;

    fn user(scopes: &[Scope], own_sessions: bool) -> User {
        let scopes = scopes.iter().copied();
        User::new("anna", scopes, own_sessions, UserLimits::default())
            .unwrap()
            .0
    }

    fn permission(user: &User, method: &str, params: &str) -> MessagePermission {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        user.permission(line.as_bytes())
    }

    fn is_allowed(user: &User, method: &str) -> bool {
        permission(user, method, r#"{"sessionId":"s"}"#) == MessagePermission::Allowed
    }

    #[test]
    fn each_scope_allows_its_methods_only() {
        let methods = [
            ("session/load", "look"),
            ("_live/status", "look"),
            ("session/new", "prompt"),
            ("session/prompt", "prompt"),
            ("_live/take_back", "prompt"),
            ("session/set_mode", "both"),
            ("session/set_config_option", "both"),
            ("_unknown/extension", "both"),
            ("authenticate", "administer"),
        ];
        let cases = [
            (user(&[], false), vec!["look"]),
            (user(&[Scope::Answer], false), vec!["look"]),
            (user(&[Scope::Prompt], false), vec!["look", "prompt"]),
            (
                user(&[Scope::Prompt, Scope::Answer], false),
                vec!["look", "prompt", "both"],
            ),
            (
                user(&[Scope::Administer], true),
                vec!["look", "prompt", "both", "administer"],
            ),
        ];
        for (user, allowed) in &cases {
            for (method, needed) in methods {
                let scopes: Vec<Scope> = user.scopes().collect();
                assert_eq!(
                    is_allowed(user, method),
                    allowed.contains(&needed),
                    "{scopes:?} {method}"
                );
            }
        }
    }

    #[test]
    fn mcp_servers_and_options_of_the_agent_need_the_right_to_answer() {
        let prompts = user(&[Scope::Prompt], false);
        let answers = user(&[Scope::Prompt, Scope::Answer], false);
        let with = |user: &User, params: &str| {
            let params = format!(r#"{{"cwd":"/",{params}}}"#);
            permission(user, "session/new", &params)
        };
        for params in [
            r#""mcpServers":[]"#,
            r#""mcpServers":[],"additionalDirectories":["/x"]"#,
            r#""_meta":{"live":{},"traceparent":"x"}"#,
        ] {
            assert_eq!(
                with(&prompts, params),
                MessagePermission::Allowed,
                "{params}"
            );
        }
        for params in [
            r#""mcpServers":[{"name":"x","command":"sh"}]"#,
            r#""mcpServers":{"name":"x"}"#,
            r#""_meta":{"agent":{"permissionMode":"bypass"}}"#,
            r#""_meta":[]"#,
            r#""permissionMode":"bypass""#,
            r#""\u006dcpServers":[{"command":"sh"}]"#,
        ] {
            let denied = with(&prompts, params);
            assert!(
                matches!(denied, MessagePermission::Denied(Some(_))),
                "{params}"
            );
            assert_eq!(
                with(&answers, params),
                MessagePermission::Allowed,
                "{params}"
            );
        }
        // Of a member that occurs twice, the agent may read the other one.
        let twice = r#""mcpServers":[],"mcpServers":[{"command":"sh"}]"#;
        assert!(matches!(
            with(&answers, twice),
            MessagePermission::Denied(Some(_))
        ));
        let looks = user(&[], false);
        let load = r#"{"sessionId":"s","additionalDirectories":["/x"]}"#;
        assert!(matches!(
            permission(&looks, "session/load", load),
            MessagePermission::Denied(Some(_))
        ));
    }

    #[test]
    fn own_sessions_are_checked_by_their_id() {
        let own = MessagePermission::OfOwnSession("s".into());
        let anna = user(&[Scope::Prompt], true);
        assert_eq!(
            permission(&anna, "session/load", r#"{"sessionId":"s"}"#),
            own
        );
        let anna = user(&[Scope::Prompt], false);
        assert_eq!(
            permission(&anna, "session/delete", r#"{"sessionId":"s"}"#),
            own
        );
        let denied = permission(&user(&[], false), "session/cancel", "{}");
        let MessagePermission::Denied(Some(response)) = denied else {
            panic!("{denied:?}");
        };
        let text = String::from_utf8(response).unwrap();
        assert!(
            text.contains("session/cancel needs the scope `prompt`"),
            "{text}"
        );
    }
}
