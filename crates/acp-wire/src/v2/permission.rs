//! Permissions: Tool calls, "Requesting Permission".

use super::{PermissionOption, SessionId, TerminalId, ToolCallId, ToolCallUpdate};

record! {
    /// `session/request_permission`.
    pub struct RequestPermissionRequest {
        /// The session.
        required session_id: SessionId,
        /// What is asked, for the user. It changes no title of anything else.
        tolerant title: String,
        /// Why it is needed.
        optional description: String,
        /// What it is about.
        optional subject: RequestPermissionSubject,
        /// What the user can answer; at least one option.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required_list options: PermissionOption,
    }
}

tagged! {
    /// What a permission request is about.
    pub enum RequestPermissionSubject by "type" {
        /// A tool call.
        ToolCall(ToolCallPermissionSubject) = "tool_call",
        /// A command.
        Command(CommandPermissionSubject) = "command",
    }
}

record! {
    /// A tool call that needs permission.
    pub struct ToolCallPermissionSubject {
        /// The tool call, with what the user needs to decide.
        required tool_call: ToolCallUpdate,
    }
}

record! {
    /// A command that needs permission.
    pub struct CommandPermissionSubject {
        /// The command.
        required command: String,
        /// Where it would run, an absolute path.
        required cwd: String,
        /// The tool call it is part of.
        optional tool_call_id: ToolCallId,
        /// The terminal it would run in.
        optional terminal_id: TerminalId,
    }
}
