//! The `session/update` notification, which reports the events in a session.

use super::{
    AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate,
    ContentBlock, CurrentModeUpdate, MessageId, Notice, Plan, PlanRemoved, PlanUpdate, SessionId,
    SessionInfoUpdate, SessionMessage, SessionMessageChunk, SubagentUpdate, ToolCall,
    ToolCallUpdate, UsageUpdate,
};

record! {
    /// The `session/update` notification: reports one change to a session.
    pub struct SessionNotification {
        /// The session that has changed.
        required session_id: SessionId,
        /// The change, such as a chunk of text or a new tool call.
        required update: SessionUpdate,
    }
}

tagged! {
    /// One change to a session. Variants that are larger and less frequent than a message chunk are boxed.
    pub enum SessionUpdate by "sessionUpdate" {
        /// A chunk of a user message. Sent only during a replay.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// A chunk of an agent message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// A chunk of the agent's thoughts.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// A new tool call.
        ToolCall(Box<ToolCall>) = "tool_call",
        /// A change to a tool call.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// The agent's whole plan, which replaces the previous plan.
        Plan(Plan) = "plan",
        /// The full list of slash commands, which replaces the previous list.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// A change to the session's mode.
        CurrentModeUpdate(CurrentModeUpdate) = "current_mode_update",
        /// All config options, with their current values.
        ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update" | "config_options_update",
        /// A change to the session's title or to the time of its last change.
        SessionInfoUpdate(Box<SessionInfoUpdate>) = "session_info_update",
        /// The current context window usage, and the cost so far.
        UsageUpdate(Box<UsageUpdate>) = "usage_update",
        /// A new or changed plan, for sessions that can have several. Unstable; the client must support `plan`.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// The removal of a plan. Unstable; the client must support `plan`.
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// A notice for the user. Unstable; the client must support `session.notices`.
        Notice(Box<Notice>) = "notice",
        /// A new compaction, or a change to one. Unstable; the client must support `session.compaction`.
        CompactionUpdate(Box<CompactionUpdate>) = "compaction_update",
        /// A chunk of a compaction's summary. Unstable; the client must support `session.compaction`.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
        /// A new subagent, or a change to one. Unstable; the client must support `subagents`.
        SubagentUpdate(Box<SubagentUpdate>) = "subagent_update",
        /// A message from one session to another. Unstable; the client must support `subagents`.
        SessionMessage(Box<SessionMessage>) = "session_message",
        /// A chunk of a message from one session to another. Unstable; the client must support `subagents`.
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
    }
}

record! {
    /// A chunk of a message.
    pub struct ContentChunk {
        /// The text or other content to append.
        required content: ContentBlock,
        /// The message that the chunk belongs to.
        optional message_id: MessageId,
    }
}
