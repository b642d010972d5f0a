//! Authentication: `authenticate`, `logout`, and how an agent says what it takes.

use std::collections::BTreeMap;

use super::AuthStatusCapabilities;

string_id! {
    /// Names an authentication method.
    pub struct AuthMethodId;
}

tagged! {
    /// A way to authenticate.
    pub enum AuthMethod by "type" {
        /// The client runs the agent's program in a terminal, where the user logs in.
        Terminal(AuthMethodTerminal) = "terminal",
        ;
        /// The agent does it itself when `authenticate` is called.
        Agent(AuthMethodAgent) without tag
    }
    fallback = agent_with_type;
}

/// Version 2 writes the type for agents, too.
fn agent_with_type(tag: &str, object: &crate::RawObject) -> Option<AuthMethod> {
    (tag == "agent").then(|| object.read().ok().map(AuthMethod::Agent))?
}

impl AuthMethod {
    /// Its id and the name for users; `None` for a kind this library does not know that has none.
    #[must_use]
    pub fn id_and_name(&self) -> Option<(AuthMethodId, String)> {
        match self {
            Self::Terminal(m) => Some((m.id.clone(), m.name.clone())),
            Self::Agent(m) => Some((m.id.clone(), m.name.clone())),
            Self::Unknown(o) => Some((o.field("id")?, o.field("name")?)),
        }
    }
}

record! {
    /// The client runs the agent's program in a terminal; exit status 0 means success. Not to be
    /// passed to `authenticate`.
    pub secret AuthMethodTerminal {
        /// Its id.
        required id: AuthMethodId,
        /// The name that is shown to the user.
        required name: String,
        /// What it is.
        optional description: String,
        /// Arguments to add to the agent's own.
        list args: String,
        /// Environment to add to the agent's own.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        defaulted env: BTreeMap<String, String>,
    }
}

/// Without the values of variables, which may be secret.
impl std::fmt::Debug for AuthMethodTerminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthMethodTerminal")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("description", &self.description)
            .field("args", &self.args)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

record! {
    /// The agent authenticates when `authenticate` is called.
    pub struct AuthMethodAgent {
        /// Its id.
        required id: AuthMethodId,
        /// The name that is shown to the user.
        required name: String,
        /// What it is.
        optional description: String,
    }
}

record! {
    /// `authenticate`.
    pub struct AuthenticateRequest {
        /// One of the methods of the `initialize` answer.
        required method_id: AuthMethodId,
    }
}

record! {
    /// The answer to `authenticate`.
    pub struct AuthenticateResponse {}
}

record! {
    /// `logout`.
    pub struct LogoutRequest {}
}

record! {
    /// The answer to `logout`.
    pub struct LogoutResponse {}
}

record! {
    /// What an agent can do for authentication.
    pub struct AgentAuthCapabilities {
        /// `logout`.
        optional logout: LogoutCapabilities,
        /// `auth/status`. Unstable.
        optional status: AuthStatusCapabilities,
    }
}

record! {
    /// Present when the agent has `logout`.
    pub struct LogoutCapabilities {}
}

record! {
    /// What a client can do for authentication.
    pub struct AuthCapabilities {
        /// Methods of type `terminal`.
        defaulted terminal: bool,
    }
}
