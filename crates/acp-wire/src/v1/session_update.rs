//! `session/update`: what happens in a session, as the agent reports it.

use super::{
    AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate,
    ContentBlock, CurrentModeUpdate, MessageId, Notice, Plan, PlanRemoved, PlanUpdate, SessionId,
    SessionInfoUpdate, SessionMessage, SessionMessageChunk, SubagentUpdate, ToolCall,
    ToolCallUpdate, UsageUpdate,
};

record! {
    /// `session/update`.
    pub struct SessionNotification {
        /// The session.
        required session_id: SessionId,
        /// What happened.
        required update: SessionUpdate,
    }
}

tagged! {
    /// What happened in a session. What is larger and rarer than a piece of a message is behind a pointer.
    pub enum SessionUpdate by "sessionUpdate" {
        /// A piece of the user's message, when a session is replayed.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// A piece of the agent's message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// A piece of what the agent thinks.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// A new tool call.
        ToolCall(Box<ToolCall>) = "tool_call",
        /// A change of a tool call.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// The plan, whole.
        Plan(Plan) = "plan",
        /// The commands, all of them.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// Another mode.
        CurrentModeUpdate(CurrentModeUpdate) = "current_mode_update",
        /// The config options, all of them.
        ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update" | "config_options_update",
        /// Another title.
        SessionInfoUpdate(Box<SessionInfoUpdate>) = "session_info_update",
        /// Context and cost.
        UsageUpdate(Box<UsageUpdate>) = "usage_update",
        /// A plan among several. Unstable: for clients that have `plan`.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// A plan is gone. Unstable: for clients that have `plan`.
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// Something a person should know. Unstable: for clients that have `session.notices`.
        Notice(Box<Notice>) = "notice",
        /// The conversation is shortened. Unstable: for clients that have `session.compaction`.
        CompactionUpdate(Box<CompactionUpdate>) = "compaction_update",
        /// A piece of what is left of it. Unstable: for clients that have `session.compaction`.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
        /// The session has a subagent, or something about it has changed. Unstable: for clients that have
        /// `subagents`.
        SubagentUpdate(Box<SubagentUpdate>) = "subagent_update",
        /// A message from one session to another. Unstable, as above.
        SessionMessage(Box<SessionMessage>) = "session_message",
        /// A piece of such a message. Unstable, as above.
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
    }
}

record! {
    /// A piece of a message.
    pub struct ContentChunk {
        /// The content of the chunk.
        required content: ContentBlock,
        /// The message it belongs to.
        optional message_id: MessageId,
    }
}
