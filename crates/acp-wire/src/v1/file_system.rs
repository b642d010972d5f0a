//! File system: the specification's page of that name.

use super::SessionId;

record! {
    /// `fs/read_text_file`: needs the client's `fs.readTextFile`.
    pub struct ReadTextFileRequest {
        /// The session.
        required session_id: SessionId,
        /// The file, an absolute path.
        required path: String,
        /// The first line to read, counted from 1.
        optional line: u32,
        /// How many lines to read at most.
        optional limit: u32,
    }
}

record! {
    /// The answer to `fs/read_text_file`.
    pub struct ReadTextFileResponse {
        /// The text.
        required content: String,
    }
}

record! {
    /// `fs/write_text_file`: needs the client's `fs.writeTextFile`.
    pub struct WriteTextFileRequest {
        /// The session.
        required session_id: SessionId,
        /// The file, an absolute path; created if it is not there.
        required path: String,
        /// The whole new text.
        required content: String,
    }
}

record! {
    /// The answer to `fs/write_text_file`.
    pub struct WriteTextFileResponse {}
}
