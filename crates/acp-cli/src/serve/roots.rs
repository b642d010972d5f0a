//! The directories that clients of a server may open.

use std::path::{Path, PathBuf};

use crate::args::serve::ServeArgs;
use crate::args::shared::absolute_directory;
use crate::exit::CommandExit;

/// Returns the directories that clients may open.
pub(super) fn served_roots(args: &ServeArgs) -> Result<Vec<PathBuf>, CommandExit> {
    match args.cwd.as_slice() {
        [] => Ok(vec![absolute_directory(Path::new("."))?]),
        roots => roots.iter().map(|root| absolute_directory(root)).collect(),
    }
}
