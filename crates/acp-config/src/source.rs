//! Reads TOML files with a size limit, and reports where errors are.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::error::ConfigError;

/// The maximum size of a file, in bytes.
const MAX_FILE_SIZE: u64 = 64 * 1024;

/// The file name of both the user's and the project's configuration.
pub(crate) const CONFIG_FILE: &str = "config.toml";

/// A configuration file that has been read: its path and text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigSource {
    file: PathBuf,
    text: String,
}

impl ConfigSource {
    /// Reads the text of an open file. `file` is the path to show in error messages.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is too large, or is not UTF-8.
    pub(crate) fn read(file: &Path, opened: impl Read) -> Result<Self, ConfigError> {
        let mut source = Self {
            file: file.to_owned(),
            text: String::new(),
        };
        let read = opened
            .take(MAX_FILE_SIZE + 1)
            .read_to_string(&mut source.text)
            .map_err(|e| e.to_string());
        match read {
            Err(what) => Err(source.error_at(None, &what)),
            Ok(_) if source.text.len() as u64 > MAX_FILE_SIZE => {
                Err(source.error_at(None, &format!("larger than {MAX_FILE_SIZE} bytes")))
            }
            Ok(_) => Ok(source),
        }
    }

    /// Creates the source of a text within the program.
    pub(crate) fn builtin(text: &str) -> Self {
        Self {
            file: PathBuf::new(),
            text: text.to_owned(),
        }
    }

    /// Returns whether the text is within the program, so there is no file.
    pub(crate) fn is_builtin(&self) -> bool {
        self.file.as_os_str().is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text of the file into a `T`.
    ///
    /// # Errors
    /// Fails if the text is invalid. The error names the line.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text)
            .map_err(|e: toml::de::Error| self.error_at(e.span(), e.message()))
    }

    /// Builds an error about the file. It includes the line number if the byte range is known.
    pub(crate) fn error_at(&self, at: Option<Range<usize>>, what: &str) -> ConfigError {
        let before = at.and_then(|at| self.text.get(..at.start));
        let line = before.map(|before| 1 + before.matches('\n').count());
        let line = line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        ConfigError::usage(format!("{}{line}: {what}", self.file.display()))
    }
}
