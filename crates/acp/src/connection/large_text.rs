//! Takes the text of a file out of a `fs/read_text_file` response while it arrives.
//!
//! Otherwise a large file would be in memory twice, as received and as text, and would be parsed only after its last
//! byte. So the text is unescaped as it arrives, and what remains is a short response with an empty text.

use acp_wire::jsonrpc::text_response;
use acp_wire::text::{StringProgress, unescape};

/// The size from which a text is taken out, in bytes.
pub(crate) const LARGE_TEXT: usize = 128 * 1024;

/// How many bytes of a response may precede its text: whitespace and the id.
const BEFORE: usize = 256;

/// A large text that is still arriving.
#[derive(Debug)]
pub(crate) struct LargeTextReader {
    id: i64,
    /// The bytes before the text, including its opening quote.
    prefix: Vec<u8>,
    text: String,
    progress: StringProgress,
}

/// A response whose large text has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LargeTextResponse {
    /// The id of the request.
    pub(crate) id: i64,
    /// The text. `None` if it is not a valid JSON string.
    pub(crate) text: Option<String>,
    /// The response with an empty text.
    pub(crate) response: Vec<u8>,
}

impl LargeTextReader {
    /// Checks whether an incomplete line is such a response, to a request for which `wants` returns `true`. If so,
    /// returns a reader and where the text starts.
    pub(crate) fn detect(line: &[u8], wants: impl FnOnce(i64) -> bool) -> Option<(Self, usize)> {
        let beginning = line.get(..BEFORE).unwrap_or(line);
        let (id, at) = text_response(beginning, "content")?;
        if !wants(id) {
            return None;
        }
        let arriving = Self {
            id,
            prefix: line.get(..at)?.to_vec(),
            text: String::new(),
            progress: StringProgress::Incomplete,
        };
        Some((arriving, at))
    }

    /// Consumes a piece of the line, as far as it belongs to the text. Returns the number of bytes consumed.
    pub(crate) fn take(&mut self, piece: &[u8]) -> usize {
        match self.progress {
            StringProgress::Incomplete => {
                let (used, read) = unescape(piece, &mut self.text);
                self.progress = read;
                if read == StringProgress::Invalid {
                    self.forget();
                    return piece.len();
                }
                used
            }
            StringProgress::Invalid => piece.len(),
            // What follows the text stays in the line.
            StringProgress::Complete => 0,
        }
    }

    /// Drops the text. The line exceeds the limit, so nobody will read it.
    pub(crate) fn forget(&mut self) {
        self.text = String::new();
        self.progress = StringProgress::Invalid;
    }

    /// Returns the bytes before the text.
    pub(crate) fn into_prefix(self) -> Vec<u8> {
        self.prefix
    }

    /// Finishes at the end of the line. `rest` is the part that was not consumed.
    pub(crate) fn finish(mut self, rest: &[u8]) -> LargeTextResponse {
        let taken = self.take(rest);
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
