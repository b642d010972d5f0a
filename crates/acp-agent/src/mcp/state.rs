//! Tracks the state of an MCP server, and the changes to report to the user.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::listing::McpListing;

/// The state of the connection to an MCP server.
#[derive(Clone)]
pub(super) enum McpServerState {
    Starting,
    Ready(Arc<McpListing>),
    /// The connection was lost and will be retried. Contains the reason to show to the user.
    Lost(Arc<str>),
    /// The server failed to start or was lost, and will not be retried automatically. Contains the reason to show to
    /// the user.
    Failed(Arc<str>),
}

/// A change in the state of a server that must be reported to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum McpServerChange {
    Lost {
        why: Arc<str>,
        /// A sentence that tells the user what happens next.
        next: &'static str,
    },
    Recovered {
        /// The reason why the connection was lost, unless the user has already seen it.
        why: Option<Arc<str>>,
        how: &'static str,
    },
}

impl std::fmt::Display for McpServerChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost { why, next: "" } => f.write_str(why),
            Self::Lost { why, next } => write!(f, "{why}\n\n{next}"),
            Self::Recovered { why: None, how } => f.write_str(how),
            Self::Recovered {
                why: Some(why),
                how,
            } => write!(f, "{why}\n\n{how}"),
        }
    }
}

/// The channel between a server and its task. It keeps only the latest unreported change.
#[derive(Default)]
pub(super) struct McpServerChannel {
    news: Mutex<Option<McpServerChange>>,
    /// Whether to keep the current loss, and the recovery from it, hidden from the user.
    suppresses_reports: AtomicBool,
    /// Notifies the task that the server is needed but not connected.
    pub(super) retry_needed: Notify,
}

impl McpServerChannel {
    pub(super) fn lock_unreported_change(
        &self,
    ) -> std::sync::MutexGuard<'_, Option<McpServerChange>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_lost(&self, why: Arc<str>, next: &'static str) {
        self.suppresses_reports.store(false, Ordering::Relaxed);
        *self.lock_unreported_change() = Some(McpServerChange::Lost { why, next });
    }

    /// Records a loss that will be reported only if the next attempt to connect fails.
    pub(super) fn suppress_report(&self) {
        self.suppresses_reports.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_report_suppressed(&self) -> bool {
        self.suppresses_reports.load(Ordering::Relaxed)
    }

    pub(super) fn set_recovered(&self, how: &'static str) {
        if self.suppresses_reports.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut news = self.lock_unreported_change();
        let why = match news.take() {
            Some(McpServerChange::Lost { why, .. }) => Some(why),
            Some(McpServerChange::Recovered { why, .. }) => why,
            None => None,
        };
        *news = Some(McpServerChange::Recovered { why, how });
    }
}
