//! Cancellation: which futures each side drops, and which messages it sends.
//!
//! As usual in Rust, a future is cancelled by dropping it, and handles clean up when they are dropped. The library
//! translates between this and the protocol's messages.
//!
//! # The client's side
//!
//! [`ClientSession::cancel`](crate::client::ClientSession::cancel) cancels the running turn, and so does dropping the
//! future of [`ClientSession::prompt`](crate::client::ClientSession::prompt). First, unfinished tool calls in the
//! thread are marked as cancelled. Then `session/cancel` is sent to the agent. Finally, permission requests get the
//! outcome `cancelled`, including those that arrive before the turn has ended. The turn itself ends when the agent
//! confirms the cancellation, so await `prompt` after `cancel` to know that the turn has ended.
//!
//! ```
//! use acp::agent::Turn;
//! use acp::testing::{NoopClient, PromptAgent, connect, wait_for_thread};
//! use acp::v1::StopReason;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let slow = PromptAgent(async |turn: Turn, _| {
//!     turn.send_message("This will take a while.").await?;
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
//! When the turn is cancelled, the future of [`Client::request_permission`](crate::Client::request_permission) is
//! dropped, and with it any dialog that it owns.
//!
//! # The agent's side
//!
//! `session/cancel` drops the future of [`Agent::prompt`](crate::Agent::prompt), and the turn ends as cancelled. A
//! [`ClientTerminal`](crate::agent::ClientTerminal) that is dropped with it is released, which ends its command. Many
//! agents do not have to do anything else.
//!
//! An agent that has work left when it is cancelled, such as storing the output of a command, calls
//! [`Turn::take_cancellation`](crate::agent::Turn::take_cancellation): its future is then notified by a token instead
//! of being dropped. Whatever the future returns after that, even an error, the turn ends as cancelled, as the
//! specification requires.
//!
//! ```
//! use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::{StopReason, ToolCall};
//!
//! struct TidyAgent;
//!
//! impl Agent for TidyAgent {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         let cancelled = turn.take_cancellation();
//!         let call = turn.report_tool_call(ToolCall::new("call_1", "Wait")).await?;
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
//! # let (agent, _) = connect(TidyAgent, NoopClient).await;
//! # let session = agent.new_session("/").await?;
//! # let (stopped, cancelled) = tokio::join!(session.prompt("Wait."), async {
//! #     wait_for_thread(session.thread(), |thread| thread.tool_call(&"call_1".into()).is_some()).await;
//! #     session.cancel().await
//! # });
//! # cancelled?;
//! # assert_eq!(stopped?, StopReason::Cancelled);
//! # session.thread().read(|thread| {
//! #     let call = thread.tool_call(&"call_1".into()).expect("the call exists");
//! #     assert_eq!(call.status, ToolCallStatus::Failed);
//! # });
//! # Ok(())
//! # }
//! ```
//!
//! A turn's requests are cancelled with the turn: a permission request and an elicitation return `Cancelled` at once,
//! whether or not the client responds. Reading a file and [`Turn::or_cancelled`](crate::agent::Turn::or_cancelled)
//! return [`Error::Cancelled`](crate::Error::Cancelled), which an agent passes on with `?`. Writing a file is not
//! aborted, because the agent must know whether the file was written.
//!
//! # Other requests
//!
//! Dropping the future of any other request sends `$/cancel_request` and forgets the request. A late response is
//! ignored. In the other direction, `$/cancel_request` drops the work on a request and responds with the code -32800
//! ([`Error::is_cancelled`](crate::Error::is_cancelled)). Prompts are not cancelled this way, nor, in version 1, are
//! permission requests: every peer supports `session/cancel`.
