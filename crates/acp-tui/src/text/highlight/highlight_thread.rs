//! The highlighting thread and its queue.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};

use ratatui::text::Line;
use tokio::sync::Notify;

use super::{Highlighter, Language, MAX_BYTES, MAX_LINE, MAX_LINES};
use crate::theme::{Background, Colors, Theme};

/// The maximum number of texts in the queue. Beyond that, the oldest is dropped until it is requested again.
const WAITING: usize = 256;

/// The number of lines that are highlighted before the results can be taken.
const AT_ONCE: usize = 32;

/// The maximum number of texts whose highlighting is cached.
const KNOWN: usize = 256;
/// The maximum total size of these texts, in bytes.
const KNOWN_BYTES: usize = 1024 * 1024;

/// Code that is being highlighted, line by line.
pub(crate) struct HighlightedCode(Arc<Mutex<HighlightWork>>);

struct HighlightWork {
    language: Arc<LanguageName>,
    background: Background,
    colors: Colors,
    /// The highlighter, which the thread creates at the first line.
    highlighter: Option<Highlighter>,
    /// The lines still to be highlighted.
    pending_lines: VecDeque<String>,
    /// The highlighted lines that have not been taken yet.
    finished_lines: Vec<Line<'static>>,
    /// The total number of lines pushed so far.
    lines: usize,
    bytes: usize,
    /// Whether more lines were pushed than are highlighted.
    full: bool,
    /// Whether the code is in the queue or in progress.
    queued: bool,
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
    /// Creates code without lines, or returns `None` if it would not be highlighted anyway.
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
            background: theme.background,
            colors: theme.colors,
            highlighter: None,
            pending_lines: VecDeque::new(),
            finished_lines: Vec::new(),
            lines: 0,
            bytes: 0,
            full: false,
            queued: false,
        }))))
    }

    /// Adds the next line, given without a line feed; returns whether it will be highlighted. Lines beyond the limits
    /// are not.
    pub(crate) fn push(&self, line: &str) -> bool {
        let mut work = lock(&self.0);
        work.lines += 1;
        work.bytes += line.len();
        work.full |= line.len() > MAX_LINE || work.lines > MAX_LINES || work.bytes > MAX_BYTES;
        if work.full {
            return false;
        }
        work.pending_lines.push_back(line.to_owned());
        self.queue(work);
        true
    }

    /// Takes the lines that were highlighted since the last call.
    ///
    /// Returns none while the thread is working on the code, because drawing must not block; waiters are notified when
    /// it is done.
    pub(crate) fn take(&self) -> Vec<Line<'static>> {
        let mut work = match self.0.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(work)) => work.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        let done = std::mem::take(&mut work.finished_lines);
        self.queue(work);
        done
    }

    /// Adds the code to the thread's queue, if it has pending lines and is not queued yet.
    fn queue(&self, mut work: MutexGuard<'_, HighlightWork>) {
        if !work.pending_lines.is_empty() && !work.queued {
            work.queued = true;
            drop(work);
            highlight_thread().add(Arc::downgrade(&self.0));
        }
    }
}

/// The state of the highlighting thread: its queue and its wake-up.
#[derive(Default)]
struct HighlightThread {
    /// The texts to highlight, last one first, because that is what the screen shows.
    queue: Mutex<HighlightQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct HighlightQueue {
    codes: VecDeque<Weak<Mutex<HighlightWork>>>,
    busy: bool,
}

/// The number of times that new highlighting has become available.
static PAINTED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of times that new highlighting has become available.
///
/// While it stays the same, there is nothing new to take.
pub(crate) fn painted() -> u64 {
    PAINTED.load(Ordering::Acquire)
}

/// The notification that new highlighting is available.
static NEWS: Notify = Notify::const_new();

/// Waits until more highlighting is available than at the last call.
pub(crate) async fn wait_for_highlights() {
    NEWS.notified().await;
}

fn highlight_thread() -> &'static HighlightThread {
    static PAINTER: LazyLock<HighlightThread> = LazyLock::new(HighlightThread::default);
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let thread = std::thread::Builder::new().name("colors".to_owned());
        // Without the thread, code stays plain.
        if let Err(error) = thread.spawn(|| PAINTER.run()) {
            tracing::warn!(%error, "syntax highlighting disabled: cannot start a thread");
        }
    });
    &PAINTER
}

