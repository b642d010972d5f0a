//! Permission requests. See "Requesting Permission" on the specification's page "Tool Calls".

use super::{PermissionOption, SessionId, TerminalId, ToolCallId, ToolCallUpdate};

record! {
    /// The `session/request_permission` request: asks for the user's permission.
    pub struct RequestPermissionRequest {
        /// The session that the request belongs to.
        required session_id: SessionId,
        /// The question to show to the user. The tool call keeps its own title.
        tolerant title: String,
        /// Why the agent needs the permission.
        optional description: String,
        /// The tool call or command that requires permission.
        optional subject: RequestPermissionSubject,
        /// The options that the user can choose from. There is at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required_list options: PermissionOption,
    }
}

tagged! {
    /// The subject of a permission request: a tool call or a command.
    pub enum RequestPermissionSubject by "type" {
        /// A tool call that requires permission.
        ToolCall(ToolCallPermissionSubject) = "tool_call",
        /// A command that requires permission.
        Command(CommandPermissionSubject) = "command",
    }
}

record! {
    /// A tool call that requires permission.
    pub struct ToolCallPermissionSubject {
        /// The tool call, with the information that the user needs to decide.
        required tool_call: ToolCallUpdate,
    }
}

record! {
    /// A command that requires permission.
    pub struct CommandPermissionSubject {
        /// The command to run if the user allows it.
        required command: String,
        /// The directory to run the command in, as an absolute path.
        required cwd: String,
        /// The tool call that the command is part of.
        optional tool_call_id: ToolCallId,
        /// The terminal to run the command in.
        optional terminal_id: TerminalId,
    }
}
