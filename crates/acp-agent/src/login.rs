//! The agent's auth methods. See "Authentication" in the specification.
//!
//! The user enters a key into the agent's own program in a terminal. The key never passes through the client.

use acp::agent::{AuthContext, AuthStatusHandler, Authentication};
use acp::v1::{
    AuthAccount, AuthMethod, AuthMethodAgent, AuthMethodId, AuthMethodTerminal, AuthState,
    AuthStatusResponse,
};

use crate::keys::Account;
use crate::model::error::to_acp_error;
use crate::model::provider::name::Provider;
use crate::models::ModelSelection;
use crate::sessions::AgentSessions;

/// The id of the auth method that looks for keys again, for clients that cannot run a program in a terminal. The user
/// logs in elsewhere or sets an environment variable, and then chooses this method.
const RECHECK_KEYS_METHOD: &str = "key";

impl Authentication for AgentSessions {
    /// Returns the auth methods: one for each provider whose key was not passed by the caller, one for each model URL
    /// without a key, and one that looks for keys again.
    fn methods(&self) -> Vec<AuthMethod> {
        let own = Provider::ALL.map(Account::from).into_iter();
        let mut accounts: Vec<Account> = own
            .filter(|account| !self.registry.keys().has_explicit_key(account))
            .collect();
        for model in self.registry.keyless_endpoints() {
            let account = model.account();
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        let mut methods: Vec<AuthMethod> = accounts.iter().map(terminal_auth_method).collect();
        let again = AuthMethodAgent::new(RECHECK_KEYS_METHOD, "Check for a key again").description(
            "Choose this after you log in with `acp agent login` in another terminal".to_owned(),
        );
        methods.push(AuthMethod::Agent(again));
        methods
    }

    /// Looks for keys again. If no session is open, a missing key is not an error as long as a session can be opened
    /// without one, because some clients authenticate with the first auth method before they open a session. The model
    /// of such a session runs slash commands and reports that there is no key. If a session is open, the client
    /// authenticates because the user has just logged in, so a missing key is an error.
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> acp::Result<()> {
        self.registry.refresh_blocking().await;
        let chosen = ModelSelection::default();
        self.registry.check_key(&chosen).map_err(to_acp_error)?;
        if self.registry.follows_instructions(&chosen) || !self.has_open_sessions() {
            return Ok(());
        }
        let mut error = acp::jsonrpc::Error::auth_required();
        error.message = "API key not found; log in with `acp agent login` in a terminal".to_owned();
        Err(acp::Error::Rpc(error))
    }

    fn can_logout(&self) -> bool {
        true
    }

    /// Removes all keys that the user entered. Keys in environment variables are not affected.
    async fn logout(&self) -> acp::Result<()> {
        if let Some(file) = self.registry.keys().key_file() {
            let file = file.clone();
            // This blocks on disk I/O.
            let forgotten = tokio::task::spawn_blocking(move || file.remove(None)).await;
            let forgotten = forgotten.map_err(|e| acp::Error::internal(e.to_string()))?;
            forgotten.map_err(|e| acp::Error::internal(e.to_string()))?;
        }
        self.registry.refresh_blocking().await;
        Ok(())
    }
}

impl AuthStatusHandler for AgentSessions {
    async fn auth_state(&self) -> acp::Result<AuthStatusResponse> {
        self.registry.refresh_in_background().await;
        let keys = self.registry.keys().clone();
        // This blocks on disk I/O. Errors in the key file are reported when a key is needed.
        let found = tokio::task::spawn_blocking(move || match keys.read_keys() {
            Ok(found) => found,
            Err(_) => keys.explicit_keys(),
        })
        .await;
        let found = found.map_err(|e| acp::Error::internal(e.to_string()))?;
        let own = Provider::ALL.map(Account::from).into_iter();
        let elsewhere = self
            .registry
            .keyless_endpoints()
            .map(|model| model.account());
        let accounts: Vec<AuthAccount> = own
            .chain(elsewhere)
            .filter(|account| found.get(account).is_some())
            .map(|account| AuthAccount::new(auth_method_name(&account)))
            .collect();
        let state = match self.registry.check_key(&ModelSelection::default()) {
            Err(_) => AuthState::Unauthenticated,
            // The model needs no key, or it is the offline model.
            Ok(()) if accounts.is_empty() => AuthState::NotRequired,
            Ok(()) => AuthState::Authenticated,
        };
        Ok(AuthStatusResponse::new(state).accounts(accounts))
    }
}

/// Returns the display name of an account's auth method.
fn auth_method_name(account: &Account) -> String {
    match account.url() {
        None => format!("API key for {}", account.provider().title()),
        Some(address) => format!("API key for {address}"),
    }
}

fn terminal_auth_method(account: &Account) -> AuthMethod {
    let provider = account.provider();
    let mut args = vec!["login".to_owned(), provider.to_string()];
    let id = match account.url() {
        None => provider.to_string(),
        Some(address) => {
            args.extend(["--at".to_owned(), address.to_owned()]);
            format!("{provider} {address}")
        }
    };
    let name = auth_method_name(account);
    let description = "Enter the key in a terminal. It is stored in a file that only you can read.";
    AuthMethod::Terminal(
        AuthMethodTerminal::new(id, name)
            .description(description.to_owned())
            .args(args),
    )
}
