//! Subagents: sessions that another session started, and the messages between sessions. Unstable.

use super::{ContentBlock, MessageId, SessionId};
use crate::v2::StateUpdate;

record! {
    /// A new subagent of the session of this update, or a change of one. Updates and requests of the subagent carry the
    /// id of its own session.
    pub patch SubagentUpdate {
        /// The id of the subagent's session.
        required session_id: SessionId,
        /// A short description of its task, to show to the user.
        clearable title: String,
        /// A longer description of its task.
        clearable description: String,
        /// What a client may do with the subagent; nothing if absent.
        clearable capabilities: SubagentSessionCapabilities,
        /// Its state, as in its own `state_update`.
        clearable state: StateUpdate,
        /// The working directory, as an absolute path. If absent, that of the parent.
        clearable cwd: String,
        /// Further roots, as absolute paths. If absent, those of the parent.
        clearable_list additional_directories: String,
    }
}

record! {
    /// What a client may do with a subagent's session.
    pub struct SubagentSessionCapabilities {
        /// Support for the cancellation of its work.
        optional cancel: SessionCancelCapabilities,
    }
}

record! {
    /// An empty object that marks a session whose work can be cancelled.
    pub struct SessionCancelCapabilities {}
}

record! {
    /// A message from one session to another. It appears in both sessions, with a different id in each.
    pub patch SessionMessage {
        /// The id of the message in this session.
        required message_id: MessageId,
        /// The session that sent the message.
        clearable sender_session_id: SessionId,
        /// The session that receives the message.
        clearable recipient_session_id: SessionId,
        /// The id of the message in the sender's session.
        clearable sender_message_id: MessageId,
        /// The id of the message in the recipient's session.
        clearable recipient_message_id: MessageId,
        /// The whole content.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A chunk of a message from one session to another.
    pub struct SessionMessageChunk {
        /// The id of the message in this session.
        required message_id: MessageId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}

record! {
    /// An empty object that marks a client that shows subagents.
    pub struct SubagentCapabilities {}
}
