//! How a server is, and what the person may have to be told of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::listing::McpListing;

/// How a server is.
#[derive(Clone)]
pub(super) enum McpServerState {
    Starting,
    Ready(Arc<McpListing>),
    /// It is gone, and is being tried again; and why, for people.
    Lost(Arc<str>),
    /// It did not start, or is gone, and is not tried again by itself; and why, for people.
    Failed(Arc<str>),
}

/// What the person may have to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum McpServerNews {
    Lost {
        why: Arc<str>,
        /// What becomes of it.
        next: &'static str,
    },
    Recovered {
        /// Why it was gone, if nobody was told.
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

/// What a server and its task tell each other. Of the news only the last is kept: nobody needs those before it.
#[derive(Default)]
pub(super) struct McpServerChannel {
    news: Mutex<Option<McpServerNews>>,
    /// It went without a word, and may come back without one.
    hushed: AtomicBool,
    /// Somebody wants something of a server that is not there.
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

    /// It is gone, and nobody is told unless it stays so.
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
