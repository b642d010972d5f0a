//! Finds programs by name, so that error messages are helpful if a program cannot be started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::sys;

/// The reason why a program cannot be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramError {
    /// There is no program with this name.
    NotFound,
    /// The file exists but cannot be run.
    NotExecutable(PathBuf),
}

/// Finds the program `name` in the directories of `path` or, if `name` contains a directory, relative to `base`. If
/// `path` is `None`, uses the `PATH` of this process.
pub(crate) fn find_program(
    name: &OsStr,
    path: Option<&OsStr>,
    base: &Path,
) -> Result<PathBuf, ProgramError> {
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
    let looked = find_first_usable(
        file,
        base,
        directories,
        &sys::program_extensions(),
        |file| {
            if !file.is_file() {
                None
            } else if sys::is_executable(file) {
                Some(PathKind::Program)
            } else {
                Some(PathKind::OtherFile)
            }
        },
    );
    // The program's working directory may differ from this process's.
    looked.map(|file| std::path::absolute(&file).unwrap_or(file))
}

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Program,
    OtherFile,
}

/// Returns the first candidate that is a program. `look` returns what kind of file is at a path, if any.
fn find_first_usable(
    name: &Path,
    base: &Path,
    directories: Vec<PathBuf>,
    endings: &[String],
    look: impl Fn(&Path) -> Option<PathKind>,
) -> Result<PathBuf, ProgramError> {
    let mut unusable = None;
    for directory in directories {
        for file in candidates(base.join(directory).join(name), endings) {
            match look(&file) {
                Some(PathKind::Program) => return Ok(file),
                Some(PathKind::OtherFile) => {
                    unusable.get_or_insert(file);
                }
                None => {}
            }
        }
    }
    Err(unusable.map_or(ProgramError::NotFound, ProgramError::NotExecutable))
}

/// Returns the paths to try for a program: first with each file extension, then without. This order finds the `.cmd`
/// shims of npm and uv before the scripts for other shells, which are in the same directories and have no extension.
fn candidates(file: PathBuf, endings: &[String]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = endings
        .iter()
        .map(|ending| {
            let mut file = file.clone().into_os_string();
            file.push(ending);
            PathBuf::from(file)
        })
        .collect();
    let has_ending = file.file_name().is_some_and(|name| {
        let name = name.to_string_lossy().to_lowercase();
        endings
            .iter()
            .any(|ending| name.ends_with(&ending.to_lowercase()))
    });
    let place = if has_ending { 0 } else { files.len() };
    files.insert(place, file);
    files
}

/// Returns `true` if `command` is a shell line rather than the name of a program.
pub(crate) fn is_shell_line(command: &str) -> bool {
    command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\"'*?[]{}~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds `name` among these files. A `*` in a file's name marks it as not executable. `endings` lists file
    /// extensions, as on Windows, or is empty.
    fn find_among(files: &[&str], name: &str, endings: &str) -> Result<String, ProgramError> {
        let directories = match name.contains('/') {
            true => vec![PathBuf::new()],
            false => vec!["node".into(), "".into(), "bin".into()],
        };
        let endings: Vec<String> = endings.split_terminator(';').map(str::to_owned).collect();
        let look = |path: &Path| {
            let path = path.to_str().unwrap().replace('\\', "/");
            files.iter().find_map(|file| match file.strip_suffix('*') {
                Some(file) => (file == path).then_some(PathKind::OtherFile),
                None => (*file == path).then_some(PathKind::Program),
            })
        };
        find_first_usable(
            Path::new(name),
            Path::new("/p"),
            directories,
            &endings,
            look,
        )
        .map(|file| file.to_str().unwrap().replace('\\', "/"))
    }

    #[test]
    fn windows_programs_are_found_by_their_extensions() {
        const EXTENSIONS: &str = ".COM;.EXE;.BAT;.CMD";
        let npm = ["/p/node/npx", "/p/node/npx.CMD", "/p/bin/npx.EXE"];
        for (files, name, found) in [
            // The script beside it is for another shell.
            (&npm[..], "npx", "/p/node/npx.CMD"),
            (&npm[..], "npx.CMD", "/p/node/npx.CMD"),
            (&npm[..], "node/npx", "/p/node/npx.CMD"),
            // The order of directories takes precedence over that of extensions.
            (
                &["/p/bin/uvx.COM", "/p/node/uvx.BAT"],
                "uvx",
                "/p/node/uvx.BAT",
            ),
            (
                &["/p/bin/uvx.EXE", "/p/bin/uvx.CMD"],
                "uvx",
                "/p/bin/uvx.EXE",
            ),
            // Not every suffix is a program's extension.
            (
                &["/p/bin/python3.11.EXE"],
                "python3.11",
                "/p/bin/python3.11.EXE",
            ),
            (&["/p/bin/my agent.CMD"], "my agent", "/p/bin/my agent.CMD"),
            (&["/p/bin/agent"], "agent", "/p/bin/agent"),
        ] {
            assert_eq!(
                find_among(files, name, EXTENSIONS).as_deref(),
                Ok(found),
                "{name}"
            );
        }
        let missing = find_among(&npm, "uvx", EXTENSIONS);
        assert_eq!(missing, Err(ProgramError::NotFound));
    }

    #[test]
    fn extensions_are_ignored_on_unix() {
        let files = ["/p/node/a*", "/p/a", "/p/bin/b.CMD", "/p/bin/c*"];
        assert_eq!(find_among(&files, "a", "").as_deref(), Ok("/p/a"));
        assert_eq!(find_among(&files, "b", ""), Err(ProgramError::NotFound));
        assert_eq!(
            find_among(&files, "c", ""),
            Err(ProgramError::NotExecutable("/p/bin/c".into()))
        );
    }
}
