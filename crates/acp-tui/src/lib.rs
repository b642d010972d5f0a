//! Implements the interactive terminal client, `acp chat`.
//!
//! It renders [`acp::Thread`]s, one per tab, and implements nothing of the protocol itself. For the structure and the
//! reasons for it, see `docs/decisions/0014-chat.md`.

mod agent;
mod app;
mod background_report;
mod clipboard;
mod draw_context;
mod editor;
mod effects;
pub mod export;
mod file_history;
mod fuzzy;
mod images;
mod input;
mod key_reader;
mod keys;
mod name_changes;
mod notification;
mod picker;
mod question;
mod run;
mod setup;
mod shell;
mod terminal;
mod terminal_query;
mod text;
mod theme;
mod user_editor;
mod view;
mod web_address;

pub use keys::{KeyAction, KeyBindings, KeyBindingsError, KeyChord, ParseKeyError};
pub use run::{ChatError, run_chat};
pub use setup::{
    AgentSpec, ChatSetup, HintSource, InitialOptions, ResumableSession, SandboxHook, SessionSource,
};
pub use theme::{Background, Colors, SyntaxStyles, Theme, ThemePair};
