//! Queries the terminal's image support and its background.
//!
//! The queries are sent before the first drawing, and the replies are read after it, before the key reader starts. So
//! the user only waits, and not for long, if the terminal does not reply. A late reply must not look like typed keys:
//! the key reader ignores those about images, and a [`ReportFilter`](crate::background_report::ReportFilter) finds
//! those about the background. All other input that arrives in the meantime is returned as keys.

use std::io::{self, Write};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use acp_config::Background;

use crate::background_report::{BACKGROUND_QUERY, parse_report};
use crate::images::PixelSize;

/// The time limit for the reply. Terminals reply within a few milliseconds, but replies over a network take longer.
#[cfg(unix)]
const REPLY_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(150);

/// The maximum number of bytes of other input to read while waiting for the reply. Anything beyond that is read later.
#[cfg(unix)]
const MAX_OTHER_INPUT_BYTES: usize = 64 * 1024;

/// The maximum length of a key's escape sequence or of a reply, in bytes.
const MAX_KEY_SEQUENCE_BYTES: usize = 48;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The terminal's replies to the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TerminalReply {
    /// Whether the terminal supports sixels.
    pub(crate) supports_sixel: bool,
    /// The cell size that the terminal reported.
    pub(crate) cell: Option<PixelSize>,
    /// The background that the terminal reported.
    pub(crate) background: Option<Background>,
    /// Whether the terminal has replied to the last query, so that no reply is outstanding.
    pub(crate) is_complete: bool,
}

/// What to ask the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TerminalQueries {
    /// Ask for the background.
    pub(crate) background: bool,
    /// Ask for the size of a cell. The support for sixels is always in the reply.
    pub(crate) images: bool,
}

impl TerminalQueries {
    /// Returns whether there is anything to ask.
    pub(crate) fn is_any(self) -> bool {
        self.background || self.images
    }

    /// Sends the queries, and then one for the device attributes, to which all terminals reply.
    pub(crate) fn send(self, out: &mut impl Write) -> io::Result<()> {
        if !self.is_any() {
            return Ok(());
        }
        if self.background {
            out.write_all(BACKGROUND_QUERY)?;
        }
        if self.images {
            out.write_all(b"\x1b[16t")?;
        }
        out.write_all(b"\x1b[c")?;
        out.flush()
    }
}

/// Reads the terminal's reply and the keys that arrive before it.
#[cfg(unix)]
pub(crate) fn read_replies() -> (TerminalReply, Vec<Event>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::time::Instant;

    let stdin = rustix::stdio::stdin();
    let deadline = Instant::now() + REPLY_TIMEOUT;
    let mut heard = QueryInput::default();
    while !heard.is_complete() && heard.input.len() < MAX_OTHER_INPUT_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else {
            break;
        };
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&left)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        // Byte by byte, because what follows the response is for the key reader.
        let mut byte = [0];
        match rustix::io::read(stdin, &mut byte) {
            Ok(1) => heard.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    heard.finish()
}

/// Returns an empty reply without querying the terminal. Used on systems where terminal input is read differently.
#[cfg(not(unix))]
pub(crate) fn read_replies() -> (TerminalReply, Vec<Event>) {
    QueryInput::default().finish()
}

/// The input that has arrived so far.
#[derive(Debug, Default)]
struct QueryInput {
    reply: TerminalReply,
    input: Vec<u8>,
    /// The incomplete escape sequence at the end of the input.
    sequence: Vec<u8>,
}

#[cfg_attr(not(unix), allow(dead_code))]
impl QueryInput {
    /// Returns `true` if every query has a reply and no paste is in progress.
    fn is_complete(&self) -> bool {
        self.reply.is_complete && self.sequence.is_empty() && !self.is_pasting()
    }

    fn is_pasting(&self) -> bool {
        let last = |what: &[u8]| {
            self.input
                .windows(what.len())
                .rposition(|seen| seen == what)
        };
        last(PASTE_START) > last(PASTE_END)
    }

    fn push(&mut self, byte: u8) {
        if self.sequence.is_empty() && byte != 0x1b {
            self.input.push(byte);
            return;
        }
        self.sequence.push(byte);
        let ended = match self.sequence.as_slice() {
            [_] | [_, b'[' | b']'] => false,
            // A report ends with BEL, or with `ESC \\`.
            [_, b']', .., last] => *last == 0x07 || self.sequence.ends_with(b"\x1b\\"),
            [_, b'[', .., last] => (0x40..=0x7e).contains(last),
            _ => true,
        };
        if ended || self.sequence.len() >= MAX_KEY_SEQUENCE_BYTES {
            let sequence = std::mem::take(&mut self.sequence);
            self.handle_sequence(&sequence);
        }
    }

