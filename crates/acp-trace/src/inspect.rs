//! Inspects lines before they are recorded, to determine whether each is JSON and whether it may contain a secret.

use super::json::JsonChecker;
use super::redact::{GatheredLines, Redactor};

/// The number of bytes of each line to keep for comparison with the next line.
const MAX_PREFIX_BYTES: usize = 4 * 1024;

/// The maximum number of lines to inspect at a time.
const MAX_LINES: usize = 1024;

/// The result of inspecting a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineResult {
    /// Whether the line is JSON, and therefore UTF-8.
    pub(super) is_json: bool,
    /// Whether the line may contain a secret and must be searched closely.
    pub(super) is_suspicious: bool,
}

/// An inspector for one side's lines.
///
/// Most lines of a side start like the line before. The inspector first finds out how much they have in common, which
/// is cheap, and then inspects only the rest.
#[derive(Debug, Default)]
pub(super) struct LineInspector {
    /// The beginning of the previous line, up to [`MAX_PREFIX_BYTES`] bytes.
    last_line: Vec<u8>,
    checker: JsonChecker,
    gathered: GatheredLines,
    results: Vec<LineResult>,
}

impl LineInspector {
    /// Inspects lines, up to the maximum number at a time. Only the last line may lack a line end. Returns the results
    /// and any remaining lines.
    pub(super) fn inspect<'a>(
        &mut self,
        redactor: Option<&Redactor>,
        lines: &'a [u8],
    ) -> (&[LineResult], Option<&'a [u8]>) {
        self.results.clear();
        let mut before = None;
        let mut rest = Some(lines);
        while let Some(lines) = rest.filter(|_| self.results.len() < MAX_LINES) {
            let (line, next) = split_first_line(lines);
            rest = next;
            let shared = common_prefix_len(before.unwrap_or(&self.last_line), line);
            let json = self.checker.is_json(line, shared);
            if redactor.is_some() {
                self.gathered.push(line, shared);
            }
            let suspicious = false;
            self.results.push(LineResult {
                is_json: json,
                is_suspicious: suspicious,
            });
            before = Some(line.get(..MAX_PREFIX_BYTES).unwrap_or(line));
        }
        self.last_line.clear();
        self.last_line.extend_from_slice(before.unwrap_or_default());
        if let Some(redactor) = redactor {
            let mut looks = self.results.iter_mut();
            redactor.search(&mut self.gathered, |found| {
                if let Some(look) = looks.next() {
                    look.is_suspicious = found;
                }
            });
        }
        (&self.results, rest)
    }
}

/// Splits off the first line. Returns it without its line end, followed by the remaining lines, if any.
pub(super) fn split_first_line(lines: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'\n', lines) {
        Some(end) => {
            let (line, rest) = lines.split_at(end);
            (line, rest.get(1..))
        }
        None => (lines, None),
    }
}

/// Returns the length of the longest common prefix of two lines, in bytes.
fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    const WIDE_BLOCK_SIZE: usize = 32;
    const WORD_SIZE: usize = 8;
    let (ones, others) = (
        one.as_chunks::<WIDE_BLOCK_SIZE>().0,
        other.as_chunks::<WIDE_BLOCK_SIZE>().0,
    );
    let equal = ones.iter().zip(others).take_while(|(a, b)| a == b);
    let mut shared = equal.count() * WIDE_BLOCK_SIZE;
    let one = one.get(shared..).unwrap_or_default();
    let other = other.get(shared..).unwrap_or_default();
    let (ones, others) = (one.as_chunks::<WORD_SIZE>(), other.as_chunks::<WORD_SIZE>());
    for (a, b) in ones.0.iter().zip(others.0) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        shared += differ.trailing_zeros() as usize / 8;
        if differ != 0 {
            return shared;
        }
    }
    // One of the lines ends here, or has less than a word left.
    let words = ones.0.len().min(others.0.len()) * WORD_SIZE;
    let one = one.get(words..).unwrap_or_default();
    let other = other.get(words..).unwrap_or_default();
    let equal = one.iter().zip(other).take_while(|(a, b)| a == b);
    shared + equal.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn result_of_a_line_is_reused_for_its_common_prefix() {
        let redactor = Redactor::new();
        let text = concat!(
            "{\"text\":\"one\"}\n{\"text\":\"one key\"}\n{\"text\":\"one key more\"}\n{\"text\":\"one ke\"}\n",
            "{\"text\":\"one\"}}\n{\"text\":\"one\n\n{\"text\":\"one\"}\n{\"text\":\"a token\"}\n",
        );
        let expected = [
            (true, false),
            (true, true),
            (true, true),
            (true, false),
            (false, false),
            (false, false),
            (false, false),
            (true, false),
            (true, true),
            (false, false),
        ];
        let expected = expected.map(|(json, suspicious)| LineResult {
            is_json: json,
            is_suspicious: suspicious,
        });
        let mut lines = LineInspector::default();
        // In the second pass, the first line follows the last line of the same text.
        for _ in 0..2 {
            let (looks, rest) = lines.inspect(Some(&redactor), text.as_bytes());
            assert_eq!(looks, expected);
            assert_eq!(rest, None);
        }
    }

    #[test]
    fn many_lines_are_inspected_in_parts() {
        let text = "1\n".repeat(MAX_LINES + 1);
        let mut lines = LineInspector::default();
        let (looks, rest) = lines.inspect(None, text.as_bytes());
        assert!(looks.len() == MAX_LINES && looks.iter().all(|look| look.is_json));
        let (looks, rest) = lines.inspect(None, rest.unwrap());
        assert_eq!(
            looks.iter().map(|look| look.is_json).collect::<Vec<_>>(),
            [true, false]
        );
        assert_eq!(rest, None);
    }

    proptest! {
        #[test]
        fn common_prefix_length_is_exact(
            common in prop::collection::vec(any::<u8>(), 0..100),
            one in prop::collection::vec(0..3_u8, 0..50),
            other in prop::collection::vec(0..3_u8, 0..50),
        ) {
            let (one, other) = ([&common[..], &one].concat(), [&common[..], &other].concat());
            let equal = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(common_prefix_len(&one, &other), equal);
        }
    }
}
