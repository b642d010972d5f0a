//! The state of an MCP server, and the news about it for the user.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::listing::McpListing;

/// The state of an MCP server.
#[derive(Clone)]
pub(super) enum McpServerState {
    Starting,
    Ready(Arc<McpListing>),
    /// The connection was lost and will be retried. The string tells the user why.
    Lost(Arc<str>),
    /// The server failed to start or was lost, and is not retried automatically. The string tells the user why.
    Failed(Arc<str>),
}

/// News about a server, to report to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum McpServerNews {
    Lost {
        why: Arc<str>,
        /// A sentence for the user about what happens next.
        next: &'static str,
    },
    Recovered {
        /// Why the connection was lost, unless the user has seen that already.
        why: Option<Arc<str>>,
        how: &'static str,
    },
}

impl std::fmt::Display for McpServerNews {
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

/// The channel between a server and its task. It holds only the latest news, which replaces earlier news.
#[derive(Default)]
pub(super) struct McpServerChannel {
    news: Mutex<Option<McpServerNews>>,
    /// Whether the current loss is not reported. Then the recovery is not reported either.
    hushed: AtomicBool,
    /// Notified when a server that is not connected is needed.
    pub(super) retry_needed: Notify,
}

impl McpServerChannel {
    pub(super) fn news(&self) -> std::sync::MutexGuard<'_, Option<McpServerNews>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_lost(&self, why: Arc<str>, next: &'static str) {
        self.hushed.store(false, Ordering::Relaxed);
        *self.news() = Some(McpServerNews::Lost { why, next });
    }

    /// Records a loss that will be reported only if the next attempt to connect fails.
    pub(super) fn suppress_report(&self) {
        self.hushed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_report_suppressed(&self) -> bool {
        self.hushed.load(Ordering::Relaxed)
    }

    pub(super) fn set_recovered(&self, how: &'static str) {
        if self.hushed.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut news = self.news();
        let why = match news.take() {
            Some(McpServerNews::Lost { why, .. }) => Some(why),
            Some(McpServerNews::Recovered { why, .. }) => why,
            None => None,
        };
        *news = Some(McpServerNews::Recovered { why, how });
    }
}
