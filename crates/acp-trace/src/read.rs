//! Reads the records of a trace file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::format::{FORMAT_VERSION, MAX_MESSAGE_BYTES, TraceHeader, TraceRecord};

/// The maximum length of a line, in bytes: that of a message, plus some space for the rest of the record.
const MAX_LINE_BYTES: usize = MAX_MESSAGE_BYTES + 1024 * 1024;

/// The maximum buffer size to keep for the next line, in bytes.
const MAX_IDLE_CAPACITY: usize = 1024 * 1024;

/// An error that occurred while reading a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceReadError {
    /// The file could not be read.
    #[error("read error: {0}")]
    Io(#[from] io::Error),
    /// The first line is not the header of a trace.
    #[error("not a trace file (invalid header)")]
    NotATrace,
    /// The trace's format is newer than this program supports.
    #[error("unsupported trace version {version} (supported: {FORMAT_VERSION})")]
    Version {
        /// The version of the trace's format.
        version: u32,
    },
    /// A line is longer than any record can be. Reading can continue.
    #[error("line {line}: line too long")]
    TooLong {
        /// The number of the line, counted from 1.
        line: u64,
    },
    /// A line is not a record. Reading can continue.
    #[error("line {line}: invalid record: {reason}")]
    NotARecord {
        /// The number of the line, counted from 1.
        line: u64,
        /// The error in the line's JSON.
        reason: serde_json::Error,
    },
}

impl TraceReadError {
    /// Returns `true` if the error concerns a single line, so that reading can continue.
    #[must_use]
    pub fn is_line_error(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::NotARecord { .. })
    }
}

/// A reader that returns the records of a trace in order.
///
/// The file may end with an incomplete line. Such a line is not a record; see
/// [`has_partial_line`](Self::has_partial_line). If the file still grows, reading can continue after its end.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    header: TraceHeader,
    lines: BoundedLines,
}

impl TraceReader<BufReader<File>> {
    /// Opens a trace file and reads its header.
    ///
    /// # Errors
    /// The file could not be opened, is not a trace, or has a newer format.
    pub fn open(path: &Path) -> Result<Self, TraceReadError> {
        Self::new(BufReader::with_capacity(256 * 1024, File::open(path)?))
    }
}

impl<R: BufRead> TraceReader<R> {
    /// Reads the header of a trace from `input`.
    ///
    /// # Errors
    /// The input could not be read, is not a trace, or has a newer format.
    pub fn new(mut input: R) -> Result<Self, TraceReadError> {
        let mut lines = BoundedLines::default();
        let first = match lines.next(&mut input) {
            Ok(Some((line, _))) => line,
            Ok(None) | Err(TraceReadError::TooLong { .. }) => {
                return Err(TraceReadError::NotATrace);
            }
            Err(e) => return Err(e),
        };
        #[derive(serde::Deserialize)]
        struct VersionHeader {
            acp_trace: u32,
        }
        let VersionHeader { acp_trace: version } =
            serde_json::from_slice(first).map_err(|_| TraceReadError::NotATrace)?;
        if version != FORMAT_VERSION {
            return Err(TraceReadError::Version { version });
        }
        let header = serde_json::from_slice(first).map_err(|_| TraceReadError::NotATrace)?;
        Ok(Self {
            input,
            header,
            lines,
        })
    }

    /// Returns the header of the trace.
    #[must_use]
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the position of the record that was read last: the number of bytes before its line in the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.lines.start
    }

    /// Returns the number of bytes that have been read from the file.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lines.consumed
    }

    /// Returns `true` if the last line is incomplete, because the recorder was killed while writing it or is still
    /// writing.
    #[must_use]
    pub fn has_partial_line(&self) -> bool {
        !self.lines.buffer.is_empty() && !self.lines.is_consumed
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRecord, TraceReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (text, line) = match self.lines.next(&mut self.input) {
            Ok(line) => line?,
            Err(e) => return Some(Err(e)),
        };
        let record = std::str::from_utf8(text)
            .map_err(serde::de::Error::custom)
            .and_then(|text| TraceRecord::parse(text, line));
        Some(record.map_err(|reason| TraceReadError::NotARecord { line, reason }))
    }
}

/// A reader for lines of limited length.
#[derive(Debug, Default)]
struct BoundedLines {
    buffer: Vec<u8>,
    /// Whether the contents of the buffer were returned and can be discarded.
    is_consumed: bool,
    /// Whether the current line is too long and is being skipped.
    is_skipping: bool,
    line: u64,
    /// The number of bytes before the current line.
    start: u64,
    /// The number of bytes that were read.
    consumed: u64,
}

impl BoundedLines {
    /// Returns the next complete line without its line end, and its number. Returns `None` at the current end of the
    /// input, after which more lines may still be added.
    fn next(&mut self, input: &mut impl BufRead) -> Result<Option<(&[u8], u64)>, TraceReadError> {
        if std::mem::take(&mut self.is_consumed) {
            self.buffer.clear();
            self.buffer.shrink_to(MAX_IDLE_CAPACITY);
            self.start = self.consumed;
        }
        loop {
            let there = match input.fill_buf() {
                Ok([]) => return Ok(None),
                Ok(there) => there,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.into()),
            };
            let end = memchr::memchr(b'\n', there);
            let part = there.get(..end.unwrap_or(there.len())).unwrap_or(there);
            if self.is_skipping || self.buffer.len() + part.len() > MAX_LINE_BYTES {
                self.is_skipping = true;
                self.buffer.clear();
            } else {
                self.buffer.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            input.consume(used);
            self.consumed += u64::try_from(used).unwrap_or_default();
            if end.is_some() {
                self.line += 1;
                if std::mem::take(&mut self.is_skipping) {
                    self.start = self.consumed;
                    return Err(TraceReadError::TooLong { line: self.line });
                }
                self.is_consumed = true;
                return Ok(Some((&self.buffer, self.line)));
            }
        }
    }
}

