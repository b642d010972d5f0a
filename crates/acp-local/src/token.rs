//! The secret token shared by the two programs of a connection.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use uuid::Uuid;

/// The number of characters in each half of a token.
const HALF_LEN: usize = 64;

/// The secret token shared by the two programs of a connection. It has two halves. The connecting program sends one,
/// and the listening program responds with the other. This allows a connecting program to detect an impostor that
/// listens on the address after the real listener has exited.
///
/// `{:?}` does not show the token.
#[derive(Clone)]
pub struct LocalToken {
    client_half: String,
    server_half: String,
}

impl LocalToken {
    /// Creates a token with 244 random bits in each half, which makes it impossible to guess.
    #[must_use]
    pub fn random() -> Self {
        let half = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self {
            client_half: half(),
            server_half: half(),
        }
    }

    /// Returns the token as a string to pass to the other program, which parses it. Pass it in a way that no other user
    /// can see: in an environment variable or a private file, but never as a command-line argument.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{}{}", self.client_half, self.server_half)
    }

    /// Returns the line that the connecting program sends first.
    pub(crate) fn client_half(&self) -> String {
        format!("{}\n", self.client_half)
    }

    /// Returns the line that the listening program responds with.
    pub(crate) fn server_half(&self) -> String {
        format!("{}\n", self.server_half)
    }
}

impl FromStr for LocalToken {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let hexadecimal = text.bytes().all(|b| b.is_ascii_hexdigit());
        match text.split_at_checked(HALF_LEN) {
            Some((said, answered)) if hexadecimal && answered.len() == HALF_LEN => Ok(Self {
                client_half: said.to_owned(),
                server_half: answered.to_owned(),
            }),
            _ => Err(ParseTokenError),
        }
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalToken(..)")
    }
}

/// The error for text that is not a valid token. It does not contain the text, which may be a mistyped token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid token")]
pub struct ParseTokenError;

/// Compares two lines in constant time, so that the time taken does not reveal where they differ.
pub(crate) fn constant_time_eq(line: &[u8], other: &[u8]) -> bool {
    let differences = line
        .iter()
        .zip(other)
        .fold(0, |found, (a, b)| black_box(found | (a ^ b)));
    line.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_round_trips_through_its_text() {
        let token = LocalToken::random();
        let read: LocalToken = token.reveal().parse().unwrap();
        assert_eq!(
            (read.client_half(), read.server_half()),
            (token.client_half(), token.server_half())
        );
        assert_ne!(token.client_half(), token.server_half());
        assert_ne!(token.client_half(), LocalToken::random().client_half());
    }

    #[test]
    fn invalid_token_is_rejected_and_not_printed() {
        let half = "a".repeat(HALF_LEN);
        for text in [
            "",
            "abc",
            &half,
            &format!("{half}{half}a"),
            &format!("{half}{}é", &half[2..]),
        ] {
            assert_eq!(
                text.parse::<LocalToken>().unwrap_err(),
                ParseTokenError,
                "{text}"
            );
        }
        let token = LocalToken::random();
        let shown = format!("{token:?}");
        assert!(
            !token.reveal().contains(&shown) && shown.len() < 20,
            "{shown}"
        );
    }

    #[test]
    fn lines_are_compared_in_full() {
        assert!(constant_time_eq(b"abc\n", b"abc\n"));
        for other in [&b"abd\n"[..], b"abc", b"abc\nd", b""] {
            assert!(!constant_time_eq(b"abc\n", other));
        }
    }
}
