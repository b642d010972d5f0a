//! A fuzzy finder for a project's files that runs on its own thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::walk::{MAX_ENTRIES, ProjectEntry, list_files};

/// The maximum number of matches per query.
const MAX_MATCHES: usize = 100;
/// How long to use a file list before the next query rebuilds it.
const MAX_LIST_AGE: Duration = Duration::from_secs(5);
/// The interval between searches of a list that is still being built.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// A finder for a project's files. Clones share one thread, which starts with the first query and ends when the last
/// clone is dropped.
#[derive(Clone)]
pub(crate) struct FileFinder(Arc<FinderHandle>);

struct FinderHandle(Arc<FinderShared>);

struct FinderShared {
    root: PathBuf,
    /// The function to call when there are new matches. It runs on the finder's thread.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<FinderState>,
    changed: Condvar,
}

#[derive(Default)]
struct FinderState {
    begun: bool,
    closed: bool,
    /// The next query, until the worker thread picks it up.
    query: Option<String>,
    matches: Arc<FileMatches>,
}

/// The files and directories that match a query.
#[derive(Debug, Default)]
pub(crate) struct FileMatches {
    /// The query that produced the matches, or `None` if there has been no query.
    pub(crate) query: Option<String>,
    /// The matching files and directories, best match first.
    pub(crate) files: Vec<FileMatch>,
    /// Whether the project is still being listed for the first time.
    pub(crate) is_searching: bool,
    /// Whether the project has more files than the search covers.
    pub(crate) has_more: bool,
}

/// A file or directory that matches a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMatch {
    /// The path relative to the project, as displayed. A directory's path ends with `/`.
    pub(crate) display_path: String,
    /// The actual path relative to the project.
    pub(crate) path: PathBuf,
    /// The indices of the matched grapheme clusters in the displayed path.
    pub(crate) match_indices: Vec<u32>,
}

impl FileFinder {
    /// Creates a finder for the files in a directory. `wake` is called on another thread whenever there are new
    /// matches.
    pub(crate) fn new(root: PathBuf, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(FinderHandle(Arc::new(FinderShared {
            root,
            wake: Box::new(wake),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))))
    }

    /// Returns the directory whose files are searched.
    pub(crate) fn root(&self) -> &Path {
        &self.0.0.root
    }

    /// Starts a query. Its matches arrive later. Replaces any query that the thread has not picked up yet.
    pub(crate) fn start_query(&self, query: &str) {
        let shared = &self.0.0;
        let mut state = shared.lock();
        state.query = Some(query.to_owned());
        if !state.begun {
            state.begun = true;
            let worker = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("files".to_owned());
            if let Err(e) = thread.spawn(move || FinderWorker::default().run(&worker)) {
                tracing::warn!("cannot complete file names: {e}");
            }
        }
        drop(state);
        shared.changed.notify_all();
    }

    /// Returns the most recent matches, which may belong to an earlier query.
    pub(crate) fn matches(&self) -> Arc<FileMatches> {
        Arc::clone(&self.0.0.lock().matches)
    }

    /// Waits at most `within` for the matches for `query`, and returns them. If they do not arrive in time, returns the
    /// most recent matches for any query.
    pub(crate) fn matches_for(&self, query: &str, within: Duration) -> Arc<FileMatches> {
        let unsettled = |state: &mut FinderState| {
            state.matches.query.as_deref() != Some(query)
                || (state.matches.is_searching && state.matches.files.is_empty())
        };
        let shared = &self.0.0;
        let state = shared.lock();
        let waited = shared
            .changed
            .wait_timeout_while(state, within, unsettled)
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&waited.0.matches)
    }
}

impl Drop for FinderHandle {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl FinderShared {
    fn lock(&self) -> MutexGuard<'_, FinderState> {
        // The state is consistent at any time, even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, found: FileMatches) {
        let mut state = self.lock();
        state.matches = Arc::new(found);
        drop(state);
        self.changed.notify_all();
        (self.wake)();
    }
}

/// The state of the finder's thread.
struct FinderWorker {
    matcher: Matcher,
    /// The file list without hidden files, then the one with them.
    lists: [Option<FileList>; 2],
}

struct FileList {
    entries: Vec<ProjectEntry>,
    created_at: Instant,
}

impl Default for FinderWorker {
    fn default() -> Self {
        Self {
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            lists: [None, None],
        }
    }
}

impl FinderWorker {
    fn run(&mut self, shared: &FinderShared) {
        loop {
            let idle = |state: &mut FinderState| state.query.is_none() && !state.closed;
            let state = shared.changed.wait_while(shared.lock(), idle);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            let Some(query) = state.query.take() else {
                continue;
            };
            drop(state);
            self.run_query(shared, query);
        }
    }