/// Reads a single record of a trace, at a [position](TraceReader::position) in its file. The record's line number is 0,
/// since it is not known.
///
/// # Errors
/// The file could not be read, or there is no record at this position.
pub fn read_record_at(path: &Path, position: u64) -> Result<TraceRecord, TraceReadError> {
    let no_record = |reason: &str| TraceReadError::NotARecord {
        line: 0,
        reason: serde::de::Error::custom(reason),
    };
    let mut file = File::open(path)?;
    let before = position
        .checked_sub(1)
        .ok_or_else(|| no_record("the trace starts with its header"))?;
    file.seek(SeekFrom::Start(before))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        return Err(no_record("no line starts here"));
    }
    let mut lines = BoundedLines::default();
    let line = lines.next(&mut BufReader::new(file))?;
    let (text, _) = line.ok_or_else(|| no_record("the line is not complete"))?;
    std::str::from_utf8(text)
        .map_err(serde::de::Error::custom)
        .and_then(|text| TraceRecord::parse(text, 0))
        .map_err(|reason| TraceReadError::NotARecord { line: 0, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{RecordBody, TraceEvent};
    use acp_rules::Side;

    const TRACE_HEADER: &str = "{\"acp_trace\":1,\"started\":\"2026-01-01T00:00:00Z\",\"command\":[\"a\"],\"by\":\"acp\",\
        \"secrets\":\"redacted\",\"later\":1}\n";

    fn reader_for(records: &str) -> TraceReader<BufReader<io::Cursor<Vec<u8>>>> {
        let file = format!("{TRACE_HEADER}{records}").into_bytes();
        // Use a small capacity, so that lines are read in parts.
        TraceReader::new(BufReader::with_capacity(7, io::Cursor::new(file))).unwrap()
    }

    #[test]
    fn written_records_are_read_back() {
        let records = "{\"t\":5,\"from\":\"agent\",\"len\":9,\"redacted\":2,\"msg\":{ \"a\":1.0}}\n\
            {\"t\":6,\"from\":\"client\",\"len\":2,\"noise64\":\"/yA=\"}\n\
            {\"t\":7,\"event\":\"exited\",\"signal\":\"SIGKILL\"}\n";
        let all: Vec<TraceRecord> = reader_for(records).map(Result::unwrap).collect();
        let RecordBody::Message {
            from,
            length,
            redacted,
            message,
            ..
        } = &all[0].body
        else {
            panic!("{all:?}")
        };
        assert_eq!((all[0].time_us, all[0].line), (5, 2));
        assert_eq!((*from, *length, *redacted), (Side::Agent, 9, 2));
        assert_eq!(message.get(), "{ \"a\":1.0}");
        assert!(matches!(&all[1].body, RecordBody::Noise { bytes, .. } if bytes == b"\xff "));
        let RecordBody::Event(TraceEvent::Exited {
            code: None,
            signal: Some(signal),
        }) = &all[2].body
        else {
            panic!("{all:?}")
        };
        assert_eq!(signal, "SIGKILL");
    }

    #[test]
    fn unknown_records_are_skipped_and_invalid_ones_reported_with_their_line() {
        let records = "{\"t\":1,\"picture\":\"x\"}\n{\"t\":2,\"event\":\"slept\"}\n{\"t\":\"3\"}\nx\n{\"t\":4,\"stderr\":\"y\"}\n{\"t\":5,\"std";
        let mut reader = reader_for(records);
        assert!(matches!(
            reader.next().unwrap().unwrap().body,
            RecordBody::Unknown
        ));
        let what = reader.next().unwrap().unwrap().body;
        assert!(matches!(what, RecordBody::Event(TraceEvent::Unknown)));
        for line in [4, 5] {
            let error = reader.next().unwrap().unwrap_err();
            assert!(error.is_line_error());
            assert!(
                error.to_string().starts_with(&format!("line {line}: ")),
                "{error}"
            );
        }
        assert!(matches!(
            reader.next().unwrap().unwrap().body,
            RecordBody::Stderr(_)
        ));
        assert!(reader.next().is_none() && reader.has_partial_line());
    }

    #[test]
    fn file_that_is_not_a_trace_is_reported() {
        for file in ["", "{}\n", "{\"jsonrpc\":\"2.0\"}\n", "\u{0}\n"] {
            let error = TraceReader::new(file.as_bytes()).unwrap_err();
            assert!(
                matches!(error, TraceReadError::NotATrace),
                "{file}: {error}"
            );
        }
        let error = TraceReader::new("{\"acp_trace\":2}\n".as_bytes()).unwrap_err();
        assert!(
            matches!(error, TraceReadError::Version { version: 2 }),
            "{error}"
        );
    }
}
