//! The framer against a reading of the whole.

use crate::connection::frame::{Frame, Framer, HEAD, TAIL};
use crate::connection::outline::outline;

/// Limits on both sides of what is kept of an oversized line.
const LIMITS: [usize; 16] = [
    0,
    1,
    2,
    16,
    60,
    100,
    255,
    TAIL,
    500,
    HEAD - 1,
    HEAD,
    HEAD + TAIL - 1,
    HEAD + TAIL,
    HEAD + TAIL + 1,
    2000,
    4000,
];

/// What comes out does not depend on how the bytes arrive, and no more is kept than the limit says.
///
/// The first byte chooses the limit, the second the sizes of the pieces; the rest is what arrives.
pub fn framer(data: &[u8]) {
    let [limit, seed, input @ ..] = data else {
        return;
    };
    let limit = usize::from(limit % 16);
    let max = LIMITS.get(limit).copied().unwrap_or_default();
    let whole = naive(input, max);
    let mut size = u32::from(*seed);
    let pieces = |left: usize| {
        // Any sequence that has small ones and large ones.
        size = size.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let size = match size >> 28 {
            0..=5 => 1,
            6..=9 => 1 + (size >> 16 & 0xf),
            10..=13 => 1 + (size >> 16 & 0x1ff),
            _ => 1 + (size >> 16 & 0xfff),
        };
        left.min(size as usize)
    };
    assert_eq!(read(input, max, pieces), whole, "limit {max}");
    assert_eq!(read(input, max, |left| left), whole, "limit {max}, at once");
}

/// All frames of `input`, one text each, when it arrives in pieces; `piece` gives the size of the next one
/// of what is left.
pub(crate) fn read(input: &[u8], max: usize, mut piece: impl FnMut(usize) -> usize) -> Vec<String> {
    let mut framer = Framer::new(max);
    let mut out = Vec::new();
    let mut left = input;
    while !left.is_empty() {
        let (bytes, rest) = left.split_at(piece(left.len()).clamp(1, left.len()));
        left = rest;
        framer.room().extend_from_slice(bytes);
        while let Some(frame) = framer.next() {
            out.push(text(&frame));
        }
        let kept = framer.waiting();
        assert!(kept <= max.max(HEAD + TAIL), "{kept} bytes wait");
    }
    if let Some(frame) = framer.finish() {
        out.push(format!("left: {}", text(&frame)));
    }
    assert_eq!(framer.waiting(), 0);
    out
}

/// What a line by line reading of the whole gives.
pub(crate) fn naive(input: &[u8], max: usize) -> Vec<String> {
    let mut lines: Vec<&[u8]> = input.split(|b| *b == b'\n').collect();
    // Behind the last line end is what was left, or nothing.
    let left = lines.pop().unwrap_or_default();
    let mut out: Vec<String> = frames(&lines, max).map(|frame| text(&frame)).collect();
    if left.len() <= max && !left.trim_ascii().is_empty() {
        out.push(format!(
            "left: {}",
            String::from_utf8_lossy(left.trim_ascii())
        ));
    }
    out
}

/// What each line is, those left out that are blank.
pub(crate) fn frames<'a>(lines: &[&'a [u8]], max: usize) -> impl Iterator<Item = Frame<'a>> {
    lines.iter().filter_map(move |line| {
        if line.len() > max {
            return Some(Frame::TooLong {
                head: line.get(..HEAD).unwrap_or(line),
                tail: line.get(line.len().saturating_sub(TAIL)..).unwrap_or(line),
                length: line.len(),
            });
        }
        let line = line.trim_ascii();
        (!line.is_empty()).then_some(Frame::Line(line))
    })
}

fn text(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
        Frame::LargeText(arrived) => format!("text: {arrived:?}"),
        Frame::TooLong { head, tail, length } => {
            // Whose it is can be anything, but must be told.
            let whose = outline(head, tail);
            let [head, tail] = [head, tail].map(|end| String::from_utf8_lossy(end));
            format!("too long: {head} {tail} {length} {whose:?}")
        }
    }
}
