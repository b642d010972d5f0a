//! How much a connection keeps.

use std::time::Duration;

/// How much a connection keeps, in bytes unless said otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message that is read (64 MiB). A longer one is passed over; a request gets an
    /// error for an answer, an answer fails the request it is for.
    pub message: usize,
    /// How much memory a message may take once it has been read (512 MiB), as estimated from its text: of
    /// small objects a hundred times as much, of text hardly more. One that takes more is treated as one that
    /// is too long.
    pub message_memory: usize,
    /// What may wait to be written before senders wait (256 KiB).
    pub outbox: usize,
    /// What is read ahead while an update handler works (1 MiB).
    pub read_ahead: usize,
    /// What is read ahead while an update handler works and someone waits for an answer, which may
    /// be the handler itself (16 MiB). Beyond it those who wait get [`Error::Backlog`](crate::Error::Backlog).
    pub backlog: usize,
    /// How many requests of the peer's are worked on at once (1024). Further ones are refused.
    pub requests: usize,
    /// How much memory the requests of the peer's may take that are worked on at once (128 MiB), as
    /// [`message_memory`](Self::message_memory) is estimated; what a permission request is about is counted
    /// with it. Further ones are refused; one alone is not.
    pub request_memory: usize,
    /// How many prompts of one session may wait for those before them (256), on the agent's side. Further ones
    /// are refused.
    pub prompts: usize,
    /// How many sessions a client may have open (4096), on the agent's side. Further ones are refused.
    pub sessions: usize,
    /// How much a session's [`Thread`](crate::Thread) keeps (64 MiB), on the client's side. Beyond it the
    /// earliest is dropped, and the thread says so: [`Thread::truncation`](crate::Thread::truncation).
    pub thread: usize,
    /// How long requests of the peer's may go on after it has closed its side (not at
    /// all; [`agent::serve`](crate::agent::serve) gives them 2 s).
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 64 * 1024 * 1024,
            message_memory: 512 * 1024 * 1024,
            outbox: 256 * 1024,
            read_ahead: 1024 * 1024,
            backlog: 16 * 1024 * 1024,
            requests: 1024,
            request_memory: 128 * 1024 * 1024,
            prompts: 256,
            sessions: 4096,
            thread: crate::thread::KEPT,
            linger: Duration::ZERO,
        }
    }
}

/// A setter for each limit.
macro_rules! setters {
    ($($name:ident: $type:ty),+ $(,)?) => { $(
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        }
    )+ };
}

impl Limits {
    /// The default ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        message: usize,
        message_memory: usize,
        outbox: usize,
        read_ahead: usize,
        backlog: usize,
        requests: usize,
        request_memory: usize,
        prompts: usize,
        sessions: usize,
        thread: usize,
        linger: Duration,
    }
}

/// What a connection takes at most: the formulas of `docs/memory.md`, where each part of them is explained.
impl Limits {
    /// The most memory that a connection takes on the client's side, in bytes, with so many sessions open.
    /// What the client's own handlers take is not in it, nor is what is asked of the agent and said to it.
    #[must_use]
    pub fn max_client_memory(&self, sessions: usize) -> usize {
        let threads = sessions
            .saturating_add(1)
            .saturating_mul(self.thread_with_slack());
        let ahead = self
            .backlog
            .max(self.read_ahead)
            .saturating_add(self.message);
        self.max_shared_memory()
            .saturating_add(ahead)
            .saturating_add(threads)
            // The update that is folded into its thread, beside the one that is delivered.
            .saturating_add(self.message_memory)
    }

    /// The most memory that a connection takes on the agent's side, in bytes, with so many sessions open,
    /// of which there are never more than [`sessions`](Self::sessions). What the agent itself keeps of a
    /// session or a turn is not in it.
    #[must_use]
    pub fn max_agent_memory(&self, sessions: usize) -> usize {
        let sessions = sessions.min(self.sessions).saturating_mul(SESSION);
        self.max_shared_memory().saturating_add(sessions)
    }

    fn max_shared_memory(&self) -> usize {
        // The buffer grows by doubling, and is there twice while it does.
        let text = self.message.saturating_add(READ).saturating_mul(3);
        let read = text.saturating_add(self.message_memory);
        let requests = self
            .request_memory
            .max(self.message_memory)
            .saturating_add(self.requests.saturating_mul(TASK));
        // One that is filled and one that is written, each grown by doubling; a refusal names what it refuses.
        let reserve = self.outbox.saturating_mul(5).saturating_add(self.message);
        let written = reserve.saturating_mul(4);
        read.saturating_add(requests).saturating_add(written)
    }

    /// What a thread takes: text that came in pieces may have as much room again behind it, and what is there
    /// once (commands, options) comes on top.
    fn thread_with_slack(&self) -> usize {
        self.thread.saturating_mul(5) / 2
    }
}

/// How much is read at once, in bytes.
const READ: usize = 64 * 1024;

/// What the task takes that works on a request, in bytes: the library's part of it.
const TASK: usize = 16 * 1024;

/// What a session takes on the agent's side, in bytes: its paths, its id twice.
const SESSION: usize = 300 * 1024;
