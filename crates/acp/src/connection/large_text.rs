//! The text of a file, taken out of the answer to `fs/read_text_file` while it arrives.
//!
//! What is as large as a file would otherwise be in memory twice, as it came and as a text, and be read only when
//! the last of it is there. So its escapes are undone piece by piece, and what remains is a short answer with an
//! empty text.

use acp_wire::jsonrpc::text_response;
use acp_wire::text::{StringProgress, unescape};

/// From how many bytes on this is worth it.
pub(crate) const LARGE_TEXT: usize = 128 * 1024;

/// How much of an answer may stand before its text: blanks, its id.
const BEFORE: usize = 256;

/// A large text that arrives.
#[derive(Debug)]
pub(crate) struct LargeTextReader {
    id: i64,
    /// What stood before the text, its quote included.
    prefix: Vec<u8>,
    text: String,
    progress: StringProgress,
}

/// A large text that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LargeTextResponse {
    /// The id of the request that is answered.
    pub(crate) id: i64,
    /// The text; `None` if it is none that JSON has.
    pub(crate) text: Option<String>,
    /// The answer, with an empty text.
    pub(crate) response: Vec<u8>,
}

impl LargeTextReader {
    /// Looks whether a line that is still arriving is such an answer to a request that `wants` one. Gives it, and
    /// where its text begins.
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

    /// Takes what it can of a piece of the line, and tells how many bytes.
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
            // What is behind a text is kept as it comes.
            StringProgress::Complete => 0,
        }
    }

    /// The line is over the limit: nobody will read the text.
    pub(crate) fn forget(&mut self) {
        self.text = String::new();
        self.progress = StringProgress::Invalid;
    }

    /// What stood before the text.
    pub(crate) fn into_prefix(self) -> Vec<u8> {
        self.prefix
    }

    /// The line has ended; `rest` is what was not taken of it.
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
