//! Sessions: opening, loading and resuming them, and using prompts, config options, modes, commands and the thread.
//!
//! A session is a conversation with a working directory. A connection can have many sessions, which run concurrently.
//! Each session runs one turn at a time.
//!
//! # Opening a session
//!
//! A client opens a session with [`new_session`](AgentConnection::new_session), with a directory or a whole
//! [`SessionSetup`]: additional roots, MCP servers, custom data. Paths are absolute, on the agent's system. A setup
//! that the agent does not support is rejected before anything is sent ([`Error::Unsupported`]).
//!
//! | method | replay | thread | required agent capability |
//! |---|---|---|---|
//! | [`new_session`](AgentConnection::new_session) | – | empty | – |
//! | [`load_session`](AgentConnection::load_session) | yes | complete when it returns | `loadSession` |
//! | [`resume_session`](AgentConnection::resume_session) | no | the updates that this client has already received | `sessionCapabilities.resume` |
//! | [`fork_session`](AgentConnection::fork_session) | no | empty | `sessionCapabilities.fork`, unstable |
//! | [`fork_session_at`](AgentConnection::fork_session_at) | no | empty | also `_meta.jetbrains.air.fork`, an extension |
//!
//! On the agent's side, each of these passes an [`agent::Session`] and a setup to [`Agent::new_session`],
//! [`LoadSession`], [`ResumeSession`] or [`ForkSession`]. If opening fails, no session is opened, and a session that
//! was already open under the same id does not change. [`Agent::session_opened`] is called when the client knows the
//! session: announce commands there.
//!
//! # Prompts
//!
//! [`ClientSession::prompt`](crate::client::ClientSession::prompt) runs a turn: it returns when the agent has stopped
//! and every update of the turn has been delivered. A second prompt during the turn is rejected on the client's side
//! ([`Error::InvalidRequest`]). If another client sends an agent several prompts at once, they are queued.
//!
//! # Sessions that outlive the agent
//!
//! An agent's [`Recorder`] gets each update before the client does. Everything that a client was shown is therefore
//! stored, even if the agent is killed right afterwards. An update that cannot be stored is not sent. With
//! [`LoadSession`], the history is shown again:
//!
//! ```
//! use std::sync::Mutex;
//!
//! use acp::agent::{LoadSession, Prompt, Recorder, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::StopReason;
//! use acp::{Agent, Update};
//! # use acp::testing::{NoopClient, connect};
//!
//! /// An agent that stores one session in memory. A real agent writes each session to disk, under its id.
//! #[derive(Default)]
//! struct StoringAgent(Mutex<Vec<Update>>);
//!
//! impl Recorder for StoringAgent {
//!     async fn record(&self, (): &(), _: &Session, update: &Update) -> acp::Result<()> {
//!         self.0.lock().unwrap().push(update.clone());
//!         Ok(())
//!     }
//! }
//!
//! impl LoadSession for StoringAgent {
//!     async fn load(&self, session: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         let past = self.0.lock().unwrap().clone();
//!         for update in past {
//!             session.send_update(update).await?;
//!         }
//!         Ok(OpenedSession::new())
//!     }
//! }
//!
//! impl Agent for StoringAgent {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
//!         turn.send_message(format!("You said {}.", prompt.text())).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//!     fn recorder(&self) -> Option<&impl Recorder> {
//!         Some(self)
//!     }
//!     fn load_session(&self) -> Option<&impl LoadSession> {
//!         Some(self)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let (agent, _) = connect(StoringAgent::default(), NoopClient).await;
//! let session = agent.new_session("/").await?;
//! session.prompt("hello").await?;
//! // Later, and in another process:
//! let again = agent.load_session(session.id().clone(), "/").await?;
//! assert_eq!(again.thread().read(|thread| thread.items().len()), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Config options and modes
//!
//! Config options supersede modes, and version 2 has no modes. Agents built with this library therefore have only
//! config options. The option of category `mode` is the session's mode, and clients that support only modes see it as a
//! mode. In the other direction, the modes of an agent that has only modes appear in the client's thread as a config
//! option. Neither side has to know the difference:
//!
//! ```
//! use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::{
//!     SessionConfigId, SessionConfigOption, SessionConfigOptionCategory,
//!     SessionConfigOptionValue, SessionConfigSelect, SessionConfigSelectOption, StopReason,
//! };
//! # use acp::testing::{NoopClient, connect};
//!
//! struct ModeAgent;
//!
//! fn mode(now: &str) -> Vec<SessionConfigOption> {
//!     let ask = SessionConfigSelectOption::new("ask", "Ask first");
//!     let act = SessionConfigSelectOption::new("act", "Just do it");
//!     let values = SessionConfigSelect::new(now, vec![ask, act]);
//!     let mode = SessionConfigOption::new("mode", "Mode", values);
//!     vec![mode.category(SessionConfigOptionCategory::Mode)]
//! }
//!
//! impl Agent for ModeAgent {
//!     type State = ();
//!
//!     async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         Ok(StopReason::EndTurn)
//!     }
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new().config_options(mode("ask")))
//!     }
//!     // The option and the value have already been checked against the list above.
//!     async fn set_config_option(
//!         &self,
//!         (): &(),
//!         _: &Session,
//!         _: &SessionConfigId,
//!         value: SessionConfigOptionValue,
//!     ) -> acp::Result<Vec<SessionConfigOption>> {
//!         Ok(mode(&value.to_string()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! let (agent, _) = connect(ModeAgent, NoopClient).await;
//! let session = agent.new_session("/").await?;
//! session.set_mode("act").await?;
//! session.set_config_option("mode", "ask").await?;
//! let error = session.set_mode("dream").await.unwrap_err();
//! assert_eq!(error.to_string(), "invalid value dream for config option mode; valid values: ask, act");
//! # Ok(())
//! # }
//! ```
//!
//! An agent changes its own options with [`set_config_options`](crate::agent::Session::set_config_options).
//!
//! # The thread
//!
//! [`Thread`] is everything that the user sees of a session: messages, thoughts and tool calls in the order in which
//! they started, plans, terminals, options, commands, title and usage. Live updates, replays and both protocol versions
//! use the same code. A thread's memory depends on what the user can see, not on the number of updates: text that is
//! received in chunks is one block, a tool call is one item however often it changes, and the last MiB of each
//! terminal's output is stored.
//!
//! [`Thread::revision`] grows with every change, and each [`Item`](crate::thread::Item) has the revision of its last
//! change, so a front end that stores one number can render only the items that have changed.
//!
//! [`Error::Unsupported`]: crate::Error::Unsupported
//! [`Error::InvalidRequest`]: crate::Error::InvalidRequest
//! [`agent::Session`]: crate::agent::Session

#[cfg(doc)]
use crate::{
    Thread,
    agent::{Agent, ForkSession, LoadSession, Recorder, ResumeSession},
    client::{AgentConnection, SessionSetup},
};
