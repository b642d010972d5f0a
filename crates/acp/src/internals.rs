//! Library internals for this project's fuzzers (`fuzz/checks`) and tests.
//!
//! Requires the cargo feature `__internals`. Not covered by semantic versioning.

use acp_wire::jsonrpc::RequestId;

use crate::connection::{frame, outline};
use crate::memory::parsed_memory;

/// The number of bytes kept from the start of an oversized line.
pub const HEAD_LEN: usize = frame::HEAD_LEN;

/// The number of bytes kept from the end of an oversized line.
pub const TAIL_LEN: usize = frame::TAIL_LEN;

/// Estimates a message's size in memory once parsed, in bytes.
#[must_use]
pub fn estimate_memory(message: &[u8]) -> usize {
    parsed_memory(message)
}

/// The type and id of an oversized message, if its first and last bytes show them.
#[derive(Debug, PartialEq, Eq)]
pub enum Outline {
    /// A response, with the id of its request.
    Response(RequestId),
    /// A request, with its id, or `Null` if no id was found.
    Request(RequestId),
    /// A line that is not a message.
    Noise,
}

/// Reads a message's type and id from its first and last bytes.
#[must_use]
pub fn outline(head: &[u8], tail: &[u8]) -> Outline {
    match outline::read_outline(head, tail) {
        outline::MessageOutline::Response(id) => Outline::Response(id),
        outline::MessageOutline::Request(id) => Outline::Request(id),
        outline::MessageOutline::Noise => Outline::Noise,
    }
}

/// A received line, without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// A response from which a large text was extracted. This framer never returns it.
    LargeText,
    /// A line longer than the limit.
    Oversized {
        /// The line's first bytes.
        head: &'a [u8],
        /// The line's last bytes.
        tail: &'a [u8],
        /// The length of the full line, in bytes.
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

/// Splits input into lines.
#[derive(Debug)]
pub struct Framer(frame::Framer);

impl Framer {
    /// Creates a framer for lines of up to `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self(frame::Framer::new(max))
    }

    /// Appends bytes of input to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.spare_capacity().extend_from_slice(bytes);
    }

    /// Returns the next complete line.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.0.next().map(Frame::from)
    }

    /// Returns the number of buffered bytes.
    #[must_use]
    pub fn buffered_len(&self) -> usize {
        self.0.buffered_len()
    }

    /// Returns the last line if the input ended without a line ending.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.0.finish().map(Frame::from)
    }
}