    /// Handles a complete escape sequence.
    fn handle_sequence(&mut self, sequence: &[u8]) {
        let numbers = |within: &[u8]| -> Vec<u32> {
            let text = String::from_utf8_lossy(within).into_owned();
            text.split(';').map_while(|n| n.parse().ok()).collect()
        };
        match sequence {
            [0x1b, b'[', b'?', attributes @ .., b'c'] => {
                self.reply.is_complete = true;
                // The first number is the terminal's conformance level.
                self.reply.supports_sixel = numbers(attributes).iter().skip(1).any(|n| *n == 4);
            }
            [0x1b, b'[', size @ .., b't'] => {
                if let [6, height @ 1..=512, width @ 1..=512] = *numbers(size) {
                    self.reply.cell = Some(PixelSize { width, height });
                }
            }
            [0x1b, b']', report @ .., 0x07] | [0x1b, b']', report @ .., 0x1b, b'\\'] => {
                let background = parse_report(&String::from_utf8_lossy(report));
                self.reply.background = background.or(self.reply.background);
            }
            other => self.input.extend(other),
        }
    }

    fn finish(mut self) -> (TerminalReply, Vec<Event>) {
        self.input.append(&mut self.sequence);
        (self.reply, parse_keys(&self.input))
    }
}

/// Parses input as key and paste events. Drops sequences that no user would type while a chat starts.
fn parse_keys(typed: &[u8]) -> Vec<Event> {
    let mut keys = Vec::new();
    let mut rest = typed;
    while let Some((first, behind)) = rest.split_first() {
        let (key, length) = match rest {
            [0x1b, b'[', ..] => {
                if let Some((text, length)) = parse_paste(rest) {
                    keys.push(Event::Paste(text));
                    rest = rest.get(length..).unwrap_or_default();
                    continue;
                }
                parse_sequence(rest)
            }
            [0x1b, ..] => (Some(KeyEvent::from(KeyCode::Esc)), 1),
            _ if first.is_ascii_control() => (Some(control_key(*first)), 1),
            _ => parse_char(rest),
        };
        keys.extend(key.map(Event::Key));
        rest = rest.get(length..).unwrap_or(behind);
    }
    keys
}

/// Parses a paste. Returns its text, and its length in bytes, including the brackets.
fn parse_paste(bytes: &[u8]) -> Option<(String, usize)> {
    let text = bytes.strip_prefix(PASTE_START)?;
    let end = text
        .windows(PASTE_END.len())
        .position(|seen| seen == PASTE_END)?;
    let said = String::from_utf8_lossy(text.get(..end)?).into_owned();
    Some((said, PASTE_START.len() + end + PASTE_END.len()))
}

/// Parses a key's escape sequence, and returns its length in bytes.
fn parse_sequence(bytes: &[u8]) -> (Option<KeyEvent>, usize) {
    let is_last = |byte: &u8| (0x40..=0x7e).contains(byte);
    let end = bytes.iter().skip(2).position(is_last);
    let length = end.map_or(bytes.len(), |end| end + 3);
    let code = match bytes.get(..length) {
        Some(b"\x1b[A") => KeyCode::Up,
        Some(b"\x1b[B") => KeyCode::Down,
        Some(b"\x1b[C") => KeyCode::Right,
        Some(b"\x1b[D") => KeyCode::Left,
        Some(b"\x1b[H") => KeyCode::Home,
        Some(b"\x1b[F") => KeyCode::End,
        Some(b"\x1b[Z") => KeyCode::BackTab,
        _ => return (None, length),
    };
    (Some(KeyEvent::from(code)), length)
}

fn control_key(byte: u8) -> KeyEvent {
    match byte {
        b'\r' => KeyEvent::from(KeyCode::Enter),
        b'\t' => KeyEvent::from(KeyCode::Tab),
        0x7f => KeyEvent::from(KeyCode::Backspace),
        0 => KeyEvent::new(KeyCode::Char(' '), KeyModifiers::CONTROL),
        1..=26 => {
            let letter = char::from(byte - 1 + b'a');
            KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
        }
        _ => {
            let sign = char::from(byte.saturating_sub(0x1c) + b'4');
            KeyEvent::new(KeyCode::Char(sign), KeyModifiers::CONTROL)
        }
    }
}

