//! Protocol version 1, as today's stable schema has it. One file a topic, named as the
//! specification names it.

mod authentication;
mod command;
mod compaction;
mod config_option;
mod content;
mod elicitation;
mod extension;
mod file_system;
mod initialize;
mod mcp_server;
mod mode;
mod model;
mod notice;
mod permission;
mod plan;
mod prompt;
mod session;
mod session_update;
mod subagent;
mod terminal;
mod tool_call;

pub use crate::methods::v1::*;
pub use crate::session_capabilities::v1::*;
pub use authentication::*;
pub use command::*;
pub use compaction::*;
pub use config_option::*;
pub use content::*;
pub use elicitation::*;
pub use extension::*;
pub use file_system::*;
pub use initialize::*;
pub use mcp_server::*;
pub use mode::*;
pub use model::*;
pub use notice::*;
pub use permission::*;
pub use plan::*;
pub use prompt::*;
pub use session::*;
pub use session_update::*;
pub use subagent::*;
pub use terminal::*;
pub use tool_call::*;
