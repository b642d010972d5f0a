//! Writes a snapshot with `git fast-import`.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};

use crate::error::RewindError;
use crate::git::{Repository, RunningGit, path_bytes};

/// The entry of a snapshot's tree that contains the project's files.
pub(crate) const FILES: &str = "files";

/// The entry of a snapshot's tree that contains what git does not store.
pub(crate) const METADATA: &str = "metadata";

/// A snapshot that is being written.
pub(crate) struct SnapshotWriter {
    git: RunningGit,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The ids of a snapshot that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenSnapshot {
    pub(crate) commit: String,
    pub(crate) tree: String,
}

/// A file of a snapshot.
pub(crate) enum FileContents {
    Regular { executable: bool, bytes: Vec<u8> },
    Symlink(Vec<u8>),
}

impl SnapshotWriter {
    /// Starts a snapshot that begins with the files of the tree `base`, and will be called `reference`. `seconds` is the
    /// time since 1970.
    pub(crate) fn start(
        repository: &Repository,
        reference: &str,
        base: Option<&str>,
        seconds: u64,
    ) -> Result<Self, RewindError> {
        let arguments = ["--quiet", "--done", "--depth=0", "--date-format=raw"];
        let mut git = repository.start("fast-import", arguments)?;
        let pipes = (git.child.stdin.take(), git.child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(git.failure("no pipes".to_owned()));
        };
        let mut writer = Self {
            git,
            input: BufWriter::with_capacity(256 * 1024, input),
            output: BufReader::new(output),
        };
        let mut start =
            format!("commit {reference}\nmark :1\ncommitter acp <acp> {seconds} +0000\ndata 0\n");
        if let Some(tree) = base {
            start.push_str(&format!("M 040000 {tree} \"\"\n"));
        }
        writer.write(start.as_bytes())?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RewindError> {
        let written = self.input.write_all(bytes);
        written.map_err(|e| self.git.failure(e.to_string()))
    }

    /// Removes files. Must come before files are added, because a file may have become a directory.
    pub(crate) fn remove<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a Path>,
    ) -> Result<(), RewindError> {
        for path in paths {
            let mut line = b"D ".to_vec();
            push_quoted(&mut line, path);
            line.push(b'\n');
            self.write(&line)?;
        }
        Ok(())
    }

    /// Adds a file, or replaces its contents.
    pub(crate) fn add(&mut self, path: &Path, contents: &FileContents) -> Result<(), RewindError> {
        let (mode, bytes) = match contents {
            FileContents::Regular {
                executable: false,
                bytes,
            } => ("100644", bytes),
            FileContents::Regular {
                executable: true,
                bytes,
            } => ("100755", bytes),
            FileContents::Symlink(target) => ("120000", target),
        };
        let mut head = format!("M {mode} inline ").into_bytes();
        push_quoted(&mut head, path);
        self.write_data(head, bytes)
    }

    fn write_data(&mut self, mut head: Vec<u8>, bytes: &[u8]) -> Result<(), RewindError> {
        head.extend_from_slice(format!("\ndata {}\n", bytes.len()).as_bytes());
        self.write(&head)?;
        self.write(bytes)?;
        self.write(b"\n")
    }

    /// Sets the metadata, and completes the snapshot.
    pub(crate) fn finish(mut self, metadata: &[u8]) -> Result<WrittenSnapshot, RewindError> {
        self.write_data(format!("M 100644 inline {METADATA}").into_bytes(), metadata)?;
        self.write(b"\nget-mark :1\nls :1 \"\"\ndone\n")?;
        let flushed = self.input.flush();
        flushed.map_err(|e| self.git.failure(e.to_string()))?;
        let commit = self.read_line()?;
        // `040000 tree ID<TAB>`
        let tree = self.read_line()?;
        let tree = tree
            .split(['\t', ' '])
            .nth(2)
            .unwrap_or_default()
            .to_owned();
        if ![&commit, &tree].into_iter().all(|id| is_object_id(id)) {
            return Err(self.git.failure("no object id".to_owned()));
        }
        drop(self.input);
        self.git.finish()?;
        Ok(WrittenSnapshot { commit, tree })
    }

    fn read_line(&mut self) -> Result<String, RewindError> {
        let mut line = String::new();
        let read = self.output.by_ref().take(1024).read_line(&mut line);
        match read {
            Ok(0) => Err(self
                .git
                .failure(io::Error::from(io::ErrorKind::UnexpectedEof).to_string())),
            Ok(_) => Ok(line.trim_end_matches('\n').to_owned()),
            Err(e) => Err(self.git.failure(e.to_string())),
        }
    }
}

/// Returns whether this is the id of a git object.
pub(crate) fn is_object_id(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Adds the path of a project's file as git quotes it: with escapes for quotes, backslashes and line feeds.
fn push_quoted(line: &mut Vec<u8>, path: &Path) {
    line.push(b'"');
    line.extend_from_slice(FILES.as_bytes());
    line.push(b'/');
    for byte in path_bytes(path) {
        match byte {
            b'"' => line.extend_from_slice(b"\\\""),
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            byte => line.push(byte),
        }
    }
    line.push(b'"');
}
