//! Serves [Agent Client Protocol](https://agentclientprotocol.com) agents over the network.
//!
//! An agent is a program that speaks the protocol on stdin and stdout. [`AgentServer`] starts one process for each
//! connection, and relays messages between the two:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use acp_host::AgentCommand;
//! use acp_remote::Token;
//! use acp_remote::server::ServerConfig;
//! use acp_server::{AgentServer, AllowedRoots, ServedAgent};
//!
//! let agent = ServedAgent::new("goose", AgentCommand::new("goose").args(["acp"]))
//!     .roots(AllowedRoots::new(["/srv/project"])?);
//! let config = ServerConfig::new().token(Token::random());
//! let server = AgentServer::new(config, [agent]);
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:7180").await?;
//! server.serve(listener, None).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is where:
//!
//! | file | subject |
//! |---|---|
//! | `server.rs` | the routes: agents, health, metrics; shutting down |
//! | `served_agent.rs` | an agent to serve; the process of a connection, from start to exit |
//! | `relay.rs` | the messages of a connection, in both directions |
//! | `client_message.rs` | which messages of a client are passed on to the agent |
//! | `in_flight.rs` | the requests of a client that the agent is working on |
//! | `roots.rs` | the directories that clients may open |
//! | `unix_socket.rs` | an agent on a Unix-domain socket |
//! | `live/` | one process of an agent, shared by all connections |
//! | `page/` | live sessions in a browser |
//! | `store/` | where live sessions are stored |
//! | `node.rs` | the server as a node of a store: its lease |
//! | `usage.rs` | whether the server is in use |
//! | `users/` | users with tokens of their own, and the log of what they did |
//! | `metrics.rs` | counters, and their text for Prometheus |
//! | `secret_file.rs` | token and certificate, in files that only their owner can read |

mod client_message;
mod in_flight;
mod live;
mod metrics;
mod node;
mod page;
mod relay;
mod roots;
mod secret_file;
mod served_agent;
mod server;
pub mod store;
#[cfg(unix)]
mod unix_socket;
mod usage;
pub mod users;

pub use node::NodeOptions;
pub use roots::{AllowedRoots, RootError};
pub use secret_file::{SecretFileError, self_signed_identity, token_from_file};
pub use served_agent::ServedAgent;
pub use server::{AgentServer, DrainOptions};
