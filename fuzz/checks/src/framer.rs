//! Compares the framer with a reader that has the whole input.

use acp::__internals::{Frame, Framer, HEAD_LEN, TAIL_LEN, outline};

/// The limits for the two ends of an oversized line.
const FRAME_LIMITS: [usize; 16] = [
    0,
    1,
    2,
    16,
    60,
    100,
    255,
    TAIL_LEN,
    500,
    HEAD_LEN - 1,
    HEAD_LEN,
    HEAD_LEN + TAIL_LEN - 1,
    HEAD_LEN + TAIL_LEN,
    HEAD_LEN + TAIL_LEN + 1,
    2000,
    4000,
];

/// Checks that the output does not depend on how the bytes arrive, and that no more is buffered than the limit allows.
///
/// The first byte chooses the limit, the second the sizes of the pieces; the rest is what arrives.
pub fn check_framer(data: &[u8]) {
    let [limit, seed, input @ ..] = data else {
        return;
    };
    let limit = usize::from(limit % 16);
    let max = FRAME_LIMITS.get(limit).copied().unwrap_or_default();
    let whole = expected_frames(input, max);
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
    assert_eq!(read_frames(input, max, pieces), whole, "limit {max}");
    assert_eq!(
        read_frames(input, max, |left| left),
        whole,
        "limit {max}, at once"
    );
}

/// Returns all frames of `input`, one string each, if it arrives in pieces. `piece` returns the size of the next piece.
fn read_frames(input: &[u8], max: usize, mut piece: impl FnMut(usize) -> usize) -> Vec<String> {
    let mut framer = Framer::new(max);
    let mut out = Vec::new();
    let mut left = input;
    while !left.is_empty() {
        let (bytes, rest) = left.split_at(piece(left.len()).clamp(1, left.len()));
        left = rest;
        framer.push(bytes);
        while let Some(frame) = framer.next_frame() {
            out.push(describe_frame(&frame));
        }
        let kept = framer.buffered_len();
        assert!(kept <= max.max(HEAD_LEN + TAIL_LEN), "{kept} bytes wait");
    }
    if let Some(frame) = framer.finish() {
        out.push(format!("left: {}", describe_frame(&frame)));
    }
    assert_eq!(framer.buffered_len(), 0);
    out
}

/// Returns the frames according to a line-by-line reading of the whole input.
fn expected_frames(input: &[u8], max: usize) -> Vec<String> {
    let mut lines: Vec<&[u8]> = input.split(|b| *b == b'\n').collect();
    // Behind the last line end is what was left, or nothing.
    let left = lines.pop().unwrap_or_default();
    let mut out: Vec<String> = line_frames(&lines, max)
        .map(|frame| describe_frame(&frame))
        .collect();
    if left.len() <= max && !left.trim_ascii().is_empty() {
        out.push(format!(
            "left: {}",
            String::from_utf8_lossy(left.trim_ascii())
        ));
    }
    out
}

/// Classifies each line that is not blank.
pub(crate) fn line_frames<'a>(lines: &[&'a [u8]], max: usize) -> impl Iterator<Item = Frame<'a>> {
    lines.iter().filter_map(move |line| {
        if line.len() > max {
            return Some(Frame::Oversized {
                head: line.get(..HEAD_LEN).unwrap_or(line),
                tail: line
                    .get(line.len().saturating_sub(TAIL_LEN)..)
                    .unwrap_or(line),
                length: line.len(),
            });
        }
        let line = line.trim_ascii();
        (!line.is_empty()).then_some(Frame::Line(line))
    })
}

fn describe_frame(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
        Frame::LargeText => "a text that nobody asked for".to_owned(),
        Frame::Oversized { head, tail, length } => {
            // Whose it is can be anything, but must be told.
            let whose = outline(head, tail);
            let [head, tail] = [head, tail].map(|end| String::from_utf8_lossy(end));
            format!("too long: {head} {tail} {length} {whose:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All frames of `input` when it arrives in pieces of `piece` bytes.
    fn frames_in_pieces(input: &[u8], piece: usize, max: usize) -> Vec<String> {
        read_frames(input, max, |_| piece)
    }

    #[test]
    fn lines_are_complete_however_the_bytes_arrive() {
        let input = b"{\"a\":1}\r\n\n  \r\n{\"b\":2}\n\n{\"c\":3}";
        for piece in 1..input.len() {
            assert_eq!(
                frames_in_pieces(input, piece, 100),
                ["{\"a\":1}", "{\"b\":2}", "left: {\"c\":3}"],
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn an_oversized_line_is_reported_and_the_next_one_is_read() {
        let line: String = (0..1000).map(|n| format!("{n:05}")).collect();
        let input = format!("{line}\nnext\n{line}");
        let (head, tail) = (&line[..HEAD_LEN], &line[line.len() - TAIL_LEN..]);
        for max in [10, HEAD_LEN, 2000, 4999] {
            for piece in [1, 7, 999, 1500, 5000, 6000] {
                assert_eq!(
                    frames_in_pieces(input.as_bytes(), piece, max),
                    [&format!("too long: {head} {tail} 5000 Noise"), "next"],
                    "over {max} in pieces of {piece}"
                );
            }
        }
    }

    use proptest::prelude::*;

    /// A line: short ones, blank ones, those that fill more than what is kept of an oversized one.
    fn arbitrary_line() -> impl Strategy<Value = Vec<u8>> {
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
        fn frames_do_not_depend_on_how_the_bytes_arrive(
            lines in proptest::collection::vec(arbitrary_line(), 0..8),
            max in prop_oneof![0..60_usize, 900..4200_usize],
            piece in prop_oneof![1..10_usize, 10..5000_usize],
        ) {
            // Line ends within the lines are as good as those between them.
            let input = lines.join(&b'\n');
            prop_assert_eq!(frames_in_pieces(&input, piece, max), expected_frames(&input, max));
        }
    }
}
