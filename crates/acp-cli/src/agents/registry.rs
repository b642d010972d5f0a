//! Opens a registry and the list of installed agents, for the commands that use both.

use acp_config::{InstalledAgents, paths};
use acp_host::terminal_text;
use acp_registry::{CacheUse, Downloader, RegistryError, RegistryIndex, RegistrySource};

use crate::exit::CommandExit;

impl From<RegistryError> for CommandExit {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::LockFile(error) => error.into(),
            error @ (RegistryError::InvalidUrl { .. } | RegistryError::NotInstallable { .. }) => {
                Self::usage(error.to_string())
            }
            error => Self::failed(error.to_string()),
        }
    }
}

/// A registry that has been read, and where it was read from.
pub(super) struct OpenRegistry {
    pub(super) source: RegistrySource,
    pub(super) index: RegistryIndex,
}

impl OpenRegistry {
    /// Reads the registry with this URL or file. Prints a note if a copy had to be used.
    pub(super) async fn open(
        address: &str,
        downloader: &Downloader,
        cache_use: CacheUse,
    ) -> Result<Self, CommandExit> {
        let source = RegistrySource::new(address)?;
        let cache = paths::cache_dir();
        let loaded = source.load(downloader, cache.as_deref(), cache_use).await?;
        if let Some(note) = &loaded.note {
            print_note(note);
        }
        Ok(Self {
            source,
            index: loaded.index,
        })
    }
}

/// Returns the installed agents.
pub(super) fn installed_agents() -> Result<InstalledAgents, CommandExit> {
    InstalledAgents::open()
        .ok_or_else(|| CommandExit::usage("cannot install agents: no home directory"))
}

/// Prints a note to stderr.
pub(super) fn print_note(note: &str) {
    eprintln!("acp: {}", terminal_text::clean_line(note));
}
