//! A part of the inside, for this project's own fuzzers (`fuzz/checks`) and tests.
//!
//! Behind the cargo feature `__internals`. It is no part of what is promised, and changes with any release.

use acp_wire::jsonrpc::RequestId;

use crate::connection::{frame, memory, outline};

/// How much of the beginning of an oversized line is kept.
pub const HEAD: usize = frame::HEAD;

/// How much of its end is kept.
pub const TAIL: usize = frame::TAIL;

/// What a message takes once it has been read, in bytes, as it is estimated.
#[must_use]
pub fn memory(message: &[u8]) -> usize {
    memory::memory_of(message)
}

/// What the two ends of a message tell of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Outline {
    /// It answers this request.
    Response(RequestId),
    /// It is a request with this id.
    Request(RequestId),
    /// It is no message at all.
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

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// An answer whose text was taken out, which nobody here asks for.
    LargeText,
    /// A line over the limit.
    Oversized {
        /// Its first bytes.
        head: &'a [u8],
        /// Its last bytes.
        tail: &'a [u8],
        /// How long it was.
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
    /// Lines are within the limit up to so many bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self(frame::Framer::new(max))
    }

    /// These bytes have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.spare_capacity().extend_from_slice(bytes);
    }

    /// The next whole line.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.0.next().map(Frame::from)
    }

    /// How many bytes wait to be handed out.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.buffered_len()
    }

    /// What is left when the input ends.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.0.finish().map(Frame::from)
    }
}
