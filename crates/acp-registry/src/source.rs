//! Reads a registry from a URL or a file.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{CachedRegistry, StoredCopy};
use crate::download::{DownloadedText, Downloader, parse_url};
use crate::error::RegistryError;
use crate::index::RegistryIndex;

/// The URL of the official registry.
pub const OFFICIAL_REGISTRY: &str =
    "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";

/// The maximum size of a registry, in bytes.
const MAX_REGISTRY_BYTES: u64 = 16 * 1024 * 1024;

/// How old a copy may be for [`CacheUse::Recent`].
const MAX_COPY_AGE: Duration = Duration::from_secs(60 * 60);

/// Where a registry is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrySource {
    /// The registry is at this URL.
    Url(String),
    /// The registry is in this file.
    File(PathBuf),
}

/// When a stored copy of a registry is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUse {
    /// A copy that is less than an hour old is used without asking the server.
    Recent,
    /// The server is always asked whether the registry has changed.
    Confirmed,
}

/// A registry that has been read.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedRegistry {
    /// The agents.
    pub index: RegistryIndex,
    /// A note for the user, if an old copy is used because the server cannot be reached.
    pub note: Option<String>,
}

impl RegistrySource {
    /// Returns the source that the user means by `text`: a URL if it contains `://`, and a file otherwise. A relative path
    /// is resolved against the current directory.
    ///
    /// # Errors
    /// The URL is not one from which files are downloaded, or the path cannot be resolved.
    pub fn new(text: &str) -> Result<Self, RegistryError> {
        if text.contains("://") {
            parse_url(text)?;
            return Ok(Self::Url(text.to_owned()));
        }
        let path = Path::new(text);
        let path = std::path::absolute(path).map_err(RegistryError::file(path))?;
        Ok(Self::File(path))
    }

    /// Reads the registry. Copies are stored in `cache`.
    ///
    /// # Errors
    /// The registry cannot be read, there is no copy of it, or it is invalid.
    pub async fn load(
        &self,
        downloader: &Downloader,
        cache: Option<&Path>,
        cache_use: CacheUse,
    ) -> Result<LoadedRegistry, RegistryError> {
        let from = self.to_string();
        let url = match self {
            Self::Url(url) => url,
            Self::File(path) => {
                let index = RegistryIndex::parse(&read_file(path)?, &from)?;
                return Ok(LoadedRegistry { index, note: None });
            }
        };
        let cache = cache.map(|directory| CachedRegistry::new(directory, url));
        let copy = cache
            .as_ref()
            .and_then(|cache| cache.read(MAX_REGISTRY_BYTES));
        // A damaged copy must not stand in the way of a new one.
        let copy = copy.and_then(|copy| {
            let index = RegistryIndex::parse(&copy.text, &from).ok()?;
            Some((copy, index))
        });
        let (copy, copied) = copy.unzip();
        let is_recent = |copy: &StoredCopy| copy.age < MAX_COPY_AGE;
        if cache_use == CacheUse::Recent
            && copy.as_ref().is_some_and(is_recent)
            && let Some(index) = copied
        {
            return Ok(LoadedRegistry { index, note: None });
        }
        let etag = copy.as_ref().and_then(|copy| copy.etag.as_deref());
        match (downloader.text(url, MAX_REGISTRY_BYTES, etag).await, copied) {
            (Ok(DownloadedText::New { text, etag }), _) => {
                let index = RegistryIndex::parse(&text, &from)?;
                if let Some(cache) = &cache {
                    cache.write(&text, etag.as_deref());
                }
                Ok(LoadedRegistry { index, note: None })
            }
            (Ok(DownloadedText::Unchanged), Some(index)) => {
                if let (Some(cache), Some(copy)) = (&cache, &copy) {
                    cache.write(&copy.text, etag);
                }
                Ok(LoadedRegistry { index, note: None })
            }
            (Ok(DownloadedText::Unchanged), None) => {
                let reason = "the server responded with 304 Not Modified to a first request";
                Err(RegistryError::download(url, reason))
            }
            (Err(error), Some(index)) => {
                let age = copy.map_or(Duration::ZERO, |copy| copy.age);
                let note = format!("{error}; using the copy of the registry from {}", ago(age));
                Ok(LoadedRegistry {
                    index,
                    note: Some(note),
                })
            }
            (Err(error), None) => Err(error),
        }
    }
}

impl fmt::Display for RegistrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, RegistryError> {
    let file = File::open(path).map_err(RegistryError::file(path))?;
    let mut text = Vec::new();
    let read = file.take(MAX_REGISTRY_BYTES + 1).read_to_end(&mut text);
    read.map_err(RegistryError::file(path))?;
    match text.len() as u64 > MAX_REGISTRY_BYTES {
        true => Err(RegistryError::InvalidRegistry {
            from: path.display().to_string(),
            reason: format!("larger than {MAX_REGISTRY_BYTES} bytes"),
        }),
        false => Ok(text),
    }
}

/// Formats an age in the largest unit of which there is at least one.
fn ago(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    let (number, unit) = match minutes {
        0..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural} ago")
}
