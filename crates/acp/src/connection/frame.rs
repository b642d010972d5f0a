//! Splits input into lines, one per message.
//!
//! Lines end in `\n` or `\r\n`. Empty lines are skipped. If a line is longer than the limit, only its start and end are
//! kept, to find the message's type and id, and the rest is dropped as it arrives. If a response has a large text, the
//! text is extracted as it arrives.

use std::ops::Range;

pub(crate) use super::large_text::{LargeTextReader, LargeTextResponse, MIN_LARGE_TEXT_BYTES};

/// The number of bytes kept from the start of an oversized line, enough to find the id and the method.
pub(crate) const HEAD_LEN: usize = 1024;

/// The number of bytes kept from the end of an oversized line, where some peers write the id.
pub(crate) const TAIL_LEN: usize = 256;

/// The minimum free space in the buffer for a read, in bytes.
const MIN_READ_SPACE: usize = 64 * 1024;

/// A received line, without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// A response from which a large text was extracted.
    LargeText(LargeTextResponse),
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

/// Splits input into lines without copying them.
#[derive(Debug)]
pub(crate) struct Framer {
    buf: Vec<u8>,
    /// The offset of the current line in the buffer.
    start: usize,
    /// The offset up to which the buffer has been searched for a line ending.
    scanned: usize,
    max_line: usize,
    /// The number of bytes in the current line that are no longer in the buffer.
    dropped_len: usize,
    /// The minimum length, in bytes, of a text to extract as it arrives.
    large_text_len: usize,
    /// Reads the large text that is being extracted from the current line, if any.
    large_text: Option<LargeTextReader>,
    /// The start of the last oversized line whose text was being extracted.
    prefix: Vec<u8>,
}

impl Framer {
    /// Creates a framer for lines of up to `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            scanned: 0,
            max_line: max,
            dropped_len: 0,
            large_text_len: MIN_LARGE_TEXT_BYTES,
            large_text: None,
            prefix: Vec::new(),
        }
    }

    /// Returns the buffer, with spare capacity at the end to read input into.
    pub(crate) fn spare_capacity(&mut self) -> &mut Vec<u8> {
        if self.start == self.buf.len() {
            self.buf.clear();
            self.start = 0;
            self.scanned = 0;
            // Large messages are rare, so do not keep their buffer.
            if self.buf.capacity() > 4 * MIN_READ_SPACE {
                self.buf = Vec::new();
            }
        } else if self.start > 0 && self.buf.capacity() - self.buf.len() < MIN_READ_SPACE {
            self.buf.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buf.reserve(MIN_READ_SPACE);
        &mut self.buf
    }

    /// Returns the next complete line.
    pub(crate) fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            let unseen = self.buf.get(self.scanned..).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', unseen) else {
                self.scanned = self.buf.len();
                self.drop_oversized();
                return None;
            };
            let (start, end) = (self.start, self.scanned + at);
            self.start = end + 1;
            self.scanned = self.start;
            let length = end - start + std::mem::take(&mut self.dropped_len);
            if let Some(arriving) = self.large_text.take() {
                return Some(self.finish_large_text(arriving, start..end, length));
            }
            if length > self.max_line {
                let line = self.buf.get(start..end).unwrap_or_default();
                let head = line.get(..HEAD_LEN).unwrap_or(line);
                let tail = line
                    .get(line.len().saturating_sub(TAIL_LEN)..)
                    .unwrap_or_default();
                return Some(Frame::Oversized { head, tail, length });
            }
            if let Some(range) = trim_line(&self.buf, start, end) {
                return Some(Frame::Line(self.buf.get(range).unwrap_or_default()));
            }
        }
    }

    /// Starts extracting a large text from the incomplete line, if the line is a response and `field` returns a field
    /// name for its id. Call this when there is no complete line.
    pub(crate) fn begin_large_text(&mut self, field: impl FnOnce(i64) -> Option<&'static str>) {
        let line = self.buf.get(self.start..).unwrap_or_default();
        if self.large_text.is_none()
            && self.dropped_len == 0
            && line.len() >= self.large_text_len
            && let Some((arriving, at)) = LargeTextReader::detect(line, field)
        {
            self.large_text = Some(arriving);
            self.consume(at);
        }
        let Some(arriving) = &mut self.large_text else {
            return;
        };
        let line = self.buf.get(self.start..).unwrap_or_default();
        if self.dropped_len > self.max_line {
            arriving.discard_text();
        }
        let taken = arriving.push(line);
        self.consume(taken);
    }

    /// Returns the frame for a line whose text was extracted.
    fn finish_large_text(
        &mut self,
        arriving: LargeTextReader,
        rest: Range<usize>,
        length: usize,
    ) -> Frame<'_> {
        if length <= self.max_line {
            let rest = self.buf.get(rest).unwrap_or_default();
            return Frame::LargeText(arriving.finish(rest));
        }
        // The start shows which request the message belongs to.
        self.prefix = arriving.into_prefix();
        Frame::Oversized {
            head: &self.prefix,
            tail: &[],
            length,
        }
    }

    /// Consumes the next bytes of the current line.
    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.dropped_len += bytes;
        self.scanned = self.scanned.max(self.start);
    }

    #[cfg(any(feature = "bridge", feature = "__internals"))]
    /// Returns the number of buffered bytes.
    pub(crate) fn buffered_len(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Returns the last line if the input has ended without a line ending.
    pub(crate) fn finish(&mut self) -> Option<Frame<'_>> {
        let (start, end) = (self.start, self.buf.len());
        self.start = end;
        self.scanned = end;
        let length = std::mem::take(&mut self.dropped_len) + end - start;
        if length > self.max_line {
            self.large_text = None;
            return None;
        }
        if let Some(arriving) = self.large_text.take() {
            return Some(self.finish_large_text(arriving, start..end, length));
        }
        trim_line(&self.buf, start, end).map(|r| Frame::Line(self.buf.get(r).unwrap_or_default()))
    }

    /// Drops the middle of the current line if it is longer than the limit.
    fn drop_oversized(&mut self) {
        let kept = self.buf.len() - self.start;
        if self.dropped_len + kept > self.max_line && kept > HEAD_LEN + TAIL_LEN {
            self.dropped_len += kept - HEAD_LEN - TAIL_LEN;
            self.buf
                .drain(self.start + HEAD_LEN..self.buf.len() - TAIL_LEN);
            self.scanned = self.buf.len();
        }
    }
}

