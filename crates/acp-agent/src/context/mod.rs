//! What a model sees, beside the tools: its instructions, the prompt in a form it understands, and a
//! conversation that fits into its window.
//!
//! Where what is: `instructions.rs` and `files.rs` (what stands before the conversation), `content.rs` (what
//! comes with a prompt), `commands/` (what is typed with a slash), `conversation.rs`, `compaction.rs` and
//! `summary.rs` (what was said, and what is left of it). A turn does all that in `turn/begin.rs` and `turn/room.rs`.

pub(crate) mod commands;
pub(crate) mod compaction;
pub(crate) mod compaction_update;
pub(crate) mod content;
pub(crate) mod conversation;
pub(crate) mod files;
pub(crate) mod instructions;
pub(crate) mod summary;
