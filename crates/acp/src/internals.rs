//! Internals, exposed for this project's fuzzers (`fuzz/checks`) and tests.
//!
//! Requires the cargo feature `__internals`. Not covered by semantic versioning.

use acp_wire::jsonrpc::RequestId;

use crate::connection::{frame, memory, outline};

/// How many bytes of the start of an oversized line are kept.
pub const HEAD: usize = frame::HEAD;

/// How many bytes of its end are kept.
pub const TAIL: usize = frame::TAIL;

/// Estimates how much memory a message takes once it has been read, in bytes.
#[must_use]
pub fn memory(message: &[u8]) -> usize {
    memory::memory_of(message)
}

/// The type and id of a message, as far as its first and last bytes show.
#[derive(Debug, PartialEq, Eq)]
pub enum Outline {
    /// A response to this request.
    Response(RequestId),
    /// A request with this id.
    Request(RequestId),
    /// Not a message.
    Noise,
}

/// Reads a message's outline from its first and last bytes.
#[must_use]
pub fn outline(head: &[u8], tail: &[u8]) -> Outline {
    match outline::outline(head, tail) {
        outline::MessageOutline::Response(id) => Outline::Response(id),
        outline::MessageOutline::Request(id) => Outline::Request(id),
        outline::MessageOutline::Noise => Outline::Noise,
    }
}

/// A line, without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// A response whose text was extracted. No request here allows this.
    LargeText,
    /// A line over the limit.
    Oversized {
        /// Its first bytes.
        head: &'a [u8],
        /// Its last bytes.
        tail: &'a [u8],
        /// The length of the line.
        length: usize,
    },
}

impl<'a> From<frame::Frame<'a>> for Frame<'a> {
    fn from(frame: frame::Frame<'a>) -> Self {
        match frame {
            frame::Frame::Line(line) => Self::Line(line),
            frame::Frame::LargeText(_) => Self::LargeText,
            frame::Frame::Oversized { head, tail, length } => {
                Self::Oversized { head, tail, length }
            }
        }
    }
}

/// Splits what arrives into lines.
#[derive(Debug)]
pub struct Framer(frame::Framer);

impl Framer {
    /// Creates a framer for lines of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self(frame::Framer::new(max))
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.spare_capacity().extend_from_slice(bytes);
    }

    /// Returns the next complete line.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.0.next().map(Frame::from)
    }

    /// Returns how many bytes are buffered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.buffered_len()
    }

    /// Returns the rest when the input ends.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.0.finish().map(Frame::from)
    }
}
