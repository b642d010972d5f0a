//! Renders conversations of the Agent Client Protocol as HTML: messages, tool calls, diffs, terminals and plans.
//!
//! Everything that a peer sent is treated as hostile: it is only ever text, which maud escapes. The markup contains no
//! scripts, no inline styles, and nothing that a browser would fetch.
//!
//! What is where:
//!
//! | file | subject |
//! |---|---|
//! | `thread.rs` | the items of a thread, and its plans |
//! | `markdown.rs` | Markdown, as agents write it |
//! | `text.rs` | makes text safe to show |
//! | `thread.css` | the style of the items ([`THREAD_STYLE`]) |

mod markdown;
pub mod text;
mod thread;

pub use markdown::render_markdown;
pub use maud::Markup;
pub use thread::{
    ItemAnnotations, Unannotated, render_blocks, render_diff, render_item, render_plan,
};

/// The style of the items, with the colors as variables.
pub const THREAD_STYLE: &str = include_str!("thread.css");
