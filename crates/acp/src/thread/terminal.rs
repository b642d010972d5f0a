//! The terminals in a thread, with their output.

use std::collections::VecDeque;

use acp_wire::v2::{TerminalCapabilities, TerminalExitStatus, TerminalSize, TerminalUpdate};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::utf8::Utf8Pieces;

/// The maximum size of a terminal's stored output, in bytes.
pub(super) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// A terminal as shown to the user, with the end of its output and its exit status.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ThreadTerminal {
    /// The command that runs in the terminal, if known.
    pub command: Option<String>,
    /// The working directory, if known.
    pub cwd: Option<String>,
    /// The exit status of the command, or `None` while the command is running.
    pub exit_status: Option<TerminalExitStatus>,
    /// Whether the agent has released the terminal. The output stays visible.
    pub is_released: bool,
    /// The size of the terminal in characters, if the agent reports it.
    pub size: Option<TerminalSize>,
    /// The operations that a client may perform on the terminal, if the agent reports them.
    pub capabilities: Option<TerminalCapabilities>,
    pieces: Utf8Pieces,
    chunks: VecDeque<String>,
    kept_bytes: usize,
    total_bytes: u64,
    cleared_at: u64,
    /// The thread's revision when this terminal was last updated.
    pub(super) last_revision: u64,
    /// The estimated size of the terminal in memory, in bytes.
    pub(super) weight: usize,
    /// The size in memory of the terminal's exit status, dimensions and capabilities, in bytes.
    pub(super) state_weight: usize,
}

impl ThreadTerminal {
    /// Returns the stored output, up to the last MiB.
    #[must_use]
    pub fn output(&self) -> String {
        self.chunks.iter().map(String::as_str).collect()
    }

    /// Returns the size of the stored output in bytes.
    pub(super) fn stored_len(&self) -> usize {
        self.kept_bytes
    }

    /// Returns the total number of bytes that the terminal has printed.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the value that [`total_bytes`](Self::total_bytes) had when the output was last cleared. The visible
    /// output starts there. A version 2 agent clears the output by replacing it.
    #[must_use]
    pub fn cleared_at(&self) -> u64 {
        self.cleared_at
    }

    /// Returns the stored output after the first `seen` bytes printed.
    #[must_use]
    pub fn output_since(&self, seen: u64) -> String {
        let mut at = self.total_bytes - self.kept_bytes as u64;
        let mut out = String::new();
        for chunk in &self.chunks {
            let end = at + chunk.len() as u64;
            if at >= seen {
                out.push_str(chunk);
            } else if end > seen {
                // At an earlier read, `seen` was the end of the output, and thus the end of a chunk. It can be inside a
                // chunk now, because chunks are joined. Chunks are never split, so it is still a character boundary.
                let within = usize::try_from(seen - at).unwrap_or(0);
                out.push_str(chunk.get(within..).unwrap_or_default());
            }
            at = end;
        }
        out
    }

    /// Applies a version 2 update to the terminal.
    pub(super) fn apply(&mut self, update: &TerminalUpdate) {
        if let Some(command) = &update.command {
            self.command.clone_from(command);
        }
        if let Some(cwd) = &update.cwd {
            self.cwd.clone_from(cwd);
        }
        if let Some(output) = &update.output {
            self.clear();
            if let Some(output) = output {
                self.print_base64(&output.data);
            }
        }
        if let Some(exit_status) = &update.exit_status {
            self.exit_status.clone_from(exit_status);
            self.update_state_weight();
        }
        if let Some(capabilities) = &update.capabilities {
            self.capabilities.clone_from(capabilities);
            self.update_state_weight();
        }
        if let Some(size) = &update.size {
            self.size.clone_from(size);
            self.update_state_weight();
        }
    }

    /// Clears the output before new output replaces it.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.chunks.clear();
        self.kept_bytes = 0;
        // Readers have not seen any output after this position.
        self.cleared_at = self.total_bytes;
    }

    /// Appends base64-encoded output that may end in the middle of a character.
    pub(super) fn print_base64(&mut self, data: &str) {
        let Ok(bytes) = STANDARD.decode(data.trim()) else {
            tracing::warn!("ignoring terminal output that is not valid base64");
            return;
        };
        let text = self.pieces.push(&bytes);
        self.print(&text);
    }

    pub(super) fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.total_bytes += text.len() as u64;
        self.kept_bytes += text.len();
        match self.chunks.back_mut() {
            // Small pieces are joined to larger chunks.
            Some(last) if last.len() + text.len() <= 8 * 1024 => last.push_str(text),
            _ => self.chunks.push_back(text.to_owned()),
        }
        while self.kept_bytes > MAX_OUTPUT_BYTES {
            let Some(first) = self.chunks.pop_front() else {
                break;
            };
            self.kept_bytes -= first.len();
            if self.chunks.is_empty() {
                // A single chunk exceeds the limit. Keep its end.
                let mut cut = first.len().saturating_sub(MAX_OUTPUT_BYTES);
                while !first.is_char_boundary(cut) {
                    cut += 1;
                }
                let tail = first.get(cut..).unwrap_or_default();
                self.kept_bytes += tail.len();
                self.chunks.push_back(tail.to_owned());
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_characters_are_joined() {
        let text = "aé€😀\u{85}z";
        for piece in 1..text.len() {
            let mut terminal = ThreadTerminal::default();
            for bytes in text.as_bytes().chunks(piece) {
                terminal.print_base64(&STANDARD.encode(bytes));
            }
            assert_eq!(
                terminal.output(),
                text,
                "printed in chunks of {piece} bytes"
            );
        }
        let mut terminal = ThreadTerminal::default();
        terminal.print_base64(&STANDARD.encode(b"a\xff\xe2b"));
        assert_eq!(terminal.output(), "a\u{fffd}\u{fffd}b");
        terminal.print_base64("not base64!");
        assert_eq!(terminal.output(), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn output_is_bounded_and_can_be_read_incrementally() {
        let mut terminal = ThreadTerminal::default();
        terminal.print("hé");
        let seen = terminal.total_bytes();
        terminal.print("llo\n");
        assert_eq!(terminal.output(), "héllo\n");
        assert_eq!(terminal.output_since(seen), "llo\n");
        assert_eq!(terminal.output_since(terminal.total_bytes()), "");
        terminal.clear();
        terminal.print("anew");
        assert_eq!(terminal.output_since(terminal.cleared_at()), "anew");

        for _ in 0..3000 {
            terminal.print(&"é".repeat(512));
        }
        assert!(terminal.output().len() <= MAX_OUTPUT_BYTES);
        terminal.print(&"é".repeat(MAX_OUTPUT_BYTES));
        assert_eq!(terminal.output().len(), MAX_OUTPUT_BYTES);
        assert_eq!(terminal.output_since(0).len(), MAX_OUTPUT_BYTES);
    }
}
