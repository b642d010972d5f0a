//! Filters lines that are not messages, which are not sent.

/// A filter for written lines. It removes blank lines and, optionally, lines that are not JSON objects.
#[derive(Debug)]
pub(crate) struct LineFilter {
    state: State,
    drops_noise: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Message,
    Noise,
}

impl LineFilter {
    pub(crate) fn new(drops_noise: bool) -> Self {
        Self {
            state: State::Start,
            drops_noise,
        }
    }

    /// Passes the lines of `input` that remain to `keep`. Consecutive messages are passed together.
    pub(crate) fn apply(&mut self, mut input: &[u8], mut keep: impl FnMut(&[u8])) {
        while !input.is_empty() {
            match self.state {
                State::Start => {
                    let Some(first) = input.iter().position(|byte| !byte.is_ascii_whitespace())
                    else {
                        return;
                    };
                    input = input.get(first..).unwrap_or_default();
                    let is_object = input.first() == Some(&b'{');
                    self.state = if is_object || !self.drops_noise {
                        State::Message
                    } else {
                        State::Noise
                    };
                }
                State::Message => {
                    let run = self.messages(input);
                    let (kept, rest) = input.split_at(run);
                    keep(kept);
                    input = rest;
                }
                State::Noise => match memchr::memchr(b'\n', input) {
                    Some(end) => {
                        self.state = State::Start;
                        input = input.get(end + 1..).unwrap_or_default();
                    }
                    None => return,
                },
            }
        }
    }

    /// Returns the length of the consecutive messages at the start of `input`.
    fn messages(&mut self, input: &[u8]) -> usize {
        for end in memchr::memchr_iter(b'\n', input) {
            match input.get(end + 1) {
                Some(b'{') => {}
                _ => {
                    self.state = State::Start;
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
    fn noise_and_blank_lines_are_removed_however_the_input_is_cut() {
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
                    filter.apply(piece, |bytes| kept.extend_from_slice(bytes));
                }
                assert_eq!(String::from_utf8(kept).unwrap(), expected, "by {size}");
            }
        }
    }
}
