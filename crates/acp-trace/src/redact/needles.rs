//! Quickly searches for text that may be or contain a secret.

use std::ops::Range;

use aho_corasick::{AhoCorasick, packed};

/// Text that occurs in secrets or hints at them, in uppercase or lowercase. The same text may also occur elsewhere, so
/// a match only leads to a closer search. Longer hints that contain one of these do not need entries of their own.
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
    // Programs that take secrets as arguments, and their flags: see `programs.rs`.
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
    // Prefixes of keys, and other text: see `patterns.rs`.
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
    // An escape of a character that does not need one.
    "\\u00",
];

/// The length of the longest needle.
const MAX_NEEDLE_BYTES: usize = 11;

/// The maximum buffer size to keep for the next search, in bytes.
const MAX_IDLE_CAPACITY: usize = 1024 * 1024;

/// The bit that distinguishes uppercase from lowercase ASCII letters.
const CASE_BIT: u8 = 0x20;

/// The compiled search for [`NEEDLES`]. It ignores case by setting the case bit in all bytes of needles and text. This
/// causes a few false matches, but processors can do it for many bytes at once.
#[derive(Debug)]
pub(super) struct NeedleSearch {
    /// The vectorized search, if the processor supports it.
    packed: Option<packed::Searcher>,
    /// The search for processors without vector instructions.
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
        folded.extend(bytes.iter().map(|byte| byte | CASE_BIT));
        NeedleScan {
            needles: self,
            folded,
        }
    }
}

fn fold(needle: &str) -> Vec<u8> {
    needle.bytes().map(|byte| byte | CASE_BIT).collect()
}

/// A search of one byte string that returns matches one by one.
#[derive(Debug)]
pub(super) struct NeedleScan<'a> {
    needles: &'a NeedleSearch,
    folded: &'a [u8],
}

impl NeedleScan<'_> {
    /// Returns the next match that starts at or after `start`.
    pub(super) fn next_from(&self, start: usize) -> Option<Range<usize>> {
        let rest = self.folded.get(start..).filter(|rest| !rest.is_empty())?;
        let found = match (&self.needles.packed, &self.needles.automaton) {
            (Some(packed), _) => packed.find(rest)?.range(),
            (None, Some(automaton)) => automaton.find(rest)?.range(),
            // Without a search, everything is suspicious.
            (None, None) => 0..0,
        };
        Some(start + found.start..start + found.end)
    }
}

/// A group of lines to search together. Most lines have no match, and starting a search for each line would take longer
/// than the search itself.
///
/// The part that a line shares with the previous line was searched there, so only the rest is searched.
#[derive(Debug, Default)]
pub(crate) struct GatheredLines {
    folded: Vec<u8>,
    /// The part of each line to search.
    parts: Vec<GatheredPart>,
    /// The end of the first match in the last line of the previous search.
    last_needle_end: Option<usize>,
}

#[derive(Debug)]
struct GatheredPart {
    /// The start of the part in the gathered bytes.
    start: usize,
    /// The start of the part in its line.
    line_offset: usize,
    shared_len: usize,
}

impl GatheredLines {
    /// Adds a line that shares its first `shared` bytes with the previous line.
    pub(crate) fn push(&mut self, line: &[u8], shared: usize) {
        // A needle may start in the shared bytes and end after them.
        let in_line = shared.saturating_sub(MAX_NEEDLE_BYTES - 1);
        let part = line.get(in_line..).unwrap_or_default();
        let start = self.folded.len();
        self.folded.extend(part.iter().map(|byte| byte | CASE_BIT));
        // This separator occurs in no needle.
        self.folded.push(b'\n' | CASE_BIT);
        let part = GatheredPart {
            start,
            line_offset: in_line,
            shared_len: shared,
        };
        self.parts.push(part);
    }

    /// Calls `each` for each line, in order, with `true` if it has a match. Then removes the lines, and keeps only the
    /// data that the next line needs.
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
            // All needles of the previous line that are within the shared bytes start at or after the first of them. So
            // none of them is missed: if the first one ends after the shared bytes, another can only be in the overlap.
            last = last
                .filter(|&end| end <= part.shared_len)
                .or_else(|| in_part.map(|found| found.end - part.start + part.line_offset));
            each(last.is_some());
        }
        self.last_needle_end = last;
        self.parts.clear();
        self.folded.clear();
        self.folded.shrink_to(MAX_IDLE_CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn needles_are_found_in_any_case() {
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
    fn needles_are_short_and_contain_no_line_breaks() {
        for needle in NEEDLES {
            assert!(needle.len() <= MAX_NEEDLE_BYTES, "{needle}");
            assert!(!fold(needle).contains(&(b'\n' | CASE_BIT)), "{needle}");
        }
    }

    proptest! {
        /// Generates lines that start the same way. They contain words, some of which are needles, and some of which
        /// are truncated.
        #[test]
        fn common_prefix_of_lines_is_searched_once(
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
            let (mut line, mut expected, mut found_lines) = (String::new(), Vec::new(), Vec::new());
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
                    gathered.search(&needles, |found| found_lines.push(found));
                }
            }
            gathered.search(&needles, |found| found_lines.push(found));
            prop_assert_eq!(found_lines, expected);
        }
    }
}
