//! A list of turns with the snapshots before them, so that a turn can be taken back when its session is opened again.
//!
//! The list is a file beside the snapshots, with one JSON object on each line. A line that cannot be read is skipped.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::RewindError;
use crate::history::{ProjectHistory, Snapshot, project_directory};

/// The name of the file, and of the one that replaces it.
const FILE_NAME: &str = "turns.jsonl";
const NEW_FILE_NAME: &str = "turns.jsonl.new";

/// The maximum number of turns that are kept.
const MAX_TURNS: usize = 5_000;

/// The maximum size of the file that is read, in bytes. What comes later is forgotten when snapshots are pruned.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A turn whose files were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTurn {
    /// The agent, as the client identifies it. Different agents can give their sessions the same ids.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// When the turn started, in the client's format.
    pub started_at: String,
    /// The beginning of the turn's prompt.
    pub prompt: String,
    /// The snapshot of the project's files before the turn.
    pub snapshot: Snapshot,
}

impl KeptTurn {
    /// Returns the turns of a session in the project in the directory `project`, oldest first. Snapshots that were removed
    /// since the list was last pruned can be among theirs.
    ///
    /// This does not wait for a snapshot that is being taken.
    ///
    /// # Errors
    ///
    /// If the list cannot be read.
    pub fn find(
        project: &Path,
        store: &Path,
        agent: &str,
        session: &str,
    ) -> Result<Vec<Self>, RewindError> {
        let root = fs::canonicalize(project).map_err(RewindError::io("open", project))?;
        let Ok(store) = fs::canonicalize(store) else {
            return Ok(Vec::new());
        };
        let mut turns = read_turns(&project_directory(&store, &root).join(FILE_NAME))?;
        turns.retain(|turn| turn.agent == agent && turn.session == session);
        Ok(turns)
    }
}

impl ProjectHistory {
    /// Adds turns to the list of turns.
    ///
    /// # Errors
    ///
    /// If the list cannot be written.
    pub fn keep_turns(&self, turns: &[KeptTurn]) -> Result<(), RewindError> {
        let path = self.path_beside_snapshots(FILE_NAME);
        let mut lines = Vec::new();
        for turn in turns {
            // It also ends a line that another process could not complete.
            lines.push(b'\n');
            serde_json::to_writer(&mut lines, turn)
                .map_err(|e| RewindError::io("write", &path)(e.into()))?;
        }
        let _lock = self.lock()?;
        let mut file = private_file()
            .append(true)
            .open(&path)
            .map_err(RewindError::io("open", &path))?;
        file.write_all(&lines)
            .map_err(RewindError::io("write", &path))
    }

    /// Removes the turns whose snapshots were removed, and the oldest ones if there are too many. The caller holds the
    /// lock.
    pub(crate) fn prune_turns(&self) -> Result<(), RewindError> {
        let snapshots = self.snapshot_ids()?;
        let mut turns = read_turns(&self.path_beside_snapshots(FILE_NAME))?;
        let count = turns.len();
        turns.retain(|turn| snapshots.contains(turn.snapshot.id()));
        turns.drain(..turns.len().saturating_sub(MAX_TURNS));
        if turns.len() == count {
            return Ok(());
        }
        let (path, new) = (
            self.path_beside_snapshots(FILE_NAME),
            self.path_beside_snapshots(NEW_FILE_NAME),
        );
        let mut lines = Vec::new();
        for turn in &turns {
            serde_json::to_writer(&mut lines, turn)
                .map_err(|e| RewindError::io("write", &new)(e.into()))?;
            lines.push(b'\n');
        }
        let mut file = private_file()
            .write(true)
            .truncate(true)
            .open(&new)
            .map_err(RewindError::io("open", &new))?;
        file.write_all(&lines)
            .map_err(RewindError::io("write", &new))?;
        fs::rename(&new, &path).map_err(RewindError::io("replace", &path))
    }

    /// Returns the ids of all snapshots.
    fn snapshot_ids(&self) -> Result<HashSet<String>, RewindError> {
        let listed = self.list_references("%(objectname)")?;
        Ok(listed.lines().map(str::to_owned).collect())
    }
}

/// Returns options that create a file for the user only.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Reads a list of turns. Returns none if there is no list.
fn read_turns(path: &Path) -> Result<Vec<KeptTurn>, RewindError> {
    let bytes = match read_start(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(RewindError::io("read", path)(e)),
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    let turns = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(turns.collect())
}

/// Reads a file, but not more of it than is allowed.
fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
