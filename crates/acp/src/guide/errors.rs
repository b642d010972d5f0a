//! Errors: the cause of each variant, and what to do about it.
//!
//! There is one error type, [`Error`]. Its message is for users. Programs match on the variant, or use these methods:
//!
//! | question | method |
//! |---|---|
//! | Did the peer respond with an error, and which one? | [`Error::peer_error`], with its [`code`](crate::jsonrpc::Error::code) |
//! | Is authentication required first? | [`Error::is_auth_required`] |
//! | Was the turn or the request cancelled, on either side? | [`Error::is_cancelled`] |
//! | Has the connection closed? | [`Error::is_closed`] |
//! | Has it closed because reading or writing failed? | [`Error::is_transport`] |
//! | Did the peer violate the protocol? | [`Error::is_protocol`] |
//!
//! # Each variant
//!
//! | variant | caused by | the connection | what to do |
//! |---|---|---|---|
//! | [`Rpc`](Error::Rpc) | the peer, in its response; or your own handler | stays open | show its message; check its code |
//! | [`Closed`](Error::Closed)`(`[`Peer`](CloseReason::Peer)`)` | the peer closed it, or its process exited | is closed | connect again; an agent's exit status may say why |
//! | [`Closed`](Error::Closed)`(`[`Local`](CloseReason::Local)`)` | this side closed it | is closed | nothing |
//! | [`Closed`](Error::Closed)`(`[`Transport`](CloseReason::Transport)`)` | the system: a broken pipe, a lost socket; the failure of an agent that [`Transport::spawn`] started, with its exit status | is closed | connect again |
//! | [`InvalidResponse`](Error::InvalidResponse) | the peer: its response does not match the method's schema, or is too long | stays open | report it to the authors of the peer |
//! | [`Version`](Error::Version) | both peers: they have no version in common | is closed | use another peer, or another version of it |
//! | [`Unsupported`](Error::Unsupported) | the peer does not support this; nothing was sent | stays open | do without; check the capabilities first |
//! | [`InvalidRequest`](Error::InvalidRequest) | this side's own request; nothing was sent | stays open | correct the program, or the user's input |
//! | [`NotSerializable`](Error::NotSerializable) | this side's own params cannot be written as JSON; nothing was sent | stays open | correct the program |
//! | [`Cancelled`](Error::Cancelled) | the turn or the request was cancelled | stays open | pass it on with `?`; it becomes the right response |
//! | [`RecordFailed`](Error::RecordFailed) | this side's own recorder, as when the disk is full; nothing was sent | stays open | end the turn with it |
//! | [`Backlog`](Error::Backlog) | this side's own update handler, slow while a request is pending | stays open | send the request outside of the handler, or raise [`Limits::backlog`](crate::Limits::backlog) |
//!
//! When a peer's process exits, two pipes close. Reading then returns the end of the input ([`CloseReason::Peer`]),
//! writing fails with a broken pipe ([`CloseReason::Transport`]), and which happens first is a race. To find out
//! whether the peer has exited, use [`Error::is_closed`], whatever the reason.
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
//! assert_eq!(too_much.to_string(), "the agent does not support loadSession");
//!
//! serving.close();
//! agent.closed().await;
//! let lost = session.prompt("Hello?").await.unwrap_err();
//! assert!(lost.is_closed());
//! assert_eq!(lost.to_string(), "connection closed: closed by the peer");
//! # Ok(())
//! # }
//! ```
//!
//! # A handler's own errors
//!
//! The error that a handler of an [`Agent`](crate::Agent) or a [`Client`](crate::Client) returns becomes the response:
//! [`Error::Rpc`] unchanged, [`Error::Cancelled`] with the code -32800, any other with -32603 and its text
//! ([`Error::into_rpc`]). [`Error::internal`] and [`Error::invalid_params`] create the most common ones.
//! [`jsonrpc::Error`](crate::jsonrpc::Error) creates the others, and can have `data`. If a handler panics, the response
//! is an internal error, and the connection stays open.
//!
//! An error from [`Agent::prompt`](crate::Agent::prompt) ends the turn with an error: in version 1 as the response to
//! the prompt, in version 2 as the stop reason `error`. The client's
//! [`ClientSession::prompt`](crate::client::ClientSession::prompt) returns [`Error::Rpc`] for either. After a
//! cancellation, the turn ends as cancelled, whatever the error.
//!
//! # What is not an error
//!
//! Input that is not a message, or a response that matches no request, does not end the connection: it is counted
//! ([`Connection::noise`](crate::Connection::noise)) and logged with `tracing`. Some agents print logs to stdout, and
//! [`Options::on_noise`](crate::Options::on_noise) passes these lines to the program. They are also the best hint at
//! why an agent has exited. Therefore, input is still read for up to 200 ms after writing has failed.

#[cfg(doc)]
use crate::{CloseReason, Error, Transport};
