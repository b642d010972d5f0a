//! Reads lines of a file in chunks. Keeps only the requested lines in memory.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The size of the chunks to read, in bytes.
const CHUNK_SIZE: usize = 64 * 1024;

/// A range of lines in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineRange {
    /// The number of the first line, counted from 1.
    first: u32,
    limit: Option<u32>,
}

impl LineRange {
    pub(crate) fn new(first: Option<u32>, limit: Option<u32>) -> Self {
        Self {
            first: first.unwrap_or(1).max(1),
            limit,
        }
    }
}

/// A flag that stops a worker thread once the result is no longer needed. It is set when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The reason why lines could not be read.
#[derive(Debug)]
pub(crate) enum ReadLinesError {
    /// The lines exceed the size limit.
    TooLarge,
    Io(io::Error),
}

/// Reads a range of lines, including their line endings. The lines may take up `max` bytes as a JSON string, in which a
/// control character takes up six.
pub(crate) fn read_lines(
    mut file: impl Read,
    lines: LineRange,
    max: usize,
    given_up: &AtomicBool,
) -> Result<Vec<u8>, ReadLinesError> {
    let mut skip = lines.first - 1;
    let mut left = lines.limit;
    let mut kept = Vec::new();
    let mut written = 0;
    let mut buffer = vec![0; CHUNK_SIZE];
    while left != Some(0) {
        if given_up.load(Ordering::Relaxed) {
            return Err(ReadLinesError::Io(io::ErrorKind::Interrupted.into()));
        }
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(ReadLinesError::Io(e)),
        };
        let mut piece = buffer.get(..read).unwrap_or_default();
        if skip > 0 {
            let mut start = piece.len();
            for end in memchr::memchr_iter(b'\n', piece) {
                skip -= 1;
                if skip == 0 {
                    start = end + 1;
                    break;
                }
            }
            piece = piece.get(start..).unwrap_or_default();
        }
        if let Some(left) = &mut left {
            for end in memchr::memchr_iter(b'\n', piece) {
                *left -= 1;
                if *left == 0 {
                    piece = piece.get(..=end).unwrap_or_default();
                    break;
                }
            }
        }
        written += json_escaped_len(piece);
        if written > max {
            return Err(ReadLinesError::TooLarge);
        }
        if kept.capacity() - kept.len() < piece.len() {
            // Grow as a vector does by itself, but never beyond the limit.
            let more = kept.capacity().max(piece.len()).min(max - kept.len());
            kept.reserve_exact(more);
        }
        kept.extend_from_slice(piece);
    }
    // The text may have to wait long before it is sent.
    kept.shrink_to_fit();
    Ok(kept)
}

/// Returns the length in bytes of this text when escaped for a JSON string.
fn json_escaped_len(bytes: &[u8]) -> usize {
    // There are so few bytes that the sum of their extra bytes always fits into one byte.
    const BLOCK_SIZE: usize = 48;
    let more = |byte: &u8| match *byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0_u8,
    };
    let of_few = |few: &[u8]| usize::from(few.iter().map(more).sum::<u8>());
    bytes.len() + bytes.chunks(BLOCK_SIZE).map(of_few).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_length_matches_serde_json() {
        let every: String = (0..=0x2FF_u32).filter_map(char::from_u32).collect();
        for text in ["", "plain", &"\0".repeat(1000), &every] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(
                json_escaped_len(text.as_bytes()),
                json.len() - 2,
                "{text:?}"
            );
        }
    }
}
