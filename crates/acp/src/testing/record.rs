//! The recent messages of a scripted peer, shown when a test fails.

use std::collections::VecDeque;
use std::fmt;

/// The maximum number of stored lines.
const LINES: usize = 20;

/// The maximum stored length of a line, in bytes.
const LENGTH: usize = 400;

/// The most recent lines that were sent and received.
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
            return f.write_str("there were no earlier messages");
        }
        f.write_str("earlier messages (-> sent, <- received):")?;
        if self.omitted > 0 {
            write!(f, "\n  earlier lines omitted: {}", self.omitted)?;
        }
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Returns the line as text, truncated if it is too long to show.
pub(super) fn excerpt(line: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(line.get(..LENGTH).unwrap_or(line)).into_owned();
    if line.len() > LENGTH {
        text.push_str(&format!("… ({} bytes)", line.len()));
    }
    text
}
