//! Prepares everything that a model receives except its tools: the instructions, the prompt in a form that the model
//! understands, and a conversation that fits into its context window.
//!
//! - `instructions.rs`, `session_section.rs` and `files.rs`: the instructions before the conversation
//! - `content.rs`: the content of a prompt
//! - `commands/`: slash commands
//! - `conversation.rs`, `compaction.rs` and `summary.rs`: the conversation and its compaction
//!
//! A turn uses them in `turn/begin.rs` and `turn/compact.rs`.

pub(crate) mod commands;
pub(crate) mod compaction;
pub(crate) mod compaction_update;
pub(crate) mod content;
pub(crate) mod conversation;
pub(crate) mod files;
pub(crate) mod instructions;
pub(crate) mod session_section;
pub(crate) mod summary;
