//! Runs the thread that splits relayed bytes into lines and writes them as records.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::sync::Arc;

use super::format::{MAX_MESSAGE_BYTES, TraceEvent};
use super::inspect::{LineInspector, split_first_line};
use super::log::{LogBatch, LogEntryKind, RecordLog};
use super::record_writer::{LineSource, MAX_NOISE_BYTES, RecordWriter};
use super::recording::RecordingSummary;
use super::redact::Redactor;
use acp_rules::Side;

/// The number of bytes to collect before writing, unless fewer are available.
const WRITE_CHUNK_BYTES: usize = 256 * 1024;

/// The maximum buffer size to keep for the next message, in bytes.
const MAX_IDLE_CAPACITY: usize = 1024 * 1024;

/// A line that has only partly arrived.
#[derive(Debug, Default)]
struct PartialLine {
    bytes: Vec<u8>,
    /// The number of bytes that were dropped because the line is too long.
    dropped_len: usize,
}

impl PartialLine {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped_len == 0
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.dropped_len > 0 || self.bytes.len() + bytes.len() > MAX_MESSAGE_BYTES {
            let room = MAX_NOISE_BYTES.saturating_sub(self.bytes.len());
            let kept = bytes.get(..room).unwrap_or(bytes);
            self.bytes.extend_from_slice(kept);
            self.dropped_len += bytes.len() - kept.len();
            self.dropped_len += self.bytes.len().saturating_sub(MAX_NOISE_BYTES);
            self.bytes.truncate(MAX_NOISE_BYTES);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_IDLE_CAPACITY);
        self.dropped_len = 0;
    }
}

/// The state of the byte stream that one side sends.
#[derive(Debug, Default)]
struct SideStream {
    partial: PartialLine,
    lines: LineInspector,
    /// The tap to read from, if the bytes are not in the log.
    tap: Option<File>,
}

/// The state of the thread that turns the log's entries into records.
pub(super) struct RecordThread {
    log: Arc<RecordLog>,
    client: SideStream,
    agent: SideStream,
    by_hand: LineInspector,
    records: RecordWriter,
    /// A buffer for reading from a tap. It is never larger than the tap's capacity.
    tap_buffer: Vec<u8>,
}

impl RecordThread {
    /// Creates a thread that reads from this log.
    pub(super) fn new(log: Arc<RecordLog>, redactor: Option<Redactor>) -> Self {
        Self {
            log,
            client: SideStream::default(),
            agent: SideStream::default(),
            by_hand: LineInspector::default(),
            records: RecordWriter::new(redactor, WRITE_CHUNK_BYTES),
            tap_buffer: Vec::new(),
        }
    }

    /// Returns a summary of everything recorded so far, for the caller that finishes the recording.
    pub(super) fn summary(&self) -> RecordingSummary {
        self.records.summary
    }

    /// Writes records to `file` until the log is closed.
    pub(super) fn write_all(&mut self, file: &mut impl Write) -> io::Result<()> {
        let mut batch = LogBatch::default();
        while self.log.take(&mut batch) {
            let mut bytes = batch.bytes.as_slice();
            for piece in batch.entries.drain(..) {
                let (own, rest) = bytes.split_at_checked(piece.length).unwrap_or_default();
                bytes = rest;
                match piece.kind {
                    LogEntryKind::Stream(side) => self.push_stream(piece.time_us, side, own),
                    LogEntryKind::ByHand(side) => self.push_by_hand(piece.time_us, side, own),
                    LogEntryKind::Tap(side, tap) => self.side_mut(side).0.tap = Some(tap),
                    LogEntryKind::TapBytes(side, length) => {
                        self.read_tap(piece.time_us, side, length)?
                    }
                    LogEntryKind::Stderr => self.records.add_stderr(piece.time_us, own),
                    LogEntryKind::Event(event) => self.handle_event(piece.time_us, &event),
                }
                if self.records.out.len() >= WRITE_CHUNK_BYTES {
                    self.flush(file)?;
                    self.log.set_written(piece.time_us);
                }
            }
            // Taking the next batch can block, and readers should see what was recorded so far.
            self.flush(file)?;
        }
        Ok(())
    }

    fn flush(&mut self, file: &mut impl Write) -> io::Result<()> {
        let out = &mut self.records.out;
        file.write_all(out)?;
        out.clear();
        out.shrink_to(MAX_IDLE_CAPACITY);
        Ok(())
    }

