//! What was passed on, cut into lines and written as records.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::sync::Arc;

use super::format::{Event, LONGEST_MESSAGE};
use super::lines::{Lines, first};
use super::log::{Batch, Log, PieceOf};
use super::recording::Recording;
use super::records::{LONGEST_NOISE, Line, Records};
use super::redact::Redactor;
use acp_rules::Side;

/// How much is put together before it is written, if there is more at once, in bytes.
const WRITE: usize = 256 * 1024;

/// The largest buffer that is kept for the next message, in bytes.
const KEPT: usize = 1024 * 1024;

/// A line of which not all has come.
#[derive(Debug, Default)]
struct Begun {
    bytes: Vec<u8>,
    /// How much of it is not kept.
    dropped: usize,
}

impl Begun {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.dropped > 0 || self.bytes.len() + bytes.len() > LONGEST_MESSAGE {
            let room = LONGEST_NOISE.saturating_sub(self.bytes.len());
            let kept = bytes.get(..room).unwrap_or(bytes);
            self.bytes.extend_from_slice(kept);
            self.dropped += bytes.len() - kept.len();
            self.dropped += self.bytes.len().saturating_sub(LONGEST_NOISE);
            self.bytes.truncate(LONGEST_NOISE);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.dropped = 0;
    }
}

/// What a side says.
#[derive(Debug, Default)]
struct Stream {
    begun: Begun,
    lines: Lines,
    /// Where it is read, if it does not come with the pieces.
    tap: Option<File>,
}

/// What makes records of pieces.
pub(super) struct Writing {
    log: Arc<Log>,
    client: Stream,
    agent: Stream,
    records: Records,
    /// What was read from a tap: as much as one has room for, at most.
    tapped: Vec<u8>,
}

impl Writing {
    /// Of what is in this log.
    pub(super) fn new(log: Arc<Log>, redactor: Option<Redactor>) -> Self {
        Self {
            log,
            client: Stream::default(),
            agent: Stream::default(),
            records: Records::new(redactor, WRITE),
            tapped: Vec::new(),
        }
    }

    /// What was recorded so far.
    pub(super) fn recorded(&self) -> Recording {
        self.records.recorded
    }

    /// Writes until the log is closed.
    pub(super) fn write_all(&mut self, file: &mut impl Write) -> io::Result<()> {
        let mut batch = Batch::default();
        while self.log.take(&mut batch) {
            let mut bytes = batch.bytes.as_slice();
            for piece in batch.pieces.drain(..) {
                let (own, rest) = bytes.split_at_checked(piece.length).unwrap_or_default();
                bytes = rest;
                match piece.what {
                    PieceOf::Stream(side) => self.stream(piece.at, side, own),
                    PieceOf::Tap(side, tap) => self.side(side).0.tap = Some(tap),
                    PieceOf::Tapped(side, length) => self.tapped(piece.at, side, length)?,
                    PieceOf::Stderr => self.records.stderr(piece.at, own),
                    PieceOf::Event(event) => self.event(piece.at, &event),
                }
                if self.records.out.len() >= WRITE {
                    self.flush(file)?;
                    self.log.set_written(piece.at);
                }
            }
            // Others may be waited for now, and what was said so far is to be seen.
            self.flush(file)?;
        }
        Ok(())
    }

    fn flush(&mut self, file: &mut impl Write) -> io::Result<()> {
        let out = &mut self.records.out;
        file.write_all(out)?;
        out.clear();
        out.shrink_to(KEPT);
        Ok(())
    }

    /// A side, the records that are made of what it says, and where it is told how many.
    fn side(&mut self, side: Side) -> (&mut Stream, &mut Records, &Log) {
        let stream = match side {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        };
        (stream, &mut self.records, self.log.as_ref())
    }

    /// So many bytes that are in a tap.
    fn tapped(&mut self, at: u64, side: Side, length: usize) -> io::Result<()> {
        // They are all there.
        let mut buffer = std::mem::take(&mut self.tapped);
        buffer.resize(length.max(buffer.len()), 0);
        let bytes = buffer.get_mut(..length).unwrap_or_default();
        if let Some(tap) = &mut self.side(side).0.tap {
            tap.read_exact(bytes)?;
        }
        self.stream(at, side, bytes);
        self.tapped = buffer;
        Ok(())
    }

    fn stream(&mut self, at: u64, side: Side, mut bytes: &[u8]) {
        let (stream, ..) = self.side(side);
        if !stream.begun.is_empty() {
            let (last, rest) = first(bytes);
            stream.begun.push(last);
            let Some(rest) = rest else {
                return;
            };
            bytes = rest;
            self.end_begun(at, side, false);
        }
        let (stream, records, log) = self.side(side);
        if let Some(end) = memchr::memrchr(b'\n', bytes) {
            let (whole, rest) = bytes.split_at(end);
            let open = false;
            lines(log, stream, records, whole, Line { at, side, open });
            bytes = rest.get(1..).unwrap_or_default();
        }
        stream.begun.push(bytes);
    }

    /// Records the line that has begun, now that its end, or that of the stream, is there.
    fn end_begun(&mut self, at: u64, side: Side, open: bool) {
        let (stream, records, log) = self.side(side);
        let line = Line { at, side, open };
        let mut begun = std::mem::take(&mut stream.begun);
        if begun.dropped > 0 {
            let length = begun.bytes.len() + begun.dropped;
            records.cut(line, &begun.bytes, length);
        } else {
            lines(log, stream, records, &begun.bytes, line);
        }
        begun.clear();
        stream.begun = begun;
    }

    fn event(&mut self, at: u64, event: &Event) {
        // What a stream ends with may have no line end.
        let ended: &[Side] = match event {
            Event::ClientClosed | Event::AgentStoppedReading => &[Side::Client],
            Event::AgentClosed | Event::ClientStoppedReading => &[Side::Agent],
            Event::Failed { from, .. } => &[*from],
            Event::End => &[Side::Client, Side::Agent],
            _ => &[],
        };
        for &side in ended {
            if !self.side(side).0.begun.is_empty() {
                self.end_begun(at, side, true);
            }
        }
        self.records.event(at, event);
    }
}

/// Records lines, of which only the last has no end.
fn lines(log: &Log, stream: &mut Stream, records: &mut Records, whole: &[u8], line: Line) {
    let mut rest = Some(whole);
    while let Some(mut bytes) = rest {
        let (looks, left) = stream.lines.look(records.redactor(), bytes);
        for look in looks {
            let (own, next) = first(bytes);
            records.line(line, own, *look);
            bytes = next.unwrap_or_default();
        }
        log.set_lines(records.lines);
        rest = left;
    }
}
