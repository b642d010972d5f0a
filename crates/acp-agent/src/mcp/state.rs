//! How a server is, and what the person may have to be told of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::listing::Ready;

/// How a server is.
#[derive(Clone)]
pub(super) enum State {
    Starting,
    Ready(Arc<Ready>),
    /// It is gone, and is being tried again; and why, for people.
    Lost(Arc<str>),
    /// It did not start, or is gone, and is not tried again by itself; and why, for people.
    Failed(Arc<str>),
}

/// What the person may have to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    Gone {
        why: Arc<str>,
        /// What becomes of it.
        next: &'static str,
    },
    Back {
        /// Why it was gone, if nobody was told.
        why: Option<Arc<str>>,
        how: &'static str,
    },
}

impl std::fmt::Display for News {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone { why, next: "" } => f.write_str(why),
            Self::Gone { why, next } => write!(f, "{why}\n\n{next}"),
            Self::Back { why: None, how } => f.write_str(how),
            Self::Back {
                why: Some(why),
                how,
            } => write!(f, "{why}\n\n{how}"),
        }
    }
}

/// What a server and its task tell each other. Of the news only the last is kept: nobody needs those before it.
#[derive(Default)]
pub(super) struct Told {
    news: Mutex<Option<News>>,
    /// It went without a word, and may come back without one.
    hushed: AtomicBool,
    /// Somebody wants something of a server that is not there.
    pub(super) needed: Notify,
}

impl Told {
    pub(super) fn news(&self) -> std::sync::MutexGuard<'_, Option<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gone(&self, why: Arc<str>, next: &'static str) {
        self.hushed.store(false, Ordering::Relaxed);
        *self.news() = Some(News::Gone { why, next });
    }

    /// It is gone, and nobody is told unless it stays so.
    pub(super) fn hush(&self) {
        self.hushed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_hushed(&self) -> bool {
        self.hushed.load(Ordering::Relaxed)
    }

    pub(super) fn back(&self, how: &'static str) {
        if self.hushed.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut news = self.news();
        let why = match news.take() {
            Some(News::Gone { why, .. }) => Some(why),
            Some(News::Back { why, .. }) => why,
            None => None,
        };
        *news = Some(News::Back { why, how });
    }
}
