//! Creates the files of an archive, within limits.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use cap_std::fs::{Dir, OpenOptions};

/// The size of the buffer for copying a file.
const BUFFER_BYTES: usize = 64 * 1024;

/// How much an archive may contain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArchiveLimits {
    /// The maximum number of files, directories and links.
    pub(crate) entries: usize,
    /// The maximum size of all files together, in bytes.
    pub(crate) bytes: u64,
}

impl ArchiveLimits {
    /// The limits for agents. The largest ones have some hundred megabytes, and some ten thousand files.
    pub(crate) const AGENT: Self = Self {
        entries: 100_000,
        bytes: 2 * 1024 * 1024 * 1024,
    };

    fn bytes_error(self) -> String {
        format!("it unpacks to more than {} bytes", self.bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Directory,
    File,
    Link,
}

/// Creates the files of an archive in a directory.
pub(crate) struct Unpacker<'a> {
    to: &'a Dir,
    limits: ArchiveLimits,
    /// What exists so far. The keys are paths in lower case, because on some systems, paths that differ only in case are
    /// the same file. The values are the paths as written.
    created: HashMap<String, (String, EntryKind)>,
    /// The symbolic links and their targets. They are created at the end, so that no file is created through one.
    links: Vec<(String, String)>,
    bytes: u64,
    buffer: Vec<u8>,
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(to: &'a Dir, limits: ArchiveLimits) -> Self {
        Self {
            to,
            limits,
            created: HashMap::new(),
            links: Vec::new(),
            bytes: 0,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Creates a directory, unless it exists.
    pub(crate) fn add_directory(&mut self, path: &str) -> Result<(), String> {
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            let directory = path.get(..end).unwrap_or(path);
            if directory.is_empty() {
                continue;
            }
            match self.created.get(&directory.to_lowercase()) {
                Some((same, EntryKind::Directory)) if same == directory => continue,
                _ => self.claim(directory, EntryKind::Directory)?,
            }
            let created = self.to.create_dir(directory);
            created.map_err(|e| format!("cannot create {directory:?}: {e}"))?;
        }
        Ok(())
    }

    /// Creates a file with the contents of `from`.
    pub(crate) fn add_file(
        &mut self,
        path: &str,
        is_executable: bool,
        from: &mut impl Read,
    ) -> Result<(), String> {
        self.add_parent(path)?;
        self.claim(path, EntryKind::File)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(if is_executable { 0o755 } else { 0o644 });
        }
        #[cfg(not(unix))]
        let _ = is_executable;
        let file = self.to.open_with(path, &options);
        let mut file = file.map_err(|e| format!("cannot create {path:?}: {e}"))?;
        loop {
            let read = match from.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(format!("cannot read {path:?}: {e}")),
            };
            self.bytes += read as u64;
            if self.bytes > self.limits.bytes {
                return Err(self.limits.bytes_error());
            }
            let written = file.write_all(self.buffer.get(..read).unwrap_or_default());
            written.map_err(|e| format!("cannot write {path:?}: {e}"))?;
        }
    }

    /// Adds a symbolic link, which is created at the end.
    pub(crate) fn add_link(&mut self, path: &str, target: &str) -> Result<(), String> {
        self.add_parent(path)?;
        self.claim(path, EntryKind::Link)?;
        let is_control = target.chars().any(char::is_control);
        if target.is_empty() || target.starts_with('/') || target.contains('\\') || is_control {
            return Err(leaving_link(path, target));
        }
        self.links.push((path.to_owned(), target.to_owned()));
        Ok(())
    }

    /// Creates a second name for a file of the archive.
    pub(crate) fn add_hard_link(&mut self, path: &str, target: &str) -> Result<(), String> {
        match self.created.get(&target.to_lowercase()) {
            Some((same, EntryKind::File)) if same == target => {}
            _ => {
                return Err(format!(
                    "the hard link {path:?} is to {target:?}, which is not a file before it"
                ));
            }
        }
        self.add_parent(path)?;
        self.claim(path, EntryKind::File)?;
        let linked = self.to.hard_link(target, self.to, path);
        linked.map_err(|e| format!("cannot create {path:?}: {e}"))
    }

    /// Creates the symbolic links. Each must lead to something in the directory.
    pub(crate) fn finish(self) -> Result<(), String> {
        for (path, target) in &self.links {
            create_link(self.to, target, path)
                .map_err(|e| format!("cannot create {path:?}: {e}"))?;
        }
        for (path, target) in &self.links {
            // The handle of the directory does not follow a link out of it.
            let found = self.to.metadata(path);
            found.map_err(|_| leaving_link(path, target))?;
        }
        match self.created.is_empty() {
            true => Err("it is empty".to_owned()),
            false => Ok(()),
        }
    }

    fn add_parent(&mut self, path: &str) -> Result<(), String> {
        match path.rsplit_once('/') {
            Some((parent, _)) => self.add_directory(parent),
            None => Ok(()),
        }
    }

    /// Reserves a path for one entry.
    fn claim(&mut self, path: &str, kind: EntryKind) -> Result<(), String> {
        if path.is_empty() {
            return Err("an entry has no name".to_owned());
        }
        if let Some((other, _)) = self.created.get(&path.to_lowercase()) {
            return Err(match other == path {
                true => format!("{path:?} occurs twice"),
                false => format!("{other:?} and {path:?} differ only in case"),
            });
        }
        if self.created.len() >= self.limits.entries {
            return Err(format!(
                "it contains more than {} files",
                self.limits.entries
            ));
        }
        self.created
            .insert(path.to_lowercase(), (path.to_owned(), kind));
        Ok(())
    }
}

fn leaving_link(path: &str, target: &str) -> String {
    format!("the symbolic link {path:?} to {target:?} does not lead to a file of the archive")
}

#[cfg(unix)]
fn create_link(to: &Dir, target: &str, path: &str) -> io::Result<()> {
    to.symlink(target, path)
}

#[cfg(not(unix))]
fn create_link(_to: &Dir, _target: &str, _path: &str) -> io::Result<()> {
    Err(io::Error::other(
        "symbolic links are not supported on this system",
    ))
}

/// A reader that fails if there is too much to read. Unlike the limit for files, this one also holds for what is skipped.
pub(crate) struct LimitedReader<R> {
    from: R,
    left: u64,
    limits: ArchiveLimits,
}

impl<R> LimitedReader<R> {
    pub(crate) fn new(from: R, limits: ArchiveLimits) -> Self {
        /// A tar archive has a header and padding for each entry, and possibly a long name.
        const BYTES_PER_ENTRY: u64 = 8 * 1024;
        let entries = limits.entries as u64;
        Self {
            from,
            left: limits
                .bytes
                .saturating_add(entries.saturating_mul(BYTES_PER_ENTRY)),
            limits,
        }
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(self.limits.bytes_error())),
        }
        Ok(read)
    }
}
