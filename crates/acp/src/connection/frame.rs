//! Bytes to lines: one message a line.
//!
//! Takes `\n` and `\r\n`, passes over empty lines, and a line over the limit does not fill memory:
//! its two ends are kept to tell whose message it was, the rest is dropped as it comes.

/// How much of the beginning of an oversized line is kept: enough for its id and method.
pub(crate) const HEAD: usize = 1024;

/// How much of its end is kept: some write the id last.
pub(crate) const TAIL: usize = 256;

/// How much room is offered to a read.
const ROOM: usize = 64 * 1024;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Line(&'a [u8]),
    /// A line over the limit.
    TooLong {
        /// Its first bytes.
        head: &'a [u8],
        /// Its last bytes.
        tail: &'a [u8],
        /// How long it was.
        length: usize,
    },
}

/// Splits what is read into lines. Lines are handed out where they lie; nothing is copied.
#[derive(Debug)]
pub(crate) struct Framer {
    buf: Vec<u8>,
    /// Where the line being read begins.
    start: usize,
    /// Up to where it has been searched for its end.
    scanned: usize,
    max: usize,
    /// How much has been dropped of the line being read, between its head and its tail.
    dropped: usize,
}

impl Framer {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            scanned: 0,
            max,
            dropped: 0,
        }
    }

    /// The buffer to read into, with room at its end.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        if self.start == self.buf.len() {
            self.buf.clear();
            self.start = 0;
            self.scanned = 0;
            // A large message is rare; its buffer is not kept.
            if self.buf.capacity() > 4 * ROOM {
                self.buf = Vec::new();
            }
        } else if self.start > 0 && self.buf.capacity() - self.buf.len() < ROOM {
            self.buf.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buf.reserve(ROOM);
        &mut self.buf
    }

    /// The next whole line.
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
            let length = end - start + std::mem::take(&mut self.dropped);
            if length > self.max {
                let line = self.buf.get(start..end).unwrap_or_default();
                let head = line.get(..HEAD).unwrap_or(line);
                let tail = line
                    .get(line.len().saturating_sub(TAIL)..)
                    .unwrap_or_default();
                return Some(Frame::TooLong { head, tail, length });
            }
            if let Some(range) = content(&self.buf, start, end) {
                return Some(Frame::Line(self.buf.get(range).unwrap_or_default()));
            }
        }
    }

    /// How many bytes wait to be handed out.
    pub(crate) fn waiting(&self) -> usize {
        self.buf.len() - self.start
    }

    /// What is left when the input ends: a line without an end.
    pub(crate) fn finish(&mut self) -> Option<Frame<'_>> {
        let (start, end) = (self.start, self.buf.len());
        self.start = end;
        self.scanned = end;
        if std::mem::take(&mut self.dropped) + end - start > self.max {
            return None;
        }
        content(&self.buf, start, end).map(|r| Frame::Line(self.buf.get(r).unwrap_or_default()))
    }

    /// Of a line that is over the limit already, only the ends are kept.
    fn drop_oversized(&mut self) {
        let kept = self.buf.len() - self.start;
        if self.dropped + kept > self.max && kept > HEAD + TAIL {
            self.dropped += kept - HEAD - TAIL;
            self.buf.drain(self.start + HEAD..self.buf.len() - TAIL);
            self.scanned = self.buf.len();
        }
    }
}

/// The line's content without `\r` and surrounding blanks; `None` if nothing is left.
fn content(buf: &[u8], start: usize, end: usize) -> Option<std::ops::Range<usize>> {
    let line = buf.get(start..end)?;
    let first = line.iter().position(|b| !b.is_ascii_whitespace())?;
    let last = line.iter().rposition(|b| !b.is_ascii_whitespace())?;
    Some(start + first..start + last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::framer::{naive, read};

    /// All frames of `input` when it arrives in pieces of `piece` bytes.
    fn frames(input: &[u8], piece: usize, max: usize) -> Vec<String> {
        read(input, max, |_| piece)
    }

    #[test]
    fn lines_come_out_whole_however_the_bytes_arrive() {
        let input = b"{\"a\":1}\r\n\n  \r\n{\"b\":2}\n\n{\"c\":3}";
        for piece in 1..input.len() {
            assert_eq!(
                frames(input, piece, 100),
                ["{\"a\":1}", "{\"b\":2}", "left: {\"c\":3}"],
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn an_oversized_line_is_named_and_the_next_one_is_read() {
        let line: String = (0..1000).map(|n| format!("{n:05}")).collect();
        let input = format!("{line}\nnext\n{line}");
        let (head, tail) = (&line[..HEAD], &line[line.len() - TAIL..]);
        for max in [10, HEAD, 2000, 4999] {
            for piece in [1, 7, 999, 1500, 5000, 6000] {
                assert_eq!(
                    frames(input.as_bytes(), piece, max),
                    [&format!("too long: {head} {tail} 5000 Noise"), "next"],
                    "over {max} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut framer = Framer::new(10_000);
        for _ in 0..1000 {
            framer.room().extend_from_slice(&[b'x'; 10_000]);
            assert!(framer.next().is_none());
        }
        assert!(
            framer.buf.capacity() < 4 * ROOM,
            "{}",
            framer.buf.capacity()
        );
    }

    use proptest::prelude::*;

    /// A line: short ones, blank ones, those that fill more than what is kept of an oversized one.
    fn line() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(
                prop_oneof![Just(b' '), Just(b'\r'), Just(b'\t'), any::<u8>()],
                0..40
            ),
            (any::<u8>(), 1000..4000_usize)
                .prop_map(|(seed, n)| (0..n).map(|i| seed.wrapping_add((i % 251) as u8)).collect()),
        ]
    }

    proptest! {
        #[test]
        fn what_comes_out_does_not_depend_on_how_it_arrives(
            lines in proptest::collection::vec(line(), 0..8),
            max in prop_oneof![0..60_usize, 900..4200_usize],
            piece in prop_oneof![1..10_usize, 10..5000_usize],
        ) {
            // Line ends within the lines are as good as those between them.
            let input = lines.join(&b'\n');
            prop_assert_eq!(frames(&input, piece, max), naive(&input, max));
        }
    }
}
