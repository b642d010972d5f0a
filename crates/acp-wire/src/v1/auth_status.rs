//! Reports whether the client must authenticate. Unstable: requires the agent's capability `auth.status`.

record! {
    /// The `auth/status` request. It changes nothing, and agents respond to it even before authentication.
    pub struct AuthStatusRequest {}
}

record! {
    /// The response to `auth/status`, with the state and the accounts.
    pub struct AuthStatusResponse {
        /// Whether the client must authenticate first.
        required state: AuthState,
        /// The agent's accounts, to be shown to the user.
        list accounts: AuthAccount,
    }
}

record! {
    /// The `auth/status_update` notification, which reports that the authentication status has changed.
    pub struct AuthStatusUpdateNotification {
        /// Whether the client must authenticate first.
        required state: AuthState,
        /// The agent's accounts, to be shown to the user.
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
    /// Whether the client must authenticate before it can open a session. Treat unknown values as
    /// [`Undetermined`](Self::Undetermined).
    pub enum AuthState {
        /// The agent has credentials, although they may still be rejected.
        Authenticated = "authenticated",
        /// Authentication is required.
        Unauthenticated = "unauthenticated",
        /// Authentication is not required.
        NotRequired = "not_required",
        /// The agent does not know at the moment.
        Undetermined = "unknown",
    }
}

record! {
    /// An account or key of the agent's. It may be shown to the user, but must not be logged or sent elsewhere.
    pub secret AuthAccount {
        /// A name for the account or key, such as `OpenAI API key`.
        required label: String,
        /// Whether the account is in use.
        optional active: bool,
        /// The user's name.
        optional name: String,
        /// The user's email address.
        optional email: String,
        /// The user's organization.
        optional organization: String,
    }
}

impl std::fmt::Debug for AuthAccount {
    /// Omits the user's identity, to keep it out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthAccount")
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

record! {
    /// An empty object that marks support for `auth/status`.
    pub struct AuthStatusCapabilities {}
}
