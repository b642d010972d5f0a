//! Snapshots of a project's files, which can be restored.
//!
//! A client takes a snapshot before each turn of an agent. To take back the turn, it restores the snapshot. This works
//! whether the agent writes files through the client or by itself.
//!
//! ```no_run
//! use acp_rewind::{HistoryOptions, ProjectHistory};
//!
//! # fn main() -> Result<(), acp_rewind::RewindError> {
//! let project = "/home/user/project".as_ref();
//! let store = "/home/user/.local/share/acp/rewind".as_ref();
//! let mut history = ProjectHistory::open(project, store, HistoryOptions::default())?;
//! let before = history.take_snapshot()?;
//! // The agent works.
//! let plan = history.plan_restore(&before)?;
//! println!("{} files will change", plan.changes.len());
//! history.restore(&plan)?;
//! # Ok(())
//! # }
//! ```

mod changes;
mod error;
mod git;
mod history;
mod import;
mod metadata;
mod options;
mod restore;
mod scan;
mod stamp;
mod turn_log;

pub use changes::{ChangeKind, SnapshotChange};
pub use error::RewindError;
pub use history::{ProjectHistory, Snapshot};
pub use options::HistoryOptions;
pub use restore::{RestorePlan, SkippedPath};
pub use scan::{LeftOutPath, LeftOutReason};
pub use turn_log::KeptTurn;
