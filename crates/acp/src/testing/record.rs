//! A scripted peer's most recent messages, printed when a test fails.

use std::collections::VecDeque;
use std::fmt;

/// The maximum number of stored lines.
const MAX_KEPT_LINES: usize = 20;

/// The maximum number of bytes to store of each line.
const MAX_LINE_BYTES: usize = 400;

/// The most recent lines sent and received.
#[derive(Debug, Default)]
pub(super) struct LineHistory {
    lines: VecDeque<String>,
    omitted: u64,
}

impl LineHistory {
    pub(super) fn record_sent(&mut self, line: &[u8]) {
        self.push("->", line);
    }

    pub(super) fn record_received(&mut self, line: &[u8]) {
        self.push("<-", line);
    }

    fn push(&mut self, direction: &str, line: &[u8]) {
        if self.lines.len() == MAX_KEPT_LINES {
            self.lines.pop_front();
            self.omitted += 1;
        }
        self.lines
            .push_back(format!("{direction} {}", truncate_line(line)));
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

/// Converts a line to text, truncated for display.
pub(super) fn truncate_line(line: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(line.get(..MAX_LINE_BYTES).unwrap_or(line)).into_owned();
    if line.len() > MAX_LINE_BYTES {
        text.push_str(&format!("… ({} bytes)", line.len()));
    }
    text
}
