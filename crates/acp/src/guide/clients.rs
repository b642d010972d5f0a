//! Clients: starting and connecting to an agent, what it may ask, showing what happens.
//!
//! A client is a value that implements [`Client`]. Everything in it is optional. [`client::connect`] takes it
//! and the bytes to and from the agent. It gives a handshake, which negotiates and becomes an [`AgentConnection`], and a
//! [`Driver`](crate::Driver), a future that moves the connection: spawn it. The connection opens a [`ClientSession`], and that
//! takes prompts.
//!
//! ```no_run
//! use acp::Transport;
//! use acp::client::{Client, Update, UpdateContext, connect};
//! use tokio::process::Command;
//!
//! struct Printer;
//!
//! impl Client for Printer {
//!     type State = ();
//!
//!     async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
//!         print!("{}", update.message_text().unwrap_or_default());
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let transport = Transport::spawn(Command::new("some-agent").arg("--acp"))?;
//! let (handshake, driver) = connect(transport, Printer);
//! tokio::spawn(driver);
//! let agent = handshake.await?;
//! let session = agent.new_session("/home/ada/project").await?;
//! println!("{}", session.prompt("What is this project?").await?);
//! agent.close();
//! // The driver has ended, and with it the process.
//! agent.closed().await;
//! # Ok(())
//! # }
//! ```
//!
//! The connection ends when the last clone of the [`AgentConnection`], its sessions included, is dropped, or
//! with [`AgentConnection::close`]; the agent sees its stdin end. A process that [`Transport::spawn`] has started has
//! two seconds to end then, and is killed if it does not. A program whose `main` returns before the driver has ended
//! kills it at once: wait with [`AgentConnection::closed`], or let [`Driver::run`](crate::Driver::run) do it. What the
//! process has started goes on. Programs that people keep open, and that start agents that nobody knows, take
//! `AgentProcess` of the crate `acp-host`: it ends all that the agent has started, keeps what it prints to stderr, and
//! can confine it. [`Transport::child`] is for processes that are ended elsewhere.
//!
//! # What an agent may ask
//!
//! What a client can do follows from what it gives, as an [agent's](super::agents) offers do:
//!
//! | given by | the specification's | if it is not given |
//! |---|---|---|
//! | [`request_permission`](Client::request_permission) | `session/request_permission` | no is said, whatever is asked |
//! | [`read_text_file`](Client::read_text_file), [`write_text_file`](Client::write_text_file) | `fs/*` | the agent reads and writes by itself |
//! | [`terminals`](Client::terminals) | `terminal/*` | the agent runs commands by itself |
//! | [`elicitation`](Client::elicitation) | `elicitation/create` | the agent does not ask |
//! | [`mcp_servers`](Client::mcp_servers) | `mcpServers` of each session | none but those of the [`SessionSetup`] |
//! | [`terminal_login`](Client::terminal_login) | `auth.terminal` | logins in a terminal are not named |
//!
//! ```
//! use acp::client::{Client, PermissionRequest};
//! use acp::v1::{RequestPermissionOutcome, ToolKind};
//!
//! /// Lets the agent look, but not change.
//! struct Reader;
//!
//! impl Client for Reader {
//!     type State = ();
//!
//!     async fn request_permission(
//!         &self,
//!         (): &(),
//!         request: PermissionRequest,
//!     ) -> acp::Result<RequestPermissionOutcome> {
//!         Ok(match request.kind() {
//!             ToolKind::Read | ToolKind::Search => request.allow(),
//!             _ => request.reject(),
//!         })
//!     }
//! }
//! ```
//!
//! Each request is worked on beside the others, so it may take as long as a person takes. When the turn is
//! cancelled meanwhile, the future is dropped and the agent is told so
//! ([`cancellation`](super::cancellation)).
//!
//! Files and terminals are lent by the crate `acp-host`, with an editor's unsaved buffers laid over the files;
//! tools of the client's own by the crate `acp-mcp`: each is a closure, or all are one handler of the official `rmcp`.
//!
//! # Showing what happens
//!
//! There are two ways to see what happens in a session, and a front end nearly always wants the first:
//!
//! - [`ClientSession::thread`]: what a person sees, put together. Messages are whole, tool calls are as they are
//!   now, and both versions of the protocol look the same. [`ThreadHandle::changed`] waits for the next
//!   change. A slow front end misses pictures, never content, and slows nobody down.
//! - [`Client::update`]: each update once, in order, as it came; for a log, a proxy or a stream of text. The
//!   agent waits for it ([`ordering`](super::ordering)).
//!
//! ```
//! use acp::thread::ItemKind;
//! # use acp::testing::{NoopClient, PromptAgent, connect};
//! # use acp::{v1::StopReason, agent::Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! # let agent = PromptAgent(async |turn: Turn, _| {
//! #     turn.message("A pa").await?;
//! #     turn.message("rrot.").await?;
//! #     Ok(StopReason::EndTurn)
//! # });
//! # let (agent, _) = connect(agent, NoopClient).await;
//! # let session = agent.new_session("/").await?;
//! session.prompt("What are you?").await?;
//! let shown: Vec<String> = session.thread().read(|thread| {
//!     let items = thread.items().iter();
//!     items.map(|item| match &item.kind {
//!         ItemKind::User(message) => format!("> {}", message.text()),
//!         ItemKind::Agent(message) => message.text(),
//!         ItemKind::ToolCall(call) => format!("* {}: {}", call.title, call.status),
//!         _ => String::new(),
//!     }).collect()
//! });
//! assert_eq!(shown, ["> What are you?", "A parrot."]);
//! # Ok(())
//! # }
//! ```
//!
//! # Authentication
//!
//! An agent that wants to be logged in to answers [`new_session`](AgentConnection::new_session) with an
//! error for which [`Error::is_auth_required`] is true. [`AgentConnection::auth_methods`] are the ways to
//! do it, and [`AgentConnection::authenticate`] takes one; methods of type `terminal` are done by running
//! the agent's program in a terminal, with the arguments that the method names.
//!
//! Whole programs: [client.rs](super::examples#clientrs), [permission.rs](super::examples#permissionrs),
//! [files_and_terminals.rs](super::examples#files_and_terminalsrs),
//! [elicitation.rs](super::examples#elicitationrs).
//!
//! [`client::connect`]: crate::client::connect
//! [`ThreadHandle::changed`]: crate::ThreadHandle::changed
//! [`Error::is_auth_required`]: crate::Error::is_auth_required

#[cfg(doc)]
use crate::Transport;
#[cfg(doc)]
use crate::client::{AgentConnection, Client, ClientSession, SessionSetup};
