//! MCP servers. Each session has those that its client names and those of the user.
//!
//! A server is started for a session and ends with it ("Session Setup", "MCP Servers"). Each has a task of its own
//! (`server_task.rs`). If one fails to start or exits, only its own tools are lost, and the user is told.

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
