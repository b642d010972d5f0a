//! Versions: one program for both versions of the protocol.
//!
//! Version 1 is what is in use. Version 2 is a draft: what is said in it may change, and with it what this
//! library says. It is spoken when both sides want it, and [`Options::draft_version_2`] is how a side does:
//!
//! ```
//! use acp::Options;
//! use acp::testing::{NoopClient, PromptAgent, connect_with};
//! use acp::v1::{ProtocolVersion, StopReason};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! for (options, spoken) in [
//!     (Options::new(), ProtocolVersion::V1),
//!     (Options::new().draft_version_2(), ProtocolVersion::V2),
//! ] {
//!     let agent = PromptAgent(async |_, _| Ok(StopReason::EndTurn));
//!     let (agent, _) = connect_with(agent, NoopClient, options).await;
//!     assert_eq!(agent.version(), spoken);
//!     // From here on nothing is different.
//!     let session = agent.new_session("/").await?;
//!     assert_eq!(session.prompt("Hello").await?, StopReason::EndTurn);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A program takes the options in [`agent::serve_with`](crate::agent::serve_with) and
//! [`client::connect_with`](crate::client::connect_with). Which version was agreed on is
//! [`ClientInfo::version`](crate::agent::ClientInfo::version) and
//! [`AgentConnection::version`](crate::client::AgentConnection::version).
//!
//! # How it is agreed on
//!
//! A client that speaks both asks for version 2, in a request that an agent of either version can read. An
//! agent answers with version 2 if it speaks it and was asked for it, with version 1 otherwise. So each
//! side may be switched on alone: with any other peer it goes on in version 1. An agent that answers with a
//! version the client does not speak fails the connection ([`Error::Version`](crate::Error::Version)).
//!
//! # What is the same
//!
//! Nearly everything: [`Turn`](crate::agent::Turn) has methods and not messages, [`Update`](crate::Update) says what
//! happens in a session, [`Thread`](crate::Thread) has what a person sees, and capabilities, permission requests, config options and MCP servers are in the
//! words of version 1 whichever is spoken. In particular:
//!
//! - [`Session::prompt`](crate::client::ClientSession::prompt) returns at the end of the work. In version 1 that
//!   is the prompt's answer; in version 2 the answer only says that the prompt was taken, and the end is
//!   told by an update.
//! - [`load_session`](crate::client::AgentConnection::load_session) replays a session, though version 2
//!   says it by `session/resume`.
//! - [`set_mode`](crate::client::ClientSession::set_mode) sets the mode, though version 2 has none but the config
//!   option.
//!
//! # What is not
//!
//! | | version 1 | version 2 |
//! |---|---|---|
//! | the client's files: [`Turn::read_text_file`](crate::agent::Turn::read_text_file) | if the client lends them | not in the protocol |
//! | the client's terminals: [`Turn::create_terminal`](crate::agent::Turn::create_terminal) | if the client lends them | not in the protocol |
//! | the agent's terminals: [`Session::display_terminal`](crate::agent::Session::display_terminal) | if the client shows them | always |
//! | what the agent does: [`Thread::activity`](crate::Thread::activity), [`background`](crate::Thread::background) | not told | told |
//! | MCP servers over SSE | if the agent takes them | not in the protocol |
//! | listing, closing and resuming sessions; ending an authentication, where there is one | if the agent offers it | always |
//! | loading sessions | if the agent offers it | every agent may be asked; one that does not replay says so |
//! | [`Session::update`](crate::agent::Session::update) with what only version 2 has | [`Error::Unsupported`](crate::Error::Unsupported) | sent |
//!
//! # What falls back to what
//!
//! | an agent does | and the client speaks | then |
//! |---|---|---|
//! | [`read_text_file`](crate::agent::Turn::read_text_file), [`create_terminal`](crate::agent::Turn::create_terminal) | version 2 | [`Error::Unsupported`](crate::Error::Unsupported): it reads and runs by itself, and shows a [`DisplayTerminal`](crate::agent::DisplayTerminal) |
//! | [`display_terminal`](crate::agent::Session::display_terminal) | version 1, and says in `_meta` that it shows them | shown through `_meta` of the tool call |
//! | [`display_terminal`](crate::agent::Session::display_terminal) | version 1, and does not | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | [`plan_by_id`](crate::agent::Session::plan_by_id) | version 1, and knows one plan | the steps of all plans, one after the other |
//! | [`notice`](crate::agent::Session::notice) | version 1, and shows none | not sent |
//! | [`subagent`](crate::agent::Turn::subagent) | version 1, and shows none | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | has boolean config options | version 1, and does not know them | left out |
//! | has a config option of category `mode` | version 1 | shown as modes, too |
//! | does not offer [`list_sessions`](crate::Agent::list_sessions) | version 2, and lists | those that are open |
//! | does not offer [`close_session`](crate::Agent::close_session) | version 2, and closes | the turn is cancelled, the session forgotten |
//! | offers [`load_session`](crate::Agent::load_session) alone | version 2, and resumes | loaded, and the replay is sent to nobody |
//!
//! A client does not see whether an agent of version 1 has modes or models instead of config options for
//! them: they appear in the [`Thread`](crate::Thread) as config options, and are set as such.
//!
//! The whole program: [both_versions.rs](super::examples#both_versionsrs).

#[cfg(doc)]
use crate::Options;
