//! Locates the user's configuration, data, cache and state directories.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// Returns the user's configuration directory: `$XDG_CONFIG_HOME/acp`, or `~/.config/acp`.
///
/// Returns `None` if the user has no home directory.
#[must_use]
pub fn config_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("acp"))
}

/// Returns the user's data directory: `$XDG_DATA_HOME/acp`, or `~/.local/share/acp`.
#[must_use]
pub fn data_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join("acp"))
}

/// Returns the user's cache directory: `$XDG_CACHE_HOME/acp`, or `~/.cache/acp`.
#[must_use]
pub fn cache_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("acp"))
}

/// Returns the user's state directory: `$XDG_STATE_HOME/acp`, or `~/.local/state/acp`.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Some(state.join("acp"))
}

/// Formats a path for messages. Paths in the current directory or the home directory are shown relative to it.
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
