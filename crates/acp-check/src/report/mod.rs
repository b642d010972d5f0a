//! Formats a report as text, JSON, JUnit XML, or a single HTML page.

mod contents;
mod evidence;
mod html;
mod json;
mod junit;
mod text;

pub use contents::{CheckReport, CheckSummary};
pub use text::TextStyle;
