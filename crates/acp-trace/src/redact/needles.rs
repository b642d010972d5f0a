//! The fast search for what may be secret.

use std::ops::Range;

use aho_corasick::{AhoCorasick, packed};

/// What a secret, or what tells of one, has in it; in any case. It is no harm that other things have it, too: they
/// are looked at closely then. Longer words for names that have these in them need not be here.
const NEEDLES: &[&str] = &[
    // Names: see `names.rs`.
    "\"env\"",
    "headers\"",
    "accounts\"",
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
    // Programs that take secrets as arguments, and how: see `programs.rs`.
    "pass=",
    "pass:",
    "curl",
    "http -",
    "mysql",
    "mariadb",
    "sshpass",
    "redis-cli",
    "login",
    "mongo",
    "sqlcmd",
    "zip",
    "7z",
    "ldap",
    "smb",
    "lftp",
    "storepass",
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

/// How long the longest needle is.
const LONGEST: usize = 11;

/// The largest buffer that is kept for what is searched next, in bytes.
const KEPT: usize = 1024 * 1024;

/// The bit that tells most capitals from small letters in ASCII.
const CASE: u8 = 0x20;

/// The search. Bytes are compared without the bit for the case, in the needles as in what is searched: this finds all
/// that differs in case only, some that does not, and is what processors do many bytes of at once.
#[derive(Debug)]
pub(super) struct NeedleSearch {
    /// Where the processor can look for all at once.
    packed: Option<packed::Searcher>,
    /// Everywhere else.
    automaton: Option<AhoCorasick>,
}

impl NeedleSearch {
    pub(super) fn new() -> Self {
        let folded: Vec<Vec<u8>> = NEEDLES.iter().map(|needle| fold(needle)).collect();
        let packed = packed::Searcher::new(&folded);
        let automaton = match packed {
            Some(_) => None,
            None => AhoCorasick::new(&folded).ok(),
        };
        Self { packed, automaton }
    }

    pub(super) fn scan<'a>(&'a self, bytes: &[u8], folded: &'a mut Vec<u8>) -> NeedleScan<'a> {
        folded.clear();
        folded.extend(bytes.iter().map(|byte| byte | CASE));
        NeedleScan {
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
pub(super) struct NeedleScan<'a> {
    needles: &'a NeedleSearch,
    folded: &'a [u8],
}

impl NeedleScan<'_> {
    /// Where the next needle is that begins not before `start`.
    pub(super) fn next_from(&self, start: usize) -> Option<Range<usize>> {
        let rest = self.folded.get(start..).filter(|rest| !rest.is_empty())?;
        let found = match (&self.needles.packed, &self.needles.automaton) {
            (Some(packed), _) => packed.find(rest)?.range(),
            (None, Some(automaton)) => automaton.find(rest)?.range(),
            // All is looked at closely.
            (None, None) => 0..0,
        };
        Some(start + found.start..start + found.end)
    }
}

/// What of several lines is to be searched, to be searched in one go: most have no needle, and to begin anew for each
/// of them would take longer than the search.
///
/// What a line has in common with the one before it was searched there, so only the rest is searched again.
#[derive(Debug, Default)]
pub(crate) struct GatheredLines {
    folded: Vec<u8>,
    /// For each line which part of it is searched.
    parts: Vec<GatheredPart>,
    /// Where in the last line of those before the first needle ends.
    last_needle_end: Option<usize>,
}

#[derive(Debug)]
struct GatheredPart {
    /// Where it begins among the others.
    start: usize,
    /// Where it begins in its line.
    line_offset: usize,
    shared_len: usize,
}

impl GatheredLines {
    /// A line that follows those before, and begins with `shared` bytes of the last of them.
    pub(crate) fn push(&mut self, line: &[u8], shared: usize) {
        // A needle that begins in what is shared may go on behind it.
        let in_line = shared.saturating_sub(LONGEST - 1);
        let part = line.get(in_line..).unwrap_or_default();
        let start = self.folded.len();
        self.folded.extend(part.iter().map(|byte| byte | CASE));
        // Which no needle has in it.
        self.folded.push(b'\n' | CASE);
        let part = GatheredPart {
            start,
            line_offset: in_line,
            shared_len: shared,
        };
        self.parts.push(part);
    }

    /// Whether each of the lines has a needle, in their order. What was searched is forgotten, but for what is needed
    /// for the next line.
    pub(super) fn search(&mut self, needles: &NeedleSearch, mut each: impl FnMut(bool)) {
        let scan = NeedleScan {
            needles,
            folded: &self.folded,
        };
        let mut found = scan.next_from(0);
        let ends = self.parts.iter().skip(1).map(|part| part.start);
        let ends = ends.chain([self.folded.len()]);
        let mut last = self.last_needle_end;
        for (part, end) in self.parts.iter().zip(ends) {
            let in_part = found.clone().filter(|found| found.start < end);
            if in_part.is_some() {
                found = scan.next_from(end);
            }
            // All needles that the line before has within the shared beginning begin not before its first. So none
            // of them ends there without being seen: if the first ends behind it, another can only be in the overlap.
            last = last
                .filter(|&end| end <= part.shared_len)
                .or_else(|| in_part.map(|found| found.end - part.start + part.line_offset));
            each(last.is_some());
        }
        self.last_needle_end = last;
        self.parts.clear();
        self.folded.clear();
        self.folded.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn it_finds_needles_in_any_case_and_nothing_in_what_is_streamed() {
        let needles = NeedleSearch::new();
        let mut folded = Vec::new();
        for needle in NEEDLES {
            for needle in [needle.to_string(), needle.to_uppercase()] {
                let text = format!("..........{needle}..........");
                let found = needles.scan(text.as_bytes(), &mut folded).next_from(0);
                assert_eq!(found, Some(10..10 + needle.len()), "{needle}");
            }
        }
        let chunk = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Let me look at this."}}}}"#;
        assert_eq!(
            needles.scan(chunk.as_bytes(), &mut folded).next_from(0),
            None
        );
    }

    #[test]
    fn no_needle_is_too_long_or_goes_over_the_end_of_a_line() {
        for needle in NEEDLES {
            assert!(needle.len() <= LONGEST, "{needle}");
            assert!(!fold(needle).contains(&(b'\n' | CASE)), "{needle}");
        }
    }

    proptest! {
        /// Lines that begin like each other, with words in them of which some are needles, and some are cut off.
        #[test]
        fn what_lines_have_in_common_is_searched_once_and_not_forgotten(
            changes in prop::collection::vec((any::<Index>(), any::<Index>(), any::<Index>()), 1..24),
            searched in any::<u32>(),
        ) {
            let words = [
                "passphrase", "passphr", "github_pat_", "credential", "key", "sk-", "token", "github_", "pat_", "-----",
                "begin", "pass", "x", "....................",
            ];
            let needles = NeedleSearch::new();
            let mut gathered = GatheredLines::default();
            let mut folded = Vec::new();
            let (mut line, mut expected, mut told) = (String::new(), Vec::new(), Vec::new());
            for (turn, (place, word, rest)) in changes.iter().enumerate() {
                let before = line.clone();
                line.truncate(place.index(before.len() + 1));
                line.push_str(words[word.index(words.len())]);
                line.push_str(&before[rest.index(before.len() + 1)..]);
                line.truncate(100);
                let shared = before.bytes().zip(line.bytes()).take_while(|(a, b)| a == b).count();
                gathered.push(line.as_bytes(), shared);
                let scan = needles.scan(line.as_bytes(), &mut folded);
                expected.push(scan.next_from(0).is_some());
                if searched >> turn & 1 == 1 {
                    gathered.search(&needles, |found| told.push(found));
                }
            }
            gathered.search(&needles, |found| told.push(found));
            prop_assert_eq!(told, expected);
        }
    }
}
