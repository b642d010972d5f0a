//! Errors: each of them, who caused it, and what to do about it.
//!
//! There is one type, [`Error`]. What it says for people is its text; programs tell errors apart by the
//! variant, or by what they want to do:
//!
//! | question | answer |
//! |---|---|
//! | Did the peer answer with an error, and with which? | [`Error::peer_error`], with its [`code`](crate::jsonrpc::Error::code) |
//! | Must one log in first? | [`Error::is_auth_required`] |
//! | Was it cancelled, here or there? | [`Error::is_cancelled`] |
//! | Is the connection over? | [`Error::is_closed`] |
//! | … because reading or writing failed? | [`Error::is_transport`] |
//! | Does the peer not speak the protocol? | [`Error::is_protocol`] |
//!
//! # Each variant
//!
//! | variant | caused by | the connection | what to do |
//! |---|---|---|---|
//! | [`Rpc`](Error::Rpc) | the peer, which answered so; or a handler of one's own | goes on | show its message; look at its code |
//! | [`Closed`](Error::Closed)`(`[`Peer`](CloseReason::Peer)`)` | the peer closed it, or its process ended | is over | connect again; an agent's exit status says why |
//! | [`Closed`](Error::Closed)`(`[`Local`](CloseReason::Local)`)` | this side closed it | is over | nothing |
//! | [`Closed`](Error::Closed)`(`[`Transport`](CloseReason::Transport)`)` | the system: a broken pipe, a lost socket; the failure of an agent that [`Transport::spawn`] started, with its exit status | is over | connect again |
//! | [`Unreadable`](Error::Unreadable) | the peer: its answer is not what the method gives, or too long | goes on | report it to whoever made the peer |
//! | [`Version`](Error::Version) | both: no version that both speak | is closed | another peer, or another version of it |
//! | [`Unsupported`](Error::Unsupported) | the peer did not say that it can do this; nothing was sent | goes on | do without; look at the capabilities before |
//! | [`Invalid`](Error::Invalid) | this side's own request; nothing was sent | goes on | correct the program, or what the person typed |
//! | [`Unwritable`](Error::Unwritable) | this side's own params are no JSON; nothing was sent | goes on | correct the program |
//! | [`Cancelled`](Error::Cancelled) | a cancel: the turn's, or a request's | goes on | pass it on by `?`; it becomes the right answer |
//! | [`RecordFailed`](Error::RecordFailed) | this side's own recorder, as when the disk is full; nothing was sent | goes on | end the turn with it |
//! | [`Backlog`](Error::Backlog) | this side's own update handler, slow while it waits for an answer | goes on | ask from outside of the handler, or raise [`Limits::backlog`](crate::Limits::backlog) |
//!
//! A peer whose process ends closes two pipes. Whoever reads then sees the end ([`CloseReason::Peer`]),
//! whoever writes a broken pipe ([`CloseReason::Transport`]), and which comes first is chance. So a program
//! that wants to know whether the peer is gone asks [`Error::is_closed`], and not how.
//!
//! ```
//! use acp::testing::{NoopClient, PromptAgent, connect};
//! use acp::{Error, jsonrpc};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let agent = PromptAgent(async |_, _| {
//!     Err(jsonrpc::Error::new(-32050, "the model is overloaded").into())
//! });
//! let (agent, serving) = connect(agent, NoopClient).await;
//! let session = agent.new_session("/").await?;
//!
//! let refused = session.prompt("Hello").await.unwrap_err();
//! assert_eq!(refused.peer_error().map(|e| e.code), Some(-32050));
//! assert!(!refused.is_closed());
//!
//! let too_much = agent.load_session("old", "/").await.unwrap_err();
//! assert!(matches!(too_much, Error::Unsupported { peer: "agent", .. }));
//! assert_eq!(too_much.to_string(), "the agent does not offer loadSession");
//!
//! serving.close();
//! agent.closed().await;
//! let lost = session.prompt("Hello?").await.unwrap_err();
//! assert!(lost.is_closed());
//! assert_eq!(lost.to_string(), "the connection is closed: the peer closed it");
//! # Ok(())
//! # }
//! ```
//!
//! # A handler's own errors
//!
//! What a handler of an [`Agent`](crate::Agent) or a [`Client`](crate::Client) returns answers the request:
//! [`Error::Rpc`] as it is, [`Error::Cancelled`] with the code -32800, any other with -32603 and its text
//! ([`Error::into_rpc`]). [`Error::internal`] and [`Error::invalid_params`] make the usual ones,
//! [`jsonrpc::Error`](crate::jsonrpc::Error) has the others and carries `data`. A handler that panics is
//! answered for with an internal error, and the connection goes on.
//!
//! An error of [`Agent::prompt`](crate::Agent::prompt) ends the turn with an error: in version 1 as the
//! answer to the prompt, in version 2 as the stop reason `error`. The client's
//! [`Session::prompt`](crate::client::ClientSession::prompt) gives [`Error::Rpc`] for either. After a cancel the
//! turn ends as cancelled, whatever the error.
//!
//! # What is no error
//!
//! What arrives that is no message, or answers nothing that was asked, ends nothing: it is counted
//! ([`Connection::noise`](crate::Connection::noise)) and logged with `tracing`. Agents are known to print
//! logs to stdout; [`Options::on_noise`](crate::Options::on_noise) shows such lines to the program. The same lines are
//! the best hint at why an agent has ended: they are read to the end for 200 ms once nothing can be written to it any more.

#[cfg(doc)]
use crate::{CloseReason, Error, Transport};
