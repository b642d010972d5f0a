//! Extensions: methods and data of one's own.
//!
//! Extensibility, says the specification: methods whose names begin with an underscore, and `_meta` on every
//! message. Both sides have both, raw as they come.
//!
//! # Methods
//!
//! Asking and telling is done on the [`Connection`](crate::Connection), which
//! [`Session::connection`](crate::agent::Session::connection) and
//! [`AgentConnection::connection`](crate::client::AgentConnection::connection) give. Being asked and told
//! is `extension_request` and `extension_notification` of [`Agent`](crate::Agent) and of
//! [`Client`](crate::Client).
//!
//! ```
//! use acp::client::Client;
//! use acp::{Result, jsonrpc};
//! use acp::v1::StopReason;
//! use serde_json::value::{RawValue, to_raw_value};
//! # use acp::agent::Turn;
//! # use acp::testing::{OnPrompt, connect};
//!
//! struct Editor;
//!
//! impl Client for Editor {
//!     async fn extension_request(
//!         &self,
//!         method: &str,
//!         _: Option<Box<RawValue>>,
//!     ) -> Result<Box<RawValue>> {
//!         match method {
//!             "_example/selection" => Ok(to_raw_value("let answer = 42;").unwrap()),
//!             _ => Err(jsonrpc::Error::method_not_found(method).into()),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let agent = OnPrompt(async |turn: Turn, _| {
//!     let selected = turn.connection().request_raw("_example/selection", &()).await?;
//!     turn.message(selected.get()).await?;
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
//! A method that nobody knows is answered with -32601, as those are by default; a notification that nobody
//! knows is passed over. Names should begin with a domain (`_example.com/…`) so that no two mean different
//! things. An agent may be asked before `initialize`, for an extension may be what negotiates.
//!
//! A type of one's own can be a method, too: [`Request`](crate::wire::Request) and
//! [`Notification`](crate::wire::Notification) name the method and the answer's type, and
//! [`Connection::request`](crate::Connection::request) and
//! [`Connection::notify`](crate::Connection::notify) take any.
//!
//! # Data
//!
//! Every type of the protocol has a field `meta` (`_meta` on the wire), and so have
//! [`Prompt`](crate::client::Prompt), [`SessionSetup`](crate::client::SessionSetup) and
//! [`SessionOpened`](crate::agent::SessionOpened). Capabilities of one's own go into the `_meta` of the
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
