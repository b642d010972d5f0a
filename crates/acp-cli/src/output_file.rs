//! Writing the file that the user has named for a result.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file for a result. A reader never sees half of a regular file: it is written next to it, and replaces it when it is
/// complete. Devices, pipes and the like are written to directly, and symbolic links are followed.
pub(crate) struct OutputFile {
    path: PathBuf,
    is_replaced: bool,
}

impl OutputFile {
    /// Checks that the file can be written, as far as this is possible without changing it: its directory must take a
    /// new file.
    ///
    /// # Errors
    /// It is a directory, or its directory does not exist or cannot be written to.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // A redirected stdout may be a regular file, to which others write as well.
            Ok(metadata) if !metadata.is_file() || is_descriptor(path) => Ok(Self {
                path: path.to_owned(),
                is_replaced: false,
            }),
            Ok(_) => {
                let path = fs::canonicalize(path)?;
                temporary_file(&path)?;
                Ok(Self {
                    path,
                    is_replaced: true,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    return Err(error);
                }
                temporary_file(path)?;
                Ok(Self {
                    path: path.to_owned(),
                    is_replaced: true,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the path of the file, with symbolic links followed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the result.
    ///
    /// # Errors
    /// The file cannot be written, or `write` fails.
    pub(crate) fn write<T, E: From<io::Error>>(
        &self,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.is_replaced {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            return write(&mut file);
        }
        let mut temporary = temporary_file(&self.path)?;
        let result = write(temporary.as_file_mut())?;
        temporary.as_file_mut().flush()?;
        if let Ok(existing) = fs::metadata(&self.path) {
            temporary
                .as_file()
                .set_permissions(existing.permissions())?;
        }
        temporary.persist(&self.path).map_err(|error| error.error)?;
        Ok(result)
    }
}

/// Returns whether a path names an open file of a process, such as `/dev/stdout`.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

/// Creates a file in the directory of `path`, which only the owner can read.
fn temporary_file(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    tempfile::NamedTempFile::new_in(directory)
}
