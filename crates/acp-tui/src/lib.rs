//! The terminal client that people keep open: `acp chat`.
//!
//! It renders [`acp::Thread`]s, one a tab, and holds no protocol of its own. What is where, and why:
//! `docs/decisions/0014-chat.md`.

mod agent;
mod app;
mod clipboard;
mod draw_context;
mod editor;
mod effects;
pub mod export;
mod fuzzy;
mod images;
mod input;
mod key_reader;
mod keys;
mod picker;
mod question;
mod run;
mod setup;
mod terminal;
mod text;
mod theme;
mod view;

pub use keys::{KeyAction, KeyBindings, KeyBindingsError, KeyChord, ParseKeyError};
pub use run::{ChatError, run};
pub use setup::{AgentSpec, ChatSetup, HintSource, InitialOptions, SandboxHook, SessionSource};
pub use theme::{Background, Colors, Theme};
