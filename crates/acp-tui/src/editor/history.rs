//! Stores a project's prompt history in a file that persists between chats.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// The maximum number of stored prompts.
const MAX_ENTRIES: usize = 1_000;
/// The file size, in bytes, at which the older half of the history is dropped.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// The maximum length of a prompt that is stored complete, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A prompt that was sent, as stored in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryEntry {
    /// The text of the prompt.
    pub(crate) text: String,
    /// The files that the text mentions, as written after `@`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
}

/// A history of sent prompts. Clones share the same history, and several processes may use the same file.
#[derive(Debug, Clone, Default)]
pub(crate) struct PromptHistory(Arc<Mutex<HistoryState>>);

#[derive(Debug, Default)]
struct HistoryState {
    entries: Vec<HistoryEntry>,
    /// The file that stores the history, or `None` if the history is not stored.
    file: Option<PathBuf>,
    /// The size of the file when it was last read.
    read_len: u64,
}

impl PromptHistory {
    /// Opens the history in this file. The file and its directory are created when the first prompt is added.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read. Lines that are not prompts are skipped.
    pub(crate) fn open(file: PathBuf) -> io::Result<Self> {
        let mut kept = HistoryState {
            file: Some(file),
            ..HistoryState::default()
        };
        kept.refresh()?;
        Ok(Self(Arc::new(Mutex::new(kept))))
    }

    /// Returns all prompts, newest last, including those that other processes have added.
    pub(crate) fn entries(&self) -> Vec<HistoryEntry> {
        let mut kept = self.lock();
        if let Err(e) = kept.refresh() {
            tracing::warn!("cannot read the prompt history: {e}");
        }
        kept.entries.clone()
    }

    /// Adds a prompt, unless it equals the previous one.
    ///
    /// # Errors
    /// Fails if the file cannot be written. The prompt is among the [entries](Self::entries) all the same.
    pub(crate) fn add(&self, mut entry: HistoryEntry) -> io::Result<()> {
        if entry.text.len() > MAX_TEXT_BYTES {
            let ends = |at: &usize| entry.text.is_char_boundary(*at);
            let end = (0..=MAX_TEXT_BYTES).rev().find(ends).unwrap_or(0);
            entry.text.truncate(end);
        }
        let mut kept = self.lock();
        if entry.text.trim().is_empty() || kept.entries.last() == Some(&entry) {
            return Ok(());
        }
        kept.push(entry.clone());
        kept.append(&entry)
    }

    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        // The state is consistent at any time, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryState {
    fn push(&mut self, entry: HistoryEntry) {
        if self.entries.last() != Some(&entry) {
            self.entries.push(entry);
        }
        let mut held = 0;
        let fits = |entry: &&HistoryEntry| {
            held += entry.text.len();
            held <= MAX_FILE_BYTES as usize
        };
        let newest = self.entries.iter().rev().take(MAX_ENTRIES);
        let fit = newest.take_while(fits).count();
        self.entries.drain(..self.entries.len() - fit);
    }

