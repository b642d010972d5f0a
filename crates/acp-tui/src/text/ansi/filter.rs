//! Filters a command's output before it is interpreted.

use crate::text::columns::is_hidden;

/// The maximum repeat count in an escape sequence. Some programs repeat a character to draw lines, but no line is
/// longer than this.
const MAX_REPEAT: u32 = 500;

/// A filter that keeps text and the escape sequences that move the cursor or set colors.
///
/// Titles, links, images and all other strings for the terminal are dropped, however long they are, so that they need
/// not be buffered.
#[derive(Default)]
pub(super) struct AnsiFilter {
    state: AnsiState,
}

#[derive(Default, Clone, Copy)]
enum AnsiState {
    #[default]
    Ground,
    /// After an escape character.
    Escape,
    /// After an escape character and an intermediate character. One more character follows.
    Designation,
    /// In a control sequence. Contains the last and the largest of its numbers.
    Sequence(u32, u32),
    /// In a string for the terminal. The value is `true` for an operating system command, which ends at the end of the
    /// line at the latest.
    Text(bool),
}

impl AnsiFilter {
    /// Filters the next piece of output.
    pub(super) fn filter_text(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + piece.len() / 16);
        for c in piece.chars() {
            self.state = self.next_state(c, &mut out);
        }
        out
    }

    fn next_state(&self, c: char, out: &mut String) -> AnsiState {
        match (self.state, c) {
            (_, '\u{1b}') => AnsiState::Escape,
            // This character aborts the current sequence.
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
            // This ends the string.
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
                // A few bytes must not cause a lot of work.
                out.push(if c == 'b' && largest > MAX_REPEAT {
                    '\u{18}'
                } else {
                    c
                });
                AnsiState::Ground
            }
            (state @ AnsiState::Sequence(..), c) if c.is_ascii() => {
                // Control characters such as a line feed work inside a sequence as well.
                push_plain(c, out);
                state
            }
            (AnsiState::Sequence(..), c) => {
                out.push('\u{18}');
                push_plain(c, out);
                AnsiState::Ground
            }
            (AnsiState::Text(_), '\u{7}') => AnsiState::Ground,
            // An unterminated command does not swallow everything that follows.
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

/// Appends a character that is not part of a sequence.
fn push_plain(c: char, out: &mut String) {
    match c {
        // Output through a pipe has not passed through a terminal driver, which would add the carriage return.
        '\n' | '\u{b}' | '\u{c}' => out.push_str("\r\n"),
        '\r' | '\t' | '\u{8}' => out.push(c),
        '\0'..='\u{1f}' | '\u{7f}' => {}
        // The screen does not show the replacement character, and supports no characters three columns wide.
        '\u{fffd}' | '\u{17d8}' => out.push('?'),
        // This character would make the previous one wider than the screen assumes.
        '\u{fe0f}' => {}
        c if is_hidden(c) => {}
        c => out.push(c),
    }
}
