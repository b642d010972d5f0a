//! Taking secrets out of what is recorded.
//!
//! Secret is what a message has where the protocol puts secrets (values of environment variables and of HTTP
//! headers), what stands under a name that tells of one (`names.rs`), what looks like one wherever it stands
//! (`patterns.rs`), and what a program is given as one on its command line (`commands.rs`; `programs.rs` has the
//! programs, `words.rs` takes the line apart). A fast search (`needles.rs`) finds the few messages that may have any;
//! only they are taken apart (`message.rs`), and of them only what is replaced changes. `texts.rs` is for the texts in
//! them, `redactor.rs` for whoever has something to redact.

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
