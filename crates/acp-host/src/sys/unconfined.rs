//! A replacement for sandboxes, on systems that do not support them.

use std::io;
use std::path::PathBuf;

use crate::sandbox::SandboxError;

/// A confined thread, which cannot exist on this system.
#[derive(Debug)]
pub(crate) enum ConfinementThread {}

impl ConfinementThread {
    /// Always returns an error, because this system has no sandboxes.
    pub(crate) fn new(
        _writable: Vec<PathBuf>,
        _tcp: Option<Vec<u16>>,
    ) -> Result<Self, SandboxError> {
        Err(SandboxError::NotSupported {
            why: "it requires Landlock, which only Linux provides".to_owned(),
        })
    }

    /// Never called, because there are no values of this type.
    pub(crate) fn run<T>(&self, _work: impl FnOnce() -> T) -> io::Result<T> {
        match *self {}
    }
}
