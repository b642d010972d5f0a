//! Checks the paths in an archive.

use crate::names::is_device_name;

/// The maximum length of a path.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum number of directories in a path.
const MAX_DEPTH: usize = 64;

/// Checks a path in an archive, and returns it in its simplest form: names separated by `/`, without `.`. The path of the
/// directory itself is empty.
///
/// # Errors
/// The path is absolute, leads out of the directory, or is not the same on all systems.
pub(crate) fn entry_path(path: &str) -> Result<String, String> {
    if path.len() > MAX_PATH_BYTES {
        return Err(format!("a path is longer than {MAX_PATH_BYTES} bytes"));
    }
    if path.starts_with('/') {
        return Err(format!("the path {path:?} is absolute"));
    }
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => continue,
            ".." => return Err(format!("the path {path:?} contains `..`")),
            _ => {}
        }
        if name.contains('\\') || name.chars().any(char::is_control) {
            return Err(format!(
                "the path {path:?} contains a backslash or control character"
            ));
        }
        // On Windows, these are streams, drives, devices, and other names of the same file.
        if cfg!(windows)
            && (name.contains(['<', '>', ':', '"', '|', '?', '*'])
                || name.ends_with(['.', ' '])
                || is_device_name(name))
        {
            return Err(format!("the path {path:?} is not valid on Windows"));
        }
        names.push(name);
    }
    match names.len() > MAX_DEPTH {
        true => Err(format!(
            "the path {path:?} has more than {MAX_DEPTH} directories"
        )),
        false => Ok(names.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_directory() {
        for (path, simple) in [
            ("./a", "a"),
            ("a//b/./c/", "a/b/c"),
            ("", ""),
            ("./", ""),
            ("a..b", "a..b"),
        ] {
            assert_eq!(entry_path(path).unwrap(), simple, "{path:?}");
        }
        let deep = "a/".repeat(65);
        let long = "a".repeat(1025);
        for path in [
            "..", "../a", "a/../b", "a/..", "/a", "//a", "a\\b", "..\\a", "a\0", "a\nb", &deep,
            &long,
        ] {
            entry_path(path).unwrap_err();
        }
    }
}
