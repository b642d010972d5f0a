//! Renders the output of a command as a terminal would show it.
//!
//! That includes colors, redrawn progress bars, and a screen that scrolls. None of the output can control the real
//! terminal.

mod colors;
mod filter;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::ops::Range;
use std::time::{Duration, Instant};

use acp::thread::ThreadTerminal;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;
use vt100::capture::{BasicFormattedCaptureState, RowContents};
use vt100::{Callbacks, Parser};

use self::colors::CellStyle;
use self::filter::AnsiFilter;
use super::columns::pluralize;
use crate::Theme;

/// The maximum number of scrolled-off lines to keep.
const MAX_SCROLLBACK_LINES: usize = 2_000;

/// The maximum size of the scrolled-off lines to keep, in bytes.
const MAX_SCROLLBACK_BYTES: usize = 4 * 1024 * 1024;

/// The screen height if the agent does not specify one. Most commands redraw fewer lines.
const DEFAULT_ROWS: u16 = 50;

/// The maximum number of rows or columns that an agent may specify.
const MAX_SCREEN_SIZE: u16 = 500;

/// The minimum number of columns that an agent may specify.
const MIN_COLUMNS: u16 = 20;

/// The time limit for processing output per frame. The rest is processed in later frames.
const FRAME_BUDGET: Duration = Duration::from_millis(6);

/// The number of bytes processed between two checks of the clock.
const CHUNK_BYTES: usize = 1024;

/// A command's output on a screen as wide as the view, and the lines that have scrolled off it.
pub(crate) struct TerminalText {
    parser: Parser<Scrollback>,
    filter: AnsiFilter,
    /// The size of the screen, in rows and columns.
    size: (NonZeroU16, NonZeroU16),
    /// The position up to which the output has been processed.
    read_len: u64,
    /// The position in the output at which the screen was last cleared.
    cleared_at: u64,
    /// The number of rows in use, from the top of the screen.
    used_rows: u16,
}

impl TerminalText {
    /// Creates an empty screen.
    pub(crate) fn new() -> Self {
        Self::with_size((NonZeroU16::MIN, NonZeroU16::MIN), 0)
    }

    fn with_size(size: (NonZeroU16, NonZeroU16), cleared_at: u64) -> Self {
        Self {
            parser: Parser::new_with_callbacks(size.0, size.1, 0, Scrollback::default()),
            filter: AnsiFilter::default(),
            size,
            read_len: cleared_at,
            cleared_at,
            used_rows: 0,
        }
    }

    /// Processes new terminal output for a few milliseconds. Returns whether more output is waiting to be processed.
    ///
    /// If more is waiting, call this again in the next frame. Starts from the beginning if the width has changed or the
    /// output was cleared.
    pub(crate) fn update(&mut self, terminal: &ThreadTerminal, width: u16) -> bool {
        let size = screen_size(terminal, width);
        if size != self.size || terminal.cleared_at() != self.cleared_at {
            *self = Self::with_size(size, terminal.cleared_at());
        }
        if self.read_len == terminal.total_bytes() {
            return false;
        }
        let output = terminal.output_since(self.read_len);
        let start = terminal.total_bytes().saturating_sub(output.len() as u64);
        if start > self.read_len {
            // More output was printed than is stored. Output that was read before has scrolled off.
            *self = Self::with_size(size, terminal.cleared_at());
            self.read_len = start;
            self.parser.callbacks_mut().has_lost_output = true;
        }
        let until = Instant::now() + FRAME_BUDGET;
        let mut rest = output.as_str();
        while !rest.is_empty() {
            let mut end = CHUNK_BYTES.min(rest.len());
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            let (piece, after) = rest.split_at(end);
            let clean = self.filter.filter_text(piece);
            self.parser.process(clean.as_bytes());
            self.read_len += piece.len() as u64;
            rest = after;
            if Instant::now() >= until {
                break;
            }
        }
        let (rows, _) = self.parser.screen().size();
        let is_used = |row: &u16| self.row_pieces(*row).next().is_some();
        self.used_rows = (0..rows.get()).rev().find(is_used).map_or(0, |row| row + 1);
        !rest.is_empty()
    }

    /// Returns the number of lines, including the note about dropped lines.
    pub(crate) fn len(&self) -> usize {
        let scrolled = self.parser.callbacks();
        usize::from(scrolled.earlier_note(0).is_some())
            + scrolled.rows.len()
            + usize::from(self.used_rows)
    }