    /// Reads the file again if another process has written to it.
    fn refresh(&mut self) -> io::Result<()> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let long = file.metadata()?.len();
        if long == self.read_len {
            return Ok(());
        }
        let mut text = Vec::new();
        // Read one line more than the file is allowed to grow to.
        let most = MAX_FILE_BYTES + MAX_TEXT_BYTES as u64 * 8;
        file.take(most).read_to_end(&mut text)?;
        self.read_len = long;
        self.entries.clear();
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(entry) = serde_json::from_slice::<HistoryEntry>(line) {
                self.push(entry);
            }
        }
        Ok(())
    }

    /// Appends a line to the file in a single write, in case other processes append at the same time.
    fn append(&mut self, entry: &HistoryEntry) -> io::Result<()> {
        let Some(path) = self.file.clone() else {
            return Ok(());
        };
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut directories = fs::DirBuilder::new();
        directories.recursive(true);
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let mut locking = File::options();
        locking.write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
            directories.mode(0o700);
            options.mode(0o600);
            locking.mode(0o600);
        }
        directories.create(directory)?;
        let lock = locking.open(path.with_extension("lock"))?;
        // Any process holds the lock only briefly. It is released when this function returns or the process ends.
        lock.lock()?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = options.open(&path)?;
        let before = file.metadata()?.len();
        // An incomplete line of another process does not damage this one.
        let mut last = [b'\n'];
        if before > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            line.insert(0, b'\n');
        }
        if before + line.len() as u64 <= MAX_FILE_BYTES {
            file.write_all(&line)?;
            // Otherwise, other processes have added lines that are still to be read.
            if before == self.read_len {
                self.read_len += line.len() as u64;
            }
            return Ok(());
        }
        // A shorter file replaces it, with the prompts that all processes have added. It is readable by its owner only,
        // and deleted if this fails.
        self.refresh()?;
        self.push(entry.clone());
        let mut kept = Vec::new();
        for entry in self.entries.iter().rev() {
            let mut line = serde_json::to_vec(entry)?;
            if (kept.iter().map(Vec::len).sum::<usize>() + line.len()) as u64 > MAX_FILE_BYTES / 2 {
                break;
            }
            line.push(b'\n');
            kept.push(line);
        }
        kept.reverse();
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        let text = kept.concat();
        new.write_all(&text)?;
        new.persist(&path)?;
        self.read_len = text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history_entry(text: impl Into<String>) -> HistoryEntry {
        HistoryEntry {
            text: text.into(),
            files: Vec::new(),
        }
    }

    fn entry_texts(history: &PromptHistory) -> Vec<String> {
        history.entries().into_iter().map(|e| e.text).collect()
    }

    #[test]
    fn two_chats_share_their_history() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("project/history.jsonl");
        let one = PromptHistory::open(file.clone()).unwrap();
        let two = PromptHistory::open(file.clone()).unwrap();
        one.add(history_entry("first")).unwrap();
        two.add(history_entry("second\nof two lines")).unwrap();
        one.add(history_entry("third")).unwrap();
        one.add(history_entry("third")).unwrap();
        one.add(history_entry("  ")).unwrap();
        let all = ["first", "second\nof two lines", "third"];
        assert_eq!(entry_texts(&one), all);
        assert_eq!(entry_texts(&two), all);
        assert_eq!(
            entry_texts(&PromptHistory::open(file.clone()).unwrap()),
            all
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn concurrent_additions_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let history = PromptHistory::open(file.clone()).unwrap();
                scope.spawn(move || {
                    for i in 0..50 {
                        history.add(history_entry(format!("{thread} {i}"))).unwrap();
                    }
                });
            }
        });
        assert_eq!(entry_texts(&PromptHistory::open(file).unwrap()).len(), 200);
    }

    #[test]
    fn history_is_bounded_and_keeps_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history");
        let history = PromptHistory::open(file.clone()).unwrap();
        for i in 0..50 {
            // These are the longest prompts possible. A longer prompt is truncated.
            let long = format!("{i} {}", "x".repeat(MAX_TEXT_BYTES));
            history.add(history_entry(long)).unwrap();
        }
        assert!(fs::metadata(&file).unwrap().len() <= MAX_FILE_BYTES);
        let kept = entry_texts(&PromptHistory::open(file.clone()).unwrap());
        assert!(kept.last().unwrap().starts_with("49 "));
        assert!(kept.len() > 10, "{}", kept.len());
        for i in 0..2 * MAX_ENTRIES {
            history.add(history_entry(i.to_string())).unwrap();
        }
        assert_eq!(entry_texts(&history).len(), MAX_ENTRIES);
    }

    #[test]
    fn invalid_lines_of_the_file_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history");
        fs::write(&file, "nonsense\n{\"text\":\"hello\"}\n{\"text\":").unwrap();
        let history = PromptHistory::open(file.clone()).unwrap();
        assert_eq!(entry_texts(&history), ["hello"]);
        history.add(history_entry("after it")).unwrap();
        assert_eq!(
            entry_texts(&PromptHistory::open(file).unwrap()),
            ["hello", "after it"]
        );
        let memory = PromptHistory::default();
        memory.add(history_entry("only here")).unwrap();
        assert_eq!(entry_texts(&memory), ["only here"]);
    }
}
