//! Keeps snapshots of the project's files for the chat, on threads that may block.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::v1::SessionId;
use acp_rewind::{
    HistoryOptions, KeptTurn, LeftOutPath, ProjectHistory, RestorePlan, RewindError, SkippedPath,
    Snapshot,
};

/// How long a prompt waits for the snapshot of the files before it. Without a limit, a slow disk would delay every turn.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a shown diff, in bytes.
const MAX_DIFF_BYTES: u64 = 256 << 10;

/// The history of the project's files. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FileHistory {
    project: PathBuf,
    /// The directory that stores snapshots, or `None` if the user has turned them off.
    store: Option<PathBuf>,
    state: Arc<Mutex<HistoryState>>,
}

/// The state of a history.
#[derive(Debug, Default)]
enum HistoryState {
    /// Nothing has needed it yet.
    #[default]
    Closed,
    Open(Box<ProjectHistory>),
    /// There can be no snapshots of this project, for this reason. Trying again in each turn would only cost time.
    Unusable(String),
}

/// What restoring a snapshot would change, to be shown to the user.
#[derive(Debug)]
pub(crate) struct RestorePreview {
    pub(crate) plan: RestorePlan,
    /// The differences in the format of `git diff`.
    pub(crate) diff: String,
    /// Whether the differences are longer than `diff`.
    pub(crate) is_diff_cut: bool,
    /// The paths that the snapshot does not contain.
    pub(crate) left_out: Vec<LeftOutPath>,
}

/// Why a snapshot was not restored.
#[derive(Debug)]
pub(crate) enum RestoreFailure {
    /// Files have changed since the user saw what would change.
    FilesChanged,
    /// Any other reason, in words.
    Other(String),
}

impl FileHistory {
    pub(crate) fn new(project: PathBuf, store: Option<PathBuf>) -> Self {
        Self {
            project,
            store,
            state: Arc::default(),
        }
    }

    /// Takes the first snapshot, which reads all files, so that the first prompt does not have to wait for it. Then removes
    /// old snapshots.
    pub(crate) async fn prepare(&self) {
        let prepared = self.run(|history| {
            history.take_snapshot()?;
            history.prune()
        });
        if let Err(e) = prepared.await {
            tracing::info!("{e}");
        }
    }

    /// Takes a snapshot. Waits for a limited time.
    pub(crate) async fn take_snapshot(&self) -> Result<Snapshot, String> {
        let taken = self.run(ProjectHistory::take_snapshot);
        match tokio::time::timeout(SNAPSHOT_TIMEOUT, taken).await {
            Ok(taken) => taken.map_err(|e| e.to_string()),
            Err(_) => Err("keeping the project's files takes too long".to_owned()),
        }
    }

    /// Finds out what restoring a snapshot would change.
    pub(crate) async fn plan_restore(&self, to: Snapshot) -> Result<RestorePreview, String> {
        let planned = self.run(move |history| {
            let plan = history.plan_restore(&to)?;
            let diff = history.diff(&plan.before, &plan.to, MAX_DIFF_BYTES)?;
            Ok(RestorePreview {
                left_out: history.left_out(&plan.to)?,
                is_diff_cut: u64::try_from(diff.len()) == Ok(MAX_DIFF_BYTES),
                diff: String::from_utf8_lossy(&diff).into_owned(),
                plan,
            })
        });
        planned.await.map_err(|e| e.to_string())
    }

    /// Restores a snapshot. Returns the paths that were left as they are.
    pub(crate) async fn restore(
        &self,
        plan: RestorePlan,
    ) -> Result<Vec<SkippedPath>, RestoreFailure> {
        let restored = self.run(move |history| history.restore(&plan)).await;
        restored.map_err(|e| match e {
            HistoryFailure::Rewind(RewindError::FilesChanged) => RestoreFailure::FilesChanged,
            e => RestoreFailure::Other(e.to_string()),
        })
    }

    /// Remembers turns for the next time that their session is opened. If that fails, they are taken back only in this chat.
    pub(crate) async fn keep_turns(&self, turns: Vec<KeptTurn>) {
        if let Err(e) = self.run(move |history| history.keep_turns(&turns)).await {
            tracing::info!("{e}");
        }
    }

    /// Returns the turns of a session that are remembered, oldest first. Does not wait for a snapshot that is being taken.
    pub(crate) async fn find_turns(&self, agent: String, session: SessionId) -> Vec<KeptTurn> {
        let Some(store) = self.store.clone() else {
            return Vec::new();
        };
        let project = self.project.clone();
        let found = tokio::task::spawn_blocking(move || {
            KeptTurn::find(&project, &store, &agent, session.as_str())
        });
        match found.await {
            Ok(Ok(turns)) => turns,
            Ok(Err(e)) => {
                tracing::info!("{e}");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Runs work on the history, which is opened if necessary, on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ProjectHistory) -> Result<T, RewindError> + Send + 'static,
    ) -> Result<T, HistoryFailure> {
        let Some(store) = self.store.clone() else {
            return Err(HistoryFailure::TurnedOff);
        };
        let (project, state) = (self.project.clone(), Arc::clone(&self.state));
        let task = tokio::task::spawn_blocking(move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, HistoryState::Closed) {
                *state = match ProjectHistory::open(&project, &store, HistoryOptions::default()) {
                    Ok(history) => HistoryState::Open(Box::new(history)),
                    Err(e) => HistoryState::Unusable(e.to_string()),
                };
            }
            let result = match &mut *state {
                HistoryState::Open(history) => work(history),
                HistoryState::Unusable(reason) => {
                    return Err(HistoryFailure::Unusable(reason.clone()));
                }
                HistoryState::Closed => return Err(HistoryFailure::Ended),
            };
            if let Err(e @ RewindError::TooLarge(_)) = &result {
                *state = HistoryState::Unusable(e.to_string());
            }
            result.map_err(HistoryFailure::Rewind)
        });
        match task.await {
            Ok(done) => done,
            Err(_) => Err(HistoryFailure::Ended),
        }
    }
}

/// Why nothing was done with the history.
#[derive(Debug, thiserror::Error)]
enum HistoryFailure {
    #[error("snapshots are turned off (`chat.rewind` in config.toml)")]
    TurnedOff,
    #[error("{0}")]
    Unusable(String),
    #[error(transparent)]
    Rewind(#[from] RewindError),
    /// The thread has ended without a result.
    #[error("the chat is ending")]
    Ended,
}
