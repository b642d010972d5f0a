//! MCP servers: those that the client names for a session and those of the user's own, in each session.
//!
//! A server is started for a session and ends with it (Session setup, "MCP Servers"). Each lives by itself
//! (`server.rs`); one that does not start or dies costs its own tools and nothing else, and the person is told.

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
