//! `session/update`: what happens in a session, as the agent reports it.

use super::{
    AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate,
    ContentChunk, Message, Notice, PlanRemoved, PlanUpdate, SessionId, SessionInfoUpdate,
    SessionMessage, SessionMessageChunk, StateUpdate, SubagentUpdate, TerminalOutputChunk,
    TerminalUpdate, ToolCallContentChunk, ToolCallUpdate, UsageUpdate,
};

record! {
    /// `session/update`.
    pub struct UpdateSessionNotification {
        /// The session.
        required session_id: SessionId,
        /// What happened.
        required update: SessionUpdate,
    }
}

tagged! {
    /// What happened in a session. What is larger and rarer than a piece of a message is behind a pointer.
    pub enum SessionUpdate by "sessionUpdate" {
        /// A piece of the user's message.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// The user's message.
        UserMessage(Message) = "user_message",
        /// A piece of the agent's message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// The agent's message.
        AgentMessage(Message) = "agent_message",
        /// A piece of what the agent thinks.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// What the agent thinks.
        AgentThought(Message) = "agent_thought",
        /// Whether the agent works.
        StateUpdate(StateUpdate) = "state_update",
        /// A piece of what a tool call has produced.
        ToolCallContentChunk(ToolCallContentChunk) = "tool_call_content_chunk",
        /// A tool call.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// A terminal of the agent's.
        TerminalUpdate(Box<TerminalUpdate>) = "terminal_update",
        /// What such a terminal has printed.
        TerminalOutputChunk(TerminalOutputChunk) = "terminal_output_chunk",
        /// A plan.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// A plan is gone. Unstable.
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// The commands, all of them.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// The config options, all of them.
        ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update" | "config_options_update",
        /// Another title.
        SessionInfoUpdate(Box<SessionInfoUpdate>) = "session_info_update",
        /// Context and cost.
        UsageUpdate(Box<UsageUpdate>) = "usage_update",
        /// Something a person should know. Not in the draft of August 2026.
        Notice(Box<Notice>) = "notice",
        /// The conversation is shortened. Not in the draft of August 2026.
        CompactionUpdate(Box<CompactionUpdate>) = "compaction_update",
        /// A piece of what is left of it. Not in the draft of August 2026.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
        /// The session has a subagent, or something about it has changed. Unstable.
        SubagentUpdate(Box<SubagentUpdate>) = "subagent_update",
        /// A message from one session to another. Unstable.
        SessionMessage(Box<SessionMessage>) = "session_message",
        /// A piece of such a message. Unstable.
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
    }
}
