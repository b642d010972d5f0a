//! Writes output to stdout, and a progress line to stderr if stderr is a terminal.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use acp_host::question::QUESTION_BAR;
use acp_host::terminal_text;
use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

const SPINNER_FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How long output must be idle before the progress line is shown.
const PROGRESS_DELAY: Duration = Duration::from_millis(600);

/// The styles of the output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Styles {
    pub(crate) bold: Style,
    pub(crate) dim: Style,
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) accent: Style,
}

impl Styles {
    /// Returns the styles for stdout, which are empty if stdout does not support color.
    pub(crate) fn for_stdout() -> Self {
        if supports_color(&std::io::stdout()) {
            Self::colored()
        } else {
            Self::default()
        }
    }

    fn colored() -> Self {
        Self {
            bold: Style::new().bold(),
            dim: Style::new().dimmed(),
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default(),
            accent: AnsiColor::Cyan.on_default(),
        }
    }
}

/// Output that is collected and then shown all at once.
pub(crate) struct ScreenOutput {
    pub(crate) styles: Styles,
    buffer: String,
    at_line_start: bool,
    /// The nesting level, which is the number of bars to draw before each line.
    depth: usize,
    /// The nesting level of the current line.
    line_depth: usize,
}

impl ScreenOutput {
    /// Adds unstyled text.
    pub(crate) fn push_text(&mut self, text: &str) {
        if self.line_depth != self.depth && !text.is_empty() {
            self.end_line();
        }
        for line in text.split_inclusive('\n') {
            if self.at_line_start {
                self.line_depth = self.depth;
                self.buffer.push_str(&"│ ".repeat(self.depth));
            }
            self.buffer.push_str(line);
            self.at_line_start = line.ends_with('\n');
        }
    }

    /// Adds the output of `show`, nested this many levels deeper. Text at another level starts a new line, but more text
    /// at the same level continues the line.
    pub(crate) fn push_nested(&mut self, levels: usize, show: impl FnOnce(&mut Self)) {
        self.depth += levels;
        show(self);
        self.depth -= levels;
    }

    /// Adds text with a style.
    pub(crate) fn push_styled(&mut self, style: Style, text: &str) {
        let at_line_start = self.at_line_start;
        self.push_text(&format!("{style}{text}{style:#}"));
        // The escape sequence at the end is invisible.
        self.at_line_start = text
            .chars()
            .last()
            .map_or(at_line_start, |last| last == '\n');
    }

    /// Ends the current line, if it has any text.
    pub(crate) fn end_line(&mut self) {
        if !self.at_line_start {
            self.buffer.push('\n');
            self.at_line_start = true;
        }
    }
}

/// Returns `true` if the terminal does not support control sequences.
fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Returns `true` if the stream supports colors.
fn supports_color(to: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    to.is_terminal() && !is_dumb_terminal() && !unwanted
}

/// The indentation of continuation lines when a question is wider than the terminal.
const CONTINUATION_INDENT: &str = "      ";

/// The smallest width, in columns, to which lines are wrapped.
const MIN_WRAP_WIDTH: usize = 20;

/// Wraps a question to the width of the terminal. If the terminal wrapped it, lines would continue at the left edge,
/// where an agent could disguise them as another part of the question.
pub(crate) fn wrap_question(text: &str) -> String {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    match size {
        Some((columns, _)) => wrap_to_width(usize::from(columns.0), text),
        None => text.to_owned(),
    }
}

fn wrap_to_width(columns: usize, text: &str) -> String {
    if columns < MIN_WRAP_WIDTH {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = if line.starts_with(QUESTION_BAR) {
            QUESTION_BAR
        } else {
            CONTINUATION_INDENT
        };
        let mut used = 0;
        for c in line.chars() {
            let width = c.width().unwrap_or_default();
            if used + width > columns {
                shown.push('\n');
                shown.push_str(rest);
                used = rest.len();
            }
            shown.push(c);
            used += width;
        }
    }
    shown
}

/// The reason why writing to stdout failed. Not set if the reader closed stdout.
static WRITE_ERROR: OnceLock<String> = OnceLock::new();

/// Writes to stdout. Returns `false` if the reader has closed stdout or writing fails.
pub(crate) fn print(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if let Err(e) = &written
        && e.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = WRITE_ERROR.set(e.to_string());
    }
    written.is_ok()
}

/// Returns the reason why output could not be written to stdout, such as a full disk.
pub(crate) fn write_error() -> Option<&'static str> {
    WRITE_ERROR.get().map(String::as_str)
}

/// The terminal, shared by the renderer and the prompts for user input.
#[derive(Clone)]
pub(crate) struct TerminalScreen(Arc<Mutex<ScreenState>>);

struct ScreenState {
    styles: Styles,
    at_line_start: bool,
    /// The nesting level of the last line.
    line_depth: usize,
    /// Whether the progress line can be shown.
    is_live: bool,
    /// Whether the progress line is currently shown.
    is_spinning: bool,
    frame: usize,
    started_at: Instant,
    last_shown_at: Instant,
    asking: bool,
    broken: bool,
}

