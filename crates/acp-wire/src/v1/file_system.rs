//! File system: the specification's page of that name.

use serde_json::value::RawValue;

use super::SessionId;
use crate::text::unescaped;
use crate::{ReadError, Request, read_result};

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

impl ReadTextFileResponse {
    /// Reads the `result` of an answer, as [`read_result`] does. A large text, in the form in which nearly
    /// everyone writes it, is not copied on the way.
    ///
    /// # Errors
    /// [`ReadError::Invalid`].
    pub fn read(result: &RawValue) -> Result<Self, ReadError> {
        let inner = result.get().strip_prefix("{\"content\":\"");
        match inner.and_then(|inner| unescaped(inner.strip_suffix("\"}")?)) {
            Some(content) => Ok(Self::new(content)),
            None => read_result(ReadTextFileRequest::METHOD, result),
        }
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
