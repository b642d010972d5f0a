//! Mappings from local directories to their paths on a remote agent's machine.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A local directory and its path on the agent's machine.
///
/// Both paths are absolute and end without a separator, except for a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMapping {
    /// The path on this machine.
    pub local: String,
    /// The path on the agent's machine.
    pub remote: String,
}

impl PathMapping {
    /// Creates a mapping. A relative local path is resolved against the current directory.
    ///
    /// # Errors
    /// A path is empty, the local path is not UTF-8, or the remote path is relative.
    pub fn new(local: &Path, remote: &str) -> Result<Self, String> {
        if local.as_os_str().is_empty() || remote.is_empty() {
            return Err("the path is empty".to_owned());
        }
        let absolute =
            std::path::absolute(local).map_err(|e| format!("{}: {e}", local.display()))?;
        let local = absolute
            .to_str()
            .ok_or_else(|| format!("{}: the path is not UTF-8", absolute.display()))?;
        if !is_absolute(remote) {
            return Err(format!(
                "{remote}: use an absolute path on the agent's machine"
            ));
        }
        Ok(Self {
            local: trim_separators(local).to_owned(),
            remote: trim_separators(remote).to_owned(),
        })
    }

    /// Returns the path on the agent's machine, or `None` if the path is not in the local directory.
    #[must_use]
    pub fn to_remote(&self, path: &str) -> Option<String> {
        replace_directory(path, &self.local, &self.remote)
    }

    /// Returns the path on this machine, or `None` if the path is not in the remote directory.
    #[must_use]
    pub fn to_local(&self, path: &str) -> Option<String> {
        replace_directory(path, &self.remote, &self.local)
    }
}

/// Formats the mapping as `LOCAL=REMOTE`.
impl fmt::Display for PathMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.local, self.remote)
    }
}

/// Parses `LOCAL=REMOTE`.
impl FromStr for PathMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (local, remote) = text.split_once('=').ok_or("use the form LOCAL=REMOTE")?;
        Self::new(Path::new(local), remote)
    }
}

/// Returns `true` if a path is absolute on Unix or Windows. The agent's machine may run a different operating system.
fn is_absolute(path: &str) -> bool {
    let starts_with_separator = |path: &str| path.starts_with(['/', '\\']);
    starts_with_separator(path)
        || (starts_with_drive(path) && path.get(2..).is_some_and(starts_with_separator))
}

fn trim_separators(path: &str) -> &str {
    let trimmed = path.trim_end_matches(['/', '\\']);
    match trimmed.is_empty() {
        true => path.get(..1).unwrap_or_default(),
        false => trimmed,
    }
}

/// Replaces a directory at the start of a path. Changes the separators if the other machine has another system.
fn replace_directory(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path_below(path, from)?;
    let rest = match (is_windows_path(from), is_windows_path(to)) {
        (true, false) => rest.replace('\\', "/"),
        (false, true) => rest.replace('/', "\\"),
        _ => rest.to_owned(),
    };
    let separator = if is_windows_path(to) { '\\' } else { '/' };
    Some(match rest.is_empty() {
        // A drive alone is not a directory.
        true if to.ends_with(':') => format!("{to}{separator}"),
        true => to.to_owned(),
        false if to.ends_with(['/', '\\']) => format!("{to}{rest}"),
        false => format!("{to}{separator}{rest}"),
    })
}

/// Returns the part of a path below a directory, without a leading separator. Empty for the directory itself.
fn path_below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let is_windows = is_windows_path(directory);
    let prefix = path.get(..directory.len())?;
    let is_equal = match is_windows {
        // Windows ignores the case of letters, and accepts both separators.
        true => prefix
            .replace('/', "\\")
            .eq_ignore_ascii_case(&directory.replace('/', "\\")),
        false => prefix == directory,
    };
    let rest = path.get(directory.len()..)?;
    let separators: &[char] = if is_windows { &['/', '\\'] } else { &['/'] };
    match rest.strip_prefix(separators) {
        _ if !is_equal => None,
        Some(rest) => Some(rest),
        None if rest.is_empty() || directory.ends_with(separators) => Some(rest),
        None => None,
    }
}

/// Returns `true` if the directory is a Windows path.
fn is_windows_path(directory: &str) -> bool {
    starts_with_drive(directory) || directory.starts_with('\\')
}

/// Returns `true` if the path starts with a Windows drive, such as `C:`.
fn starts_with_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn mapping_is_parsed_from_two_paths() {
        let parsed: PathMapping = "/home/me/project/=/srv/project".parse().unwrap();
        assert_eq!(parsed.local, "/home/me/project");
        assert_eq!(parsed.remote, "/srv/project");
        let root: PathMapping = "/=C:\\".parse().unwrap();
        assert_eq!((root.local.as_str(), root.remote.as_str()), ("/", "C:"));
        let relative: PathMapping = "src=/srv".parse().unwrap();
        let expected = std::env::current_dir().unwrap().join("src");
        assert_eq!(relative.local, expected.to_str().unwrap());
    }

    #[test]
    fn invalid_mappings_are_explained() {
        for (text, expected) in [
            ("/srv", "LOCAL=REMOTE"),
            ("=/srv", "empty"),
            ("/srv=", "empty"),
            ("/a=b", "absolute path on the agent's machine"),
        ] {
            let error = text.parse::<PathMapping>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
