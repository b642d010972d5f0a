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
    path.starts_with(['/', '\\']) || is_drive(path)
}

/// Returns `true` if a path starts with a Windows drive.
fn is_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

fn trim_separators(path: &str) -> &str {
    let trimmed = path.trim_end_matches(['/', '\\']);
    match trimmed.is_empty() {
        true => path.get(..1).unwrap_or_default(),
        false => trimmed,
    }
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
