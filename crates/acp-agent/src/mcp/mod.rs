//! The MCP servers of a session, which come from the client and from the user's own configuration.
//!
//! Servers are started for a session and end with it ("Session Setup", "MCP Servers"). Each server has its own task
//! (`server_task.rs`). If a server fails to start or exits, only its own tools are lost, and the user is informed.

pub(crate) mod announce;
mod ask;
pub(crate) mod call;
pub(crate) mod connect;
mod content;
mod failure;
mod handler;
mod http;
pub(crate) mod limits;
mod listing;
mod names;
pub(crate) mod prompts;
mod server;
mod server_task;
pub(crate) mod servers;
mod sse;
mod state;
