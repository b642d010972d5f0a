//! The progress of the checks, in one line on the terminal.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Write};

use acp_check::CheckEvent;

use crate::args::check::CheckRunArgs;

/// The progress line. It is on stderr, and only if that is a terminal.
pub(super) struct CheckProgress {
    /// Whether there is a terminal to show the line on.
    is_enabled: bool,
    /// Whether the terminal shows a line that has to be erased.
    is_shown: Cell<bool>,
    state: RefCell<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    done_count: usize,
    /// The ids of the running checks. The one that has run longest comes first.
    running: Vec<String>,
}

impl CheckProgress {
    pub(super) fn new(args: &CheckRunArgs) -> Self {
        Self {
            is_enabled: !args.quiet && std::io::stderr().is_terminal(),
            is_shown: Cell::new(false),
            state: RefCell::default(),
        }
    }

    /// Updates the line when one of `total` checks starts or ends.
    pub(super) fn handle(&self, event: CheckEvent<'_>, total: usize) {
        let mut state = self.state.borrow_mut();
        match event {
            CheckEvent::Started(check) => state.running.push(check.id()),
            CheckEvent::Finished(outcome) => {
                state.done_count += 1;
                let id = outcome.check.id();
                state.running.retain(|running| *running != id);
            }
        }
        self.show(&state.line(total));
    }

    /// Replaces the line.
    pub(super) fn show(&self, line: &str) {
        if self.is_enabled {
            self.is_shown.set(true);
            let width = terminal_size::terminal_size_of(std::io::stderr())
                .map_or(80, |(width, _)| usize::from(width.0));
            // A line as wide as the terminal would wrap, and could not be erased.
            let line: String = line.chars().take(width.saturating_sub(1)).collect();
            let _ = write!(std::io::stderr(), "\r\u{1b}[K{line}");
        }
    }

    /// Erases the line.
    pub(super) fn clear(&self) {
        if self.is_shown.replace(false) {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for CheckProgress {
    /// Erases the line, also if the command is cancelled.
    fn drop(&mut self) {
        self.clear();
    }
}

impl ProgressState {
    fn line(&self, total: usize) -> String {
        let mut line = format!("{} of {total}", self.done_count);
        if let Some(first) = self.running.first() {
            line += &format!("  {first}");
        }
        match self.running.len() {
            0 | 1 => {}
            2 => line += " and 1 other",
            count => line += &format!(" and {} others", count - 1),
        }
        line
    }
}
