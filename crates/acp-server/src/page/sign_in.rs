//! One-time codes, and the cookies that browsers get for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_remote::Token;
use acp_remote::server::TokenUser;

use crate::users::{User, Users};

/// How long a code can be used.
const CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How long a browser stays signed in.
pub(super) const COOKIE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The maximum number of unused codes. The oldest ones become invalid.
const MAX_CODES: usize = 16;

/// The maximum number of browsers that are signed in. The oldest ones are signed out.
const MAX_COOKIES: usize = 256;

/// Who is signed in. Nothing is stored: after a restart, browsers sign in again.
#[derive(Debug)]
pub(crate) struct SignIn {
    /// The server's token, or `None` if everyone may use the server.
    token: Option<Token>,
    /// The users with tokens of their own.
    users: Option<Arc<Users>>,
    secrets: Mutex<Secrets>,
}

/// Who uses the page.
#[derive(Debug, Clone)]
pub(super) enum PageUser {
    Owner,
    Named(Arc<User>),
}

impl PageUser {
    /// Returns the user with a token of their own.
    pub(super) fn named(&self) -> Option<&User> {
        match self {
            Self::Owner => None,
            Self::Named(user) => Some(user),
        }
    }

    pub(super) fn to_token_user(&self) -> TokenUser {
        match self {
            Self::Owner => TokenUser::Owner,
            Self::Named(user) => TokenUser::Named(Arc::clone(user.name())),
        }
    }
}

#[derive(Debug, Default)]
struct Secrets {
    codes: VecDeque<(Token, Instant, PageUser)>,
    cookies: VecDeque<(Token, Instant, PageUser)>,
}

impl SignIn {
    pub(crate) fn new(token: Option<Token>, users: Option<Arc<Users>>) -> Self {
        Self {
            token,
            users,
            secrets: Mutex::default(),
        }
    }

    /// Returns a new code. Returns `None` if nobody has to sign in.
    pub(crate) fn new_code(&self) -> Option<String> {
        self.token.as_ref()?;
        let code = Token::random();
        let text = code.expose().to_owned();
        push(&mut self.lock().codes, code, PageUser::Owner, MAX_CODES);
        Some(text)
    }

    /// Returns a cookie for a code, which can then no longer be used.
    pub(super) fn use_code(&self, code: &str) -> Option<String> {
        let mut secrets = self.lock();
        let at = position(&secrets.codes, code, CODE_LIFETIME)?;
        let (_, _, user) = secrets.codes.remove(at)?;
        Some(new_cookie(&mut secrets, user))
    }

    /// Returns a cookie for the token of the server, or of a user.
    pub(super) fn use_token(&self, token: &str) -> Option<String> {
        let token = token.trim().as_bytes();
        let user = match self.token.as_ref()?.matches(token) {
            true => PageUser::Owner,
            false => PageUser::Named(self.users.as_ref()?.with_token(token)?),
        };
        Some(new_cookie(&mut self.lock(), user))
    }

    /// Returns who has signed in with one of these cookies. Returns `None` if nobody has, or the user's token was changed
    /// or removed since.
    pub(super) fn user<'a>(&self, mut cookies: impl Iterator<Item = &'a str>) -> Option<PageUser> {
        if self.token.is_none() {
            return Some(PageUser::Owner);
        }
        let secrets = self.lock();
        cookies.find_map(|cookie| {
            let at = position(&secrets.cookies, cookie, COOKIE_LIFETIME)?;
            let (_, _, user) = secrets.cookies.get(at)?;
            let is_current = match user {
                PageUser::Owner => true,
                PageUser::Named(user) => self.users.as_ref()?.is_current(user),
            };
            is_current.then(|| user.clone())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_cookie(secrets: &mut Secrets, user: PageUser) -> String {
    let cookie = Token::random();
    let text = cookie.expose().to_owned();
    push(&mut secrets.cookies, cookie, user, MAX_COOKIES);
    text
}

fn push(
    secrets: &mut VecDeque<(Token, Instant, PageUser)>,
    secret: Token,
    user: PageUser,
    limit: usize,
) {
    if secrets.len() >= limit {
        secrets.pop_front();
    }
    secrets.push_back((secret, Instant::now(), user));
}

fn position(
    secrets: &VecDeque<(Token, Instant, PageUser)>,
    text: &str,
    lifetime: Duration,
) -> Option<usize> {
    secrets.iter().position(|(secret, since, _)| {
        since.elapsed() < lifetime && secret.matches(text.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::{UserLimits, add_user};

    #[test]
    fn code_is_valid_once_and_cookie_until_there_are_too_many() {
        let sign_in = SignIn::new(Some(Token::random()), None);
        assert!(sign_in.user(["", "x"].into_iter()).is_none());
        let code = sign_in.new_code().unwrap();
        let cookie = sign_in.use_code(&code).unwrap();
        assert_eq!(sign_in.use_code(&code), None);
        assert_eq!(sign_in.use_code(""), None);
        assert!(sign_in.user(["x", cookie.as_str()].into_iter()).is_some());
        // A code is not a cookie, and a cookie is not a code.
        assert!(sign_in.user([code.as_str()].into_iter()).is_none());
        assert_eq!(sign_in.use_code(&cookie), None);
        for _ in 0..MAX_COOKIES {
            let code = sign_in.new_code().unwrap();
            sign_in.use_code(&code).unwrap();
        }
        assert!(sign_in.user([cookie.as_str()].into_iter()).is_none());
    }

    #[test]
    fn token_signs_in_and_without_one_everybody_is() {
        let token = Token::random();
        let sign_in = SignIn::new(Some(token.clone()), None);
        assert_eq!(sign_in.use_token("wrong"), None);
        let cookie = sign_in
            .use_token(&format!(" {}\n", token.expose()))
            .unwrap();
        assert!(sign_in.user([cookie.as_str()].into_iter()).is_some());
        let open = SignIn::new(None, None);
        assert_eq!(open.new_code(), None);
        assert!(open.user(std::iter::empty()).is_some());
    }

    #[test]
    fn a_user_is_signed_out_when_the_token_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("users.toml");
        let (anna, token) = User::new("anna", [], false, UserLimits::default()).unwrap();
        add_user(&file, anna).unwrap();
        let users = Arc::new(Users::open(&file).unwrap());
        let sign_in = SignIn::new(Some(Token::random()), Some(Arc::clone(&users)));
        let cookie = sign_in.use_token(token.expose()).unwrap();
        let user = sign_in.user([cookie.as_str()].into_iter()).unwrap();
        assert_eq!(user.to_token_user(), TokenUser::Named("anna".into()));
        users.replace(Vec::new());
        assert!(sign_in.user([cookie.as_str()].into_iter()).is_none());
    }
}
