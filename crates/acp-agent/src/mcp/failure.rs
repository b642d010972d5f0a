//! Explains to the user why a server cannot be reached.

use reqwest::StatusCode;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::sse::SseError;
use crate::causes::error_chain;
use crate::text::{first_line, truncate_to_head};

/// The maximum number of bytes to read from an error message or challenge that a server sent.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;

/// A failed attempt to connect to a server.
#[derive(Debug)]
pub(super) struct ConnectFailure {
    /// A sentence that explains the failure to the user.
    pub(super) why: String,
    /// Whether retrying is pointless until the user changes something.
    pub(super) is_permanent: bool,
}

impl ConnectFailure {
    pub(super) fn temporary(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_permanent: false,
        }
    }

    pub(super) fn permanent(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_permanent: true,
        }
    }

    /// Converts a handshake error.
    pub(super) fn from_handshake_error(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::ConnectionClosed(_) => {
                Self::temporary("It closed the connection without responding.")
            }
            ClientInitializeError::JsonRpcError(error) => {
                let message = truncate_to_head(&error.message, MAX_MESSAGE_BYTES);
                Self::permanent(format!("It rejected the connection: {message}."))
            }
            ClientInitializeError::TransportError { error, .. } => {
                Self::from_transport_error(error)
            }
            other => Self::temporary(format!("Invalid MCP response: {}.", error_chain(other))),
        }
    }

    /// Converts an error that occurred while sending a message.
    pub(super) fn from_transport_error(error: &DynamicTransportError) -> Self {
        let error = error.error.as_ref();
        if let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return Self::from_http_error(error);
        }
        if let Some(error) = error.downcast_ref::<SseError>() {
            return Self::from_sse_error(error);
        }
        Self::temporary(format!("{}.", error_chain(error)))
    }

    pub(super) fn from_http_error(error: &StreamableHttpError<reqwest::Error>) -> Self {
        match error {
            StreamableHttpError::AuthRequired(challenge_error) => {
                Self::unauthorized(&challenge_error.www_authenticate_header)
            }
            StreamableHttpError::InsufficientScope(challenge_error) => Self::permanent(format!(
                "Permission denied (HTTP status 403{}): the key does not grant access.",
                challenge_text(&challenge_error.www_authenticate_header)
            )),
            // A 401 without a challenge arrives only as text in the error.
            StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
                Self::unauthorized("")
            }
            // This error repeats its cause in its own text instead of returning it from `source`.
            StreamableHttpError::Client(error) => {
                Self::temporary(format!("{}.", error_chain(error)))
            }
            other => Self::temporary(format!(
                "{}.",
                first_line(truncate_to_head(&error_chain(other), MAX_MESSAGE_BYTES))
            )),
        }
    }

    pub(super) fn from_sse_error(error: &SseError) -> Self {
        match error {
            SseError::Unauthorized(challenge) => Self::unauthorized(challenge),
            SseError::Status(StatusCode::FORBIDDEN) | SseError::OtherOrigin(_) => {
                Self::permanent(format!("{}.", error_chain(error)))
            }
            _ => Self::temporary(format!("{}.", error_chain(error))),
        }
    }

    /// Creates the failure for a server that requires authentication. `challenge` is its `WWW-Authenticate` header, or
    /// empty if there is none.
    fn unauthorized(challenge: &str) -> Self {
        let oauth = if challenge_parameter(challenge, "resource_metadata").is_some() {
            " It also supports OAuth, which this agent does not support yet. Many such servers issue tokens that you can use instead."
        } else {
            ""
        };
        Self::permanent(format!(
            "Authentication required (HTTP status 401{}). Add an `Authorization` header with your key or token to this server's `headers` in `config.toml` or to your editor's server settings, then reopen the session.{oauth}",
            challenge_text(challenge)
        ))
    }
}

/// Formats the parts of a challenge that help users find the right key.
fn challenge_text(challenge: &str) -> String {
    let mut details = String::new();
    for (name, what) in [
        ("realm", "realm"),
        ("scope", "scope"),
        ("error_description", "it says"),
        ("resource_metadata", "described at"),
    ] {
        if let Some(value) =
            challenge_parameter(challenge, name).filter(|value| !value.trim().is_empty())
        {
            details.push_str(&format!(
                ", {what} `{}`",
                first_line(&value.replace('`', "'"))
            ));
        }
    }
    details
}

/// Returns the first parameter of a challenge that has this name, regardless of its scheme (RFC 9110, section 11.2).
fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = truncate_to_head(challenge, MAX_MESSAGE_BYTES);
    while let Some(at) = rest.find('=') {
        let (before, after) = (rest.get(..at)?, rest.get(at + 1..)?.trim_start());
        let named = before
            .trim_end()
            .rsplit([' ', ',', '\t'])
            .next()
            .is_some_and(|last| last.eq_ignore_ascii_case(name));
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                (after.get(..end)?.to_owned(), after.get(end..)?)
            }
        };
        if named {
            return Some(value);
        }
        rest = behind;
    }
    None
}

/// Parses the rest of a quoted string, after its opening quote. Returns the string and the text after it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_is_parsed() {
        let challenge = r#"Basic realm="my \"own\", files", Bearer error=invalid_token, scope="a b", resource_metadata="https://x.example/.well-known""#;
        for (name, expected) in [
            ("realm", Some(r#"my "own", files"#)),
            ("ERROR", Some("invalid_token")),
            ("scope", Some("a b")),
            ("resource_metadata", Some("https://x.example/.well-known")),
            ("own", None),
        ] {
            assert_eq!(
                challenge_parameter(challenge, name).as_deref(),
                expected,
                "{name}"
            );
        }
        for broken in ["", "Bearer", "Bearer realm=\"", "=", "realm = \"\\"] {
            assert_eq!(challenge_parameter(broken, "realm"), None, "{broken}");
        }
    }

    #[test]
    fn failure_message_explains_what_to_do_about_a_missing_key() {
        let why = ConnectFailure::unauthorized("").why;
        assert!(
            why.contains("config.toml") && why.contains("(HTTP status 401)."),
            "{why}"
        );
        let why =
            ConnectFailure::unauthorized("Bearer realm=\"docs`\n\", resource_metadata=\"u\"").why;
        assert!(why.contains("realm `docs'"), "{why}");
        assert!(why.contains("OAuth"), "{why}");
    }
}
