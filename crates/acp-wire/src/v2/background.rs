//! Work that continues in the background. Not in the draft of August 2026. See "Background Work" on the specification's
//! page "Prompt Lifecycle".

use super::{SessionId, TerminalId, ToolCallId};

tagged! {
    /// A piece of work that continues in the background.
    pub enum BackgroundWork by "type" {
        /// A process that keeps running after its tool call has finished. The work ends when the terminal reports an
        /// exit status.
        Terminal(BackgroundTerminal) = "terminal",
        /// Work that a tool call started without starting a process.
        ToolCall(BackgroundToolCall) = "tool_call",
        /// A subagent that is working in the background. Unstable.
        Subagent(BackgroundSubagent) = "subagent",
    }
}

record! {
    /// A process that keeps running after its tool call has finished.
    pub struct BackgroundTerminal {
        /// The terminal that the process runs in.
        required terminal_id: TerminalId,
    }
}

record! {
    /// Work that a tool call started without starting a process.
    pub struct BackgroundToolCall {
        /// The tool call that started the work.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// A subagent that is working in the background.
    pub struct BackgroundSubagent {
        /// The subagent's session.
        required session_id: SessionId,
    }
}
