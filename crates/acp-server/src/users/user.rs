//! Defines users and what they may do.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use acp_remote::Token;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// What a user may do. Every user may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// List sessions, and see everything that happens in them.
    Look,
    /// Answer questions, such as permission requests.
    Answer,
    /// Create sessions, send prompts, cancel turns, and delete their own sessions.
    Prompt,
    /// Do everything, with the sessions of all users.
    Administer,
}

impl Scope {
    /// Returns the name of the scope, as in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Answer => "answer",
            Self::Prompt => "prompt",
            Self::Administer => "administer",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Look, Self::Answer, Self::Prompt, Self::Administer];
        let found = all.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| {
            format!("unknown scope: {text}; expected look, answer, prompt or administer")
        })
    }
}

/// The limits of a user on one server. `None` means that only the server's limits apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UserLimits {
    /// The maximum number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// The maximum number of live sessions that the user has created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
}

impl UserLimits {
    /// Creates limits.
    #[must_use]
    pub fn new(connections: Option<usize>, sessions: Option<usize>) -> Self {
        Self {
            connections,
            sessions,
        }
    }
}

/// A user, as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    #[serde(deserialize_with = "valid_name")]
    name: Arc<str>,
    /// The SHA-256 hash of the token. The token is random, so its hash need not be slow to compute.
    token_sha256: String,
    can: BTreeSet<Scope>,
    #[serde(default)]
    own_sessions: bool,
    #[serde(default)]
    pub(crate) limits: UserLimits,
}

/// A name that a user cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid user name: expected 1 to {MAX_NAME_CHARS} letters, digits, dots, hyphens or underscores"
)]
pub struct InvalidUserName;

impl User {
    /// Creates a user with a new token, which is returned. With `own_sessions`, the user sees only sessions that they
    /// have created.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn new(
        name: &str,
        scopes: impl IntoIterator<Item = Scope>,
        own_sessions: bool,
        limits: UserLimits,
    ) -> Result<(Self, Token), InvalidUserName> {
        check_name(name)?;
        let token = Token::random();
        let user = Self {
            name: name.into(),
            token_sha256: token_hash(token.expose().as_bytes()),
            can: scopes.into_iter().chain([Scope::Look]).collect(),
            own_sessions,
            limits,
        };
        Ok((user, token))
    }

    /// Returns the name of the user.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns what the user may do.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.can.iter().copied()
    }

    /// Returns the limits of the user.
    #[must_use]
    pub fn limits(&self) -> UserLimits {
        self.limits
    }

    /// Returns `true` if the user may do what the scope says.
    #[must_use]
    pub fn can(&self, scope: Scope) -> bool {
        scope == Scope::Look || self.can.contains(&scope) || self.is_administrator()
    }

    /// Returns `true` if the user sees only sessions that they have created.
    #[must_use]
    pub fn has_own_sessions_only(&self) -> bool {
        self.own_sessions && !self.is_administrator()
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.can.contains(&Scope::Administer)
    }

    pub(super) fn has_hash(&self, hash: &str) -> bool {
        // Whoever could measure this would learn something about the hash, not about the token.
        self.token_sha256 == hash
    }

    /// Returns what a live agent must know about the user.
    pub(crate) fn to_client_user(&self) -> ClientUser {
        ClientUser {
            name: Arc::clone(&self.name),
            may_answer: self.can(Scope::Answer),
            may_prompt: self.can(Scope::Prompt),
            own_sessions: self.has_own_sessions_only(),
            max_sessions: self.limits.sessions,
        }
    }
}

/// What a live agent knows about the user of a client. Servers of a fleet tell it each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientUser {
    pub(crate) name: Arc<str>,
    pub(crate) may_answer: bool,
    pub(crate) may_prompt: bool,
    /// Whether the user sees only sessions that they have created.
    pub(crate) own_sessions: bool,
    pub(crate) max_sessions: Option<usize>,
}

impl ClientUser {
    /// Returns `true` if the user may see a session that this user has created.
    pub(crate) fn may_see(&self, creator: Option<&str>) -> bool {
        !self.own_sessions || creator == Some(&*self.name)
    }
}

/// Returns the hash of a token, as hexadecimal digits.
pub(super) fn token_hash(token: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(token) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn check_name(name: &str) -> Result<(), InvalidUserName> {
    let is_valid = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_short = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    match is_short && name.chars().all(is_valid) {
        true => Ok(()),
        false => Err(InvalidUserName),
    }
}

fn valid_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    let name = String::deserialize(deserializer)?;
    check_name(&name).map_err(serde::de::Error::custom)?;
    Ok(name.into())
}
