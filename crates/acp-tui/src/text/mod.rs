//! Text as lines on a screen: pure functions of a text, a width and a theme.
//!
//! What an agent or a command said is made fit to be shown here and nowhere else: no line has a control
//! character, and every line is at most as wide as it was asked to be.

pub(crate) mod ansi;
mod columns;
pub(crate) mod diff;
pub(crate) mod fit;
pub(crate) mod highlight;
pub(crate) mod image;
pub(crate) mod markdown;
pub(crate) mod wrap;
