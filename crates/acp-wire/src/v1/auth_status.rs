//! Whether one must authenticate. Unstable: for agents that have `auth.status`.

record! {
    /// `auth/status`: changes nothing. An agent answers it also before one has authenticated.
    pub struct AuthStatusRequest {}
}

record! {
    /// The answer to `auth/status`.
    pub struct AuthStatusResponse {
        /// Whether one must authenticate first.
        required state: AuthState,
        /// The accounts that the agent has, to be shown to the user.
        list accounts: AuthAccount,
    }
}

record! {
    /// `auth/status_update`: it has changed.
    pub struct AuthStatusUpdateNotification {
        /// Whether one must authenticate first.
        required state: AuthState,
        /// The accounts that the agent has, to be shown to the user.
        list accounts: AuthAccount,
    }
}

impl From<AuthStatusResponse> for AuthStatusUpdateNotification {
    fn from(status: AuthStatusResponse) -> Self {
        Self {
            state: status.state,
            accounts: status.accounts,
            meta: status.meta,
        }
    }
}

open_enum! {
    /// Whether one must authenticate before a session can be opened. What is not known is to be taken for
    /// [`Undetermined`](Self::Undetermined).
    pub enum AuthState {
        /// There are credentials. They may still be refused.
        Authenticated = "authenticated",
        /// One must authenticate.
        Unauthenticated = "unauthenticated",
        /// One need not.
        NotRequired = "not_required",
        /// The agent cannot tell just now.
        Undetermined = "unknown",
    }
}

record! {
    /// An account that an agent has, or a key. To be shown to the user, and neither logged nor sent elsewhere.
    pub secret AuthAccount {
        /// What it is called, such as `OpenAI API key`.
        required label: String,
        /// Whether it is in use.
        optional active: bool,
        /// The user's name.
        optional name: String,
        /// The user's address.
        optional email: String,
        /// Whom the user works for.
        optional organization: String,
    }
}

impl std::fmt::Debug for AuthAccount {
    /// Who it is stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthAccount")
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

record! {
    /// Present when the agent has `auth/status`.
    pub struct AuthStatusCapabilities {}
}
