//! Ordering and back-pressure: what order is promised, what is bounded, and who waits for whom.
//!
//! Three promises:
//!
//! 1. **What arrives in order is seen in order.** The answer to a prompt, and to the loading of a session, is
//!    never seen before the updates that came ahead of it.
//! 2. **Everything that is queued is bounded, in bytes.** A peer that stops reading makes a sender wait; it
//!    does not make memory grow.
//! 3. **No two peers that use this library lock each other up**, and an update handler that makes a request
//!    of the agent does not lock itself up.
//!
//! # Seen in order
//!
//! An update is first folded into the session's [`Thread`](crate::Thread), then given to
//! [`Client::update`](crate::Client::update), which is awaited. Then the next message is looked at. So when
//! [`Session::prompt`](crate::client::ClientSession::prompt) returns, every update of the turn has been handled:
//!
//! ```
//! use acp::agent::Turn;
//! use acp::client::{Client, Update, UpdateContext};
//! use acp::testing::{PromptAgent, connect};
//! use acp::v1::StopReason;
//! use std::sync::{Arc, Mutex};
//!
//! /// Thinks about each update for a while.
//! struct Slow(Arc<Mutex<String>>);
//!
//! impl Client for Slow {
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
//!         turn.message(word).await?;
//!     }
//!     Ok(StopReason::EndTurn)
//! });
//! let (agent, _) = connect(agent, Slow(Arc::clone(&said))).await;
//! agent.new_session("/").await?.prompt("Go on.").await?;
//! assert_eq!(*said.lock().unwrap(), "in this order");
//! # Ok(())
//! # }
//! ```
//!
//! Requests of the peer's are worked on beside each other, but begun in their order: each but
//! a prompt takes its first step, and each prompt begins its turn, before the next message is looked at. A
//! prompt that follows a change of mode finds the mode changed, and a cancel that follows a prompt in the
//! same packet finds the turn.
//!
//! # Who waits for whom
//!
//! - **Whoever sends waits for room.** [`Turn::message`](crate::agent::Session::message) returns when the
//!   text is in the outbox, not when the client has read it. When the outbox is full, senders wait in their
//!   turn.
//! - **The agent waits for a slow update handler**, through the pipe, and with it every session of the
//!   connection. A front end that is slow and wants to slow nobody down watches the thread instead
//!   ([`ThreadHandle::changed`](crate::ThreadHandle::changed)).
//! - **A handler may make requests of the agent and await them**, except for prompts and loads, whose
//!   answers come after all of their updates. While it works, answers are taken out of what has not been
//!   handled yet, up to a limit; beyond it, whoever waits gets [`Error::Backlog`](crate::Error::Backlog)
//!   instead of waiting for ever.
//!
//! # What is bounded
//!
//! [`Limits`](crate::Limits) has them, and [`connect_with`](crate::client::connect_with) and
//! [`serve_with`](crate::agent::serve_with) take others:
//!
//! | limit | default | beyond it |
//! |---|---|---|
//! | [`message`](crate::Limits::message): one message that is read | 64 MiB | it is passed over; a request is answered with an error, an answer fails its request |
//! | [`outbox`](crate::Limits::outbox): what waits to be written | 256 KiB | senders wait |
//! | [`read_ahead`](crate::Limits::read_ahead): what is read while an update handler works | 1 MiB | reading stops, and the peer waits |
//! | [`backlog`](crate::Limits::backlog): the same, while someone waits for an answer | 16 MiB | they get [`Error::Backlog`](crate::Error::Backlog) |
//! | [`requests`](crate::Limits::requests): requests of the peer's that are worked on | 1,024 | further ones are refused with an error |
//! | [`linger`](crate::Limits::linger): how long they may go on when the peer has closed its side | 0 s; 2 s for [`serve`](crate::agent::serve) | they are dropped |
//!
//! # The end
//!
//! When a connection ends, every request that waits fails with [`Error::Closed`](crate::Error::Closed),
//! turns that run end, and no task stays behind: [`Connection::closed`](crate::Connection::closed) returns
//! when that is so.
