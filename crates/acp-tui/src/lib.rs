//! The terminal client that people keep open: `acp chat`.
//!
//! It renders [`acp::Thread`]s, one a tab, and holds no protocol of its own. What is where, and why:
//! `docs/decisions/0014-chat.md`.

mod agent;
mod app;
mod clipboard;
mod editor;
pub mod export;
mod fuzzy;
mod images;
mod input;
mod keys;
mod look;
mod picker;
mod question;
mod run;
mod setup;
mod terminal;
mod text;
mod theme;
mod typed;
mod view;
mod worker;

pub use keys::{Action, Key, Keys, KeysError, NoKey};
pub use run::{ChatError, run};
pub use setup::{AgentSpec, Confine, Hint, Open, Setup, Wishes};
pub use theme::{Background, Colors, Theme};
