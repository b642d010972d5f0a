//! Systems on which nothing can be confined.

use std::io;
use std::path::PathBuf;

use crate::sandbox::SandboxError;

/// There is none.
#[derive(Debug)]
pub(crate) enum ConfinementThread {}

impl ConfinementThread {
    /// Says that it is not possible.
    pub(crate) fn new(
        _writable: Vec<PathBuf>,
        _tcp: Option<Vec<u16>>,
    ) -> Result<Self, SandboxError> {
        Err(SandboxError::NotSupported {
            why: "it requires Landlock, which only Linux provides".to_owned(),
        })
    }

    /// As there is none, nothing is ever done in it.
    pub(crate) fn run<T>(&self, _work: impl FnOnce() -> T) -> io::Result<T> {
        match *self {}
    }
}
