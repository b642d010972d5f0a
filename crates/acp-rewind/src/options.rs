//! The limits of a history.

use std::time::Duration;

/// The limits of a project's history.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// The maximum size of a file, in bytes. Larger files are left out. The default is 10 MiB.
    pub max_file_bytes: u64,
    /// The maximum number of files of a project. The default is 200,000.
    pub max_files: usize,
    /// The maximum size of the files that one snapshot reads, in bytes. The default is 2 GiB.
    pub max_snapshot_bytes: u64,
    /// The maximum number of snapshots that [`crate::ProjectHistory::prune`] keeps. The default is 1,000.
    pub max_snapshots: usize,
    /// The maximum age of snapshots that [`crate::ProjectHistory::prune`] keeps. The default is 14 days.
    pub max_age: Duration,
    /// The size of all snapshots in bytes, above which [`crate::ProjectHistory::prune`] removes the older half. The default is
    /// 2 GiB.
    pub max_stored_bytes: u64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            max_file_bytes: 10 << 20,
            max_files: 200_000,
            max_snapshot_bytes: 2 << 30,
            max_snapshots: 1_000,
            max_age: Duration::from_secs(14 * 24 * 60 * 60),
            max_stored_bytes: 2 << 30,
        }
    }
}
