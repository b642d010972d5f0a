//! The secret that the two programs share.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use uuid::Uuid;

/// How many characters each half has.
const HALF: usize = 64;

/// The secret that the two programs share, in two halves: the one that connects says the one, the one that listens
/// answers with the other. So a program that has taken the place of a listener that has ended is found out, too.
///
/// It is not shown when printed with `{:?}`.
#[derive(Clone)]
pub struct LocalToken {
    client_half: String,
    server_half: String,
}

impl LocalToken {
    /// A token that nobody can guess: 244 random bits in each half.
    #[must_use]
    pub fn random() -> Self {
        let half = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self {
            client_half: half(),
            server_half: half(),
        }
    }

    /// The token as a text that can be parsed. It must be told by a way that no other user sees: an environment
    /// variable or a file of the user's own, and no argument of a command line.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{}{}", self.client_half, self.server_half)
    }

    /// The line that the one who connects begins with.
    pub(crate) fn client_half(&self) -> String {
        format!("{}\n", self.client_half)
    }

    /// The line that is answered.
    pub(crate) fn server_half(&self) -> String {
        format!("{}\n", self.server_half)
    }
}

impl FromStr for LocalToken {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let hexadecimal = text.bytes().all(|b| b.is_ascii_hexdigit());
        match text.split_at_checked(HALF) {
            Some((said, answered)) if hexadecimal && answered.len() == HALF => Ok(Self {
                client_half: said.to_owned(),
                server_half: answered.to_owned(),
            }),
            _ => Err(ParseTokenError),
        }
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The text is not a token. It is not shown, for it may be one all but for a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid token")]
pub struct ParseTokenError;

/// Compares two lines in a time that does not tell where they differ.
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
    fn a_token_is_read_as_it_is_revealed() {
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
    fn what_is_no_token_is_refused_and_not_shown() {
        let half = "a".repeat(HALF);
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
    fn lines_are_compared_whole() {
        assert!(constant_time_eq(b"abc\n", b"abc\n"));
        for other in [&b"abd\n"[..], b"abc", b"abc\nd", b""] {
            assert!(!constant_time_eq(b"abc\n", other));
        }
    }
}
