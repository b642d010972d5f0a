//! Authentication: `authenticate`, `logout`, and the auth methods of an agent.

use std::collections::BTreeMap;

use super::AuthStatusCapabilities;

string_id! {
    /// The id of an auth method, chosen by the agent.
    pub struct AuthMethodId;
}

tagged! {
    /// A way to log in that an agent offers.
    pub enum AuthMethod by "type" {
        /// The user logs in to the agent's program, which the client runs in a terminal.
        Terminal(AuthMethodTerminal) = "terminal",
        ;
        /// The agent authenticates itself when it receives `authenticate`.
        Agent(AuthMethodAgent) without tag
    }
    fallback = read_agent_with_type;
}

/// Reads an auth method of type `agent`, as version 2 writes it.
fn read_agent_with_type(tag: &str, object: &crate::RawObject) -> Option<AuthMethod> {
    (tag == "agent").then(|| object.read().ok().map(AuthMethod::Agent))?
}

impl AuthMethod {
    /// Returns the id and the name to show to the user. Returns `None` for an unknown type without these.
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
    /// An auth method for which the client runs the agent's program in a terminal. Exit code 0 means success. The
    /// method must not be passed to `authenticate`.
    pub secret AuthMethodTerminal {
        /// The id of the method, unique among the agent's auth methods.
        required id: AuthMethodId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
        /// The arguments to pass, in addition to the agent's own.
        list args: String,
        /// The environment variables to set, in addition to the agent's own.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        defaulted env: BTreeMap<String, String>,
    }
}

/// Omits the values of variables, which may be secret.
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
    /// An auth method that the agent handles itself when it receives `authenticate`.
    pub struct AuthMethodAgent {
        /// The id of the method, unique among the agent's auth methods.
        required id: AuthMethodId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The `authenticate` request, which logs in with an auth method.
    pub struct AuthenticateRequest {
        /// The id of one of the auth methods in the response to `initialize`.
        required method_id: AuthMethodId,
    }
}

record! {
    /// The response to `authenticate`, which confirms that the client is logged in.
    pub struct AuthenticateResponse {}
}

record! {
    /// The `logout` request, which logs the client out of the agent.
    pub struct LogoutRequest {}
}

record! {
    /// The response to `logout`, which confirms that the client is logged out.
    pub struct LogoutResponse {}
}

record! {
    /// The authentication-related methods that an agent supports, besides `authenticate`.
    pub struct AgentAuthCapabilities {
        /// Support for `logout`.
        optional logout: LogoutCapabilities,
        /// Support for `auth/status`. Unstable.
        optional status: AuthStatusCapabilities,
    }
}

record! {
    /// An empty object that marks support for `logout`.
    pub struct LogoutCapabilities {}
}

record! {
    /// The kinds of authentication that a client supports.
    pub struct AuthCapabilities {
        /// Support for auth methods of type `terminal`.
        defaulted terminal: bool,
    }
}
