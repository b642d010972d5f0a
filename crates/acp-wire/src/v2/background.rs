//! Work that goes on beside the foreground: prompt lifecycle, "Background Work". Not in the draft of
//! August 2026.

use super::{SessionId, TerminalId, ToolCallId};

tagged! {
    /// A piece of work that goes on by itself.
    pub enum BackgroundWork by "type" {
        /// A process that outlived its tool call; it runs until its terminal has an exit status.
        Terminal(BackgroundTerminal) = "terminal",
        /// What a tool call started and that has no process of its own.
        ToolCall(BackgroundToolCall) = "tool_call",
        /// A subagent that works on its own. Unstable.
        Subagent(BackgroundSubagent) = "subagent",
    }
}

record! {
    /// A process that outlived its tool call.
    pub struct BackgroundTerminal {
        /// Its terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// What a tool call started and that has no process of its own.
    pub struct BackgroundToolCall {
        /// The tool call.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// A subagent that works on its own.
    pub struct BackgroundSubagent {
        /// Its session.
        required session_id: SessionId,
    }
}
