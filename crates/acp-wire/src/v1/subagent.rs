//! Subagents: sessions that a session has made and owns, and what sessions say to each other. Unstable.

use super::{ContentBlock, MessageId, SessionId};
use crate::v2::StateUpdate;

record! {
    /// The session of this update has made another one, its child; or something about that has changed. What
    /// belongs to the child comes as updates and requests of its own session.
    pub patch SubagentUpdate {
        /// The child.
        required session_id: SessionId,
        /// What it is for, for users.
        clearable title: String,
        /// The same at length.
        clearable description: String,
        /// What a client may do with it; nothing if absent.
        clearable capabilities: SubagentSessionCapabilities,
        /// What it does; as its own `state_update` tells it.
        clearable state: StateUpdate,
        /// Its working directory, absolute; if absent its parent's.
        clearable cwd: String,
        /// Its further roots, absolute; if absent its parent's.
        clearable_list additional_directories: String,
    }
}

record! {
    /// What a client may do with a subagent's session.
    pub struct SubagentSessionCapabilities {
        /// Cancel its work.
        optional cancel: SessionCancelCapabilities,
    }
}

record! {
    /// Present when a session's work can be cancelled.
    pub struct SessionCancelCapabilities {}
}

record! {
    /// A message from one session to another. Both show it, each with an id of its own.
    pub patch SessionMessage {
        /// Its id in this session.
        required message_id: MessageId,
        /// Who has sent it.
        clearable sender_session_id: SessionId,
        /// Who gets it.
        clearable recipient_session_id: SessionId,
        /// Its id in the session of the sender.
        clearable sender_message_id: MessageId,
        /// Its id in the session of the recipient.
        clearable recipient_message_id: MessageId,
        /// What it says, all of it.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A piece of a message from one session to another.
    pub struct SessionMessageChunk {
        /// The message's id in this session.
        required message_id: MessageId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}

record! {
    /// Present when the client shows subagents.
    pub struct SubagentCapabilities {}
}
