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
pub struct Token {
    said: String,
    answered: String,
}

impl Token {
    /// A token that nobody can guess: 244 random bits in each half.
    #[must_use]
    pub fn random() -> Self {
        let half = || format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self {
            said: half(),
            answered: half(),
        }
    }

    /// The token as a text that can be parsed. It must be told by a way that no other user sees: an environment
    /// variable or a file of the user's own, and no argument of a command line.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{}{}", self.said, self.answered)
    }

    /// The line that the one who connects begins with.
    pub(crate) fn said(&self) -> String {
        format!("{}\n", self.said)
    }

    /// The line that is answered.
    pub(crate) fn answered(&self) -> String {
        format!("{}\n", self.answered)
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let hexadecimal = text.bytes().all(|b| b.is_ascii_hexdigit());
        match text.split_at_checked(HALF) {
            Some((said, answered)) if hexadecimal && answered.len() == HALF => Ok(Self {
                said: said.to_owned(),
                answered: answered.to_owned(),
            }),
            _ => Err(NotAToken),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The text is not a token. It is not shown, for it may be one all but for a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token")]
pub struct NotAToken;

/// Compares two lines in a time that does not tell where they differ.
pub(crate) fn same(line: &[u8], other: &[u8]) -> bool {
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
        let token = Token::random();
        let read: Token = token.reveal().parse().unwrap();
        assert_eq!(
            (read.said(), read.answered()),
            (token.said(), token.answered())
        );
        assert_ne!(token.said(), token.answered());
        assert_ne!(token.said(), Token::random().said());
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
            assert_eq!(text.parse::<Token>().unwrap_err(), NotAToken, "{text}");
        }
        let token = Token::random();
        let shown = format!("{token:?}");
        assert!(
            !token.reveal().contains(&shown) && shown.len() < 20,
            "{shown}"
        );
    }

    #[test]
    fn lines_are_compared_whole() {
        assert!(same(b"abc\n", b"abc\n"));
        for other in [&b"abd\n"[..], b"abc", b"abc\nd", b""] {
            assert!(!same(b"abc\n", other));
        }
    }
}
