//! Redacts secrets before they are recorded.
//!
//! Four things count as secret: values where the protocol has secrets (environment variables and HTTP headers),
//! values with a name that hints at a secret (`names.rs`), text that looks like a secret (`patterns.rs`), and
//! arguments that a program takes as secrets (`commands.rs`; `programs.rs` lists the programs, `words.rs` splits the
//! line). A fast search (`needles.rs`) finds the few messages that may contain any. Only these are scanned
//! (`message.rs`), and only what is replaced changes. `text_redactor.rs` redacts the texts in them, and `redactor.rs`
//! is the interface.

mod commands;
mod message;
mod names;
mod needles;
mod patterns;
mod programs;
mod redactor;
mod text_redactor;
mod words;

pub(super) use needles::GatheredLines;
pub use redactor::Redactor;
