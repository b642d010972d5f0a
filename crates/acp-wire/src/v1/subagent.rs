//! Subagents, which are sessions started by other sessions, and the messages between sessions. Unstable.

use super::{ContentBlock, MessageId, SessionId};
use crate::v2::StateUpdate;

record! {
    /// An update that reports a new or changed subagent of the session. Updates and requests from the subagent carry
    /// the id of the subagent's own session.
    pub patch SubagentUpdate {
        /// The subagent's own session.
        required session_id: SessionId,
        /// A short description of the subagent's task, to show to the user.
        clearable title: String,
        /// A detailed description of the subagent's task.
        clearable description: String,
        /// The operations that the client may perform on the subagent. If absent, none are allowed.
        clearable capabilities: SubagentSessionCapabilities,
        /// The subagent's state, in the same form as a `state_update` in its own session.
        clearable state: StateUpdate,
        /// The working directory, as an absolute path. If absent, the subagent uses its parent's.
        clearable cwd: String,
        /// Additional roots, as absolute paths. If absent, the subagent uses its parent's.
        clearable_list additional_directories: String,
    }
}

record! {
    /// The operations that a client may perform on a subagent's session.
    pub struct SubagentSessionCapabilities {
        /// Support for cancelling the subagent's work.
        optional cancel: SessionCancelCapabilities,
    }
}

record! {
    /// An empty object that declares support for cancelling a session's work.
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
        /// The full content of the message.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A chunk of a message from one session to another.
    pub struct SessionMessageChunk {
        /// The id of the message in this session.
        required message_id: MessageId,
        /// The text or other content to append.
        required content: ContentBlock,
    }
}

record! {
    /// An empty object that declares support for subagents.
    pub struct SubagentCapabilities {}
}
