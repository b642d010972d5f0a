//! Runs the thread that highlights code, and manages its queue.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};

use ratatui::text::Line;
use tokio::sync::Notify;

use super::{Highlighter, Language, MAX_BYTES, MAX_LINE_BYTES, MAX_LINES};
use crate::theme::{Colors, SyntaxStyles, Theme};

/// The maximum length of the queue. When it is full, the oldest text is dropped, and can be requested again.
const MAX_QUEUED_TEXTS: usize = 256;

/// The number of lines to highlight before making the results available.
const BATCH_LINES: usize = 32;

/// The maximum number of texts in the cache.
const MAX_CACHED_TEXTS: usize = 256;
/// The maximum total size of the texts in the cache, in bytes.
const MAX_CACHED_BYTES: usize = 1024 * 1024;

/// Code that is being highlighted, line by line.
pub(crate) struct HighlightedCode(Arc<Mutex<HighlightWork>>);

struct HighlightWork {
    language: Arc<LanguageName>,
    styles: SyntaxStyles,
    /// The highlighter. The thread creates it for the first line.
    highlighter: Option<Highlighter>,
    /// The lines still to be highlighted.
    pending_lines: VecDeque<String>,
    /// The highlighted lines that have not been taken yet.
    finished_lines: Vec<Line<'static>>,
    /// The total number of lines pushed so far.
    lines: usize,
    bytes: usize,
    /// Whether too many lines have been pushed.
    is_full: bool,
    /// Whether the code is queued or being highlighted.
    is_queued: bool,
}

/// A [`Language`] with owned data.
enum LanguageName {
    Name(String),
    Path(PathBuf),
}

impl LanguageName {
    fn as_language(&self) -> Language<'_> {
        match self {
            Self::Name(name) => Language::Name(name),
            Self::Path(path) => Language::Path(path),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HighlightedCode {
    /// Creates code that has no lines yet. Returns `None` if the code would not be highlighted in any case.
    pub(crate) fn new(language: Language<'_>, theme: &Theme) -> Option<Self> {
        if theme.colors == Colors::None || matches!(language, Language::Name("")) {
            return None;
        }
        let language = match language {
            Language::Name(name) => LanguageName::Name(name.to_owned()),
            Language::Path(path) => LanguageName::Path(path.to_owned()),
        };
        Some(Self(Arc::new(Mutex::new(HighlightWork {
            language: Arc::new(language),
            styles: theme.syntax,
            highlighter: None,
            pending_lines: VecDeque::new(),
            finished_lines: Vec::new(),
            lines: 0,
            bytes: 0,
            is_full: false,
            is_queued: false,
        }))))
    }

    /// Adds the next line, without its line feed. Returns `false` if the line exceeds the limits and will not be
    /// highlighted.
    pub(crate) fn push(&self, line: &str) -> bool {
        let mut work = lock(&self.0);
        work.lines += 1;
        work.bytes += line.len();
        work.is_full |=
            line.len() > MAX_LINE_BYTES || work.lines > MAX_LINES || work.bytes > MAX_BYTES;
        if work.is_full {
            return false;
        }
        work.pending_lines.push_back(line.to_owned());
        self.enqueue(work);
        true
    }

    /// Takes the lines highlighted since the last call.
    ///
    /// Returns no lines while the thread is working on the code, because drawing must not block. Waiters are notified
    /// when the thread is done.
    pub(crate) fn take(&self) -> Vec<Line<'static>> {
        let mut work = match self.0.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(work)) => work.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        let done = std::mem::take(&mut work.finished_lines);
        self.enqueue(work);
        done
    }

    /// Queues the code for highlighting if it has pending lines and is not already queued.
    fn enqueue(&self, mut work: MutexGuard<'_, HighlightWork>) {
        if !work.pending_lines.is_empty() && !work.is_queued {
            work.is_queued = true;
            drop(work);
            highlight_thread().add(Arc::downgrade(&self.0));
        }
    }
}

/// The queue of the highlighting thread, and the condition variable that wakes it.
#[derive(Default)]
struct HighlightThread {
    /// The texts to highlight, starting with the most recent one because it is the most likely to be on the screen.
    queue: Mutex<HighlightQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct HighlightQueue {
    codes: VecDeque<Weak<Mutex<HighlightWork>>>,
    busy: bool,
}

/// A counter that is incremented whenever new highlighting becomes available.
static HIGHLIGHT_COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns how many times new highlighting has become available.
///
/// While it stays the same, there is nothing new to take.
pub(crate) fn highlight_count() -> u64 {
    HIGHLIGHT_COUNT.load(Ordering::Acquire)
}

/// Notifies the chat when new highlighting is available.
static NEW_HIGHLIGHTS: Notify = Notify::const_new();

/// Waits until new highlighting is available. Returns at once if some has become available since the last call.
pub(crate) async fn wait_for_highlights() {
    NEW_HIGHLIGHTS.notified().await;
}

fn highlight_thread() -> &'static HighlightThread {
    static THREAD: LazyLock<HighlightThread> = LazyLock::new(HighlightThread::default);
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = std::thread::Builder::new().name("colors".to_owned());
        // Without the thread, code stays plain.
        if let Err(error) = thread.spawn(|| THREAD.run()) {
            tracing::warn!(%error, "syntax highlighting disabled: cannot start a thread");
        }
    });
    &THREAD
}

