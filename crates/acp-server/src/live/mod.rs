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
//! | `prompt.rs` | the prompts of a session: the running turn, and those that wait for it |
//! | `record.rs` | what has changed in a session since it was last written to the store |
//! | `unwritten.rs` | what a live agent has still to write to the store |
//! | `writer.rs` | writes it |
//! | `reopen.rs` | opens a session whose log is in the store |
//! | `setup.rs` | a session's modes, models and config options, kept up to date for clients that attach later |
//! | `agent.rs` | a live agent: its clients and sessions, without I/O |
//! | `client.rs` | a client, and what is to be written to it |
//! | `turns.rs` | the turns of a session, from the prompt to its response |
//! | `client_messages.rs` | what a live agent does with a client's message |
//! | `agent_messages.rs` | what a live agent does with the agent's message |
//! | `control.rs` | the requests for what the protocol has no words for: status, queue, stop |
//! | `locate.rs` | which server owns a session; takes over those that nobody owns any more |
//! | `moved.rs` | sessions that another server owns by now |
//! | `route.rs` | passes a client's messages on to the servers that own its sessions |
//! | `upstream.rs` | a client's connection to another server |
//! | `initialize.rs` | what a live agent tells its clients and its agent about itself |
//! | `process.rs` | the agent's process: it starts for the first client, and ends when it is no longer needed |
//! | `connection.rs` | a client's connection |

mod agent;
mod agent_messages;
mod audit;
mod client;
mod client_messages;
mod connection;
mod control;
mod initialize;
mod locate;
mod log;
mod message;
mod moved;
mod process;
mod prompt;
mod record;
mod reopen;
mod route;
mod session;
mod setup;
#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;
mod turns;
mod unwritten;
mod upstream;
mod writer;

pub(crate) use connection::serve_client;
pub(crate) use locate::take_over_sessions;
pub(crate) use process::LiveProcess;
