//! Which of the files that git lists in an index are there.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::git::{path_from_bytes, split_at_nul};

/// The mode of a submodule in an index.
const SUBMODULE_MODE: &[u8] = b"160000";

/// Files of an index that git treats in a special way.
#[derive(Default)]
pub(super) struct IndexFlags<'a> {
    /// Files that the user has marked as unchanged, whatever they are.
    pub(super) unchanged: BTreeSet<&'a [u8]>,
    /// Files that a sparse checkout leaves out.
    pub(super) sparse: BTreeSet<&'a [u8]>,
}

impl<'a> IndexFlags<'a> {
    /// Parses the output of `git ls-files -z -v`: entries such as `H path`.
    pub(super) fn parse(output: &'a [u8]) -> Self {
        let mut flags = Self::default();
        for entry in split_at_nul(output) {
            let (Some(flag), Some(path)) = (entry.first(), entry.get(2..)) else {
                continue;
            };
            if flag.is_ascii_lowercase() {
                flags.unchanged.insert(path);
            }
            if flag.eq_ignore_ascii_case(&b'S') {
                flags.sparse.insert(path);
            }
        }
        flags
    }
}

/// Parses the output of `git ls-files -z --stage`, and returns the paths of files.
pub(super) fn parse_stages(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    split_at_nul(output).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let path = entry.get(tab + 1..)?;
        (!entry.starts_with(SUBMODULE_MODE)).then_some(path)
    })
}

/// Knows which directories are not reached through symlinks.
pub(super) struct RealDirectories<'a> {
    root: &'a Path,
    known: HashMap<PathBuf, bool>,
}

impl<'a> RealDirectories<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            known: HashMap::new(),
        }
    }

    /// Returns `true` if there is a file or a symlink at this path, and no symlink on the way to it.
    pub(super) fn has_file(&mut self, path: &[u8]) -> bool {
        let path = path_from_bytes(path);
        let is_file = |metadata: std::fs::Metadata| metadata.is_file() || metadata.is_symlink();
        let metadata = self.root.join(&path).symlink_metadata();
        metadata.is_ok_and(is_file)
            && path
                .parent()
                .is_none_or(|parent| self.has_directory(parent))
    }

    fn has_directory(&mut self, path: &Path) -> bool {
        let Some(parent) = path.parent() else {
            return true;
        };
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let metadata = self.root.join(path).symlink_metadata();
        let is_directory = metadata.is_ok_and(|metadata| metadata.is_dir());
        let is_real = is_directory && self.has_directory(parent);
        self.known.insert(path.to_owned(), is_real);
        is_real
    }
}

/// Returns paths as git reads them from stdin with `-z`.
pub(super) fn join_with_nul(paths: &BTreeSet<&[u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for path in paths {
        joined.extend_from_slice(path);
        joined.push(0);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_git_are_parsed() {
        let flags = IndexFlags::parse(b"H a\0h b c\0S d\0s e\0");
        assert_eq!(join_with_nul(&flags.unchanged), b"b c\0e\0");
        assert_eq!(join_with_nul(&flags.sparse), b"d\0e\0");
        let stages = b"100644 1 0\ta\tb\x00160000 2 0\tsub\x00120000 3 0\tlink\0";
        let paths: Vec<&[u8]> = parse_stages(stages).collect();
        assert_eq!(paths, [b"a\tb" as &[u8], b"link"]);
    }

    #[test]
    fn files_behind_symlinks_are_absent() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/c"), "").unwrap();
        let mut directories = RealDirectories::new(root);
        assert!(directories.has_file(b"a/b/c"));
        assert!(!directories.has_file(b"a/b"));
        assert!(!directories.has_file(b"a/b/d"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a", root.join("link")).unwrap();
            assert!(!directories.has_file(b"link/b/c"));
            assert!(directories.has_file(b"link"));
        }
    }
}
