//! Small files that store a user's state between runs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A small JSON file that stores state, which several processes can read and change.
///
/// Only its owner can access the file. The same holds for its directory if `StateFile` creates it. A change locks a
/// second file beside it, reads the current contents, and replaces the file. So two processes never overwrite each
/// other's changes, and readers see either the old or the new contents.
#[derive(Debug, Clone)]
pub struct StateFile {
    file: PathBuf,
    limit: u64,
}

impl StateFile {
    /// Creates a handle to a state file of at most `limit` bytes. The file itself is not created until there is
    /// something to store.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, limit: u64) -> Self {
        Self {
            file: file.into(),
            limit,
        }
    }

    /// Returns the path of the state file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the state. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// The file exists but cannot be read, or its content is invalid.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, StateFileError> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.io_error(e)),
        };
        let mut text = Vec::new();
        let read = file.take(self.limit + 1).read_to_end(&mut text);
        read.map_err(|e| self.io_error(e))?;
        if text.len() as u64 > self.limit {
            return Err(self.invalid_error(format!("larger than {} bytes", self.limit)));
        }
        let value = serde_json::from_slice(&text).map_err(|e| self.invalid_error(e.to_string()))?;
        Ok(Some(value))
    }

    /// Reads, modifies and writes the state while holding a lock. If `change` fails, leaves the file as it was.
    ///
    /// # Errors
    /// The error of `change`; the content cannot be read; or the new content cannot be written or is too large.
    pub fn update<T, R, E>(
        &self,
        change: impl FnOnce(Option<T>) -> Result<(T, R), E>,
    ) -> Result<R, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<StateFileError>,
    {
        let failed = |e| self.io_error(e);
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let mut directories = fs::DirBuilder::new();
        directories.recursive(true);
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
            directories.mode(0o700);
            options.mode(0o600);
        }
        directories.create(directory).map_err(failed)?;
        let lock = options
            .open(self.file.with_extension("lock"))
            .map_err(failed)?;
        // Each process holds the lock only briefly. It is released when this returns or the process exits.
        lock.lock().map_err(failed)?;
        let (value, result) = change(self.read()?)?;
        let text = serde_json::to_vec_pretty(&value).map_err(|e| failed(e.into()))?;
        if text.len() as u64 > self.limit {
            return Err(E::from(StateFileError::Full {
                file: self.file.clone(),
                limit: self.limit,
            }));
        }
        // The new file is in the same directory, readable by its owner only, and removed if this fails.
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        new.write_all(&text).map_err(failed)?;
        new.as_file().sync_all().map_err(failed)?;
        new.persist(&self.file).map_err(|e| failed(e.error))?;
        Ok(result)
    }

    fn io_error(&self, source: io::Error) -> StateFileError {
        StateFileError::Io {
            file: self.file.clone(),
            source,
        }
    }

    fn invalid_error(&self, what: String) -> StateFileError {
        StateFileError::Invalid {
            file: self.file.clone(),
            what,
        }
    }
}

/// The reason why a state file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateFileError {
    /// The operating system reported an error.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file that cannot be read or written.
        file: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The file's contents are invalid.
    #[error("{}: {what}; delete the file to reset it", file.display())]
    Invalid {
        /// The file with the invalid contents.
        file: PathBuf,
        /// A description of the problem.
        what: String,
    },
    /// The contents would exceed the size limit.
    #[error("{}: the file is full (limit: {limit} bytes)", file.display())]
    Full {
        /// The file that would become too large.
        file: PathBuf,
        /// The size limit, in bytes.
        limit: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_updates_are_not_lost_and_the_file_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let value = StateFile::new(directory.path().join("below/numbers.json"), 1024);
        assert_eq!(value.read::<Vec<u32>>().unwrap(), None);
        std::thread::scope(|threads| {
            for number in 0..20u32 {
                let value = &value;
                threads.spawn(move || {
                    value
                        .update(|numbers: Option<Vec<u32>>| {
                            let mut numbers = numbers.unwrap_or_default();
                            numbers.push(number);
                            Ok::<_, StateFileError>((numbers, ()))
                        })
                        .unwrap();
                });
            }
        });
        let mut numbers: Vec<u32> = value.read().unwrap().unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<u32>>());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(value.file()), 0o600);
            assert_eq!(mode(value.file().parent().unwrap()), 0o700);
        }
    }

    #[test]
    fn oversized_or_corrupt_file_is_reported_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let value = StateFile::new(directory.path().join("text.json"), 16);
        let write = |text: &str| {
            value.update(|_: Option<String>| Ok::<_, StateFileError>((text.to_owned(), ())))
        };
        write("short").unwrap();
        let full = write("much longer than that").unwrap_err();
        assert!(matches!(full, StateFileError::Full { .. }), "{full}");
        assert_eq!(value.read::<String>().unwrap().unwrap(), "short");
        for broken in ["{", "\"a text of more than 16 bytes\""] {
            std::fs::write(value.file(), broken).unwrap();
            let error = write("other").unwrap_err();
            assert!(matches!(error, StateFileError::Invalid { .. }), "{error}");
            assert_eq!(std::fs::read_to_string(value.file()).unwrap(), broken);
        }
    }
}
