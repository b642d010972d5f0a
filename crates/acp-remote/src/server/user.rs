//! The users of an endpoint, who have tokens of their own.

use std::fmt;
use std::sync::Arc;

use super::config::ServerConfig;

/// Finds users by their tokens.
pub trait UserTokens: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the user whose token this is. Called for each request, so it must not block.
    fn user(&self, token: &[u8]) -> Option<Arc<str>>;
}

/// Who has sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenUser {
    /// Someone with the server's own token, or anyone if no token is required.
    Owner,
    /// The user with this name, who has a token of their own.
    Named(Arc<str>),
}

impl TokenUser {
    /// Returns the name of a user with a token of their own.
    #[must_use]
    pub fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Owner => None,
            Self::Named(name) => Some(name),
        }
    }
}

impl ServerConfig {
    /// Finds who has sent a request with one of these tokens. Returns `None` if none of them is valid.
    pub(super) fn token_user<'a>(
        &self,
        mut tokens: impl Iterator<Item = &'a [u8]>,
    ) -> Option<TokenUser> {
        if self.token.is_none() && self.users.is_none() {
            return Some(TokenUser::Owner);
        }
        tokens.find_map(|text| {
            if self.token.as_ref().is_some_and(|token| token.matches(text)) {
                return Some(TokenUser::Owner);
            }
            self.users.as_ref()?.user(text).map(TokenUser::Named)
        })
    }
}
