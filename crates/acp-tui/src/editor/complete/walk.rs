//! Lists the files of a project.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// The maximum number of files and directories listed.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// A file or directory of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProjectEntry {
    /// The path relative to the project, sanitized for display. A directory's path ends with `/`.
    pub(super) display_path: Box<str>,
    /// The actual path, if it differs from the displayed path.
    path: Option<Box<Path>>,
}

impl ProjectEntry {
    fn new(path: &Path, directory: bool) -> Self {
        let written = path.to_string_lossy().replace('\\', "/");
        // A file name can contain anything.
        let mut shown = acp_host::terminal_text::clean_line(&written);
        let path = (path.to_str() != Some(&shown)).then(|| path.into());
        if directory {
            shown.push('/');
        }
        Self {
            display_path: shown.into(),
            path,
        }
    }

    /// Returns the path relative to the project.
    pub(super) fn path(&self) -> PathBuf {
        match &self.path {
            Some(path) => path.to_path_buf(),
            None => self.display_path.trim_end_matches('/').into(),
        }
    }

    /// Returns the number of directories above the entry.
    pub(super) fn depth(&self) -> usize {
        self.display_path.trim_end_matches('/').matches('/').count()
    }
}

/// Lists the files of a project. Omits files that version control ignores, and hidden files unless they are requested.
/// After each file, `go_on` receives everything found so far and returns whether to continue.
pub(super) fn list_files(
    root: &Path,
    hidden: bool,
    mut go_on: impl FnMut(&[ProjectEntry]) -> bool,
) -> Vec<ProjectEntry> {
    let mut entries = Vec::new();
    let walk = WalkBuilder::new(root)
        .hidden(!hidden)
        // Ignore files apply even if there is no repository.
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.filter_map(Result::ok) {
        let Ok(path) = entry.path().strip_prefix(root) else {
            continue;
        };
        if path.as_os_str().is_empty() {
            continue;
        }
        let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        entries.push(ProjectEntry::new(path, directory));
        if entries.len() >= MAX_ENTRIES || !go_on(&entries) {
            break;
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_and_hidden_files_are_omitted() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("target")).unwrap();
        let files = [
            ".gitignore",
            ".git/config",
            ".env",
            "src/deep/a b.rs",
            "target/x",
        ];
        for file in files {
            std::fs::write(root.join(file), "target/\n").unwrap();
        }
        let listed = |hidden| {
            let entries = list_files(root, hidden, |_| true);
            let mut shown: Vec<_> = entries.iter().map(|e| e.display_path.to_string()).collect();
            shown.sort();
            shown
        };
        assert_eq!(listed(false), ["src/", "src/deep/", "src/deep/a b.rs"]);
        assert!(listed(true).contains(&".env".to_owned()));
        assert!(!listed(true).iter().any(|shown| shown.contains(".git/")));
    }

    #[test]
    fn control_characters_in_file_names_are_hidden_only_in_the_display() {
        let entry = ProjectEntry::new(Path::new("a\u{1b}[31m\u{202e}b"), false);
        assert_eq!(&*entry.display_path, "ab");
        assert_eq!(entry.path(), Path::new("a\u{1b}[31m\u{202e}b"));
        let plain = ProjectEntry::new(Path::new("src/x"), true);
        assert_eq!((plain.path(), plain.depth()), ("src/x".into(), 1));
        assert_eq!(&*plain.display_path, "src/x/");
    }
}
