//! Logging in: the specification's page Authentication.
//!
//! A key is typed in a terminal, into the agent's own program, and never passes through the client.

use acp::agent::{AuthContext, Authentication, CheckAuthStatus};
use acp::v1::{
    AuthAccount, AuthMethod, AuthMethodAgent, AuthMethodId, AuthMethodTerminal, AuthState,
    AuthStatusResponse,
};

use crate::keys::Account;
use crate::model::error::failure;
use crate::model::provider::name::Provider;
use crate::models::ModelSelection;
use crate::sessions::AgentSessions;

/// The method for clients that cannot run a program in a terminal: the person has done it, or has set a variable.
const AGAIN: &str = "key";

impl Authentication for AgentSessions {
    /// One for each provider whose key was not given from outside, and for each model at an address that has none;
    /// and one that looks for keys once more.
    fn methods(&self) -> Vec<AuthMethod> {
        let own = Provider::ALL.map(Account::from).into_iter();
        let mut accounts: Vec<Account> = own
            .filter(|account| !self.registry.keys().is_given(account))
            .collect();
        for model in self.registry.keyless_endpoints() {
            let account = model.account();
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        let mut methods: Vec<AuthMethod> = accounts.iter().map(terminal_auth_method).collect();
        let again = AuthMethodAgent::new(AGAIN, "Look for a key again")
            .description("After logging in with `acp agent login` in another terminal".to_owned());
        methods.push(AuthMethod::Agent(again));
        methods
    }

    /// Some clients authenticate before they open any session, by the first method that there is. Without a key that is
    /// no error if a session can be opened without one: it carries out typed commands, and says so. Later it is the
    /// person who asks for it, because they have logged in; then it fails if there is no key.
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> acp::Result<()> {
        self.registry.refresh_blocking().await;
        let chosen = ModelSelection::default();
        self.registry.check_key(&chosen).map_err(failure)?;
        if self.registry.follows_instructions(&chosen) || !self.any_open() {
            return Ok(());
        }
        let mut error = acp::jsonrpc::Error::auth_required();
        error.message = "API key not found; log in with `acp agent login` in a terminal".to_owned();
        Err(acp::Error::Rpc(error))
    }

    fn can_logout(&self) -> bool {
        true
    }

    /// Forgets all keys that were typed. Those in the environment are the person's own to take back.
    async fn logout(&self) -> acp::Result<()> {
        if let Some(file) = self.registry.keys().key_file() {
            let file = file.clone();
            // It waits for the disk.
            let forgotten = tokio::task::spawn_blocking(move || file.forget(None)).await;
            let forgotten = forgotten.map_err(|e| acp::Error::internal(e.to_string()))?;
            forgotten.map_err(|e| acp::Error::internal(e.to_string()))?;
        }
        self.registry.refresh_blocking().await;
        Ok(())
    }
}

impl CheckAuthStatus for AgentSessions {
    async fn auth_state(&self) -> acp::Result<AuthStatusResponse> {
        self.registry.refresh_in_background().await;
        let keys = self.registry.keys().clone();
        // It waits for the disk. What is wrong with the file is told where a key is needed.
        let found = tokio::task::spawn_blocking(move || match keys.find() {
            Ok(found) => found,
            Err(_) => keys.given_keys(),
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
            .filter(|account| found.of(account).is_some())
            .map(|account| AuthAccount::new(auth_method_name(&account)))
            .collect();
        let state = match self.registry.check_key(&ModelSelection::default()) {
            Err(_) => AuthState::Unauthenticated,
            // A model that needs no key, or one that carries out typed commands.
            Ok(()) if accounts.is_empty() => AuthState::NotRequired,
            Ok(()) => AuthState::Authenticated,
        };
        Ok(AuthStatusResponse::new(state).accounts(accounts))
    }
}

/// What the key of an account is called.
fn auth_method_name(account: &Account) -> String {
    match account.address() {
        None => format!("Key for {}", account.provider().title()),
        Some(address) => format!("Key for {address}"),
    }
}

fn terminal_auth_method(account: &Account) -> AuthMethod {
    let provider = account.provider();
    let mut args = vec!["login".to_owned(), provider.to_string()];
    let id = match account.address() {
        None => provider.to_string(),
        Some(address) => {
            args.extend(["--at".to_owned(), address.to_owned()]);
            format!("{provider} {address}")
        }
    };
    let name = auth_method_name(account);
    let description = "Enter the key in a terminal. It is stored in a file only you can read.";
    AuthMethod::Terminal(
        AuthMethodTerminal::new(id, name)
            .description(description.to_owned())
            .args(args),
    )
}
