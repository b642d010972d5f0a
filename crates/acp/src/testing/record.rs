//! The recent messages of a scripted peer, which help to find out why a test failed.

use std::collections::VecDeque;
use std::fmt;

/// How many lines are stored.
const LINES: usize = 20;

/// How much of a line is stored, in bytes.
const LENGTH: usize = 400;

/// The last lines that were exchanged.
#[derive(Debug, Default)]
pub(super) struct LineHistory {
    lines: VecDeque<String>,
    omitted: u64,
}

impl LineHistory {
    pub(super) fn sent(&mut self, line: &[u8]) {
        self.push("->", line);
    }

    pub(super) fn received(&mut self, line: &[u8]) {
        self.push("<-", line);
    }

    fn push(&mut self, way: &str, line: &[u8]) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.omitted += 1;
        }
        self.lines.push_back(format!("{way} {}", excerpt(line)));
    }
}

impl fmt::Display for LineHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return f.write_str("no messages before that");
        }
        f.write_str("before that (-> sent, <- received):")?;
        if self.omitted > 0 {
            write!(f, "\n  {} earlier lines omitted", self.omitted)?;
        }
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Returns the part of a line that is shown.
pub(super) fn excerpt(line: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(line.get(..LENGTH).unwrap_or(line)).into_owned();
    if line.len() > LENGTH {
        text.push_str(&format!("… ({} bytes)", line.len()));
    }
    text
}
