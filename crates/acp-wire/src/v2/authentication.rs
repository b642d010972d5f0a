//! Authentication: `auth/login`, `auth/logout`, and the auth methods of an agent.

use super::{AuthMethodId, AuthStatusCapabilities, EnvVariable};

tagged! {
    /// A way to log in that an agent offers.
    pub enum AuthMethod by "type" {
        /// The client runs the agent's program in a terminal, where the user logs in.
        Terminal(AuthMethodTerminal) = "terminal",
        /// The agent handles the login when it receives `auth/login`.
        Agent(AuthMethodAgent) = "agent",
    }
}

record! {
    /// An auth method for which the client runs the agent's program in a terminal, where exit code 0 means success.
    /// Clients must not pass this method's id to `auth/login`.
    pub struct AuthMethodTerminal {
        /// The auth method's id, unique among the agent's auth methods.
        required method_id: AuthMethodId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
        /// Arguments to pass in addition to the agent's own.
        list args: String,
        /// Environment variables to set in addition to the agent's own. Names must be unique.
        list env: EnvVariable,
    }
}

record! {
    /// An auth method that the agent handles itself when it receives `auth/login`.
    pub struct AuthMethodAgent {
        /// The auth method's id, unique among the agent's auth methods.
        required method_id: AuthMethodId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The `auth/login` request: logs in with an auth method. Every agent that offers an auth method supports this
    /// request.
    pub struct LoginAuthRequest {
        /// The id of one of the auth methods in the response to `initialize`.
        required method_id: AuthMethodId,
    }
}

record! {
    /// The response to `auth/login`, sent once the client is logged in.
    pub struct LoginAuthResponse {}
}

record! {
    /// The `auth/logout` request: logs the client out of the agent. Every agent that offers an auth method supports it.
    pub struct LogoutAuthRequest {}
}

record! {
    /// The response to `auth/logout`, sent once the client is logged out.
    pub struct LogoutAuthResponse {}
}

record! {
    /// The optional authentication requests that an agent supports. `authMethods` alone implies support for
    /// `auth/login` and `auth/logout`.
    pub struct AgentAuthCapabilities {
        /// Support for `auth/status`. Unstable.
        optional status: AuthStatusCapabilities,
    }
}

record! {
    /// The kinds of authentication that a client supports.
    pub struct ClientAuthCapabilities {
        /// Support for auth methods of type `terminal`.
        optional terminal: TerminalAuthCapabilities,
    }
}

record! {
    /// An empty object that declares support for running the agent's program in a terminal.
    pub struct TerminalAuthCapabilities {}
}