    /// Borrows a side's stream, the record writer and the log, all at the same time.
    fn side_mut(&mut self, side: Side) -> (&mut SideStream, &mut RecordWriter, &RecordLog) {
        let stream = match side {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        };
        (stream, &mut self.records, self.log.as_ref())
    }

    /// Reads `length` bytes from a tap and records them.
    fn read_tap(&mut self, at: u64, side: Side, length: usize) -> io::Result<()> {
        // All of these bytes are in the tap already.
        let mut buffer = std::mem::take(&mut self.tap_buffer);
        buffer.resize(length.max(buffer.len()), 0);
        let bytes = buffer.get_mut(..length).unwrap_or_default();
        if let Some(tap) = &mut self.side_mut(side).0.tap {
            tap.read_exact(bytes)?;
        }
        self.push_stream(at, side, bytes);
        self.tap_buffer = buffer;
        Ok(())
    }

    fn push_stream(&mut self, at: u64, side: Side, mut bytes: &[u8]) {
        let (stream, ..) = self.side_mut(side);
        if !stream.partial.is_empty() {
            let (last, rest) = split_first_line(bytes);
            stream.partial.push(last);
            let Some(rest) = rest else {
                return;
            };
            bytes = rest;
            self.end_partial(at, side, false);
        }
        let (stream, records, log) = self.side_mut(side);
        if let Some(end) = memchr::memrchr(b'\n', bytes) {
            let (whole, rest) = bytes.split_at(end);
            let line = LineSource {
                time_us: at,
                side,
                is_unterminated: false,
                is_by_hand: false,
            };
            record_lines(log, &mut stream.lines, records, whole, line);
            bytes = rest.get(1..).unwrap_or_default();
        }
        stream.partial.push(bytes);
    }

    /// Records a line that was sent by hand. It is not part of the side's stream, which may be in the middle of a line.
    fn push_by_hand(&mut self, at: u64, side: Side, line: &[u8]) {
        let from = LineSource {
            time_us: at,
            side,
            is_unterminated: false,
            is_by_hand: true,
        };
        let (log, records) = (self.log.as_ref(), &mut self.records);
        record_lines(log, &mut self.by_hand, records, line, from);
    }

    /// Records the partial line. `open` means that the stream ended in the middle of it.
    fn end_partial(&mut self, at: u64, side: Side, open: bool) {
        let (stream, records, log) = self.side_mut(side);
        let line = LineSource {
            time_us: at,
            side,
            is_unterminated: open,
            is_by_hand: false,
        };
        let mut begun = std::mem::take(&mut stream.partial);
        if begun.dropped_len > 0 {
            let length = begun.bytes.len() + begun.dropped_len;
            records.add_oversized(line, &begun.bytes, length);
        } else {
            record_lines(log, &mut stream.lines, records, &begun.bytes, line);
        }
        begun.clear();
        stream.partial = begun;
    }

    fn handle_event(&mut self, at: u64, event: &TraceEvent) {
        // The last line of a stream may have no line end.
        let ended: &[Side] = match event {
            TraceEvent::ClientClosed | TraceEvent::AgentStoppedReading => &[Side::Client],
            TraceEvent::AgentClosed | TraceEvent::ClientStoppedReading => &[Side::Agent],
            TraceEvent::Failed { from, .. } => &[*from],
            TraceEvent::End => &[Side::Client, Side::Agent],
            _ => &[],
        };
        for &side in ended {
            if !self.side_mut(side).0.partial.is_empty() {
                self.end_partial(at, side, true);
            }
        }
        self.records.add_event(at, event);
    }
}

/// Records complete lines. Each line except the last must have a line end.
fn record_lines(
    log: &RecordLog,
    inspector: &mut LineInspector,
    records: &mut RecordWriter,
    whole: &[u8],
    line: LineSource,
) {
    let mut rest = Some(whole);
    while let Some(mut bytes) = rest {
        let (looks, left) = inspector.inspect(records.redactor(), bytes);
        for look in looks {
            let (own, next) = split_first_line(bytes);
            records.add_line(line, own, *look);
            bytes = next.unwrap_or_default();
        }
        log.set_line_count(records.line_count);
        rest = left;
    }
}
