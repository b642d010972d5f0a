//! The terminal client that people keep open: `acp chat`.
//!
//! It renders [`acp::Thread`]s, one a tab, and holds no protocol of its own. What is where, and why:
//! `docs/decisions/0014-chat.md`.

#[cfg_attr(not(test), expect(dead_code, reason = "the app is still to come"))]
mod editor;
mod text;
mod theme;

pub use theme::{Background, Colors, Theme};
