//! Messages: prompt lifecycle, "Agent Reports Output". A message is a thing with an id: a whole one
//! replaces, a chunk appends.

use super::{ContentBlock, MessageId};

record! {
    /// A message as it is now. What is absent stays as it is; `null` clears.
    pub patch Message {
        /// Its id.
        required message_id: MessageId,
        /// Its content, all of it.
        clearable_list content: ContentBlock,
    }
}

record! {
    /// A piece at the end of a message.
    pub struct ContentChunk {
        /// The message it belongs to.
        required message_id: MessageId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}