    /// Returns a range of lines, none wider than the width given to `update`.
    pub(crate) fn lines(&self, range: Range<usize>, theme: &Theme) -> Vec<Line<'static>> {
        let scrolled = self.parser.callbacks();
        let earlier = scrolled.earlier_note(0);
        let first = usize::from(earlier.is_some());
        let line = |n: usize| {
            if let (0, Some(earlier)) = (n, &earlier) {
                return Some(self.render_note(earlier, theme));
            }
            let n = n - first;
            Some(match scrolled.rows.get(n) {
                Some(row) => self.render_line(colors::styled_pieces(row), theme),
                None => {
                    let row = u16::try_from(n - scrolled.rows.len()).ok()?;
                    let looks = self.row_pieces(row);
                    self.render_line(looks.map(|(text, look)| (text.to_owned(), look)), theme)
                }
            })
        };
        (range.start..range.end.min(self.len()))
            .filter_map(line)
            .collect()
    }

    /// Returns at most the last `count` lines, preceded by a note about how many lines come before them.
    pub(crate) fn tail(&self, count: usize, theme: &Theme) -> Vec<Line<'static>> {
        let len = self.len();
        if len <= count {
            return self.lines(0..len, theme);
        }
        let scrolled = self.parser.callbacks();
        let kept = scrolled.rows.len() + usize::from(self.used_rows);
        let mut lines = Vec::with_capacity(count + 1);
        if let Some(earlier) = scrolled.earlier_note(kept.saturating_sub(count)) {
            lines.push(self.render_note(&earlier, theme));
        }
        lines.extend(self.lines(len.saturating_sub(count)..len, theme));
        lines
    }

    /// Returns the styled pieces of a screen row, without trailing empty cells.
    fn row_pieces(&self, row: u16) -> impl Iterator<Item = (&str, CellStyle)> {
        let screen = self.parser.screen();
        let (_, columns) = screen.size();
        let shown = move |column: u16| {
            let cell = screen.cell(row, column)?;
            let look = CellStyle::from_cell(cell);
            if cell.is_wide_continuation() {
                return Some(("", look));
            }
            let text = if cell.has_contents() {
                cell.contents()
            } else {
                " "
            };
            Some((text, look))
        };
        let is_seen =
            move |column: &u16| shown(*column).is_some_and(|(text, look)| look.is_visible(text));
        let end = (0..columns.get())
            .rev()
            .find(is_seen)
            .map_or(0, |column| column + 1);
        (0..end).filter_map(shown)
    }

    /// Builds a line from styled pieces.
    fn render_line(
        &self,
        pieces: impl Iterator<Item = (String, CellStyle)>,
        theme: &Theme,
    ) -> Line<'static> {
        let mut line = Line::default();
        let mut left = usize::from(self.size.1.get());
        for (mut text, look) in pieces {
            // The screen measures single characters, and the view measures grapheme clusters, which are occasionally
            // wider.
            while text.width() > left {
                text.pop();
            }
            left -= text.width();
            let style = look.style(theme);
            match line.spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(&text),
                _ if text.is_empty() => {}
                _ => line.spans.push(Span::styled(text, style)),
            }
        }
        // Invisible text at the end of a line is dropped.
        while let Some(last) = line.spans.last_mut() {
            let drawn = Modifier::REVERSED | Modifier::UNDERLINED;
            if last.style.bg.is_some() || last.style.add_modifier.intersects(drawn) {
                break;
            }
            let end = last.content.trim_end_matches(' ').len();
            last.content.to_mut().truncate(end);
            if end > 0 {
                break;
            }
            line.spans.pop();
        }
        line
    }

    /// Builds a line for a note that is not part of the output.
    fn render_note(&self, text: &str, theme: &Theme) -> Line<'static> {
        let width = usize::from(self.size.1.get());
        let mut text = text.to_owned();
        while text.width() > width {
            text.pop();
        }
        Line::from(Span::styled(text, theme.dim))
    }
}

/// Returns the size of the screen, which is never wider than the view.
///
/// An agent that runs a program on a terminal of its own specifies that terminal's size, because the output would look
/// wrong at another size.
fn screen_size(terminal: &ThreadTerminal, width: u16) -> (NonZeroU16, NonZeroU16) {
    let said = terminal.size.as_ref();
    let rows = said.map_or(DEFAULT_ROWS, |size| size.rows.clamp(2, MAX_SCREEN_SIZE));
    let columns = said.map_or(MAX_SCREEN_SIZE, |size| {
        size.cols.clamp(MIN_COLUMNS, MAX_SCREEN_SIZE)
    });
    let some = |value| NonZeroU16::new(value).unwrap_or(NonZeroU16::MIN);
    (some(rows), some(columns.min(width)))
}

/// The rows that have scrolled off the screen.
#[derive(Default)]
struct Scrollback {
    /// The rows, with colors as escape sequences. Cells would take ten times the memory.
    rows: VecDeque<String>,
    /// The size of the rows in bytes.
    bytes: usize,
    /// The number of dropped rows, all from before the stored ones.
    dropped_rows: usize,
    /// Whether output before the dropped rows was lost.
    has_lost_output: bool,
}

impl Scrollback {
    /// Returns the note to show above the rows, if there is one. `more` is the number of further rows that are not
    /// shown.
    fn earlier_note(&self, more: usize) -> Option<String> {
        let count = self.dropped_rows + more;
        match (self.has_lost_output, count) {
            (false, 0) => None,
            (true, 0) => Some("⋯ earlier output dropped".to_owned()),
            (true, _) => Some(format!("⋯ more than {}", pluralize(count, "earlier line"))),
            (false, _) => Some(format!("⋯ {}", pluralize(count, "earlier line"))),
        }
    }
}

impl Callbacks for Scrollback {
    fn on_scroll(&mut self, contents: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen {
            return;
        }
        let mut row = String::new();
        let mut state = BasicFormattedCaptureState::new();
        // Writing to a string cannot fail.
        let _ = contents.write_formatted_basic(&mut row, &mut state);
        row.shrink_to_fit();
        self.bytes += row.len();
        self.rows.push_back(row);
        while self.rows.len() > MAX_SCROLLBACK_LINES || self.bytes > MAX_SCROLLBACK_BYTES {
            let Some(first) = self.rows.pop_front() else {
                break;
            };
            self.bytes -= first.len();
            self.dropped_rows += 1;
        }
    }
}
