//! The fast search for what may be secret.

use aho_corasick::{AhoCorasick, packed};

/// What a secret, or what tells of one, has in it; in any case. It is no harm that other things have it, too: they
/// are looked at closely then. Longer words for names that have these in them need not be here.
const NEEDLES: &[&str] = &[
    // Names: see `names.rs`.
    "\"env\"",
    "headers\"",
    "key",
    "token",
    "passw",
    "passphr",
    "pwd",
    "secret",
    "cookie",
    "credential",
    "auth",
    "signature",
    "sig=",
    // What keys begin with, and others: see `patterns.rs`.
    "bearer",
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "xapp-",
    "akia",
    "asia",
    "aiza",
    "hf_",
    "npm_",
    "pypi-",
    "xai-",
    "gsk_",
    "ya29.",
    "eyj",
    "://",
    ":\\/",
    "-----begin",
    // An escape of what could be written as it is.
    "\\u00",
];

/// The bit that tells most capitals from small letters in ASCII.
const CASE: u8 = 0x20;

/// The search. Bytes are compared without the bit for the case, in the needles as in what is searched: this finds all
/// that differs in case only, some that does not, and is what processors do many bytes of at once.
#[derive(Debug)]
pub(super) struct Needles {
    /// Where the processor can look for all at once.
    packed: Option<packed::Searcher>,
    /// Everywhere else.
    automaton: Option<AhoCorasick>,
}

impl Needles {
    pub(super) fn new() -> Self {
        let folded: Vec<Vec<u8>> = NEEDLES.iter().map(|needle| fold(needle)).collect();
        let packed = packed::Searcher::new(&folded);
        let automaton = match packed {
            Some(_) => None,
            None => AhoCorasick::new(&folded).ok(),
        };
        Self { packed, automaton }
    }

    pub(super) fn scan<'a>(&'a self, bytes: &[u8], folded: &'a mut Vec<u8>) -> Scan<'a> {
        folded.clear();
        folded.extend(bytes.iter().map(|byte| byte | CASE));
        Scan {
            needles: self,
            folded,
        }
    }
}

fn fold(needle: &str) -> Vec<u8> {
    needle.bytes().map(|byte| byte | CASE).collect()
}

/// A search in some bytes.
#[derive(Debug)]
pub(in crate::trace) struct Scan<'a> {
    needles: &'a Needles,
    folded: &'a [u8],
}

impl Scan<'_> {
    /// Where the next needle begins that is not before `start`.
    pub(in crate::trace) fn next_from(&mut self, start: usize) -> Option<usize> {
        let rest = self.folded.get(start..).filter(|rest| !rest.is_empty())?;
        let found = match (&self.needles.packed, &self.needles.automaton) {
            (Some(packed), _) => packed.find(rest)?.start(),
            (None, Some(automaton)) => automaton.find(rest)?.start(),
            // All is looked at closely.
            (None, None) => 0,
        };
        Some(start + found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_needles_in_any_case_and_nothing_in_what_is_streamed() {
        let needles = Needles::new();
        let mut folded = Vec::new();
        for needle in NEEDLES {
            for needle in [needle.to_string(), needle.to_uppercase()] {
                let text = format!("..........{needle}..........");
                let found = needles.scan(text.as_bytes(), &mut folded).next_from(0);
                assert_eq!(found, Some(10), "{needle}");
            }
        }
        let chunk = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Let me look at this."}}}}"#;
        assert_eq!(
            needles.scan(chunk.as_bytes(), &mut folded).next_from(0),
            None
        );
    }
}
