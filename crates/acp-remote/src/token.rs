//! The token that clients need to use a server.

use std::fmt;

use subtle::ConstantTimeEq;

/// The maximum length of a token, in bytes.
const MAX_TOKEN_LEN: usize = 1024;

/// A secret that clients need to use a server. `Debug` never shows it, and it is compared in constant time.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Creates a token from 1 to 1024 visible ASCII characters. Surrounding whitespace, such as a trailing newline, is
    /// removed.
    ///
    /// # Errors
    /// The text is empty or too long, or contains other characters, which cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        let is_valid = !text.is_empty()
            && text.len() <= MAX_TOKEN_LEN
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidToken)
    }

    /// Creates a random token of 64 hexadecimal digits, with 244 bits of randomness.
    #[must_use]
    pub fn random() -> Self {
        let random = || uuid::Uuid::new_v4().simple();
        Self(format!("{}{}", random(), random()))
    }

    /// Returns the secret as text, to show it to the user or to store it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns `true` if `text` is the token. Compares in constant time.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The error for text that is not a valid [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid token: expected 1 to {MAX_TOKEN_LEN} visible ASCII characters")]
pub struct InvalidToken;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_one_line_of_visible_characters() {
        assert_eq!(Token::new("abc\n").unwrap().expose(), "abc");
        assert!(Token::new("abc").unwrap().matches(b"abc"));
        assert!(!Token::new("abc").unwrap().matches(b"abd"));
        assert!(!Token::new("abc").unwrap().matches(b"ab"));
        for text in ["", "\n", "a b", "a\nb", "é", &"x".repeat(1025)] {
            assert_eq!(Token::new(text).unwrap_err(), InvalidToken, "{text:?}");
        }
    }

    #[test]
    fn random_token_is_unique_and_not_printed() {
        let token = Token::random();
        assert_eq!(token.expose().len(), 64);
        assert!(!token.matches(Token::random().expose().as_bytes()));
        assert!(!format!("{token:?}").contains(token.expose()));
    }
}