/// Parses a character, and returns its length in bytes.
fn parse_char(bytes: &[u8]) -> (Option<KeyEvent>, usize) {
    let most = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let whole = most.utf8_chunks().next();
    let sign = whole.and_then(|chunk| chunk.valid().chars().next());
    let Some(sign) = sign else {
        return (None, 1);
    };
    let modifiers = if sign.is_uppercase() {
        KeyModifiers::SHIFT
    } else {
        KeyModifiers::NONE
    };
    let key = KeyEvent::new(KeyCode::Char(sign), modifiers);
    (Some(key), sign.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle_bytes(bytes: &[u8]) -> (QueryInput, usize) {
        let mut heard = QueryInput::default();
        let mut read = 0;
        for byte in bytes {
            if heard.is_complete() {
                break;
            }
            heard.push(*byte);
            read += 1;
        }
        (heard, read)
    }

    fn event_names(events: &[Event]) -> Vec<String> {
        let name = |event: &Event| match event {
            Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                format!("ctrl {:?}", key.code)
            }
            Event::Key(key) => format!("{:?}", key.code),
            other => format!("{other:?}"),
        };
        events.iter().map(name).collect()
    }

    #[test]
    fn sixel_support_and_cell_size_are_parsed() {
        let (heard, _) = handle_bytes(b"\x1b[6;17;9t\x1b[?64;1;4;22c");
        let (answer, typed) = heard.finish();
        assert!(answer.supports_sixel);
        let cell = PixelSize {
            width: 9,
            height: 17,
        };
        assert_eq!(answer.cell, Some(cell));
        assert!(typed.is_empty());
    }

    #[test]
    fn terminal_without_sixels_is_recognized() {
        for without in [&b"\x1b[?4c"[..], b"\x1b[?1;2c", b"\x1b[?62;22;44c"] {
            let (heard, _) = handle_bytes(without);
            assert!(heard.is_complete());
            assert!(!heard.reply.supports_sixel);
        }
        // An invalid size is ignored.
        let (heard, _) = handle_bytes(b"\x1b[6;0;0t\x1b[?1;2c");
        assert_eq!(heard.reply.cell, None);
    }

    #[test]
    fn typed_keys_are_kept_and_later_input_is_not_read() {
        let typed = "hé\r\u{1}\u{1b}[A\u{1b}[6;17;9tZ\u{7f}\u{1b}[?62;4cbehind";
        let (heard, read) = handle_bytes(typed.as_bytes());
        assert_eq!(&typed[read..], "behind");
        let (answer, typed) = heard.finish();
        assert!(answer.supports_sixel);
        let keys = [
            "Char('h')",
            "Char('é')",
            "Enter",
            "ctrl Char('a')",
            "Up",
            "Char('Z')",
            "Backspace",
        ];
        assert_eq!(event_names(&typed), keys);
    }

    #[test]
    fn pasted_text_stays_one_event() {
        let (heard, read) = handle_bytes(b"\x1b[?1;2c\x1b[200~one\rtwo");
        assert_eq!(read, 7, "reading must stop after the reply");
        let _ = heard;
        let (heard, _) = super::tests::handle_bytes(b"\x1b[200~one\rtwo\x1b[?1;2c");
        assert!(!heard.is_complete(), "the paste is still in progress");
        let (heard, _) = super::tests::handle_bytes(b"\x1b[200~one\rtwo\x1b[201~x\x1b[?1;2c");
        assert!(heard.is_complete());
        let (_, typed) = heard.finish();
        assert_eq!(event_names(&typed), ["Paste(\"one\\rtwo\")", "Char('x')"]);
    }

    #[test]
    fn background_is_parsed_and_not_typed() {
        for end in ["\x1b\\", "\x07"] {
            let input = format!("a\x1b]11;rgb:ffff/ffff/ffff{end}b\x1b[6;17;9t\x1b[?62;4cx");
            let (heard, read) = handle_bytes(input.as_bytes());
            assert_eq!(read, input.len() - 1);
            let (reply, typed) = heard.finish();
            assert_eq!(reply.background, Some(Background::Light));
            assert!(reply.supports_sixel && reply.is_complete);
            assert_eq!(event_names(&typed), ["Char('a')", "Char('b')"]);
        }
    }

    #[test]
    fn without_a_reply_all_input_is_kept() {
        let (heard, _) = handle_bytes(b"a\x1b");
        let (answer, typed) = heard.finish();
        assert_eq!(answer, TerminalReply::default());
        assert_eq!(event_names(&typed), ["Char('a')", "Esc"]);
    }
}
