//! Errors of reading a registry and installing agents.

use std::path::{Path, PathBuf};

use acp_config::ConfigError;

/// An error of reading a registry or installing an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The URL is not one from which files are downloaded.
    #[error("cannot download from {url}: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A download has failed.
    #[error("cannot download {url}: {reason}")]
    Download {
        /// The URL.
        url: String,
        /// Why it has failed.
        reason: String,
    },
    /// The registry is not valid.
    #[error("invalid registry {from}: {reason}")]
    InvalidRegistry {
        /// The URL or file of the registry.
        from: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An agent in the registry cannot be installed.
    #[error("cannot install {id}: {reason}")]
    NotInstallable {
        /// The agent's id.
        id: String,
        /// Why it cannot be installed.
        reason: String,
    },
    /// A download is not the expected one.
    #[error(
        "checksum mismatch: {url} has the SHA-256 {actual}, but {by} has {expected}; nothing was installed"
    )]
    Checksum {
        /// The URL of the download.
        url: String,
        /// Where the expected hash comes from.
        by: &'static str,
        /// The expected hash, in hexadecimal.
        expected: String,
        /// The hash of the download, in hexadecimal.
        actual: String,
    },
    /// A registry has another checksum for a version than before.
    #[error(
        "the release has changed: the registry has the SHA-256 {now} for {id} {version}, but it was {then} when you installed it; nothing was installed. If you trust the new release, run first: acp agents remove {id}"
    )]
    ChangedRelease {
        /// The agent's id.
        id: String,
        /// The version.
        version: String,
        /// The hash in the registry.
        now: String,
        /// The hash in the lock file.
        then: String,
    },
    /// An archive is damaged or not safe to unpack.
    #[error("refused to unpack {url}: {reason}; nothing was installed")]
    Archive {
        /// The URL of the download.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Another process is installing agents.
    #[error("another acp is installing or removing agents in {}; try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The lock file cannot be read or written.
    #[error(transparent)]
    LockFile(#[from] ConfigError),
}

impl RegistryError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(crate) fn not_installable(id: &str, reason: impl Into<String>) -> Self {
        Self::NotInstallable {
            id: id.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn download(url: &str, reason: impl Into<String>) -> Self {
        Self::Download {
            url: url.to_owned(),
            reason: reason.into(),
        }
    }
}
