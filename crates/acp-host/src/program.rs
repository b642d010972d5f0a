//! Finding programs by name, so that a failure to start one can be told in words that help.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::sys;

/// Why a program cannot be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramError {
    /// There is none of that name.
    NotFound,
    /// There is such a file, but it cannot be run.
    NotExecutable(PathBuf),
}

/// Finds the file of the program `name`: in the directories of `path`, or, if it has a directory in
/// it, from `base`. `path` absent means that of this process.
pub(crate) fn find(
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
    let looked = first_usable(file, base, directories, &sys::program_endings(), |file| {
        if !file.is_file() {
            None
        } else if sys::is_executable(file) {
            Some(PathKind::Program)
        } else {
            Some(PathKind::OtherFile)
        }
    });
    // Its working directory may be another than this process's.
    looked.map(|file| std::path::absolute(&file).unwrap_or(file))
}

/// What is found under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Program,
    OtherFile,
}

/// The first of the files that may be meant by `name` that `look` finds to be a program.
fn first_usable(
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

/// The files that may be meant by a program's path, where programs have one of some endings: with each of
/// them, and as it is. That is how the `.cmd` shims of npm and uv are found, which have scripts for other
/// shells beside them that have no ending, so that those come last.
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

/// Whether this is rather a line for a shell than the name of a program.
pub(crate) fn is_shell_line(command: &str) -> bool {
    command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\"'*?[]{}~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds `name` where there are these files, those with a `*` not executable; as it is done where
    /// programs have the endings of Windows, or none.
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
        first_usable(
            Path::new(name),
            Path::new("/p"),
            directories,
            &endings,
            look,
        )
        .map(|file| file.to_str().unwrap().replace('\\', "/"))
    }

    #[test]
    fn shims_of_windows_are_found_by_their_endings() {
        const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";
        let npm = ["/p/node/npx", "/p/node/npx.CMD", "/p/bin/npx.EXE"];
        for (files, name, found) in [
            // The script beside it is for another shell.
            (&npm[..], "npx", "/p/node/npx.CMD"),
            (&npm[..], "npx.CMD", "/p/node/npx.CMD"),
            (&npm[..], "node/npx", "/p/node/npx.CMD"),
            // Directories count more than endings.
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
            // What looks like an ending is none of a program's.
            (
                &["/p/bin/python3.11.EXE"],
                "python3.11",
                "/p/bin/python3.11.EXE",
            ),
            (&["/p/bin/my agent.CMD"], "my agent", "/p/bin/my agent.CMD"),
            (&["/p/bin/agent"], "agent", "/p/bin/agent"),
        ] {
            assert_eq!(
                find_among(files, name, ENDINGS).as_deref(),
                Ok(found),
                "{name}"
            );
        }
        let missing = find_among(&npm, "uvx", ENDINGS);
        assert_eq!(missing, Err(ProgramError::NotFound));
    }

    #[test]
    fn elsewhere_a_name_is_a_name() {
        let files = ["/p/node/a*", "/p/a", "/p/bin/b.CMD", "/p/bin/c*"];
        assert_eq!(find_among(&files, "a", "").as_deref(), Ok("/p/a"));
        assert_eq!(find_among(&files, "b", ""), Err(ProgramError::NotFound));
        assert_eq!(
            find_among(&files, "c", ""),
            Err(ProgramError::NotExecutable("/p/bin/c".into()))
        );
    }
}
