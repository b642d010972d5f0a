//! Text as lines on a screen: pure functions of a text, a width and a theme.
//!
//! What an agent or a command said is made fit to be shown here and nowhere else: no line has a control
//! character, and every line is at most as wide as it was asked to be.

#[allow(dead_code, reason = "the app does not use it yet")]
pub(crate) mod ansi;
mod columns;
#[allow(dead_code, reason = "the app does not use it yet")]
pub(crate) mod diff;
mod highlight;
#[allow(dead_code, reason = "the app does not use it yet")]
pub(crate) mod image;
