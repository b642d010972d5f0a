//! The tasks that a prompt gives an agent, and how a client checks that they were carried out.

use std::fmt::Write;

/// A task that a prompt describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchTask {
    /// Send chunks of text.
    Stream {
        /// The number of chunks.
        messages: u64,
        /// The text length of each chunk, in bytes.
        bytes: usize,
    },
    /// Send chunks of text at a limited rate.
    Pace {
        /// The number of chunks.
        messages: u64,
        /// The text length of each chunk, in bytes.
        bytes: usize,
        /// The number of chunks per second.
        rate: u64,
    },
    /// Request permission this many times, one request after the other.
    Ask(u64),
    /// Read a file through the client.
    Read(String),
}

impl BenchTask {
    /// Parses the text of a prompt. Returns `None` if it describes no task.
    #[must_use]
    pub fn from_prompt(prompt: &str) -> Option<Self> {
        let (what, rest) = prompt.split_once(' ')?;
        match what {
            "stream" => parse_stream(rest.split_once(' ')?),
            "pace" => {
                let (rest, rate) = rest.rsplit_once(' ')?;
                let (messages, bytes) = rest.split_once(' ')?;
                Some(Self::Pace {
                    messages: messages.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                    rate: rate.parse().ok()?,
                })
            }
            "ask" => rest.parse().ok().map(Self::Ask),
            "read" => Some(Self::Read(rest.to_owned())),
            _ => None,
        }
    }

    /// Returns the chunks to replay for a session with this id.
    #[must_use]
    pub fn from_session_id(id: &str) -> Option<Self> {
        parse_stream(id.strip_prefix("replay-")?.split_once('-')?)
    }
}

fn parse_stream((messages, bytes): (&str, &str)) -> Option<BenchTask> {
    Some(BenchTask::Stream {
        messages: messages.parse().ok()?,
        bytes: bytes.parse().ok()?,
    })
}

/// The number of digits at the start of each text.
const NUMBER_DIGITS: usize = 8;

/// The text of chunks, rewritten for each chunk.
#[derive(Debug)]
pub struct BenchText(String);

impl BenchText {
    /// Creates texts of this length, in bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self("x".repeat(bytes.max(NUMBER_DIGITS)))
    }

    /// Returns the text of the chunk with this number.
    pub fn text_for(&mut self, number: u64) -> &str {
        let mut digits = String::with_capacity(NUMBER_DIGITS);
        let _ = write!(digits, "{number:08}");
        self.0.replace_range(..NUMBER_DIGITS, &digits);
        &self.0
    }
}

/// The chunks that a session must receive, and how many have arrived.
#[derive(Debug, Default)]
pub struct SessionProgress {
    messages: u64,
    bytes: usize,
    seen: u64,
    error: Option<String>,
}

impl SessionProgress {
    /// Expects a number of chunks with `bytes` bytes each.
    #[must_use]
    pub fn new(messages: u64, bytes: usize) -> Self {
        Self {
            messages,
            bytes,
            ..Self::default()
        }
    }

    /// Checks a chunk that has arrived.
    pub fn check_text(&mut self, text: &str) {
        let number = text
            .get(..NUMBER_DIGITS)
            .and_then(|digits| digits.parse().ok());
        if (number != Some(self.seen) || text.len() != self.bytes) && self.error.is_none() {
            let begin = text.get(..20).unwrap_or(text);
            self.error = Some(format!(
                "chunk {} is {begin:?}, with {} bytes",
                self.seen,
                text.len()
            ));
        }
        self.seen += 1;
    }

    /// Returns the number of chunks that have arrived.
    #[must_use]
    pub fn received_count(&self) -> u64 {
        self.seen
    }

    /// Checks that all chunks have arrived.
    ///
    /// # Errors
    /// What is wrong or missing.
    pub fn finish(self) -> Result<(), String> {
        match self.error {
            Some(wrong) => Err(wrong),
            None if self.seen == self.messages => Ok(()),
            None => Err(format!("{} chunks instead of {}", self.seen, self.messages)),
        }
    }
}
