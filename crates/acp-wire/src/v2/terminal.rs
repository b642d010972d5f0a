//! Terminals: the agent's own, which a client shows. Output is bytes; a chunk may end within a
//! character.

use super::{SessionId, TerminalId};
use crate::v1;

record! {
    /// A terminal as it is now. What is absent stays as it is; `null` clears.
    pub patch TerminalUpdate {
        /// The terminal.
        required terminal_id: TerminalId,
        /// What runs in it.
        clearable command: String,
        /// Where, an absolute path.
        clearable cwd: String,
        /// All that it shows; it replaces what was shown.
        clearable output: TerminalOutput,
        /// How it ended; present once it has.
        clearable exit_status: TerminalExitStatus,
        /// How large it is. Not in the draft of August 2026.
        clearable size: TerminalSize,
        /// What a client may do with it. Not in the draft of August 2026.
        clearable capabilities: TerminalCapabilities,
    }
}

record! {
    /// All that a terminal shows.
    pub struct TerminalOutput {
        /// The bytes in base64.
        required data: String,
    }
}

record! {
    /// How a terminal ended.
    pub struct TerminalExitStatus {
        /// Its exit code, as the system reports it; absent when a signal ended it. In the draft of
        /// August 2026 it is not negative.
        optional exit_code: i64,
        /// The signal that ended it, such as `SIGKILL`.
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
    /// What a terminal has printed.
    pub struct TerminalOutputChunk {
        /// The terminal.
        required terminal_id: TerminalId,
        /// The bytes in base64, each chunk by itself.
        required data: String,
    }
}

record! {
    /// The size of a terminal in characters.
    pub struct TerminalSize {
        /// Columns, at least 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::positive))]
        required cols: u16,
        /// Rows, at least 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::positive))]
        required rows: u16,
    }
}

record! {
    /// What a client may do with a terminal.
    pub struct TerminalCapabilities {
        /// `terminal/cancel`.
        optional cancel: TerminalCancelCapabilities,
    }
}

record! {
    /// Present when the client may end what runs.
    pub struct TerminalCancelCapabilities {}
}

record! {
    /// `terminal/cancel`: for a terminal that has `capabilities.cancel`. Not in the draft of August 2026.
    pub struct CancelTerminalRequest {
        /// The session.
        required session_id: SessionId,
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The answer to `terminal/cancel`: the agent will end what runs. That it has ended is told by an
    /// update.
    pub struct CancelTerminalResponse {}
}
