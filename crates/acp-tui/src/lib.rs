//! The terminal client that people keep open: `acp chat`.
//!
//! It renders [`acp::Thread`]s, one a tab, and holds no protocol of its own. What is where, and why:
//! `docs/decisions/0014-chat.md`.

mod agent;
#[allow(dead_code, reason = "the app uses it")]
mod fuzzy;
#[allow(dead_code, reason = "the app uses it")]
mod input;
mod look;
#[allow(dead_code, reason = "the app uses it")]
mod picker;
#[allow(dead_code, reason = "the app uses it")]
mod question;
mod text;
mod theme;

pub use theme::{Background, Colors, Theme};
