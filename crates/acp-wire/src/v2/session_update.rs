//! The `session/update` notification, which reports the events in a session.

use super::{
    AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate,
    ContentChunk, Message, Notice, PlanRemoved, PlanUpdate, SessionId, SessionInfoUpdate,
    SessionMessage, SessionMessageChunk, StateUpdate, SubagentUpdate, TerminalOutputChunk,
    TerminalUpdate, ToolCallContentChunk, ToolCallUpdate, UsageUpdate,
};

record! {
    /// The `session/update` notification: reports one change to a session.
    pub struct UpdateSessionNotification {
        /// The session that has changed.
        required session_id: SessionId,
        /// The change, such as a chunk of text or a new tool call.
        required update: SessionUpdate,
    }
}

tagged! {
    /// One change to a session. Variants that are larger and less frequent than a message chunk are boxed.
    pub enum SessionUpdate by "sessionUpdate" {
        /// A chunk of a user message.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// A full user message.
        UserMessage(Message) = "user_message",
        /// A chunk of an agent message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// A full agent message.
        AgentMessage(Message) = "agent_message",
        /// A chunk of the agent's thoughts.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// A full thought.
        AgentThought(Message) = "agent_thought",
        /// The agent's new state.
        StateUpdate(StateUpdate) = "state_update",
        /// A chunk of a tool call's content.
        ToolCallContentChunk(ToolCallContentChunk) = "tool_call_content_chunk",
        /// A new tool call, or a change to one.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// A new display terminal, or a change to one.
        TerminalUpdate(Box<TerminalUpdate>) = "terminal_update",
        /// A chunk of a display terminal's output.
        TerminalOutputChunk(TerminalOutputChunk) = "terminal_output_chunk",
        /// A full plan, new or changed.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// The removal of a plan. Unstable.
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// The full list of slash commands, which replaces the previous list.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// All config options, with their current values.
        ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update" | "config_options_update",
        /// A change to the session's title or to the time of its last change.
        SessionInfoUpdate(Box<SessionInfoUpdate>) = "session_info_update",
        /// The current context window usage, and the cost so far.
        UsageUpdate(Box<UsageUpdate>) = "usage_update",
        /// A notice for the user. Not in the draft of August 2026.
        Notice(Box<Notice>) = "notice",
        /// A new compaction, or a change to one. Not in the draft of August 2026.
        CompactionUpdate(Box<CompactionUpdate>) = "compaction_update",
        /// A chunk of a compaction's summary. Not in the draft of August 2026.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
        /// A new subagent, or a change to one. Unstable.
        SubagentUpdate(Box<SubagentUpdate>) = "subagent_update",
        /// A message from one session to another. Unstable.
        SessionMessage(Box<SessionMessage>) = "session_message",
        /// A chunk of a message from one session to another. Unstable.
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
    }
}
