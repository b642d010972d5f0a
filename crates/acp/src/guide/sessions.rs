//! Sessions: opening, loading, resuming; prompts; config options and modes; commands; the thread.
//!
//! A session is a conversation with a working directory. A connection has as many as one likes, and they
//! run beside each other; within one session there is one turn at a time.
//!
//! # Opening one
//!
//! A client opens a session by [`new_session`](AgentConnection::new_session), with a directory or a whole
//! [`SessionSetup`]: further roots, MCP servers, custom data. Paths are absolute, on the agent's system. What
//! the agent does not take is refused before anything is sent ([`Error::Unsupported`]).
//!
//! | | replayed | thread | needs the agent's |
//! |---|---|---|---|
//! | [`new_session`](AgentConnection::new_session) | – | empty | – |
//! | [`load_session`](AgentConnection::load_session) | yes | complete when it returns | `loadSession` |
//! | [`resume_session`](AgentConnection::resume_session) | no | what this client has seen of it | `sessionCapabilities.resume` |
//! | [`fork_session`](AgentConnection::fork_session) | no | empty | `sessionCapabilities.fork`, unstable |
//!
//! On the agent's side each of them is a [`agent::Session`] and a setup, given to [`Agent::new_session`],
//! [`LoadSession`], [`ResumeSession`] or [`ForkSession`]. A session that could not be opened is as if it had
//! never been; one that was open before under the same id is left as it was.
//! [`Agent::session_opened`] is called when the client knows the session: the place to announce commands.
//!
//! # Prompts
//!
//! [`Session::prompt`](crate::client::ClientSession::prompt) runs a turn: it returns when the agent has stopped and
//! every update of the turn has been delivered. A second prompt meanwhile is refused on this side
//! ([`Error::Invalid`]). An agent that is sent several prompts at once by another client works on them one
//! after the other.
//!
//! # Sessions that outlive the agent
//!
//! An agent that gives a [`Recorder`] is given each update before the client is: what a client has been shown
//! was kept before, though the agent be killed the moment after. What can be kept nowhere is not shown. With
//! [`LoadSession`] it is shown again:
//!
//! ```
//! use std::sync::Mutex;
//!
//! use acp::agent::{LoadSession, Prompt, Recorder, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::StopReason;
//! use acp::{Agent, Update};
//! # use acp::testing::{NoopClient, connect};
//!
//! /// Keeps one session. A real agent writes to a disk, by the session's id.
//! #[derive(Default)]
//! struct Keeps(Mutex<Vec<Update>>);
//!
//! impl Recorder for Keeps {
//!     async fn record(&self, (): &(), _: &Session, update: &Update) -> acp::Result<()> {
//!         self.0.lock().unwrap().push(update.clone());
//!         Ok(())
//!     }
//! }
//!
//! impl LoadSession for Keeps {
//!     async fn load(&self, session: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         let past = self.0.lock().unwrap().clone();
//!         for update in past {
//!             session.update(update).await?;
//!         }
//!         Ok(OpenedSession::new())
//!     }
//! }
//!
//! impl Agent for Keeps {
//!     type State = ();
//!
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new())
//!     }
//!
//!     async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
//!         turn.message(format!("You said {}.", prompt.text())).await?;
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
//! let (agent, _) = connect(Keeps::default(), NoopClient).await;
//! let session = agent.new_session("/").await?;
//! session.prompt("hello").await?;
//! // Later, and in another process:
//! let again = agent.load_session(session.id().clone(), "/").await?;
//! assert_eq!(again.thread().read(|thread| thread.items().len()), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Config options, and modes with them
//!
//! Config options supersede modes, and version 2 has no modes. So agents of this library have config options
//! only, and the one of category `mode` is the session's mode: clients that know only modes are shown it as
//! such. The other way round, the modes of an agent that has only modes appear in the client's thread as a
//! config option. Neither side has to care:
//!
//! ```
//! use acp::agent::{Agent, Prompt, Session, OpenedSession, SessionSetup, Turn};
//! use acp::v1::{
//!     SessionConfigId, SessionConfigOption, SessionConfigOptionCategory,
//!     SessionConfigOptionValue, SessionConfigSelect, SessionConfigSelectOption, StopReason,
//! };
//! # use acp::testing::{NoopClient, connect};
//!
//! struct Moody;
//!
//! fn mode(now: &str) -> Vec<SessionConfigOption> {
//!     let ask = SessionConfigSelectOption::new("ask", "Ask first");
//!     let act = SessionConfigSelectOption::new("act", "Just do it");
//!     let values = SessionConfigSelect::new(now, vec![ask, act]);
//!     let mode = SessionConfigOption::new("mode", "Mode", values);
//!     vec![mode.category(SessionConfigOptionCategory::Mode)]
//! }
//!
//! impl Agent for Moody {
//!     type State = ();
//!
//!     async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> acp::Result<StopReason> {
//!         Ok(StopReason::EndTurn)
//!     }
//!     async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
//!         Ok(OpenedSession::new().config_options(mode("ask")))
//!     }
//!     // The option and the value have been checked against those above.
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
//! let (agent, _) = connect(Moody, NoopClient).await;
//! let session = agent.new_session("/").await?;
//! session.set_mode("act").await?;
//! session.set_config_option("mode", "ask").await?;
//! let error = session.set_mode("dream").await.unwrap_err();
//! assert_eq!(error.to_string(), "mode cannot be dream; it can be: ask, act");
//! # Ok(())
//! # }
//! ```
//!
//! An agent changes its options by itself with
//! [`set_config_options`](crate::agent::Session::set_config_options).
//!
//! # The thread
//!
//! [`Thread`] is what a person sees of a session: messages, thoughts and tool calls in the order they began,
//! plans, terminals, options, commands, title and usage. Live updates, replays and both versions go through
//! the same code. Its memory is what a person can see, however fast it came: text that comes in pieces is one
//! block, a tool call is one item however often it changes, and of each terminal the last MiB is kept.
//!
//! [`Thread::revision`] grows with every change and each [`Item`](crate::thread::Item) has the revision at
//! which it last changed, so a front end that remembers one number renders only what is new.
//!
//! [`Error::Unsupported`]: crate::Error::Unsupported
//! [`Error::Invalid`]: crate::Error::Invalid
//! [`agent::Session`]: crate::agent::Session

#[cfg(doc)]
use crate::{
    Thread,
    agent::{Agent, ForkSession, LoadSession, Recorder, ResumeSession},
    client::{AgentConnection, SessionSetup},
};
