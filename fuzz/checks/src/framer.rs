//! Compares the framer with a simple reader of the whole input.

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

/// Checks that the frames do not depend on the pieces in which the bytes arrive, and that the buffer stays within the
/// limit.
///
/// The first byte selects the limit, and the second the sizes of the pieces. The rest is the input.
pub fn check_framer(data: &[u8]) {
    let [limit, seed, input @ ..] = data else {
        return;
    };
    let limit = usize::from(limit % 16);
    let max = FRAME_LIMITS.get(limit).copied().unwrap_or_default();
    let whole = expected_frames(input, max);
    let mut size = u32::from(*seed);
    let pieces = |left: usize| {
        // Any sequence with small and large sizes will do.
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
        "limit {max}, input in one piece"
    );
}

/// Reads `input` in pieces, and returns all frames, each as a string. `piece` returns the size of the next piece.
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
        assert!(
            kept <= max.max(HEAD_LEN + TAIL_LEN),
            "{kept} bytes are buffered"
        );
    }
    if let Some(frame) = framer.finish() {
        out.push(format!("left: {}", describe_frame(&frame)));
    }
    assert_eq!(framer.buffered_len(), 0);
    out
}

/// Reads the whole input line by line, and returns the expected frames.
fn expected_frames(input: &[u8], max: usize) -> Vec<String> {
    let mut lines: Vec<&[u8]> = input.split(|b| *b == b'\n').collect();
    // After the last line end is an incomplete line, or nothing.
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
        Frame::LargeText => "a text was extracted, although no request expects one".to_owned(),
        Frame::Oversized { head, tail, length } => {
            // The outline can be anything, but it must be part of the result.
            let whose = outline(head, tail);
            let [head, tail] = [head, tail].map(|end| String::from_utf8_lossy(end));
            format!("too long: {head} {tail} {length} {whose:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all frames of `input` if it arrives in pieces of `piece` bytes.
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

    /// Generates lines: short ones, blank ones, and lines that are longer than what is kept of an oversized line.
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
            // Line ends within the generated lines are treated like those between them.
            let input = lines.join(&b'\n');
            prop_assert_eq!(frames_in_pieces(&input, piece, max), expected_frames(&input, max));
        }
    }
}