impl HighlightThread {
    fn add(&self, code: Weak<Mutex<HighlightWork>>) {
        let mut waiting = lock(&self.queue);
        waiting.codes.push_back(code);
        if waiting.codes.len() > MAX_QUEUED_TEXTS {
            waiting.codes.retain(|code| code.strong_count() > 0);
        }
        let left = match waiting.codes.len() > MAX_QUEUED_TEXTS {
            true => waiting.codes.pop_front(),
            false => None,
        };
        drop(waiting);
        self.changed.notify_all();
        if let Some(left) = left.and_then(|left| left.upgrade()) {
            lock(&left).is_queued = false;
        }
    }

    fn run(&self) {
        loop {
            let code = {
                let mut waiting = lock(&self.queue);
                loop {
                    if let Some(code) = waiting.codes.pop_back() {
                        waiting.busy = true;
                        break code;
                    }
                    waiting.busy = false;
                    self.changed.notify_all();
                    waiting = self
                        .changed
                        .wait(waiting)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            };
            // The code may have been dropped in the meantime.
            if let Some(code) = code.upgrade() {
                highlight_code(&code);
                HIGHLIGHT_COUNT.fetch_add(1, Ordering::Release);
                NEW_HIGHLIGHTS.notify_one();
            }
        }
    }
}

/// Highlights the code's pending lines. Stops if the code is dropped.
fn highlight_code(code: &Arc<Mutex<HighlightWork>>) {
    let mut work = lock(code);
    let mut highlighter = work.highlighter.take();
    loop {
        let count = work.pending_lines.len().min(BATCH_LINES);
        let lines: Vec<String> = work.pending_lines.drain(..count).collect();
        let Some(first) = lines.first() else { break };
        let language = Arc::clone(&work.language);
        let styles = work.styles;
        drop(work);
        let highlighter = highlighter
            .get_or_insert_with(|| Highlighter::new(language.as_language(), first, styles));
        let colored: Vec<_> = lines
            .iter()
            .map(|line| highlighter.highlight_line(line))
            .collect();
        work = lock(code);
        work.finished_lines.extend(colored);
        if Arc::strong_count(code) == 1 {
            break;
        }
    }
    work.highlighter = highlighter;
    work.is_queued = false;
}

/// A text that was requested as a whole, and its highlighting.
struct CachedCode {
    /// A hash of the text and its language. If two texts collide, the caller notices because the lines do not match its
    /// own.
    key: u64,
    bytes: usize,
    code: HighlightedCode,
    lines: Arc<Vec<Line<'static>>>,
    /// The number of lines that will be highlighted.
    line_count: usize,
}

thread_local! {
    /// Whether this thread has requested highlighting that is still pending.
    static HAS_PENDING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure. Returns its result, and whether it requested highlighting ([`highlighted_lines`]) that is still
/// pending.
pub(crate) fn with_pending_flag<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = HAS_PENDING.replace(false);
    let done = work();
    (done, HAS_PENDING.replace(before))
}

/// Returns the highlighted lines of a text, up to the limits. Returns `None` while highlighting is pending.
///
/// Call it again after [`wait_for_highlights`]: the result is cached for a while.
pub(crate) fn highlighted_lines(
    text: &str,
    language: Language<'_>,
    theme: &Theme,
) -> Option<Arc<Vec<Line<'static>>>> {
    static CACHE: Mutex<VecDeque<CachedCode>> = Mutex::new(VecDeque::new());
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let of = match language {
        Language::Name(name) => (name.as_bytes(), false),
        Language::Path(path) => (path.as_os_str().as_encoded_bytes(), true),
    };
    let key = HASHER.hash_one((of, text, theme.syntax));
    let mut all = lock(&CACHE);
    let mut known = match all.iter().position(|known| known.key == key) {
        Some(at) => all.remove(at)?,
        None => {
            let code = HighlightedCode::new(language, theme)?;
            let wanted = text.lines().take_while(|line| code.push(line)).count();
            CachedCode {
                key,
                bytes: text.len().min(MAX_BYTES),
                code,
                lines: Arc::default(),
                line_count: wanted,
            }
        }
    };
    let more = known.code.take();
    if !more.is_empty() {
        Arc::make_mut(&mut known.lines).extend(more);
    }
    let lines = (known.lines.len() >= known.line_count).then(|| Arc::clone(&known.lines));
    all.push_back(known);
    let mut bytes: usize = all.iter().map(|known| known.bytes).sum();
    while all.len() > MAX_CACHED_TEXTS || bytes > MAX_CACHED_BYTES && all.len() > 1 {
        bytes -= all.pop_front().map_or(0, |known| known.bytes);
    }
    if lines.is_none() {
        HAS_PENDING.set(true);
    }
    lines
}

/// Waits until all requested highlighting is done.
#[cfg(test)]
pub(crate) fn wait_until_idle() {
    let painter = highlight_thread();
    let mut waiting = lock(&painter.queue);
    while waiting.busy || !waiting.codes.is_empty() {
        waiting = painter
            .changed
            .wait(waiting)
            .unwrap_or_else(PoisonError::into_inner);
    }
}
