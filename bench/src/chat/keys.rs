//! Types keys, and measures the time until their effect is on the screen.

use std::time::{Duration, Instant};

use super::pty::{PtyScreen, TerminalGrid};
use crate::BenchError;

/// The first and last of the rows that always show the conversation.
const CONVERSATION_ROWS: (u16, u16) = (1, 30);

/// The number of letters typed before they are deleted again.
const TYPED_LETTERS: usize = 40;

/// The pauses between keys, in milliseconds. They vary, so that keys arrive at any time within a frame.
const PAUSES_MS: [u64; 7] = [3, 11, 5, 17, 7, 13, 2];

/// The pages of the conversation to turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageTarget {
    /// Pages that have not been shown yet: up from the end, and then down from the beginning.
    Unseen,
    /// Some pages above the end, back and forth.
    NearEnd,
}

/// A sequence of keys. Each key is typed when the effect of the previous key is on the screen.
pub(super) struct KeySequence<'a> {
    screen: &'a mut PtyScreen,
    count: usize,
    times: Vec<Duration>,
}

impl<'a> KeySequence<'a> {
    pub(super) fn new(screen: &'a mut PtyScreen, count: usize) -> Self {
        Self {
            screen,
            count,
            times: Vec::new(),
        }
    }

    /// Pauses like a user who types.
    fn pause(&mut self) -> Result<(), BenchError> {
        let pause = PAUSES_MS[self.times.len() % PAUSES_MS.len()];
        self.screen.read_for(Duration::from_millis(pause))
    }

    /// Types a key, and waits until its effect is on the screen.
    fn press(
        &mut self,
        key: &[u8],
        what: &str,
        is: impl Fn(&PtyScreen) -> bool,
    ) -> Result<(), BenchError> {
        let begun = Instant::now();
        self.screen.send_keys(key)?;
        let seen = self.screen.wait_until(what, is)?;
        self.times.push(seen.saturating_duration_since(begun));
        Ok(())
    }

    fn conversation_rows(screen: &PtyScreen) -> Vec<String> {
        screen.rows(CONVERSATION_ROWS.0, CONVERSATION_ROWS.1)
    }

    /// Types a key, and waits until the conversation on the screen changes.
    fn press_until_changed(&mut self, key: &[u8], what: &str) -> Result<(), BenchError> {
        self.pause()?;
        let before = Self::conversation_rows(self.screen);
        self.press(key, what, |screen| {
            Self::conversation_rows(screen) != before
        })
    }

    /// Types letters at the cursor. Returns the latency of each.
    pub(super) fn measure_echo(mut self) -> Result<Vec<Duration>, BenchError> {
        while self.times.len() < self.count {
            self.pause()?;
            let before = self.screen.screen().cursor_position();
            self.press(b"x", "a letter", |screen| {
                screen.screen().cursor_position() != before
            })?;
            if self.screen.screen().cursor_position().1 > 100 {
                self.screen.send_keys(b"\r")?;
                self.screen.wait_until("the start of the line", |screen| {
                    screen.screen().cursor_position().1 == 0
                })?;
            }
        }
        Ok(self.times)
    }

    /// Types letters into the prompt and deletes them. Returns the latency of each.
    pub(super) fn measure_typing(mut self) -> Result<Vec<Duration>, BenchError> {
        while self.times.len() < self.count {
            let mut written = String::new();
            while written.len() < TYPED_LETTERS && self.times.len() < self.count {
                written.push(char::from(b"etaoin shrdlu"[written.len() % 13]));
                self.pause()?;
                let letter = &written.as_bytes()[written.len() - 1..];
                let shown = written.trim_end();
                self.press(letter, "a letter", |screen| {
                    let (row, column) = screen.screen().cursor_position();
                    let left = usize::from(column).saturating_sub(written.len());
                    screen
                        .row(row)
                        .chars()
                        .skip(left)
                        .take(shown.len())
                        .eq(shown.chars())
                })?;
            }
            // This is not measured, because there is less to draw.
            self.screen.send_keys(&vec![0x7f; written.len()])?;
            self.screen.wait_until("an empty prompt", |screen| {
                screen.row(37).contains("Type a prompt")
            })?;
        }
        Ok(self.times)
    }

    /// Turns pages of the conversation. Returns the latency of each.
    pub(super) fn measure_paging(
        mut self,
        where_to: PageTarget,
    ) -> Result<Vec<Duration>, BenchError> {
        let (up, down) = (b"\x1b[5~".as_slice(), b"\x1b[6~".as_slice());
        match where_to {
            PageTarget::Unseen => {
                while self.times.len() < self.count / 2 {
                    self.press_until_changed(up, "a page up")?;
                }
                self.press_until_changed(b"\x1b[1;5H", "the start of the conversation")?;
                self.times.pop();
                while self.times.len() < self.count {
                    self.press_until_changed(down, "a page down")?;
                }
            }
            PageTarget::NearEnd => {
                for _ in 0..6 {
                    self.press_until_changed(up, "a page up")?;
                }
                self.times.clear();
                while self.times.len() < self.count {
                    self.press_until_changed(up, "a page up")?;
                    self.press_until_changed(down, "a page down")?;
                }
            }
        }
        self.go_to_end()?;
        Ok(self.times)
    }

    /// Selects items, from the last one upward. Returns the latency of each.
    pub(super) fn measure_choice(mut self) -> Result<Vec<Duration>, BenchError> {
        self.press_until_changed(b"\t\x1b[A", "a selected item")?;
        self.times.clear();
        while self.times.len() < self.count {
            self.press_until_changed(b"\x1b[A", "the previous item")?;
        }
        self.leave_thread()?;
        Ok(self.times)
    }

    /// Expands or collapses items, and restores each. Returns the latency of each.
    pub(super) fn measure_toggle(mut self) -> Result<Vec<Duration>, BenchError> {
        self.press_until_changed(b"\t\x1b[A", "a selected item")?;
        self.times.clear();
        while self.times.len() < self.count {
            self.press_until_changed(b"\r", "the item expanded or collapsed")?;
            self.press_until_changed(b"\r", "the item in its original form")?;
            self.press_until_changed(b"\x1b[A", "the previous item")?;
            self.times.pop();
        }
        self.leave_thread()?;
        Ok(self.times)
    }

    /// Resizes the terminal, and restores its size at the end. Returns the latency of each change.
    pub(super) fn measure_resize(mut self, own: TerminalGrid) -> Result<Vec<Duration>, BenchError> {
        let sizes = [(80, 24), (160, 50), (100, 30), (own.columns, own.rows)];
        let sizes = sizes.map(|(columns, rows)| TerminalGrid { columns, rows });
        while self.times.len() < self.count || self.screen.size() != own {
            let size = sizes[self.times.len() % sizes.len()];
            self.pause()?;
            let begun = Instant::now();
            self.screen.resize(size)?;
            // The corner of the input field is where it belongs.
            let seen = self.screen.wait_until("the new size", |screen| {
                let corner = screen.screen().cell(size.rows - 2, size.columns - 1);
                corner.is_some_and(|cell| cell.contents() == "╯")
            })?;
            self.times.push(seen.saturating_duration_since(begun));
        }
        Ok(self.times)
    }

    fn leave_thread(&mut self) -> Result<(), BenchError> {
        self.screen.send_keys(b"q")?;
        self.go_to_end()
    }

    fn go_to_end(&mut self) -> Result<(), BenchError> {
        self.screen.send_keys(b"\x1b[1;5F")?;
        self.screen
            .wait_until("the end of the conversation", |screen| {
                !screen.row(35).contains("↓ more")
            })?;
        Ok(())
    }
}
