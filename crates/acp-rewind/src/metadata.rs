//! What a snapshot stores beside the contents of files: permissions, empty directories, and what was left out.
//!
//! The format is a header and one record for each path that differs from it:
//!
//! ```text
//! 644 755 755\n         the usual permissions of files, executable files and directories
//! f 600 path\0          a file with other permissions
//! d 755 path\0          a directory that is empty or has other permissions
//! x large path\0        a path that was left out, and why
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::git::{path_bytes, path_from_bytes};
use crate::scan::{LeftOutPath, LeftOutReason, ProjectScan};

/// The metadata of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SnapshotMetadata {
    usual: UsualModes,
    files: BTreeMap<PathBuf, u32>,
    /// Directories that are empty or have unusual permissions.
    pub(crate) directories: BTreeMap<PathBuf, u32>,
    pub(crate) left_out: BTreeSet<LeftOutPath>,
}

/// The permission bits that most files and directories of a project have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UsualModes {
    file: u32,
    executable: u32,
    directory: u32,
}

impl Default for UsualModes {
    fn default() -> Self {
        Self {
            file: 0o644,
            executable: 0o755,
            directory: 0o755,
        }
    }
}

/// Returns whether git calls a file with these permissions executable.
pub(crate) fn is_executable(mode: u32) -> bool {
    mode & 0o100 != 0
}

impl SnapshotMetadata {
    /// Describes the files that a scan found.
    pub(crate) fn new(scan: &ProjectScan) -> Self {
        let modes = || {
            scan.files
                .values()
                .filter(|file| !file.is_symlink)
                .map(|file| file.stamp.mode)
        };
        let defaults = UsualModes::default();
        let usual = UsualModes {
            file: most_common(modes().filter(|mode| !is_executable(*mode)))
                .unwrap_or(defaults.file),
            executable: most_common(modes().filter(|mode| is_executable(*mode)))
                .unwrap_or(defaults.executable),
            directory: most_common(scan.directories.values().copied())
                .unwrap_or(defaults.directory),
        };
        let paths = scan.files.keys().chain(scan.directories.keys());
        let not_empty: HashSet<&Path> = paths.filter_map(|path| Path::new(path).parent()).collect();
        let mut metadata = Self {
            usual,
            left_out: scan.left_out.clone(),
            ..Self::default()
        };
        for (path, file) in &scan.files {
            if !file.is_symlink
                && file.stamp.mode != usual.file_mode(is_executable(file.stamp.mode))
            {
                metadata.files.insert(path.into(), file.stamp.mode);
            }
        }
        for (path, mode) in &scan.directories {
            if *mode != usual.directory || !not_empty.contains(Path::new(path)) {
                metadata.directories.insert(path.into(), *mode);
            }
        }
        metadata
    }

    /// Returns the permission bits of a file in the snapshot.
    pub(crate) fn file_mode(&self, path: &Path, executable: bool) -> u32 {
        let known = self.files.get(path).copied();
        known.unwrap_or_else(|| self.usual.file_mode(executable))
    }

    /// Returns the permission bits of a directory in the snapshot.
    pub(crate) fn directory_mode(&self, path: &Path) -> u32 {
        let known = self.directories.get(path).copied();
        known.unwrap_or(self.usual.directory)
    }

    /// Returns the files with unusual permissions.
    pub(crate) fn unusual_files(&self) -> impl Iterator<Item = (&PathBuf, u32)> {
        self.files.iter().map(|(path, mode)| (path, *mode))
    }

    /// Returns whether files that are not listed have the same permissions in both snapshots.
    pub(crate) fn has_same_usual_modes(&self, other: &Self) -> bool {
        self.usual == other.usual
    }

    /// Returns whether the snapshot says nothing about this path or what is in it.
    pub(crate) fn leaves_out(&self, path: &Path) -> Option<LeftOutReason> {
        let found = self
            .left_out
            .iter()
            .find(|left_out| path.starts_with(&left_out.path));
        found.map(|left_out| left_out.reason)
    }

    /// Writes the metadata in the format that snapshots store.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let UsualModes {
            file,
            executable,
            directory,
        } = self.usual;
        let mut bytes = format!("{file:o} {executable:o} {directory:o}\n").into_bytes();
        let mut record = |start: String, path: &Path| {
            bytes.extend_from_slice(start.as_bytes());
            bytes.extend_from_slice(&path_bytes(path));
            bytes.push(0);
        };
        for (path, mode) in &self.files {
            record(format!("f {mode:o} "), path);
        }
        for (path, mode) in &self.directories {
            record(format!("d {mode:o} "), path);
        }
        for LeftOutPath { path, reason } in &self.left_out {
            record(format!("x {} ", reason_word(*reason)), path);
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote. Returns `None` if it is something else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (header, records) = (bytes.get(..end)?, bytes.get(end + 1..)?);
        let mut modes = std::str::from_utf8(header).ok()?.split(' ').map(parse_mode);
        let mut metadata = Self {
            usual: UsualModes {
                file: modes.next()??,
                executable: modes.next()??,
                directory: modes.next()??,
            },
            ..Self::default()
        };
        for record in records
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
        {
            let mut parts = record.splitn(3, |byte| *byte == b' ');
            let (kind, value, path) = (parts.next()?, parts.next()?, parts.next()?);
            let value = std::str::from_utf8(value).ok()?;
            let path = path_from_bytes(path)?;
            match kind {
                b"f" => {
                    metadata.files.insert(path, parse_mode(value)?);
                }
                b"d" => {
                    metadata.directories.insert(path, parse_mode(value)?);
                }
                b"x" => {
                    let reason = reason_from_word(value)?;
                    metadata.left_out.insert(LeftOutPath { path, reason });
                }
                _ => return None,
            }
        }
        Some(metadata)
    }
}

impl UsualModes {
    fn file_mode(self, executable: bool) -> u32 {
        if executable {
            self.executable
        } else {
            self.file
        }
    }
}

fn most_common(modes: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts = HashMap::new();
    for mode in modes {
        *counts.entry(mode).or_insert(0_usize) += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(mode, count)| (*count, *mode));
    most.map(|(mode, _)| mode)
}

fn parse_mode(text: &str) -> Option<u32> {
    let mode = u32::from_str_radix(text, 8).ok()?;
    (mode <= 0o7777).then_some(mode)
}

fn reason_word(reason: LeftOutReason) -> &'static str {
    match reason {
        LeftOutReason::TooLarge => "large",
        LeftOutReason::Special => "special",
        LeftOutReason::Unreadable => "unreadable",
    }
}

fn reason_from_word(word: &str) -> Option<LeftOutReason> {
    let all = [
        LeftOutReason::TooLarge,
        LeftOutReason::Special,
        LeftOutReason::Unreadable,
    ];
    all.into_iter().find(|reason| reason_word(*reason) == word)
}
