//! Finding programs by name, so that a failure to start one can be told in words that help.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::sys;

/// Why a program cannot be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoProgram {
    /// There is none of that name.
    NotFound,
    /// There is such a file, but it cannot be run.
    NotExecutable(PathBuf),
}

/// Finds the file of the program `name`: in the directories of `path`, or, if it has a directory in
/// it, from `base`. `path` absent means that of this process.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>, base: &Path) -> Result<PathBuf, NoProgram> {
    let file = Path::new(name);
    let directories: Vec<PathBuf> = if file.components().count() != 1 || file.has_root() {
        // `join` leaves an absolute path as it is.
        vec![PathBuf::new()]
    } else {
        let inherited = std::env::var_os("PATH");
        let path = path
            .or(inherited.as_deref())
            .unwrap_or(OsStr::new(sys::DEFAULT_PATH));
        std::env::split_paths(path).collect()
    };
    let mut unusable = None;
    for directory in directories {
        for candidate in sys::program_files(base.join(directory).join(file)) {
            if !candidate.is_file() {
                continue;
            }
            if sys::is_executable(&candidate) {
                // Its working directory may be another than this process's.
                return Ok(std::path::absolute(&candidate).unwrap_or(candidate));
            }
            unusable.get_or_insert(candidate);
        }
    }
    Err(unusable.map_or(NoProgram::NotFound, NoProgram::NotExecutable))
}

/// Whether this is rather a line for a shell than the name of a program.
pub(crate) fn is_shell_line(command: &str) -> bool {
    command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\"'*?[]{}~".contains(c))
}
