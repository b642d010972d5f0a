//! Telling what came of a run: as text, JSON, JUnit's XML, or one page of HTML.

mod contents;
mod evidence;
mod html;
mod json;
mod junit;
mod text;

pub use contents::{CheckReport, CheckSummary};
pub use text::TextStyle;
