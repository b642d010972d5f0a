//! Live agents: one process of an agent, shared by all connections.
//!
//! ```text
//!   client ──┐            ┌─ session: log, attached clients, queue, open questions ─┐
//!   client ──┼─ LiveAgent ┤                                                         ├─ the agent's process
//!   client ──┘            └─ session: …                                             ┘
//! ```
//!
//! `docs/decisions/0023-live-sessions.md` explains the design. What is where:
//!
//! | file | subject |
//! |---|---|
//! | `log.rs` | the log of a session: numbered entries, their audience, the limit on their size |
//! | `message.rs` | the lines that a live agent writes |
//! | `session.rs` | a live session: its log, the clients attached to it, its turn and queue, its open questions |
//! | `setup.rs` | a session's modes, models and config options, kept up to date for clients that attach later |
//! | `agent.rs` | a live agent: its clients and sessions, without I/O |
//! | `client_messages.rs` | what a live agent does with a client's message |
//! | `agent_messages.rs` | what a live agent does with the agent's message |
//! | `control.rs` | the requests for what the protocol has no words for: status, queue, stop |
//! | `initialize.rs` | what a live agent tells its clients and its agent about itself |
//! | `process.rs` | the agent's process: it starts for the first client, and ends when it is no longer needed |
//! | `connection.rs` | a client's connection |

mod agent;
mod agent_messages;
mod client_messages;
mod connection;
mod control;
mod initialize;
mod log;
mod message;
mod process;
mod session;
mod setup;
#[cfg(test)]
mod tests;

pub(crate) use connection::serve_client;
pub(crate) use process::LiveProcess;
