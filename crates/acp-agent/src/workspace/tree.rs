//! Lists and walks directories. Opens a directory through the session's [`Roots`], and its contents through the
//! directory's handle.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_host::{Roots, open_file};
use cap_std::fs::{Dir, File};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;

/// The maximum size of an ignore file, in bytes. Larger files are skipped.
const MAX_RULES_FILE_SIZE: u64 = 1024 * 1024;

/// A flag that tells threads that their result is no longer needed. Dropping the original flag also sets it, so that
/// the threads with clones stop.
#[derive(Debug, Default)]
pub(crate) struct CancelFlag {
    is_cancelled: Arc<AtomicBool>,
    is_in_thread: bool,
}

impl CancelFlag {
    pub(crate) fn clone_for_thread(&self) -> Self {
        Self {
            is_cancelled: Arc::clone(&self.is_cancelled),
            is_in_thread: true,
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Wraps a reader so that reading fails once the flag is set.
    pub(crate) fn wrap_reader<'a>(&'a self, reader: impl Read + 'a) -> impl Read + 'a {
        struct CancellableReader<'a, R>(&'a CancelFlag, R);
        impl<R: Read> Read for CancellableReader<'_, R> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if self.0.is_cancelled() {
                    Err(io::Error::other("cancelled"))
                } else {
                    self.1.read(buffer)
                }
            }
        }
        CancellableReader(self, reader)
    }
}

impl Drop for CancelFlag {
    fn drop(&mut self) {
        if !self.is_in_thread {
            self.is_cancelled.store(true, Ordering::Relaxed);
        }
    }
}

/// The directories of a session, which tools can list and walk.
pub(crate) struct DirectoryTree(Roots);

/// An entry in a directory listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) name: String,
    pub(crate) kind: TreeEntryKind,
    /// The size in bytes, if the entry is a file.
    pub(crate) size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeEntryKind {
    Directory,
    File,
    Symlink,
    Other,
}

impl DirectoryTree {
    pub(crate) fn new(roots: Roots) -> Self {
        Self(roots)
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.0
    }

    fn open_dir(&self, path: &Path) -> Result<Dir, String> {
        self.0
            .open_dir(path)
            .map_err(|refusal| self.0.error_message(path, &refusal))
    }