/// Returns the line's range without surrounding whitespace, or `None` if the line is blank.
fn trim_line(buf: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let line = buf.get(start..end)?;
    let first = line.iter().position(|b| !b.is_ascii_whitespace())?;
    let last = line.iter().rposition(|b| !b.is_ascii_whitespace())?;
    Some(start + first..start + last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut framer = Framer::new(10_000);
        for _ in 0..1000 {
            framer.spare_capacity().extend_from_slice(&[b'x'; 10_000]);
            assert!(framer.next().is_none());
        }
        assert!(
            framer.buf.capacity() < 4 * MIN_READ_SPACE,
            "{}",
            framer.buf.capacity()
        );
    }

    /// Splits `input` into frames and returns them as text. Large texts are extracted from responses to request 7.
    fn frames_with_texts(input: &[u8], piece: usize, large: usize, max: usize) -> Vec<String> {
        let mut framer = Framer::new(max);
        framer.large_text_len = large;
        let mut out = Vec::new();
        for bytes in input.chunks(piece) {
            framer.spare_capacity().extend_from_slice(bytes);
            while let Some(frame) = framer.next() {
                out.push(describe_frame(frame));
            }
            framer.begin_large_text(|id| (id == 7).then_some("content"));
        }
        out.extend(framer.finish().map(describe_frame));
        out
    }

    /// Returns the message in a frame as text, whether or not its large text was extracted.
    fn describe_frame(frame: Frame<'_>) -> String {
        let answer: serde_json::Result<serde_json::Value> = match &frame {
            Frame::Line(line) => serde_json::from_slice(line),
            Frame::LargeText(LargeTextResponse { text: None, .. }) => {
                return "unreadable".to_owned();
            }
            Frame::LargeText(arrived) => serde_json::from_slice(&arrived.response),
            Frame::Oversized { head, tail, length } => {
                let whose = super::super::outline::read_outline(head, tail);
                return format!("{length} bytes of {whose:?}");
            }
        };
        let Ok(mut answer) = answer else {
            return "unreadable".to_owned();
        };
        if let Frame::LargeText(LargeTextResponse {
            text: Some(text), ..
        }) = frame
        {
            assert_eq!(answer["result"]["content"], "");
            answer["result"]["content"] = text.into();
        }
        answer.to_string()
    }

    #[test]
    fn a_large_text_is_extracted_while_it_arrives() {
        let mut framer = Framer::new(usize::MAX);
        framer
            .spare_capacity()
            .extend_from_slice(br#"{"jsonrpc":"2.0","id":7,"result":{"content":""#);
        for _ in 0..1000 {
            framer.spare_capacity().extend_from_slice(&[b'x'; 10_000]);
            assert!(framer.next().is_none());
            framer.begin_large_text(|id| (id == 7).then_some("content"));
            assert!(
                framer.buf.capacity() <= 4 * MIN_READ_SPACE,
                "{}",
                framer.buf.capacity()
            );
        }
        framer
            .spare_capacity()
            .extend_from_slice(b"\",\"_meta\":{}}}\n{}\n");
        let Some(Frame::LargeText(arrived)) = framer.next() else {
            panic!("no text")
        };
        assert_eq!(arrived.text.map(|text| text.len()), Some(10_000_000));
        let answer = String::from_utf8(arrived.response).unwrap();
        assert_eq!(
            answer,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":"","_meta":{}}}"#
        );
        assert_eq!(framer.next(), Some(Frame::Line(b"{}")));
    }

    #[test]
    fn an_invalid_or_too_long_text_fails_only_its_response() {
        let long = "a".repeat(300);
        for (text, told) in [
            ("\\x".to_owned(), "unreadable"),
            ("\u{1}".to_owned(), "unreadable"),
            (long.repeat(20), "6051 bytes of Response(Number(7))"),
        ] {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":"{long}{text}"}}}}"#);
            let told = told.replace("6051", &line.len().to_string());
            let input = format!("{line}\n{{}}\n{line}");
            for piece in [1, 7, 100, 10_000] {
                let frames = frames_with_texts(input.as_bytes(), piece, 100, 3000);
                assert_eq!(frames[..2], [told.clone(), "{}".to_owned()], "by {piece}");
            }
        }
    }

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extraction_does_not_change_the_text(
            text: String,
            behind in prop_oneof![Just(""), Just(r#","_meta":{"content":"x"}"#), Just(",oops")],
            id in 6..8_i64,
            piece in 1..60_usize,
            large in 1..60_usize,
            max in prop_oneof![Just(usize::MAX), 0..400_usize],
        ) {
            let text = serde_json::to_string(&text).unwrap();
            let line = format!(r#" {{"jsonrpc": "2.0","id":{id}, "result":{{"content":{text}{behind}}} }}"#);
            let input = format!("{line}\r\n{{\"method\":\"x\"}}\n{line}");
            let whole = frames_with_texts(input.as_bytes(), input.len(), usize::MAX, max);
            prop_assert_eq!(frames_with_texts(input.as_bytes(), piece, large, max), whole);
        }
    }
}
