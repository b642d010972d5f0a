//! Extensions: custom methods and custom data.
//!
//! The specification's page Extensibility defines methods whose names start with an underscore, and `_meta` on every
//! message. The library supports them in agents and clients.
//!
//! # Methods
//!
//! A method is a type that you define: [`Request`](crate::wire::Request) has the method's name and the type of the
//! response, [`Notification`](crate::wire::Notification) the method's name. Send them with the
//! [`Connection`](crate::Connection), which [`Session::connection`](crate::agent::Session::connection) and
//! [`AgentConnection::connection`](crate::client::AgentConnection::connection) return. Receive them in
//! `extension_request` and `extension_notification` of [`Agent`](crate::Agent) and of [`Client`](crate::Client).
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
//!             GetSelection::METHOD => request.answer_with(selection).await,
//!             _ => Err(request.not_found()),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let agent = PromptAgent(async |turn: Turn, _| {
//!     let selected = turn.connection().request(&GetSelection {}).await?;
//!     turn.send_message(&selected).await?;
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
//! Params that do not match the type get the error -32602. To send and receive untyped JSON, use
//! [`Connection::request_raw`](crate::Connection::request_raw),
//! [`Connection::notify_raw`](crate::Connection::notify_raw) and
//! [`ExtensionRequest::params`](crate::client::ExtensionRequest::params).
//!
//! By default, an unknown method gets the error -32601, and an unknown notification is ignored. Start names with a
//! domain (`_example.com/…`), so that no two methods have the same name. An agent can get extension requests before
//! `initialize`, because an extension can take part in the negotiation.
//!
//! # Data
//!
//! Every type of the protocol has a field `meta` (`_meta` on the wire), and so do
//! [`PromptContent`](crate::client::PromptContent), [`SessionSetup`](crate::client::SessionSetup) and
//! [`OpenedSession`](crate::agent::OpenedSession). Custom capabilities go into the `_meta` of the capabilities, which
//! both sides can see: [`ClientInfo::capabilities`](crate::agent::ClientInfo::capabilities),
//! [`AgentConnection::capabilities`](crate::client::AgentConnection::capabilities).
//!
//! # Unknown data
//!
//! Nothing from a newer peer is lost: unknown types of updates, content and values are preserved
//! ([`RawObject`](crate::wire::RawObject)), shown in the [`Thread`](crate::thread::ItemKind::Unknown), and written
//! back unchanged.
//!
//! The complete program: [extension.rs](super::examples#extensionrs).
