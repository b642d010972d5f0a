//! Extracts the text of a [`TextResponse`](acp_wire::TextResponse) as it arrives.
//!
//! Otherwise, a large text would be in memory twice, as received and decoded, and parsing could start only after its
//! last byte. Here, the text is unescaped as it arrives, which leaves a short response with an empty text.

use acp_wire::jsonrpc::parse_text_response_start;
use acp_wire::text::{StringProgress, unescape};

/// The minimum length, in bytes, of a text to extract as it arrives.
pub(crate) const MIN_LARGE_TEXT_BYTES: usize = 128 * 1024;

/// The maximum number of bytes before the text in a response.
const MAX_PREFIX_BYTES: usize = 256;

/// Reads and unescapes a large text as it arrives.
#[derive(Debug)]
pub(crate) struct LargeTextReader {
    id: i64,
    /// The bytes before the text, including its opening quote.
    prefix: Vec<u8>,
    text: String,
    progress: StringProgress,
}

/// A response whose large text has fully arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LargeTextResponse {
    /// The id of the request that the response answers.
    pub(crate) id: i64,
    /// The text, or `None` if it is not a valid JSON string.
    pub(crate) text: Option<String>,
    /// The response, with an empty text instead of the large one.
    pub(crate) response: Vec<u8>,
}

impl LargeTextReader {
    /// Detects a response with a large text in an incomplete line. `field` returns the name of the text's field for a
    /// response id, or `None` to leave the text in place. Returns the reader and the offset of the text.
    pub(crate) fn detect(
        line: &[u8],
        field: impl FnOnce(i64) -> Option<&'static str>,
    ) -> Option<(Self, usize)> {
        let beginning = line.get(..MAX_PREFIX_BYTES).unwrap_or(line);
        let (id, at) = parse_text_response_start(beginning, field)?;
        let arriving = Self {
            id,
            prefix: line.get(..at)?.to_vec(),
            text: String::new(),
            progress: StringProgress::Incomplete,
        };
        Some((arriving, at))
    }

    /// Reads the part of `piece` that belongs to the text, and returns the number of bytes read.
    pub(crate) fn push(&mut self, piece: &[u8]) -> usize {
        match self.progress {
            StringProgress::Incomplete => {
                let (used, read) = unescape(piece, &mut self.text);
                self.progress = read;
                if read == StringProgress::Invalid {
                    self.discard_text();
                    return piece.len();
                }
                used
            }
            StringProgress::Invalid => piece.len(),
            // The bytes after the text stay in the line.
            StringProgress::Complete => 0,
        }
    }

    /// Drops the text, because it is invalid or the line exceeds the limit.
    pub(crate) fn discard_text(&mut self) {
        self.text = String::new();
        self.progress = StringProgress::Invalid;
    }

    /// Returns the bytes before the text.
    pub(crate) fn into_prefix(self) -> Vec<u8> {
        self.prefix
    }

    /// Returns the complete response. `rest` is the unread part of the line.
    pub(crate) fn finish(mut self, rest: &[u8]) -> LargeTextResponse {
        let taken = self.push(rest);
        let behind = rest.get(taken..).unwrap_or_default();
        let mut answer = self.prefix;
        answer.extend_from_slice(behind);
        LargeTextResponse {
            id: self.id,
            text: (self.progress == StringProgress::Complete).then(|| {
                self.text.shrink_to_fit();
                self.text
            }),
            response: answer,
        }
    }
}
