//! Messages in a session, each with an id. A full message replaces the content of the message with the same id, while a
//! chunk is appended to it. See "Agent Reports Output" on the specification's page "Prompt Lifecycle".

use super::{ContentBlock, MessageId};

record! {
    /// A new message, or a change to one. Absent fields are unchanged, and `null` clears a field.
    pub patch Message {
        /// The new or changed message.
        required message_id: MessageId,
        /// The full content of the message, which replaces the previous content.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A chunk to append to a message.
    pub struct ContentChunk {
        /// The message that the chunk belongs to.
        required message_id: MessageId,
        /// The text or other content to append.
        required content: ContentBlock,
    }
}
