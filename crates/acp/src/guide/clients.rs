//! How to write a client: starting and connecting to an agent, handling its requests, and showing a session.
//!
//! A client is a value that implements [`Client`]. Every method is optional. [`client::connect`] takes the client and
//! the byte streams to and from the agent. It returns a handshake, a future that negotiates and resolves to an
//! [`AgentConnection`], and a [`Driver`](crate::Driver), a future that runs the connection: spawn it. The connection
//! opens a [`ClientSession`], which accepts prompts.
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
//! The connection ends when the last clone of the [`AgentConnection`] and of its sessions is dropped, or with
//! [`AgentConnection::close`]. The agent then reads the end of its stdin. A process that [`Transport::spawn`] has
//! started then has five seconds to exit, and is killed if it does not. If `main` returns before the driver has ended,
//! the process is killed at once: wait with [`AgentConnection::closed`], or use [`Driver::run`](crate::Driver::run).
//! Processes that the agent has started continue. Programs that users keep open, or that start untrusted agents, should
//! use `AgentProcess` from the crate `acp-host`: it ends everything that the agent has started, stores the agent's
//! stderr output, and can confine the agent. [`Transport::child`] is for processes that are ended elsewhere.
//!
//! # Handling the agent's requests
//!
//! A client's capabilities are derived from its methods, like those of an [agent](super::agents):
//!
//! | method | protocol method or feature | if it is not implemented |
//! |---|---|---|
//! | [`request_permission`](Client::request_permission) | `session/request_permission` | every request is rejected |
//! | [`read_text_file`](Client::read_text_file), [`write_text_file`](Client::write_text_file) | `fs/*` | the agent reads and writes files itself |
//! | [`terminals`](Client::terminals) | `terminal/*` | the agent runs commands itself |
//! | [`elicitation`](Client::elicitation) | `elicitation/create` | the agent requests no input |
//! | [`mcp_servers`](Client::mcp_servers) | `mcpServers` of each session | only the servers in the [`SessionSetup`] |
//! | [`supports_terminal_login`](Client::supports_terminal_login) | `auth.terminal` | no auth methods of type `terminal` |
//!
//! ```
//! use acp::client::{Client, PermissionRequest};
//! use acp::v1::{RequestPermissionOutcome, ToolKind};
//!
//! /// A client that allows reading and searching, and rejects everything else.
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
//! Requests are handled concurrently, so each can take as long as the user needs. If the turn is cancelled before the
//! response, the future is dropped and the agent is notified ([`cancellation`](super::cancellation)).
//!
//! The crate `acp-host` lends files and terminals, with an editor's unsaved buffers in place of files on disk. The
//! crate `acp-mcp` lends the client's own tools: each is a closure, or all are one handler of the official `rmcp`.
//!
//! # Showing a session
//!
//! There are two ways to follow a session. Front ends nearly always need the first:
//!
//! - [`ClientSession::thread`]: everything that the user sees. Messages are complete, tool calls are up to date, and
//!   both protocol versions look the same. [`ThreadHandle::changed`] waits for the next change. A slow front end misses
//!   intermediate states, never content, and slows nobody down.
//! - [`Client::update`]: each update once, in order, as received. Use it for a log, a proxy or a stream of text. The
//!   agent waits for the handler ([`ordering`](super::ordering)).
//!
//! ```
//! use acp::thread::ItemKind;
//! # use acp::testing::{NoopClient, PromptAgent, connect};
//! # use acp::{v1::StopReason, agent::Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acp::Result<()> {
//! # let agent = PromptAgent(async |turn: Turn, _| {
//! #     turn.send_message("A pa").await?;
//! #     turn.send_message("rrot.").await?;
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
//! An agent that requires authentication responds to [`new_session`](AgentConnection::new_session) with an error for
//! which [`Error::is_auth_required`] returns `true`. [`AgentConnection::auth_methods`] lists its auth methods, and
//! [`AgentConnection::authenticate`] uses one. For methods of type `terminal`, run the agent's program in a terminal,
//! with the arguments in the method.
//!
//! Complete programs: [client.rs](super::examples#clientrs), [permission.rs](super::examples#permissionrs),
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
