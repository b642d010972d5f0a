//! What a model sees, beside the tools: its instructions, the prompt in a form it understands, and a
//! conversation that fits into its window.
//!
//! Where what is: `instructions.rs` and `files.rs` (what stands before the conversation), `content.rs` (what
//! comes with a prompt), `commands/` (what is typed with a slash), `conversation.rs`, `compaction.rs` and
//! `summary.rs` (what was said, and what is left of it), `begin.rs` and `room.rs` (where a turn does all that).

mod begin;
pub(crate) mod commands;
mod compaction;
mod content;
mod conversation;
mod files;
mod instructions;
mod room;
mod summary;

pub(crate) use begin::Begun;
pub(crate) use compaction::{Compaction, summarised};
pub(crate) use conversation::Conversation;
pub(crate) use instructions::Instructions;
pub(crate) use room::show_compaction;
pub(crate) use summary::is_summary_request;
