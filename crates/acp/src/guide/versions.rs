//! How to write one program for both protocol versions.
//!
//! Version 1 is in use. Version 2 is a draft: it can change, and this library changes with it. It is used when both
//! sides enable it with [`Options::draft_version_2`]:
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
//!     // From here on, the code is the same for both versions.
//!     let session = agent.new_session("/").await?;
//!     assert_eq!(session.prompt("Hello").await?, StopReason::EndTurn);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Pass the options to [`agent::serve_with`](crate::agent::serve_with) or
//! [`client::connect_with`](crate::client::connect_with). [`ClientInfo::version`](crate::agent::ClientInfo::version)
//! and [`AgentConnection::version`](crate::client::AgentConnection::version) return the negotiated version.
//!
//! # Negotiation
//!
//! A client that supports both versions requests version 2, in a request that agents of either version can read. An
//! agent responds with version 2 if it supports that version and the client requested it, and with version 1 otherwise.
//! One side can therefore enable version 2 alone, and the connection then uses version 1. If an agent responds with a
//! version that the client does not support, the connection fails ([`Error::Version`](crate::Error::Version)).
//!
//! # What is the same in both versions
//!
//! Nearly everything: [`Turn`](crate::agent::Turn) has methods instead of messages, [`Update`](crate::Update)
//! represents the updates of both versions, [`Thread`](crate::Thread) shows both versions alike, and capabilities,
//! permission requests, config options and MCP servers have the form of version 1 in both versions. In particular:
//!
//! - [`ClientSession::prompt`](crate::client::ClientSession::prompt) returns at the end of the turn. In version 1, that
//!   is the response to the prompt; in version 2, the response only confirms that the prompt was accepted, and an
//!   update reports the end.
//! - [`load_session`](crate::client::AgentConnection::load_session) replays a session, though version 2 uses
//!   `session/resume` for this.
//! - [`set_mode`](crate::client::ClientSession::set_mode) sets the mode, though version 2 has only the config option.
//!
//! # Differences
//!
//! | feature | version 1 | version 2 |
//! |---|---|---|
//! | the client's files: [`Turn::read_text_file`](crate::agent::Turn::read_text_file) | if the client supports them | not in the protocol |
//! | the client's terminals: [`Turn::create_terminal`](crate::agent::Turn::create_terminal) | if the client supports them | not in the protocol |
//! | the agent's terminals: [`Session::show_display_terminal`](crate::agent::Session::show_display_terminal) | if the client shows them | always |
//! | the agent's activity: [`Thread::activity`](crate::Thread::activity), [`background`](crate::Thread::background) | not reported | reported |
//! | MCP servers over SSE | if the agent supports them | not in the protocol |
//! | listing, closing and resuming sessions; logging out, if the agent has auth methods | if the agent supports it | always |
//! | loading sessions | if the agent supports it | every agent accepts the request; one that cannot replay responds with an error |
//! | [`Session::send_update`](crate::agent::Session::send_update) with an update that only version 2 has | [`Error::Unsupported`](crate::Error::Unsupported) | sent |
//!
//! # Fallbacks
//!
//! | the agent | the client | result |
//! |---|---|---|
//! | calls [`read_text_file`](crate::agent::Turn::read_text_file) or [`create_terminal`](crate::agent::Turn::create_terminal) | speaks version 2 | [`Error::Unsupported`](crate::Error::Unsupported): read files and run commands in the agent instead, and show a [`DisplayTerminal`](crate::agent::DisplayTerminal) |
//! | calls [`show_display_terminal`](crate::agent::Session::show_display_terminal) | speaks version 1 and announces support in `_meta` | shown through `_meta` of the tool call |
//! | calls [`show_display_terminal`](crate::agent::Session::show_display_terminal) | speaks version 1 and does not announce support | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | calls [`set_plan_by_id`](crate::agent::Session::set_plan_by_id) | speaks version 1 and supports only one plan | the steps of all plans, one after the other |
//! | calls [`show_notice`](crate::agent::Session::show_notice) | speaks version 1 and does not support notices | not sent |
//! | calls [`start_subagent`](crate::agent::Turn::start_subagent) | speaks version 1 and does not support subagents | [`Error::Unsupported`](crate::Error::Unsupported) |
//! | has boolean config options | speaks version 1 and does not support them | omitted |
//! | has a config option of category `mode` | speaks version 1 | also shown as modes |
//! | does not support [`list_sessions`](crate::Agent::list_sessions) | speaks version 2 and lists sessions | the open sessions are listed |
//! | does not support [`close_session`](crate::Agent::close_session) | speaks version 2 and closes a session | the turn is cancelled, and the session is removed |
//! | supports only [`load_session`](crate::Agent::load_session) | speaks version 2 and resumes a session | the session is loaded, and its replay is discarded |
//!
//! A client does not see whether a version 1 agent has modes or models instead of config options: they appear in the
//! [`Thread`](crate::Thread) as config options, and are set as config options.
//!
//! The complete program: [both_versions.rs](super::examples#both_versionsrs).

#[cfg(doc)]
use crate::Options;