    /// Lists the entries of a directory: first the directories, then the files, each sorted by name. The returned flag
    /// is `true` if there are more than `most` entries.
    pub(crate) fn list_directory(
        &self,
        path: &Path,
        most: usize,
        demand: &CancelFlag,
    ) -> Result<(Vec<TreeEntry>, bool), String> {
        let dir = self.open_dir(path)?;
        let shown = |e: io::Error| format!("{}: {e}", path.display());
        let mut entries = Vec::new();
        let mut more = false;
        for entry in dir.entries().map_err(shown)? {
            if demand.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            if entries.len() == most {
                more = true;
                break;
            }
            // The entry was deleted meanwhile or cannot be read. The others are still worth showing.
            let Ok(entry) = entry else { continue };
            let kind = entry.file_type().map_or(TreeEntryKind::Other, entry_kind);
            let size = match kind {
                TreeEntryKind::File => entry.metadata().ok().map(|metadata| metadata.len()),
                _ => None,
            };
            entries.push(TreeEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind,
                size,
            });
        }
        entries.sort_by(|a, b| {
            let file = |entry: &TreeEntry| entry.kind != TreeEntryKind::Directory;
            (file(a), &a.name).cmp(&(file(b), &b.name))
        });
        Ok((entries, more))
    }

    /// Opens a file in the session's directories for reading.
    pub(crate) fn open(&self, path: &Path) -> Result<File, String> {
        let opened = self.0.open_file(path);
        opened.map_err(|refusal| self.0.error_message(path, &refusal))
    }

    /// Visits the files under a directory, sorted by name, until `visit` returns [`WalkStep::Stop`]. If the path is a
    /// file, visits only that file. Skips files that match a rule in `.gitignore` or `.ignore`, and hidden files unless
    /// `hidden` is set. Does not follow symlinks.
    pub(crate) fn walk(
        &self,
        path: &Path,
        only: &Override,
        hidden: bool,
        demand: &CancelFlag,
        mut visit: impl FnMut(&Path, File) -> WalkStep,
    ) -> Result<(), String> {
        let start = match self.open_dir(path) {
            Ok(start) => Arc::new(start),
            Err(why) => {
                visit(path, self.0.open_file(path).map_err(|_| why)?);
                return Ok(());
            }
        };
        let rules = self.load_parent_rules(path)?;
        let mut ahead = VecDeque::from([(path.to_path_buf(), start, OsString::from("."), rules)]);
        while let Some((path, above, name, rules)) = ahead.pop_front() {
            if demand.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            let Ok(dir) = above.open_dir(&name).map(Arc::new) else {
                continue;
            };
            let rules = IgnoreRules::load(&dir, &path, rules);
            let Ok(entries) = dir.entries() else { continue };
            let mut names: Vec<_> = entries
                .filter_map(Result::ok)
                .filter_map(|entry| Some((entry.file_name(), entry_kind(entry.file_type().ok()?))))
                .filter(|(name, _)| match hidden {
                    true => name != ".git",
                    false => !name.to_string_lossy().starts_with('.'),
                })
                .collect();
            names.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut below = Vec::new();
            for (name, kind) in names {
                if demand.is_cancelled() {
                    return Err("cancelled".to_owned());
                }
                let file = path.join(&name);
                let is_dir = kind == TreeEntryKind::Directory;
                if only.matched(&file, is_dir).is_ignore()
                    || IgnoreRules::ignores_path(&rules, &file, is_dir)
                {
                    continue;
                }
                match kind {
                    TreeEntryKind::Directory => {
                        below.push((file, Arc::clone(&dir), name, rules.clone()));
                    }
                    TreeEntryKind::File => {
                        if let Ok(opened) = open_file(&dir, &name)
                            && visit(&file, opened) == WalkStep::Stop
                        {
                            return Ok(());
                        }
                    }
                    TreeEntryKind::Symlink | TreeEntryKind::Other => {}
                }
            }
            // Go depth first and open each directory only when it is visited, so that few are open at the same time.
            for directory in below.into_iter().rev() {
                ahead.push_front(directory);
            }
        }
        Ok(())
    }

    /// Loads the ignore rules of the directories from the root down to the parent of this one.
    fn load_parent_rules(&self, path: &Path) -> Result<Option<Arc<IgnoreRules>>, String> {
        let place = self.0.lexical_path(path);
        let place = place.map_err(|refusal| self.0.error_message(path, &refusal))?;
        let Ok(mut dir) = place.dir().try_clone() else {
            return Ok(None);
        };
        let mut at = place.root().to_owned();
        let mut rules = None;
        for name in place.path().components() {
            rules = IgnoreRules::load(&dir, &at, rules);
            let Ok(next) = dir.open_dir(name) else { break };
            (dir, at) = (next, at.join(name));
        }
        Ok(rules)
    }
}

/// Whether a walk continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkStep {
    Continue,
    Stop,
}

/// The ignore rules of a directory and its parents.
struct IgnoreRules {
    gitignore: Gitignore,
    parent: Option<Arc<IgnoreRules>>,
}

impl IgnoreRules {
    fn load(dir: &Dir, path: &Path, above: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new(path);
        let mut any = false;
        // Later rules take precedence, so the rules in `.ignore` come last.
        for name in [".gitignore", ".ignore"] {
            // Like git, do not read the rules through a symlink.
            let link = dir.symlink_metadata(name);
            if !link.is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let Ok(file) = open_file(dir, name) else {
                continue;
            };
            let mut text = String::new();
            let read = file.take(MAX_RULES_FILE_SIZE + 1).read_to_string(&mut text);
            if !read.is_ok_and(|read| read as u64 <= MAX_RULES_FILE_SIZE) {
                continue;
            }
            for line in text.lines() {
                // An invalid rule ignores nothing.
                any |= builder.add_line(Some(path.join(name)), line).is_ok();
            }
        }
        match builder.build() {
            Ok(own) if any => Some(Arc::new(Self {
                gitignore: own,
                parent: above,
            })),
            _ => above,
        }
    }

    fn ignores_path(rules: &Option<Arc<Self>>, path: &Path, is_dir: bool) -> bool {
        let mut rules = rules.as_ref();
        while let Some(these) = rules {
            match these.gitignore.matched(path, is_dir) {
                ignore::Match::Ignore(_) => return true,
                ignore::Match::Whitelist(_) => return false,
                ignore::Match::None => rules = these.parent.as_ref(),
            }
        }
        false
    }
}

fn entry_kind(file_type: cap_std::fs::FileType) -> TreeEntryKind {
    if file_type.is_dir() {
        TreeEntryKind::Directory
    } else if file_type.is_file() {
        TreeEntryKind::File
    } else if file_type.is_symlink() {
        TreeEntryKind::Symlink
    } else {
        TreeEntryKind::Other
    }
}
