//! Users with tokens of their own: what they may do, and a log of what they did.
//!
//! The server's own token may do everything. A user's token may do what its [`Scope`]s say. [`Users`] finds users by
//! their tokens, which are stored as hashes in a file (`file.rs`). `permission.rs` checks each message of a client before
//! anything is done with it. [`AuditLog`] records prompts, answers and everything else that changes something.

mod audit;
mod file;
mod permission;
mod user;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use acp_remote::server::UserTokens;
use tokio::sync::watch;

pub use audit::AuditLog;
pub(crate) use audit::{AuditEvent, AuditedClient};
pub use file::{UserFileError, add_user, read_users, remove_user};
pub(crate) use permission::{MessagePermission, not_own_session, only_looks};
pub(crate) use user::ClientUser;
pub use user::{InvalidUserName, Scope, User, UserLimits};

/// How often the file is read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// The users of a server. The file is read again when it changes.
#[derive(Debug)]
pub struct Users {
    file: PathBuf,
    by_name: RwLock<HashMap<Arc<str>, Arc<User>>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The open connections of each user.
    connections: Mutex<HashMap<Arc<str>, usize>>,
}

impl Users {
    /// Reads the users in a file. There are none if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, is invalid, or can be read by others.
    pub fn open(file: &Path) -> Result<Self, UserFileError> {
        Ok(Self {
            by_name: RwLock::new(by_name(read_users(file)?)),
            file: file.to_owned(),
            changes: watch::Sender::new(0),
            connections: Mutex::default(),
        })
    }

    /// Reads the file again whenever it changes. Users that were changed or removed are disconnected. If the file cannot
    /// be read, the users stay as they are. It runs until it is dropped.
    pub async fn follow_file(&self) {
        let mut failed = String::new();
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match read_users(&self.file) {
                Ok(users) => {
                    failed.clear();
                    self.replace(users);
                }
                Err(error) => {
                    let error = error.to_string();
                    if error != failed {
                        tracing::error!(error, "cannot read the users; they stay as they are");
                    }
                    failed = error;
                }
            }
        }
    }

    pub(crate) fn replace(&self, users: Vec<User>) {
        let new = by_name(users);
        let mut all = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if *all != new {
            *all = new;
            drop(all);
            tracing::info!("the users have changed");
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Returns the user with this name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<User>> {
        let all = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned()
    }

    /// Returns the user with this token.
    pub(crate) fn with_token(&self, token: &[u8]) -> Option<Arc<User>> {
        let hash = user::token_hash(token);
        let all = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        all.values().find(|user| user.has_hash(&hash)).cloned()
    }

    /// Returns `true` if nothing about the user has changed.
    pub(crate) fn is_current(&self, user: &User) -> bool {
        self.named(user.name())
            .is_some_and(|current| *current == *user)
    }

    /// Completes when the user has been changed or removed.
    pub(crate) async fn revoked(&self, user: &User) {
        let mut changes = self.changes.subscribe();
        while self.is_current(user) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Counts a connection of a user until the guard is dropped. Returns `None` if the user has too many.
    pub(crate) fn begin_connection(self: &Arc<Self>, user: &User) -> Option<UserConnection> {
        let mut all = self.connections();
        let count = all.entry(Arc::clone(user.name())).or_default();
        if user.limits.connections.is_some_and(|limit| *count >= limit) {
            return None;
        }
        *count += 1;
        Some(UserConnection {
            users: Arc::clone(self),
            name: Arc::clone(user.name()),
        })
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserTokens for Users {
    fn user(&self, token: &[u8]) -> Option<Arc<str>> {
        self.with_token(token).map(|user| Arc::clone(user.name()))
    }
}

fn by_name(users: Vec<User>) -> HashMap<Arc<str>, Arc<User>> {
    let named = users
        .into_iter()
        .map(|user| (Arc::clone(user.name()), Arc::new(user)));
    named.collect()
}

/// A connection of a user, which is counted.
pub(crate) struct UserConnection {
    users: Arc<Users>,
    name: Arc<str>,
}

impl Drop for UserConnection {
    fn drop(&mut self) {
        let mut all = self.users.connections();
        if let Some(count) = all.get_mut(&self.name) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.remove(&self.name);
            }
        }
    }
}
