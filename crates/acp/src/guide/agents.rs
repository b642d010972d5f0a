//! How to write an agent: the `Agent` trait, turns, session state and optional features.
//!
//! An agent is a value that implements [`Agent`]: it opens sessions ([`Agent::new_session`]) and runs turns in them
//! ([`Agent::prompt`]). [`agent::serve_stdio`] serves it on stdin and stdout, [`agent::serve`] on any pair of byte
//! streams.
//!
//! ```
//! use acp::agent::{Agent, NewToolCall, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::{StopReason, ToolKind};
//!
//! struct Counter;
//!
//! impl Agent for Counter {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
//!         turn.send_thought("They want to know how many words that was.").await?;
//!         let call = NewToolCall::new("Count the words").kind(ToolKind::Think);
//!         let call = turn.report_tool_call(call).await?;
//!         let words = prompt.text().split_whitespace().count();
//!         call.complete().await?;
//!         turn.send_message(format!("{words} words.")).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! # use acp::testing::{NoopClient, connect};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! # let (agent, _) = connect(Counter, NoopClient).await;
//! # let session = agent.new_session("/").await?;
//! # assert_eq!(session.prompt("one two three").await?, StopReason::EndTurn);
//! # session.thread().read(|thread| assert_eq!(thread.items().len(), 4));
//! # Ok(())
//! # }
//! ```
//!
//! In a program, `main` awaits `acp::agent::serve_stdio(Counter)`. On Unix, only the protocol uses stdout from then on:
//! whatever this process or its children print goes to stderr ([`transport::stdio()`](crate::transport::stdio())).
//!
//! One thread is enough for a connection, and is faster than several, which would wake each other for each message:
//! `#[tokio::main(flavor = "current_thread")]`. An agent that computes for a long time between two awaits should use
//! `tokio::task::spawn_blocking`, or several threads and [`Options::spawn_work`](crate::Options::spawn_work).
//! Otherwise, a cancel is not read until the computation ends.
//!
//! # What an agent can do in a turn
//!
//! A [`Turn`] has these methods, including those of its [`Session`]:
//!
//! | purpose | method |
//! |---|---|
//! | a message, thoughts | [`send_message`](Session::send_message), [`send_message_content`](Session::send_message_content), [`send_thought`](Session::send_thought) |
//! | a tool call | [`report_tool_call`](Session::report_tool_call), which returns a [`ToolCallHandle`] for its updates |
//! | a plan | [`set_plan`](Session::set_plan); several at once: [`set_plan_by_id`](Session::set_plan_by_id) |
//! | permission | [`ask`](Turn::ask); with your own options, [`request_permission`](Turn::request_permission) |
//! | input from the user | [`elicit`](Turn::elicit) |
//! | the client's files | [`read_text_file`](Turn::read_text_file), [`write_text_file`](Turn::write_text_file) |
//! | a command that the client runs | [`create_terminal`](Turn::create_terminal) |
//! | a command that the agent runs | [`show_display_terminal`](Session::show_display_terminal) |
//! | anything else | [`send_update`](Session::send_update), [`connection`](Session::connection) |
//!
//! A method that the client does not support fails with [`Error::Unsupported`] before anything is sent.
//! [`ClientInfo::capabilities`] returns what the client supports. Each method waits while the client reads slowly
//! ([`ordering`](super::ordering)). An update fails if the connection has ended, or if the update could not be
//! [recorded](crate::agent::Recorder). The operator `?` then ends the turn. A request also fails with the client's
//! error, for example if a file does not exist: check the error before you end the turn.
//!
//! Outside of a turn, use the [`Session`], which is cheap to clone and can be stored. A title, commands or usage can be
//! sent at any time.
//!
//! # Session state
//!
//! [`Agent::State`] is the agent's data for each open session: its conversation, its files, its servers.
//! [`Agent::new_session`] creates it, and so do [`LoadSession`], [`ResumeSession`] and [`ForkSession`]. The library
//! stores it, passes it to every call about the session, and drops it when the session is closed or the connection
//! ends. An agent therefore needs no table of sessions.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::StopReason;
//!
//! struct Counter;
//!
//! impl Agent for Counter {
//!     /// The number of turns so far.
//!     type State = AtomicU32;
//!
//!     async fn new_session(
//!         &self,
//!         _: &Session,
//!         _: SessionSetup,
//!     ) -> acp::Result<OpenedSession<AtomicU32>> {
//!         Ok(OpenedSession::with_state(AtomicU32::new(0)))
//!     }
//!
//!     async fn prompt(&self, turns: &AtomicU32, turn: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         let turns = turns.fetch_add(1, Ordering::Relaxed) + 1;
//!         turn.send_message(format!("This is turn {turns}.")).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! ```
//!
//! # Optional features
//!
//! Each optional part of the protocol is a trait, and [`Agent`] has a method that returns an implementation or `None`.
//! The agent's capabilities are derived from these methods:
//!
//! ```
//! use acp::agent::{Agent, LoadSession, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::StopReason;
//!
//! struct ReplayingAgent;
//!
//! impl Agent for ReplayingAgent {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         Ok(StopReason::EndTurn)
//!     }
//!     // Returning `Some` sets the capability `loadSession`.
//!     fn load_session(&self) -> Option<&impl LoadSession> {
//!         Some(self)
//!     }
//! }
//!
//! impl LoadSession for ReplayingAgent {
//!     async fn load(
//!         &self,
//!         session: &Session,
//!         _: SessionSetup,
//!     ) -> acp::Result<OpenedSession> {
//!         session.replay_user_message("What was that?").await?;
//!         session.send_message("A parrot.").await?;
//!         Ok(OpenedSession::new())
//!     }
//! }
//! # use acp::testing::{NoopClient, connect};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! # let (agent, _) = connect(ReplayingAgent, NoopClient).await;
//! # assert!(agent.capabilities().load_session);
//! # let session = agent.load_session("old", "/").await?;
//! # session.thread().read(|thread| assert_eq!(thread.items().len(), 2));
//! # Ok(())
//! # }
//! ```
//!
//! | method | protocol method or feature |
//! |---|---|
//! | [`load_session`](Agent::load_session) | `session/load`: opens an existing session, with a replay |
//! | [`resume_session`](Agent::resume_session) | `session/resume`: opens an existing session, without a replay |
//! | [`fork_session`](Agent::fork_session) | `session/fork`: a copy of a session; unstable |
//! | [`fork_at_message`](Agent::fork_at_message) | `session/fork` up to a message, an extension that several agents have |
//! | [`list_sessions`](Agent::list_sessions), [`close_session`](Agent::close_session), [`delete_session`](Agent::delete_session) | `session/list`, `session/close`, `session/delete` |
//! | [`set_session_title`](Agent::set_session_title) | `session/set_title`; unstable |
//! | [`archive_session`](Agent::archive_session) | `session/archive` and `session/unarchive`; unstable |
//! | [`session_status`](Agent::session_status) | `session/status`; unstable |
//! | [`system_prompt_capabilities`](Agent::system_prompt_capabilities) | `systemPrompt` when sessions are opened; unstable |
//! | [`auth_status`](Agent::auth_status) | `auth/status`; unstable |
//! | [`providers`](Agent::providers) | `providers/list`, `providers/set` and `providers/disable`; unstable |
//! | [`steer_turn`](Agent::steer_turn) | `_session/steering`, an extension that several agents have |
//! | [`cancel_work`](Agent::cancel_work) | `tool_call/cancel`, `terminal/cancel`; version 2 only |
//! | [`recorder`](Agent::recorder) | – : each update is stored before it is sent ([`sessions`](super::sessions)) |
//! | [`supports_additional_directories`](Agent::supports_additional_directories) | additional session roots |
//! | [`authentication`](Agent::authentication) | `authenticate`, `logout` |
//! | [`prompt_capabilities`](Agent::prompt_capabilities) | images, audio and embedded context in prompts |
//! | [`mcp_capabilities`](Agent::mcp_capabilities), [`supports_mcp_stdio`](Agent::supports_mcp_stdio) | MCP servers |
//! | [`new_session`](Agent::new_session), [`set_config_option`](Agent::set_config_option) | config options, and with them modes: [`sessions`](super::sessions) |
//!
//! Complete programs: [agent.rs](super::examples#agentrs), [permission.rs](super::examples#permissionrs),
//! [files_and_terminals.rs](super::examples#files_and_terminalsrs),
//! [elicitation.rs](super::examples#elicitationrs).
//!
//! [`Agent`]: crate::Agent
//! [`Agent::new_session`]: crate::Agent::new_session
//! [`Agent::prompt`]: crate::Agent::prompt
//! [`Agent::State`]: crate::Agent::State
//! [`LoadSession`]: crate::agent::LoadSession
//! [`ResumeSession`]: crate::agent::ResumeSession
//! [`ForkSession`]: crate::agent::ForkSession
//! [`agent::serve_stdio`]: crate::agent::serve_stdio
//! [`agent::serve`]: crate::agent::serve
//! [`Turn`]: crate::agent::Turn
//! [`Session`]: crate::agent::Session
//! [`ToolCallHandle`]: crate::agent::ToolCallHandle
//! [`Error::Unsupported`]: crate::Error::Unsupported
//! [`ClientInfo::capabilities`]: crate::agent::ClientInfo::capabilities

#[cfg(doc)]
use crate::agent::{Agent, Session, Turn};
