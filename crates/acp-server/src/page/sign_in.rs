//! One-time codes, and the cookies that browsers get for them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_remote::Token;

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
    secrets: Mutex<Secrets>,
}

#[derive(Debug, Default)]
struct Secrets {
    codes: VecDeque<(Token, Instant)>,
    cookies: VecDeque<(Token, Instant)>,
}

impl SignIn {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self {
            token,
            secrets: Mutex::default(),
        }
    }

    /// Returns a new code. Returns `None` if nobody has to sign in.
    pub(crate) fn new_code(&self) -> Option<String> {
        self.token.as_ref()?;
        let code = Token::random();
        let text = code.expose().to_owned();
        push(&mut self.lock().codes, code, MAX_CODES);
        Some(text)
    }

    /// Returns a cookie for a code, which can then no longer be used.
    pub(super) fn use_code(&self, code: &str) -> Option<String> {
        let mut secrets = self.lock();
        let at = position(&secrets.codes, code, CODE_LIFETIME)?;
        secrets.codes.remove(at);
        Some(new_cookie(&mut secrets))
    }

    /// Returns a cookie for the server's token.
    pub(super) fn use_token(&self, token: &str) -> Option<String> {
        let is_valid = self.token.as_ref()?.matches(token.trim().as_bytes());
        is_valid.then(|| new_cookie(&mut self.lock()))
    }

    /// Returns `true` if a browser with these cookies may use the page.
    pub(super) fn is_signed_in<'a>(&self, mut cookies: impl Iterator<Item = &'a str>) -> bool {
        let secrets = self.lock();
        self.token.is_none()
            || cookies.any(|cookie| position(&secrets.cookies, cookie, COOKIE_LIFETIME).is_some())
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_cookie(secrets: &mut Secrets) -> String {
    let cookie = Token::random();
    let text = cookie.expose().to_owned();
    push(&mut secrets.cookies, cookie, MAX_COOKIES);
    text
}

fn push(secrets: &mut VecDeque<(Token, Instant)>, secret: Token, limit: usize) {
    if secrets.len() >= limit {
        secrets.pop_front();
    }
    secrets.push_back((secret, Instant::now()));
}

fn position(secrets: &VecDeque<(Token, Instant)>, text: &str, lifetime: Duration) -> Option<usize> {
    secrets
        .iter()
        .position(|(secret, since)| since.elapsed() < lifetime && secret.matches(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_valid_once_and_cookie_until_there_are_too_many() {
        let sign_in = SignIn::new(Some(Token::random()));
        assert!(!sign_in.is_signed_in(["", "x"].into_iter()));
        let code = sign_in.new_code().unwrap();
        let cookie = sign_in.use_code(&code).unwrap();
        assert_eq!(sign_in.use_code(&code), None);
        assert_eq!(sign_in.use_code(""), None);
        assert!(sign_in.is_signed_in(["x", cookie.as_str()].into_iter()));
        // A code is not a cookie, and a cookie is not a code.
        assert!(!sign_in.is_signed_in([code.as_str()].into_iter()));
        assert_eq!(sign_in.use_code(&cookie), None);
        for _ in 0..MAX_COOKIES {
            let code = sign_in.new_code().unwrap();
            sign_in.use_code(&code).unwrap();
        }
        assert!(!sign_in.is_signed_in([cookie.as_str()].into_iter()));
    }

    #[test]
    fn token_signs_in_and_without_one_everybody_is() {
        let token = Token::random();
        let sign_in = SignIn::new(Some(token.clone()));
        assert_eq!(sign_in.use_token("wrong"), None);
        let cookie = sign_in
            .use_token(&format!(" {}\n", token.expose()))
            .unwrap();
        assert!(sign_in.is_signed_in([cookie.as_str()].into_iter()));
        let open = SignIn::new(None);
        assert_eq!(open.new_code(), None);
        assert!(open.is_signed_in(std::iter::empty()));
    }
}
