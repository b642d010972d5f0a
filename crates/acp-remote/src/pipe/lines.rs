//! Filters out lines that are not messages, so that they are not sent.

/// A filter for written lines. Removes blank lines and, optionally, lines that are not JSON objects.
#[derive(Debug)]
pub(crate) struct LineFilter {
    state: LineState,
    drops_noise: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    Start,
    Message,
    Noise,
}

impl LineFilter {
    pub(crate) fn new(drops_noise: bool) -> Self {
        Self {
            state: LineState::Start,
            drops_noise,
        }
    }

    /// Passes those lines of `input` that remain to `keep`. Consecutive messages are passed together.
    pub(crate) fn filter(&mut self, mut input: &[u8], mut keep: impl FnMut(&[u8])) {
        while !input.is_empty() {
            match self.state {
                LineState::Start => {
                    let Some(first) = input.iter().position(|byte| !byte.is_ascii_whitespace())
                    else {
                        return;
                    };
                    input = input.get(first..).unwrap_or_default();
                    let is_object = input.first() == Some(&b'{');
                    self.state = if is_object || !self.drops_noise {
                        LineState::Message
                    } else {
                        LineState::Noise
                    };
                }
                LineState::Message => {
                    let run = self.count_messages(input);
                    let (kept, rest) = input.split_at(run);
                    keep(kept);
                    input = rest;
                }
                LineState::Noise => match memchr::memchr(b'\n', input) {
                    Some(end) => {
                        self.state = LineState::Start;
                        input = input.get(end + 1..).unwrap_or_default();
                    }
                    None => return,
                },
            }
        }
    }

    /// Returns the total length of the consecutive messages at the start of `input`.
    fn count_messages(&mut self, input: &[u8]) -> usize {
        for end in memchr::memchr_iter(b'\n', input) {
            match input.get(end + 1) {
                Some(b'{') => {}
                _ => {
                    self.state = LineState::Start;
                    return end + 1;
                }
            }
        }
        input.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_and_blank_lines_are_removed_however_input_is_split() {
        let input =
            b"\n\r\n{\"a\":1}\n  {\"b\":2}\nlog: hello\n\nmore\n{\"c\":3}\n{\"d\":4}\n [\n{\"e\"";
        for (drops, expected) in [
            (true, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n{\"e\""),
            (
                false,
                "{\"a\":1}\n{\"b\":2}\nlog: hello\nmore\n{\"c\":3}\n{\"d\":4}\n[\n{\"e\"",
            ),
        ] {
            for size in 1..input.len() {
                let mut filter = LineFilter::new(drops);
                let mut kept = Vec::new();
                for piece in input.chunks(size) {
                    filter.filter(piece, |bytes| kept.extend_from_slice(bytes));
                }
                assert_eq!(String::from_utf8(kept).unwrap(), expected, "by {size}");
            }
        }
    }
}
