//! A copy of each registry, so that it is not downloaded each time.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::download::to_hex;

/// The maximum size of the first line of a copy.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// The copy of a registry. What cannot be read or written counts as absent: the copy only saves time.
#[derive(Debug)]
pub(crate) struct CachedRegistry {
    file: PathBuf,
    url: String,
}

/// A copy as it was stored.
#[derive(Debug)]
pub(crate) struct StoredCopy {
    pub(crate) text: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// How long ago the server last confirmed the copy.
    pub(crate) age: Duration,
}

/// The first line of the file. The registry follows.
#[derive(Serialize, Deserialize)]
struct CopyHeader {
    url: String,
    etag: Option<String>,
    /// When the server last confirmed the copy, in seconds since 1970.
    at: u64,
}

impl CachedRegistry {
    /// Returns the copy of the registry with this URL.
    pub(crate) fn new(directory: &Path, url: &str) -> Self {
        let name = to_hex(&Sha256::digest(url.as_bytes()));
        Self {
            file: directory.join("registry").join(name),
            url: url.to_owned(),
        }
    }

    /// Reads the copy, of at most `limit` bytes.
    pub(crate) fn read(&self, limit: u64) -> Option<StoredCopy> {
        let file = File::open(&self.file).ok()?;
        let limit = limit + MAX_HEADER_BYTES as u64;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > limit {
            return None;
        }
        let end = bytes
            .iter()
            .take(MAX_HEADER_BYTES)
            .position(|b| *b == b'\n')?;
        let text = bytes.split_off(end + 1);
        let header: CopyHeader = serde_json::from_slice(&bytes).ok()?;
        let at = UNIX_EPOCH + Duration::from_secs(header.at);
        // A copy from the future counts as old.
        let age = SystemTime::now()
            .duration_since(at)
            .unwrap_or(Duration::MAX);
        (header.url == self.url).then_some(StoredCopy {
            text,
            etag: header.etag,
            age,
        })
    }

    /// Stores a copy that the server has just sent or confirmed.
    pub(crate) fn write(&self, text: &[u8], etag: Option<&str>) {
        if let Err(e) = self.try_write(text, etag) {
            tracing::debug!(file = %self.file.display(), "cannot store the registry: {e}");
        }
    }

    fn try_write(&self, text: &[u8], etag: Option<&str>) -> std::io::Result<()> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let header = CopyHeader {
            url: self.url.clone(),
            etag: etag.map(str::to_owned),
            at: at.as_secs(),
        };
        // Readers see either the old or the new copy.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, &header)?;
        file.write_all(b"\n")?;
        file.write_all(text)?;
        file.persist(&self.file)?;
        Ok(())
    }
}
