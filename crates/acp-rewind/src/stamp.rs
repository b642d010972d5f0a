//! Stamps of files: the metadata that shows whether a file was written.

use std::time::{Duration, SystemTime};

use cap_std::fs::Metadata;

/// How long after a write another one may leave the same times. Clocks of file systems advance in steps of up to 10 ms.
const CLOCK_STEP: Duration = Duration::from_millis(100);

/// The same for file systems that store whole seconds, or two of them.
const COARSE_CLOCK_STEP: Duration = Duration::from_secs(3);

/// A file's metadata at the moment when its contents were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    /// When the contents were written, in nanoseconds since 1970.
    modified: i128,
    /// When the contents or the metadata were changed. Unlike `modified`, no program can set it.
    changed: i128,
    inode: u64,
    /// The permission bits.
    pub(crate) mode: u32,
}

impl FileStamp {
    /// Returns the stamp of a file.
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use cap_std::fs::MetadataExt;
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            mode: metadata.mode() & 0o7777,
        }
    }

    /// Returns the stamp of a file.
    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata
            .modified()
            .ok()
            .map(cap_std::time::SystemTime::into_std);
        let modified = modified.map_or(0, nanoseconds_since_1970);
        Self {
            size: metadata.len(),
            modified,
            changed: modified,
            inode: 0,
            mode: 0o644,
        }
    }

    /// Returns whether a later write could leave the same stamp, because the file was written shortly before `now`.
    pub(crate) fn is_recent(&self, now: SystemTime) -> bool {
        let step = match self.changed % 1_000_000_000 {
            0 => COARSE_CLOCK_STEP,
            _ => CLOCK_STEP,
        };
        let now = nanoseconds_since_1970(now);
        now - self.changed <= i128::try_from(step.as_nanos()).unwrap_or(i128::MAX)
    }
}

fn nanoseconds_since_1970(time: SystemTime) -> i128 {
    let nanoseconds = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => nanoseconds(after),
        Err(before) => -nanoseconds(before.duration()),
    }
}