impl HighlightThread {
    fn add(&self, code: Weak<Mutex<HighlightWork>>) {
        let mut waiting = lock(&self.queue);
        waiting.codes.push_back(code);
        if waiting.codes.len() > WAITING {
            waiting.codes.retain(|code| code.strong_count() > 0);
        }
        let left = match waiting.codes.len() > WAITING {
            true => waiting.codes.pop_front(),
            false => None,
        };
        drop(waiting);
        self.changed.notify_all();
        if let Some(left) = left.and_then(|left| left.upgrade()) {
            lock(&left).queued = false;
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
                PAINTED.fetch_add(1, Ordering::Release);
                NEWS.notify_one();
            }
        }
    }
}

/// Highlights the pending lines of some code, as long as the code is in use.
fn highlight_code(code: &Arc<Mutex<HighlightWork>>) {
    let mut work = lock(code);
    let mut highlighter = work.highlighter.take();
    loop {
        let count = work.pending_lines.len().min(AT_ONCE);
        let lines: Vec<String> = work.pending_lines.drain(..count).collect();
        let Some(first) = lines.first() else { break };
        let language = Arc::clone(&work.language);
        let (background, colors) = (work.background, work.colors);
        drop(work);
        let highlighter = highlighter.get_or_insert_with(|| {
            Highlighter::new(language.as_language(), first, background, colors)
        });
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
    work.queued = false;
}

/// A text that was requested as a whole, with its highlighting.
struct CachedCode {
    /// A hash of the text and its language. After a collision, the caller sees that the lines do not match its text.
    key: u64,
    bytes: usize,
    code: HighlightedCode,
    lines: Arc<Vec<Line<'static>>>,
    /// The number of lines that will be highlighted.
    line_count: usize,
}

thread_local! {
    /// Whether a text was requested on this thread that is not highlighted yet.
    static MISSED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a closure; also returns whether it requested highlighting ([`highlighted_lines`]) that is still pending.
pub(crate) fn with_pending_flag<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = MISSED.replace(false);
    let done = work();
    (done, MISSED.replace(before))
}

/// Returns the highlighted lines of a text, up to the limits, or `None` while they are pending.
///
/// Call it again after [`wait_for_highlights`]: the result is cached for a while.
pub(crate) fn highlighted_lines(
    text: &str,
    language: Language<'_>,
    theme: &Theme,
) -> Option<Arc<Vec<Line<'static>>>> {
    static KNOWN_TEXTS: Mutex<VecDeque<CachedCode>> = Mutex::new(VecDeque::new());
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let of = match language {
        Language::Name(name) => (name.as_bytes(), false),
        Language::Path(path) => (path.as_os_str().as_encoded_bytes(), true),
    };
    let key = HASHER.hash_one((of, text, theme.background as u8, theme.colors as u8));
    let mut all = lock(&KNOWN_TEXTS);
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
    while all.len() > KNOWN || bytes > KNOWN_BYTES && all.len() > 1 {
        bytes -= all.pop_front().map_or(0, |known| known.bytes);
    }
    if lines.is_none() {
        MISSED.set(true);
    }
    lines
}

/// Waits until all requested highlighting is done.
#[cfg(test)]
pub(crate) fn finish() {
    let painter = highlight_thread();
    let mut waiting = lock(&painter.queue);
    while waiting.busy || !waiting.codes.is_empty() {
        waiting = painter
            .changed
            .wait(waiting)
            .unwrap_or_else(PoisonError::into_inner);
    }
}
