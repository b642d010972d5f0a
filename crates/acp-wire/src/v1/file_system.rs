//! Reading and writing text files. See the specification's page "File System".

use super::SessionId;
use crate::TextResponse;

record! {
    /// The `fs/read_text_file` request. The client must support `fs.readTextFile`.
    pub struct ReadTextFileRequest {
        /// The session for which the agent reads the file.
        required session_id: SessionId,
        /// The absolute path of the file.
        required path: String,
        /// The first line to read, counting from 1.
        optional line: u32,
        /// The maximum number of lines to read.
        optional limit: u32,
    }
}

record! {
    /// The response to `fs/read_text_file`, with the text.
    pub struct ReadTextFileResponse {
        /// The text that was read.
        required content: String,
    }
}

impl TextResponse for ReadTextFileResponse {
    const TEXT_FIELD: &'static str = "content";

    fn text_mut(&mut self) -> &mut String {
        &mut self.content
    }
}

record! {
    /// The `fs/write_text_file` request. The client must support `fs.writeTextFile`.
    pub struct WriteTextFileRequest {
        /// The session for which the agent writes the file.
        required session_id: SessionId,
        /// The absolute path of the file. The client creates the file if it does not exist.
        required path: String,
        /// The new contents of the file.
        required content: String,
    }
}

record! {
    /// The response to `fs/write_text_file`, sent once the file is written.
    pub struct WriteTextFileResponse {}
}
