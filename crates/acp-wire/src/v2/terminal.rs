//! Display terminals, which the agent runs and the client shows. Output is a byte stream, so a chunk can end in the
//! middle of a character.

use super::{SessionId, TerminalId};
use crate::v1;

record! {
    /// A new terminal, or a change to one. Absent fields are unchanged, and `null` clears a field.
    pub patch TerminalUpdate {
        /// The new or changed terminal.
        required terminal_id: TerminalId,
        /// The command that runs in the terminal.
        clearable command: String,
        /// The working directory, as an absolute path.
        clearable cwd: String,
        /// The full output, which replaces the previous output.
        clearable output: TerminalOutput,
        /// The exit status of the command. Absent while the command is running.
        clearable exit_status: TerminalExitStatus,
        /// The size of the terminal. Not in the draft of August 2026.
        clearable size: TerminalSize,
        /// The operations that the client may perform on the terminal. Not in the draft of August 2026.
        clearable capabilities: TerminalCapabilities,
    }
}

record! {
    /// The full output of a terminal.
    pub struct TerminalOutput {
        /// The output, encoded as base64.
        required data: String,
    }
}

record! {
    /// How a command ended: its exit code, or the signal that terminated it.
    pub struct TerminalExitStatus {
        /// The exit code, as the operating system reports it. Absent if a signal terminated the command. In the draft
        /// of August 2026, it cannot be negative.
        optional exit_code: i64,
        /// The signal that terminated the command, such as `SIGKILL`.
        optional signal: String,
    }
}

impl From<v1::TerminalExitStatus> for TerminalExitStatus {
    fn from(status: v1::TerminalExitStatus) -> Self {
        Self {
            exit_code: status.exit_code.map(i64::from),
            signal: status.signal,
            meta: status.meta,
        }
    }
}

record! {
    /// A chunk of a terminal's output.
    pub struct TerminalOutputChunk {
        /// The terminal that produced the output.
        required terminal_id: TerminalId,
        /// The chunk's bytes, encoded as base64. Each chunk is encoded separately.
        required data: String,
    }
}

record! {
    /// The size of a terminal in characters.
    pub struct TerminalSize {
        /// The number of columns, at least 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::positive))]
        required cols: u16,
        /// The number of rows, at least 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::positive))]
        required rows: u16,
    }
}

record! {
    /// The operations that a client may perform on a terminal.
    pub struct TerminalCapabilities {
        /// Support for `terminal/cancel`.
        optional cancel: TerminalCancelCapabilities,
    }
}

record! {
    /// An empty object that declares support for cancelling the command in a terminal.
    pub struct TerminalCancelCapabilities {}
}

record! {
    /// The `terminal/cancel` request: terminates the command in a terminal that has `capabilities.cancel`. Not in the
    /// draft of August 2026.
    pub struct CancelTerminalRequest {
        /// The session that the terminal belongs to.
        required session_id: SessionId,
        /// The terminal whose command to terminate.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The response to `terminal/cancel`, which confirms only that the agent will terminate the command. An update
    /// reports the exit status.
    pub struct CancelTerminalResponse {}
}
