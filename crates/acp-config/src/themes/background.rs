//! The background of a terminal.

use serde::Deserialize;

/// Whether a terminal's background is dark or light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// The background is dark.
    #[default]
    Dark,
    /// The background is light.
    Light,
}
