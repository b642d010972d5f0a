//! Lays out text as lines on a screen. The functions depend only on the text, the width and the theme.
//!
//! Output from agents and commands is sanitized here and nowhere else. No line contains a control character, and no
//! line is wider than requested.

pub(crate) mod ansi;
pub(crate) mod columns;
pub(crate) mod diff;
pub(crate) mod fit;
pub(crate) mod highlight;
pub(crate) mod image;
pub(crate) mod markdown;
pub(crate) mod wrap;
