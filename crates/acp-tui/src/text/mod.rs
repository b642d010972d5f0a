//! Lays out text as lines on a screen, with pure functions of text, width and theme.
//!
//! Output of agents and commands is sanitized here and nowhere else: no line contains a control character, and no line
//! is wider than requested.

pub(crate) mod ansi;
pub(crate) mod columns;
pub(crate) mod diff;
pub(crate) mod fit;
pub(crate) mod highlight;
pub(crate) mod image;
pub(crate) mod markdown;
pub(crate) mod wrap;
