//! The thread that finds colours, and what waits for it.

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

/// How many codes wait for the thread. Beyond it the one that waits longest is left out until it is looked at again.
const WAITING: usize = 256;

/// How many lines are coloured before what has come of them can be taken.
const AT_ONCE: usize = 32;

/// How many texts are remembered with their colours, and how long they are together, in bytes.
const KNOWN: usize = 256;
const KNOWN_BYTES: usize = 1024 * 1024;

/// Code whose colours are being found, line by line.
pub(crate) struct HighlightedCode(Arc<Mutex<HighlightWork>>);

struct HighlightWork {
    language: Arc<LanguageName>,
    background: Background,
    colors: Colors,
    /// Made by the thread, of the first line.
    highlighter: Option<Highlighter>,
    /// Lines without colours yet.
    pending_lines: VecDeque<String>,
    /// Lines with colours that nobody has taken yet.
    finished_lines: Vec<Line<'static>>,
    /// How much was ever given.
    lines: usize,
    bytes: usize,
    /// More was given than is coloured.
    full: bool,
    /// It waits for the thread, or the thread works on it.
    queued: bool,
}

/// A [`Language`] that is kept.
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
    /// Code without a line yet; `None` where it has no colours anyway.
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

    /// The next line, without a line feed. Gives whether its colours will come: of much code those of the end do not.
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

    /// The lines that have their colours and were not taken before. None while the thread has its hands on them: a
    /// drawing does not wait for it, and there are news when it is done.
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

    /// Has the thread look at it, if there is something to be done and it does not know of it.
    fn queue(&self, mut work: MutexGuard<'_, HighlightWork>) {
        if !work.pending_lines.is_empty() && !work.queued {
            work.queued = true;
            drop(work);
            highlight_thread().add(Arc::downgrade(&self.0));
        }
    }
}

/// What waits for the thread.
#[derive(Default)]
struct HighlightThread {
    /// The last one is looked at first: it is what is on the screen.
    queue: Mutex<HighlightQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct HighlightQueue {
    codes: VecDeque<Weak<Mutex<HighlightWork>>>,
    busy: bool,
}

/// How often there were more colours.
static PAINTED: AtomicU64 = AtomicU64::new(0);

/// How often there were more colours: as long as this is the same there is nothing new to be taken.
pub(crate) fn painted() -> u64 {
    PAINTED.load(Ordering::Acquire)
}

/// Told when there are more colours.
static NEWS: Notify = Notify::const_new();

/// Waits until there are more colours than when this was asked last.
pub(crate) async fn wait_for_highlights() {
    NEWS.notified().await;
}

fn highlight_thread() -> &'static HighlightThread {
    static PAINTER: LazyLock<HighlightThread> = LazyLock::new(HighlightThread::default);
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let thread = std::thread::Builder::new().name("colours".to_owned());
        // Without the thread code stays plain.
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
            // Nobody wants it any more if it is gone.
            if let Some(code) = code.upgrade() {
                highlight_code(&code);
                PAINTED.fetch_add(1, Ordering::Release);
                NEWS.notify_one();
            }
        }
    }
}

/// Colours what there is of a code, as long as somebody wants it.
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
        let coloured: Vec<_> = lines
            .iter()
            .map(|line| highlighter.highlight_line(line))
            .collect();
        work = lock(code);
        work.finished_lines.extend(coloured);
        if Arc::strong_count(code) == 1 {
            break;
        }
    }
    work.highlighter = highlighter;
    work.queued = false;
}

/// A text that was asked for as a whole.
struct CachedCode {
    /// A hash of it and of what it is written in. Who takes another text's colours for its own sees that they do not
    /// fit.
    key: u64,
    bytes: usize,
    code: HighlightedCode,
    lines: Arc<Vec<Line<'static>>>,
    /// How many of them will have colours.
    line_count: usize,
}

thread_local! {
    /// A text was asked for on this thread that has no colours yet.
    static MISSED: Cell<bool> = const { Cell::new(false) };
}

/// Does something, and says whether it asked for colours ([`highlighted_lines`]) that are not there yet.
pub(crate) fn with_pending_flag<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = MISSED.replace(false);
    let done = work();
    (done, MISSED.replace(before))
}

/// The lines of a text in colours, as many as have them; `None` as long as they are not found. Ask again behind
/// [`wait_for_highlights`]: they are kept for a while.
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

/// Waits until all colours are found that were asked for.
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
