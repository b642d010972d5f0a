//! Background work: the specification's page "Prompt Lifecycle", "Background Work". Not in the draft of August 2026.

use super::{SessionId, TerminalId, ToolCallId};

tagged! {
    /// A piece of work that runs in the background.
    pub enum BackgroundWork by "type" {
        /// A process that outlived its tool call. It runs until its terminal has an exit status.
        Terminal(BackgroundTerminal) = "terminal",
        /// Work that a tool call started and that has no process of its own.
        ToolCall(BackgroundToolCall) = "tool_call",
        /// A subagent that works in the background. Unstable.
        Subagent(BackgroundSubagent) = "subagent",
    }
}

record! {
    /// A process that outlived its tool call.
    pub struct BackgroundTerminal {
        /// The id of its terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// Work that a tool call started and that has no process of its own.
    pub struct BackgroundToolCall {
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// A subagent that works in the background.
    pub struct BackgroundSubagent {
        /// The id of its session.
        required session_id: SessionId,
    }
}
