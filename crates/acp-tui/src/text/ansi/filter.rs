//! What of a command's output is read at all.

use crate::text::columns::is_hidden;

/// How often a character may be repeated by one sequence. Some programs draw rules so; nobody draws longer ones.
const REPEATED: u32 = 500;

/// Passes on what a screen shows: text, and the sequences that move and colour it. Titles, addresses, images and
/// whatever else a terminal is sent in strings is left out, however long it is, so that nobody has to keep it.
#[derive(Default)]
pub(super) struct AnsiFilter {
    state: AnsiState,
}

#[derive(Default, Clone, Copy)]
enum AnsiState {
    #[default]
    Ground,
    /// Behind an escape.
    Escape,
    /// Behind an escape and a character that another one follows.
    Designation,
    /// Within a control sequence: its last number, and its largest.
    Sequence(u32, u32),
    /// Within a string for the terminal; `true` for one of the operating system's commands, which have one line.
    Text(bool),
}

impl AnsiFilter {
    /// The next piece as it is to be read.
    pub(super) fn text(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + piece.len() / 16);
        for c in piece.chars() {
            self.state = self.next_state(c, &mut out);
        }
        out
    }

    fn next_state(&self, c: char, out: &mut String) -> AnsiState {
        match (self.state, c) {
            (_, '\u{1b}') => AnsiState::Escape,
            // What is under way is given up.
            (AnsiState::Sequence(..), '\u{18}' | '\u{1a}') => {
                out.push('\u{18}');
                AnsiState::Ground
            }
            (_, '\u{18}' | '\u{1a}') => AnsiState::Ground,
            (AnsiState::Ground, c) => {
                push_plain(c, out);
                AnsiState::Ground
            }
            (AnsiState::Escape, '[') => {
                out.push_str("\u{1b}[");
                AnsiState::Sequence(0, 0)
            }
            (AnsiState::Escape, ']') => AnsiState::Text(true),
            (AnsiState::Escape, 'P' | 'X' | '^' | '_') => AnsiState::Text(false),
            // The end of a string.
            (AnsiState::Escape, '\\') => AnsiState::Ground,
            (AnsiState::Escape, ' '..='/') => AnsiState::Designation,
            (AnsiState::Escape, '0'..='~') => {
                out.push('\u{1b}');
                out.push(c);
                AnsiState::Ground
            }
            (AnsiState::Designation, ' '..='~') => AnsiState::Ground,
            (AnsiState::Sequence(number, largest), '0'..='9') => {
                out.push(c);
                let digit = c.to_digit(10).unwrap_or(0);
                let number = number.saturating_mul(10).saturating_add(digit);
                AnsiState::Sequence(number, largest.max(number))
            }
            (AnsiState::Sequence(_, largest), ' '..='?') => {
                out.push(c);
                AnsiState::Sequence(0, largest)
            }
            (AnsiState::Sequence(_, largest), '@'..='~') => {
                // A few bytes must not make a day's work.
                out.push(if c == 'b' && largest > REPEATED {
                    '\u{18}'
                } else {
                    c
                });
                AnsiState::Ground
            }
            (state @ AnsiState::Sequence(..), c) if c.is_ascii() => {
                // A line feed and the like works within a sequence as well.
                push_plain(c, out);
                state
            }
            (AnsiState::Sequence(..), c) => {
                out.push('\u{18}');
                push_plain(c, out);
                AnsiState::Ground
            }
            (AnsiState::Text(_), '\u{7}') => AnsiState::Ground,
            // One that nobody ends does not swallow all that follows.
            (AnsiState::Text(true), '\n') => {
                push_plain(c, out);
                AnsiState::Ground
            }
            (AnsiState::Text(command), _) => AnsiState::Text(command),
            (AnsiState::Escape | AnsiState::Designation, c) => {
                push_plain(c, out);
                AnsiState::Ground
            }
        }
    }
}

/// A character that is not part of a sequence.
fn push_plain(c: char, out: &mut String) {
    match c {
        // A pipe has no terminal before it that would put the return there.
        '\n' | '\u{b}' | '\u{c}' => out.push_str("\r\n"),
        '\r' | '\t' | '\u{8}' => out.push(c),
        '\0'..='\u{1f}' | '\u{7f}' => {}
        // The screen does not show what stands for a byte that is no text, and has no cells three columns wide.
        '\u{fffd}' | '\u{17d8}' => out.push('?'),
        // Makes what is before it wider than the screen takes it for.
        '\u{fe0f}' => {}
        c if is_hidden(c) => {}
        c => out.push(c),
    }
}
