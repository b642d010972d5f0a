//! Limits on a connection's memory.

use std::time::Duration;

/// Limits on a connection's memory, in bytes unless stated otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum length of a message (64 MiB). A longer message is skipped. A skipped request gets an error response,
    /// and a skipped response makes its request fail.
    pub message: usize,
    /// The maximum memory of a parsed message (512 MiB), estimated from its text. Many small objects can use a hundred
    /// times the length of their text, while plain text uses about twice its length. A message over this limit is
    /// treated like one that is too long.
    pub message_memory: usize,
    /// The maximum number of bytes to buffer for writing before senders must wait (256 KiB).
    pub outbox: usize,
    /// The maximum number of bytes to read ahead while an update handler runs (1 MiB).
    pub read_ahead: usize,
    /// The maximum number of bytes to read ahead while an update handler runs and a request is pending, possibly the
    /// handler's own (16 MiB). Beyond this limit, pending requests fail with [`Error::Backlog`](crate::Error::Backlog).
    pub backlog: usize,
    /// The maximum number of requests in flight (1024). Further requests are rejected.
    pub requests: usize,
    /// The maximum memory of all requests in flight (128 MiB), estimated as for
    /// [`message_memory`](Self::message_memory). This includes the tool calls in permission requests. Further requests
    /// are rejected, unless no other request is in flight.
    pub request_memory: usize,
    /// The maximum number of prompts that an agent queues for one session (256). Further prompts are rejected.
    pub prompts: usize,
    /// The maximum number of sessions that an agent keeps open for one client (4096). Further sessions are rejected.
    pub sessions: usize,
    /// The maximum size of a client's [`Thread`](crate::Thread) for a session (64 MiB). Beyond this limit, the oldest
    /// part is dropped, as [`Thread::truncation`](crate::Thread::truncation) reports.
    pub thread: usize,
    /// How long requests in flight may continue after the peer has closed its end of the connection. The default is
    /// zero, or 2 s with [`agent::serve`](crate::agent::serve).
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
            thread: crate::thread::DEFAULT_LIMIT_BYTES,
            linger: Duration::ZERO,
        }
    }
}

/// Defines a setter for each limit.
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
    /// Creates the default limits.
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

/// Calculates the maximum memory of a connection, as described in `docs/memory.md`.
impl Limits {
    /// Returns the maximum memory, in bytes, of a client's connection with `sessions` open sessions. This does not
    /// include the memory of the client's own handlers, or of the requests and prompts that it sends.
    #[must_use]
    pub fn max_client_memory(&self, sessions: usize) -> usize {
        let threads = sessions
            .saturating_add(1)
            .saturating_mul(self.max_thread_memory());
        let ahead = self
            .backlog
            .max(self.read_ahead)
            .saturating_add(self.message);
        self.max_shared_memory()
            .saturating_add(ahead)
            .saturating_add(threads)
            // One update is being applied to its thread while another one is being delivered.
            .saturating_add(self.message_memory)
    }

    /// Returns the maximum memory, in bytes, of an agent's connection with `sessions` open sessions (at most
    /// [`sessions`](Self::sessions)). This does not include what the agent itself stores for a session or a turn.
    #[must_use]
    pub fn max_agent_memory(&self, sessions: usize) -> usize {
        let sessions = sessions.min(self.sessions).saturating_mul(SESSION_BYTES);
        self.max_shared_memory().saturating_add(sessions)
    }

    /// Returns the part of the maximum memory common to clients and agents, in bytes.
    fn max_shared_memory(&self) -> usize {
        // The buffer grows by doubling, and there are two copies while it grows.
        let text = self
            .message
            .saturating_add(READ_BUFFER_BYTES)
            .saturating_mul(3);
        let read = text.saturating_add(self.message_memory);
        let requests = self
            .request_memory
            .max(self.message_memory)
            .saturating_add(self.requests.saturating_mul(TASK_BYTES));
        // One buffer is being filled and one is being written, and each grows by doubling. An error response quotes the
        // request's id or method, which can be as long as a message.
        let reserve = self.outbox.saturating_mul(5).saturating_add(self.message);
        let written = reserve.saturating_mul(4);
        read.saturating_add(requests).saturating_add(written)
    }

    /// Returns the maximum memory of a thread, in bytes: its size limit, an equal amount of spare capacity for text
    /// that arrives in chunks, and the commands and config options.
    fn max_thread_memory(&self) -> usize {
        self.thread.saturating_mul(5) / 2
    }
}

/// The number of bytes to read at a time.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The library's own memory for a task that handles a request, in bytes.
const TASK_BYTES: usize = 16 * 1024;

/// An agent's memory for a session, in bytes. It covers the session's paths and two copies of its id.
const SESSION_BYTES: usize = 300 * 1024;
