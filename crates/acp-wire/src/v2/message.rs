//! Messages: the specification's page "Prompt Lifecycle", "Agent Reports Output". Each message has an id. A whole
//! message replaces its content, and a chunk is appended to it.

use super::{ContentBlock, MessageId};

record! {
    /// A new message, or a change of one. Absent fields are unchanged; `null` clears a field.
    pub patch Message {
        /// The id of the message.
        required message_id: MessageId,
        /// The whole content.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A chunk that is appended to a message.
    pub struct ContentChunk {
        /// The id of the message that the chunk belongs to.
        required message_id: MessageId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}
