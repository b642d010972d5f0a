//! How to test an agent or a client in ten lines.
//!
//! [`acp::testing`](crate::testing) is behind the cargo feature `testing`:
//!
//! ```toml
//! [dev-dependencies]
//! acp-sdk = { version = "0.1", features = ["testing"] }
//! ```
//!
//! # Testing an agent by its thread
//!
//! [`connect`](crate::testing::connect) connects the agent to a client in memory, whose thread shows the agent's work.
//! The same test runs in both protocol versions:
//!
//! ```
//! # use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! # use acp::v1::StopReason;
//! # struct Parrot;
//! # impl Agent for Parrot {
//! #     type State = ();
//! #
//! #     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//! #         Ok(OpenedSession::new())
//! #     }
//! #
//! #     async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
//! #         turn.send_message(prompt.text()).await?;
//! #         Ok(StopReason::EndTurn)
//! #     }
//! # }
//! use acp::Options;
//! use acp::testing::{NoopClient, connect_with};
//! use acp::thread::ItemKind;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! for options in [Options::new(), Options::new().draft_version_2()] {
//!     let (agent, _) = connect_with(Parrot, NoopClient, options).await;
//!     let session = agent.new_session("/").await?;
//!     assert_eq!(session.prompt("Hello").await?, StopReason::EndTurn);
//!     session.thread().read(|thread| {
//!         let said = thread.items().last().map(|item| &item.kind);
//!         assert!(matches!(said, Some(ItemKind::Agent(m)) if m.text() == "Hello"));
//!     });
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Testing an agent by its messages
//!
//! [`ScriptedPeer`](crate::testing::ScriptedPeer) is the client here: it sends messages and expects messages, one
//! after the other.
//!
//! ```
//! # use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! # use acp::v1::StopReason;
//! # struct Parrot;
//! # impl Agent for Parrot {
//! #     type State = ();
//! #
//! #     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//! #         Ok(OpenedSession::new())
//! #     }
//! #
//! #     async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
//! #         turn.send_message(prompt.text()).await?;
//! #         Ok(StopReason::EndTurn)
//! #     }
//! # }
//! use acp::testing::ScriptedPeer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (_conn, mut peer) = ScriptedPeer::connect_agent(Parrot);
//! peer.initialize().await;
//! let session = peer.open_session().await;
//! let prompt = peer.prompt(&session, "Hello").await;
//! let chunk = peer.expect_update("agent_message_chunk").await;
//! assert_eq!(chunk["content"]["text"], "Hello");
//! assert_eq!(peer.expect_answer(prompt).await["stopReason"], "end_turn");
//! # }
//! ```
//!
//! # Testing a client
//!
//! In the other direction, [`ScriptedPeer`](crate::testing::ScriptedPeer) is the agent. The client and the script run
//! concurrently:
//!
//! ```
//! # use acp::client::Client;
//! # use acp::v1::StopReason;
//! # struct Editor;
//! # impl Client for Editor {
//! #     type State = ();
//! # }
//! use acp::testing::ScriptedPeer;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let (agent, mut peer) = ScriptedPeer::connect_client(Editor).await;
//! let (session, ()) = tokio::join!(agent.new_session("/"), peer.answer_new_session("s"));
//! let session = session?;
//! let (stopped, ()) = tokio::join!(session.prompt("Hello"), async {
//!     let prompt = peer.expect_request("session/prompt").await;
//!     peer.send_message_chunk("s", "Hello yourself.").await;
//!     peer.answer(&prompt.id, json!({"stopReason": "end_turn"})).await;
//! });
//! assert_eq!(stopped?, StopReason::EndTurn);
//! session.thread().read(|thread| assert_eq!(thread.items().len(), 2));
//! # Ok(())
//! # }
//! ```
//!
//! # When a test fails
//!
//! An expectation that fails panics at its line in the test, and shows the message that was received instead and the
//! messages before it:
//!
//! ```text
//! tests/parrot.rs:12:10: expected the request session/request_permission, but received:
//!   <- {"jsonrpc":"2.0","method":"session/update","params":{…}}
//! earlier messages (-> sent, <- received):
//!   -> {"id":3,"jsonrpc":"2.0","method":"session/prompt","params":{…}}
//! ```
//!
//! No call waits forever: each wait ends after ten seconds, or after the peer's
//! [timeout](crate::testing::ScriptedPeer::set_timeout). With `#[tokio::test(start_paused = true)]`, which requires
//! Tokio's feature `test-util`, the clock advances only when every task waits. A test that hangs therefore fails at
//! once, and [`expect_nothing`](crate::testing::ScriptedPeer::expect_nothing) is reliable.
