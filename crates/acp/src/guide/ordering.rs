//! Ordering and back-pressure: the guarantees, the limits, and which side waits for the other.
//!
//! Three guarantees:
//!
//! 1. **Messages are handled in order.** The response to a prompt, or to loading a session, is never seen before the
//!    updates that were sent before it.
//! 2. **The size of every queue is limited.** When a peer stops reading, senders wait, and memory does not grow.
//! 3. **Two peers that use this library do not deadlock**, and neither does an update handler that sends requests to
//!    the agent.
//!
//! # Updates are handled in order
//!
//! An update is first applied to the session's [`Thread`](crate::Thread), and then passed to
//! [`Client::update`](crate::Client::update), which is awaited before the next message is handled. When
//! [`ClientSession::prompt`](crate::client::ClientSession::prompt) returns, every update of the turn has therefore been
//! handled:
//!
//! ```
//! use acp::agent::Turn;
//! use acp::client::{Client, Update, UpdateContext};
//! use acp::testing::{PromptAgent, connect};
//! use acp::v1::StopReason;
//! use std::sync::{Arc, Mutex};
//!
//! /// A client that takes a while to handle each update.
//! struct SlowClient(Arc<Mutex<String>>);
//!
//! impl Client for SlowClient {
//!     type State = ();
//!
//!     async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
//!         for _ in 0..10 {
//!             tokio::task::yield_now().await;
//!         }
//!         let text = update.message_text().unwrap_or_default();
//!         self.0.lock().unwrap().push_str(text);
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let said = Arc::<Mutex<String>>::default();
//! let agent = PromptAgent(async |turn: Turn, _| {
//!     for word in ["in ", "this ", "order"] {
//!         turn.send_message(word).await?;
//!     }
//!     Ok(StopReason::EndTurn)
//! });
//! let (agent, _) = connect(agent, SlowClient(Arc::clone(&said))).await;
//! agent.new_session("/").await?.prompt("Go on.").await?;
//! assert_eq!(*said.lock().unwrap(), "in this order");
//! # Ok(())
//! # }
//! ```
//!
//! Requests from the peer are handled concurrently, but started in order: each request other than a prompt takes its
//! first step, and each prompt starts its turn, before the next message is handled. A prompt that follows a mode change
//! runs in the new mode, and a cancellation that follows a prompt in the same packet finds the turn.
//!
//! # Who waits for whom
//!
//! - **Senders wait for capacity.** [`Turn::send_message`](crate::agent::Session::send_message) returns when the text is in the
//!   outbox, not when the client has read it. When the outbox is full, senders wait in order.
//! - **The agent waits for a slow update handler**, through the pipe, and with it every session of the connection. A
//!   slow front end that must not slow down others watches the thread instead
//!   ([`ThreadHandle::changed`](crate::ThreadHandle::changed)).
//! - **A handler may send requests to the agent and await them**, except for prompts and loads, whose responses come
//!   after all of their updates. While the handler runs, responses are read from unprocessed input, up to a limit.
//!   Beyond the limit, pending requests fail with [`Error::Backlog`](crate::Error::Backlog) instead of waiting forever.
//!
//! # Limits
//!
//! The limits are fields of [`Limits`](crate::Limits). To change them, use
//! [`connect_with`](crate::client::connect_with) or [`serve_with`](crate::agent::serve_with):
//!
//! | limit | default | beyond it |
//! |---|---|---|
//! | [`message`](crate::Limits::message): the size of a received message | 64 MiB | it is skipped; a request gets an error response, a response fails its request |
//! | [`outbox`](crate::Limits::outbox): the bytes buffered for writing | 256 KiB | senders wait |
//! | [`read_ahead`](crate::Limits::read_ahead): the bytes read while an update handler runs | 1 MiB | reading stops, and the peer waits |
//! | [`backlog`](crate::Limits::backlog): the bytes read while an update handler runs and a request is pending | 16 MiB | pending requests fail with [`Error::Backlog`](crate::Error::Backlog) |
//! | [`requests`](crate::Limits::requests): requests in flight | 1,024 | further ones are rejected |
//! | [`linger`](crate::Limits::linger): the time for requests in flight after the peer has closed its side | 0 s; 2 s for [`serve`](crate::agent::serve) | they are dropped |
//!
//! # The end of a connection
//!
//! When a connection ends, every pending request fails with [`Error::Closed`](crate::Error::Closed), running turns
//! end, and no task is left running: [`Connection::closed`](crate::Connection::closed) returns once that is done.