    fn run_query(&mut self, shared: &FinderShared, mut query: String) {
        let hidden = includes_hidden(&query);
        // The known list is searched at once, and again if it has changed since.
        if let Some(kept) = &self.lists[usize::from(hidden)] {
            shared.publish(search_files(
                &mut self.matcher,
                &kept.entries,
                &query,
                false,
            ));
            if kept.created_at.elapsed() < MAX_LIST_AGE {
                return;
            }
        }
        let kept = self.lists[usize::from(hidden)].take();
        let mut looked = Instant::now();
        let matcher = &mut self.matcher;
        let entries = list_files(&shared.root, hidden, |so_far| {
            // Reading the clock is cheap, but not cheap enough to do it for every file.
            if so_far.len() % 64 != 0 {
                return true;
            }
            if looked.elapsed() < SEARCH_INTERVAL {
                return true;
            }
            let mut state = shared.lock();
            let closed = state.closed;
            let other = state
                .query
                .take_if(|asked| includes_hidden(asked) == hidden);
            drop(state);
            let another = other.is_some();
            query = other.unwrap_or_else(|| std::mem::take(&mut query));
            match &kept {
                Some(kept) if another => {
                    shared.publish(search_files(matcher, &kept.entries, &query, false));
                }
                Some(_) => {}
                None => shared.publish(search_files(matcher, so_far, &query, true)),
            }
            looked = Instant::now();
            !closed
        });
        shared.publish(search_files(matcher, &entries, &query, false));
        let made = Instant::now();
        self.lists[usize::from(hidden)] = Some(FileList {
            entries,
            created_at: made,
        });
    }
}

/// Returns whether to search hidden files, which requires that part of the queried path starts with a dot.
fn includes_hidden(query: &str) -> bool {
    query.starts_with('.') || query.contains("/.")
}

/// The rank of a match. Higher is better, and of two equally good matches, the shorter path comes first.
type MatchRank = (u32, Reverse<usize>, Reverse<usize>);

fn search_files(
    matcher: &mut Matcher,
    entries: &[ProjectEntry],
    query: &str,
    looking: bool,
) -> FileMatches {
    let pattern = Pattern::new(
        query,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let mut buffer = Vec::new();
    let mut best: BinaryHeap<Reverse<(MatchRank, usize)>> = BinaryHeap::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(score) = pattern.score(Utf32Str::new(&entry.display_path, &mut buffer), matcher)
        else {
            continue;
        };
        // With an empty query, entries near the root are more likely to be wanted.
        let first = if query.is_empty() {
            entry.depth()
        } else {
            entry.display_path.len()
        };
        best.push(Reverse(((score, Reverse(first), Reverse(index)), index)));
        if best.len() > MAX_MATCHES {
            best.pop();
        }
    }
    let best = best.into_sorted_vec();
    let files = best.into_iter().filter_map(|Reverse((_, index))| {
        let entry = entries.get(index)?;
        let mut matched = Vec::new();
        let shown = Utf32Str::new(&entry.display_path, &mut buffer);
        pattern.indices(shown, matcher, &mut matched);
        matched.sort_unstable();
        matched.dedup();
        Some(FileMatch {
            display_path: entry.display_path.to_string(),
            path: entry.path(),
            match_indices: matched,
        })
    });
    FileMatches {
        query: Some(query.to_owned()),
        files: files.collect(),
        is_searching: looking,
        has_more: entries.len() >= MAX_ENTRIES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_secs(30);

    fn sample_project() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("src/editor")).unwrap();
        for file in ["src/main.rs", "src/editor/mod.rs", "README.md", ".env"] {
            std::fs::write(directory.path().join(file), "").unwrap();
        }
        directory
    }

    fn names_of_matches(found: &FileMatches) -> Vec<&str> {
        found
            .files
            .iter()
            .map(|file| file.display_path.as_str())
            .collect()
    }

    #[test]
    fn files_are_found_by_fuzzy_match_and_the_listener_is_notified() {
        let directory = sample_project();
        let (woken, wakes) = std::sync::mpsc::channel();
        let files = FileFinder::new(directory.path().to_owned(), move || {
            let _ = woken.send(());
        });
        files.start_query("edmod");
        let found = files.matches_for("edmod", LONG_TIMEOUT);
        assert_eq!(names_of_matches(&found), ["src/editor/mod.rs"]);
        assert_eq!(found.files[0].match_indices, [4, 5, 11, 12, 13]);
        assert!(wakes.recv_timeout(LONG_TIMEOUT).is_ok());

        files.start_query("");
        let all = files.matches_for("", LONG_TIMEOUT);
        assert_eq!(all.files.len(), 5);
        assert!(names_of_matches(&all)[..2].contains(&"README.md"));
        files.start_query(".env");
        assert_eq!(
            names_of_matches(&files.matches_for(".env", LONG_TIMEOUT)),
            [".env"]
        );
        files.start_query("nothing-like-it");
        assert!(
            files
                .matches_for("nothing-like-it", LONG_TIMEOUT)
                .files
                .is_empty()
        );
    }

    #[test]
    fn dropped_finder_stops_its_thread() {
        let directory = sample_project();
        let alive = Arc::new(());
        let kept = Arc::clone(&alive);
        let files = FileFinder::new(directory.path().to_owned(), move || {
            let _ = &kept;
        });
        files.start_query("");
        files.matches_for("", LONG_TIMEOUT);
        let shared = Arc::clone(&files.0.0);
        drop(files);
        // The thread drops its reference when it ends.
        let until = Instant::now() + LONG_TIMEOUT;
        while Arc::strong_count(&shared) > 1 && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn best_matches_come_first_and_are_limited() {
        let directory = tempfile::tempdir().unwrap();
        for i in 0..300 {
            std::fs::write(directory.path().join(format!("some-text-{i}")), "").unwrap();
        }
        std::fs::write(directory.path().join("text"), "").unwrap();
        let files = FileFinder::new(directory.path().to_owned(), || {});
        files.start_query("text");
        let found = files.matches_for("text", LONG_TIMEOUT);
        assert_eq!(found.files.len(), MAX_MATCHES);
        assert_eq!(found.files[0].display_path, "text");
    }
}
