//! Where the user's configuration is, and what is kept for them.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// The directory of the user's configuration: `$XDG_CONFIG_HOME/acp`, or `~/.config/acp`. Absent where the
/// user has no home.
#[must_use]
pub fn config_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("acp"))
}

/// The directory of what is kept from run to run: `$XDG_STATE_HOME/acp`, or `~/.local/state/acp`.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Some(state.join("acp"))
}

/// A file as one calls it: from the current directory or from home, if it is there.
#[must_use]
pub fn display_path(file: &Path) -> String {
    let below = |directory: Option<PathBuf>| {
        let directory = std::fs::canonicalize(directory?).ok()?;
        Some(file.strip_prefix(directory).ok()?.display().to_string())
    };
    if let Some(here) = below(std::env::current_dir().ok()) {
        return here;
    }
    match below(std::env::home_dir()) {
        Some(rest) => format!("~/{rest}"),
        None => file.display().to_string(),
    }
}