impl ScreenState {
    fn stop_spinner(&mut self) {
        if std::mem::take(&mut self.is_spinning) {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
        }
    }
}

/// An open question. Other output waits until this is dropped.
pub(crate) struct ScreenQuestion(TerminalScreen);

impl Drop for ScreenQuestion {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.asking = false;
        state.last_shown_at = Instant::now();
    }
}

impl TerminalScreen {
    pub(crate) fn new(live: bool) -> Self {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        let now = Instant::now();
        Self(Arc::new(Mutex::new(ScreenState {
            styles: Styles::for_stdout(),
            at_line_start: true,
            line_depth: 0,
            is_live: live && out.is_terminal() && err.is_terminal() && !is_dumb_terminal(),
            is_spinning: false,
            frame: 0,
            started_at: now,
            last_shown_at: now,
            asking: false,
            broken: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.lock().is_live
    }

    pub(crate) fn is_stdout_closed(&self) -> bool {
        self.lock().broken
    }

    /// Shows the output of `draw`, unless a question is open. The first call after the question shows whatever was
    /// missed.
    pub(crate) fn draw(&self, draw: impl FnOnce(&mut ScreenOutput)) {
        let mut state = self.lock();
        if state.asking {
            return;
        }
        let mut out = ScreenOutput {
            styles: state.styles,
            buffer: String::new(),
            at_line_start: state.at_line_start,
            depth: 0,
            line_depth: state.line_depth,
        };
        draw(&mut out);
        if out.buffer.is_empty() {
            return;
        }
        state.stop_spinner();
        state.at_line_start = out.at_line_start;
        state.line_depth = out.line_depth;
        state.last_shown_at = Instant::now();
        if !print(out.buffer.as_bytes()) {
            state.broken = true;
        }
    }

    /// Shows a note about the run itself, on stderr.
    pub(crate) fn note(&self, note: &str) {
        let mut state = self.lock();
        state.stop_spinner();
        if !state.at_line_start {
            print(b"\n");
            state.at_line_start = true;
        }
        eprintln!(
            "acp: {}",
            terminal_text::truncate_middle(
                &terminal_text::clean_line(note),
                terminal_text::MAX_MESSAGE_CHARS
            )
        );
    }

    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.stop_spinner();
        if !state.at_line_start {
            print(b"\n");
            state.at_line_start = true;
        }
    }

    /// Shows or updates the progress line, if nothing else has been shown for a while.
    pub(crate) fn tick(&self, doing: &str) {
        let mut state = self.lock();
        let idle =
            state.at_line_start && !state.asking && state.last_shown_at.elapsed() > PROGRESS_DELAY;
        if !state.is_live || !idle {
            return;
        }
        state.frame = (state.frame + 1) % SPINNER_FRAMES.len();
        let frame = SPINNER_FRAMES.get(state.frame).unwrap_or(&"");
        let seconds = state.started_at.elapsed().as_secs();
        let doing: String = terminal_text::clean_line(doing).chars().take(50).collect();
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r\x1b[K{frame} {doing} {seconds} s").and_then(|()| err.flush());
        drop(err);
        state.is_spinning = true;
    }

    /// Shows a hint about what to do next, on stderr.
    pub(crate) fn hint(&self, hint: &str) {
        let dim = if supports_color(&std::io::stderr()) {
            Style::new().dimmed()
        } else {
            Style::new()
        };
        self.finish();
        eprintln!("{dim}{}{dim:#}", terminal_text::clean_line(hint));
    }

    /// Shows a question. Nothing else is shown until the returned guard is dropped.
    pub(crate) fn question(&self, draw: impl FnOnce(&mut ScreenOutput)) -> ScreenQuestion {
        let mut state = self.lock();
        state.stop_spinner();
        state.asking = true;
        let mut out = ScreenOutput {
            styles: Styles::default(),
            buffer: String::new(),
            at_line_start: state.at_line_start,
            depth: 0,
            line_depth: state.line_depth,
        };
        out.end_line();
        out.push_text("\n");
        draw(&mut out);
        eprint!("{}", wrap_question(&out.buffer));
        state.at_line_start = true;
        drop(state);
        ScreenQuestion(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_text_never_starts_at_the_left_margin() {
        let text = format!(
            "? Do it\n  | {}  1) Allow\n  $ {}\n",
            "x".repeat(36),
            "日".repeat(20)
        );
        let x = "x".repeat(26);
        let wide = "日".repeat(13);
        assert_eq!(
            wrap_to_width(30, &text),
            format!(
                "? Do it\n  | {x}\n  | {}  1) Allow\n  $ {wide}\n      {}\n",
                "x".repeat(10),
                "日".repeat(7)
            )
        );
        assert_eq!(wrap_to_width(10, &text), text);
    }
}
