//! Extensions: methods and data of one's own.
//!
//! Extensibility, says the specification: methods whose names begin with an underscore, and `_meta` on every
//! message. Both sides have both.
//!
//! # Methods
//!
//! A method is a type of one's own: [`Request`](crate::wire::Request) names the method and the type of the answer,
//! [`Notification`](crate::wire::Notification) the method. Asking and telling is done on the
//! [`Connection`](crate::Connection), which [`Session::connection`](crate::agent::Session::connection) and
//! [`AgentConnection::connection`](crate::client::AgentConnection::connection) give. Being asked and told
//! is `extension_request` and `extension_notification` of [`Agent`](crate::Agent) and of
//! [`Client`](crate::Client).
//!
//! ```
//! use acp::Result;
//! use acp::client::{Client, ExtensionRequest};
//! use acp::v1::StopReason;
//! use acp::wire::Request;
//! use serde::{Deserialize, Serialize};
//! use serde_json::value::RawValue;
//! # use acp::agent::Turn;
//! # use acp::testing::{PromptAgent, connect};
//!
//! #[derive(Serialize, Deserialize)]
//! struct GetSelection {}
//!
//! impl Request for GetSelection {
//!     const METHOD: &'static str = "_example.com/selection";
//!     type Response = String;
//! }
//!
//! struct Editor;
//!
//! impl Client for Editor {
//!     type State = ();
//!
//!     async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
//!         let selection = async |_: GetSelection| Ok("let answer = 42;".to_owned());
//!         match request.method() {
//!             GetSelection::METHOD => request.answer(selection).await,
//!             _ => Err(request.not_found()),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let agent = PromptAgent(async |turn: Turn, _| {
//!     let selected = turn.connection().request(&GetSelection {}).await?;
//!     turn.message(&selected).await?;
//!     Ok(StopReason::EndTurn)
//! });
//! let (agent, _) = connect(agent, Editor).await;
//! let session = agent.new_session("/").await?;
//! assert_eq!(session.prompt("What is selected?").await?, StopReason::EndTurn);
//! session.thread().read(|thread| assert_eq!(thread.items().len(), 2));
//! # Ok(())
//! # }
//! ```
//!
//! Params that are not those of the type are answered with -32602. Without types of one's own there are
//! [`Connection::request_raw`](crate::Connection::request_raw),
//! [`Connection::notify_raw`](crate::Connection::notify_raw) and
//! [`ExtensionRequest::params`](crate::client::ExtensionRequest::params).
//!
//! A method that nobody knows is answered with -32601, as those are by default; a notification that nobody
//! knows is passed over. Names should begin with a domain (`_example.com/…`) so that no two mean different
//! things. An agent may be asked before `initialize`, for an extension may be what negotiates.
//!
//! # Data
//!
//! Every type of the protocol has a field `meta` (`_meta` on the wire), and so have
//! [`Prompt`](crate::client::PromptContent), [`SessionSetup`](crate::client::SessionSetup) and
//! [`OpenedSession`](crate::agent::OpenedSession). Capabilities of one's own go into the `_meta` of the
//! capabilities, which both sides can see:
//! [`ClientInfo::capabilities`](crate::agent::ClientInfo::capabilities),
//! [`AgentConnection::capabilities`](crate::client::AgentConnection::capabilities).
//!
//! # What this library does not know
//!
//! Nothing that a peer says is lost because this library is older than the peer: unknown kinds of updates,
//! content and values are kept as they came ([`RawObject`](crate::wire::RawObject)), shown in the
//! [`Thread`](crate::thread::ItemKind::Unknown), and written back as they were.
//!
//! The whole program: [extension.rs](super::examples#extensionrs).
