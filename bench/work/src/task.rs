//! What a prompt asks an agent to do, and how a client checks that it was done.

use std::fmt::Write;

/// What the words of a prompt say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchTask {
    /// Send so many chunks with so many bytes of text each.
    Stream {
        /// How many.
        messages: u64,
        /// How much text in each.
        bytes: usize,
    },
    /// Send so many chunks, but only so many a second.
    Pace {
        /// How many.
        messages: u64,
        /// How much text in each.
        bytes: usize,
        /// How many a second.
        rate: u64,
    },
    /// Ask for permission so many times, one after the other.
    Ask(u64),
    /// Read a file through the client.
    Read(String),
}

impl BenchTask {
    /// Reads the text of a prompt; `None` if it says something else.
    #[must_use]
    pub fn of(prompt: &str) -> Option<Self> {
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

    /// What is to be replayed of a session of this id.
    #[must_use]
    pub fn of_session(id: &str) -> Option<Self> {
        parse_stream(id.strip_prefix("replay-")?.split_once('-')?)
    }
}

fn parse_stream((messages, bytes): (&str, &str)) -> Option<BenchTask> {
    Some(BenchTask::Stream {
        messages: messages.parse().ok()?,
        bytes: bytes.parse().ok()?,
    })
}

/// How many digits each text begins with.
const DIGITS: usize = 8;

/// The text of a chunk, made anew for each.
#[derive(Debug)]
pub struct BenchText(String);

impl BenchText {
    /// Texts of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self("x".repeat(bytes.max(DIGITS)))
    }

    /// The text of the chunk with this number.
    pub fn of(&mut self, number: u64) -> &str {
        let mut digits = String::with_capacity(DIGITS);
        let _ = write!(digits, "{number:08}");
        self.0.replace_range(..DIGITS, &digits);
        &self.0
    }
}

/// What a session must get, and how much of it has come.
#[derive(Debug, Default)]
pub struct SessionProgress {
    messages: u64,
    bytes: usize,
    seen: u64,
    error: Option<String>,
}

impl SessionProgress {
    /// So many chunks are to come, with so many bytes each.
    #[must_use]
    pub fn new(messages: u64, bytes: usize) -> Self {
        Self {
            messages,
            bytes,
            ..Self::default()
        }
    }

    /// A chunk has come.
    pub fn see(&mut self, text: &str) {
        let number = text.get(..DIGITS).and_then(|digits| digits.parse().ok());
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

    /// How many have come.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Nothing more is to come.
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
