//! Authentication: `auth/login`, `auth/logout`, and how an agent says what it takes.

use super::{AuthMethodId, AuthStatusCapabilities, EnvVariable};

tagged! {
    /// A way to authenticate.
    pub enum AuthMethod by "type" {
        /// The client runs the agent's program in a terminal, where the user logs in.
        Terminal(AuthMethodTerminal) = "terminal",
        /// The agent does it itself when `auth/login` is called.
        Agent(AuthMethodAgent) = "agent",
    }
}

record! {
    /// The client runs the agent's program in a terminal; exit status 0 means success. Not to be
    /// passed to `auth/login`.
    pub struct AuthMethodTerminal {
        /// Its id.
        required method_id: AuthMethodId,
        /// The name that is shown to the user.
        required name: String,
        /// What it is.
        optional description: String,
        /// Arguments to add to the agent's own.
        list args: String,
        /// Environment to add to the agent's own; each name once.
        list env: EnvVariable,
    }
}

record! {
    /// The agent authenticates when `auth/login` is called.
    pub struct AuthMethodAgent {
        /// Its id.
        required method_id: AuthMethodId,
        /// The name that is shown to the user.
        required name: String,
        /// What it is.
        optional description: String,
    }
}

record! {
    /// `auth/login`. An agent has it that names any way to authenticate.
    pub struct LoginAuthRequest {
        /// One of the methods of the `initialize` answer.
        required method_id: AuthMethodId,
    }
}

record! {
    /// The answer to `auth/login`.
    pub struct LoginAuthResponse {}
}

record! {
    /// `auth/logout`. An agent has it that names any way to authenticate.
    pub struct LogoutAuthRequest {}
}

record! {
    /// The answer to `auth/logout`.
    pub struct LogoutAuthResponse {}
}

record! {
    /// Extensions of an agent's authentication; `auth/login` and `auth/logout` are told by
    /// `authMethods` alone.
    pub struct AgentAuthCapabilities {
        /// `auth/status`. Unstable.
        optional status: AuthStatusCapabilities,
    }
}

record! {
    /// What a client can do for authentication.
    pub struct ClientAuthCapabilities {
        /// Methods of type `terminal`.
        optional terminal: TerminalAuthCapabilities,
    }
}

record! {
    /// Present when the client can run the agent's program in a terminal.
    pub struct TerminalAuthCapabilities {}
}
