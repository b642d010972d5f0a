//! Cancellation: what is dropped and what is told, on either side.
//!
//! The rule is Rust's: what is cancelled is a future that is dropped, and handles clean up when they are
//! dropped. The library turns that into the protocol's words, and the protocol's words into that.
//!
//! # The client's side
//!
//! [`Session::cancel`](crate::client::ClientSession::cancel) cancels the turn that runs, and so does dropping the
//! future of [`Session::prompt`](crate::client::ClientSession::prompt). In this order: the tool calls in the thread
//! that are not finished are marked as cancelled, the agent is told (`session/cancel`), and open permission
//! requests are answered with `cancelled`, also those that come before the turn has ended. The turn itself
//! ends when the agent says so, so await `prompt` after `cancel` to know that it has.
//!
//! ```
//! use acp::agent::Turn;
//! use acp::testing::{NoopClient, PromptAgent, connect, wait_for_thread};
//! use acp::v1::StopReason;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let slow = PromptAgent(async |turn: Turn, _| {
//!     turn.message("This will take a while.").await?;
//!     std::future::pending().await
//! });
//! let (agent, _) = connect(slow, NoopClient).await;
//! let session = agent.new_session("/").await?;
//! let prompt = session.prompt("Take your time.");
//! let cancel = async {
//!     wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
//!     session.cancel().await
//! };
//! let (stopped, cancelled) = tokio::join!(prompt, cancel);
//! cancelled?;
//! assert_eq!(stopped?, StopReason::Cancelled);
//! # Ok(())
//! # }
//! ```
//!
//! The future of [`Client::request_permission`](crate::Client::request_permission) is dropped when its turn
//! is cancelled; a dialog that lives in it is gone with it.
//!
//! # The agent's side
//!
//! `session/cancel` drops the future of [`Agent::prompt`](crate::Agent::prompt), and the turn ends as
//! cancelled. A [`Terminal`](crate::agent::ClientTerminal) that is dropped with it is released, which ends its
//! command. For many agents that is all there is to do: nothing.
//!
//! An agent that has something left to do when it is cancelled, such as keeping what a command printed, calls
//! [`Turn::take_cancellation`](crate::agent::Turn::take_cancellation): it is then told by a token instead of
//! being dropped. Whatever it returns after that, an error included, the turn ends as cancelled, as the
//! specification demands.
//!
//! ```
//! use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::{StopReason, ToolCall};
//!
//! struct Tidy;
//!
//! impl Agent for Tidy {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         let cancelled = turn.take_cancellation();
//!         let call = turn.tool_call(ToolCall::new("call_1", "Wait")).await?;
//!         tokio::select! {
//!             () = std::future::pending() => call.complete().await?,
//!             () = cancelled.cancelled() => call.fail("given up").await?,
//!         }
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! # use acp::testing::{NoopClient, connect, wait_for_thread};
//! # use acp::thread::ToolCallStatus;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! # let (agent, _) = connect(Tidy, NoopClient).await;
//! # let session = agent.new_session("/").await?;
//! # let (stopped, cancelled) = tokio::join!(session.prompt("Wait."), async {
//! #     wait_for_thread(session.thread(), |thread| thread.tool_call(&"call_1".into()).is_some()).await;
//! #     session.cancel().await
//! # });
//! # cancelled?;
//! # assert_eq!(stopped?, StopReason::Cancelled);
//! # session.thread().read(|thread| {
//! #     let call = thread.tool_call(&"call_1".into()).expect("it is there");
//! #     assert_eq!(call.status, ToolCallStatus::Failed);
//! # });
//! # Ok(())
//! # }
//! ```
//!
//! What a turn asks of the client is given up with the turn: a permission request and an elicitation give
//! `Cancelled` at once, whether or not the client answers; reading a file and
//! [`Turn::or_cancelled`](crate::agent::Turn::or_cancelled) give
//! [`Error::Cancelled`](crate::Error::Cancelled), which an agent passes on by `?`. Writing a file is not
//! given up half-way, for whether it was written must be known.
//!
//! # Other requests
//!
//! Dropping the future of any other request sends `$/cancel_request` and forgets the request; an answer that
//! comes all the same is passed over. The other way round, `$/cancel_request` drops the work on a request and
//! answers it with the code -32800 ([`Error::is_cancelled`](crate::Error::is_cancelled)). Prompts
//! are not cancelled this way, nor, in version 1, are permission requests: `session/cancel` says it in words
//! that every peer knows.
