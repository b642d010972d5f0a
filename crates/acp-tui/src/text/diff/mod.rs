//! Renders file diffs as lines, either unified or side by side, with syntax colors on top of the diff colors.

mod change;
mod paint;
mod patch;
mod side_by_side;
#[cfg(test)]
mod tests;
mod unified;

use std::path::Path;
use std::time::{Duration, Instant};

use acp::thread::ThreadDiff;
use acp::v2::DiffPatchFormat;
use ratatui::style::Style;
use ratatui::text::Line;

use self::change::{FileDiff, MAX_DIFF_BYTES};
use self::paint::DiffPainter;
use self::patch::PatchPart;
use crate::Theme;
use crate::text::columns::{
    MAX_LINE_CHARS, VisibleLine, break_rows, group_thousands, make_visible, pluralize,
};

/// The maximum number of changed lines to show. Further lines are only counted.
const MAX_CHANGED_LINES: usize = 5_000;

/// The maximum number of patch lines to show that are not part of a change.
const MAX_REMARKS: usize = 100;

/// The maximum number of files to show.
const MAX_FILES: usize = 500;

/// The minimum width at which a diff is shown side by side by default.
const AUTO_SIDE_BY_SIDE_WIDTH: u16 = 100;

/// The minimum width at which a diff can be shown side by side.
const MIN_SIDE_BY_SIDE_WIDTH: u16 = 40;

/// The time limits for computing a diff.
#[derive(Debug, Clone, Copy)]
struct DiffBudget {
    /// The time limit for comparing lines. After that, the remaining lines count as changed.
    lines: Duration,
    /// The time limit for comparing words in changed lines. Words compared after that are not emphasized.
    words: Duration,
}

impl DiffBudget {
    /// The limits that apply while a user waits for the screen to be drawn.
    const SCREEN_BUDGET: Self = Self {
        lines: Duration::from_millis(200),
        words: Duration::from_millis(100),
    };
}

/// A request to show a diff, in full or in part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffRequest<'a> {
    /// The changes to show.
    pub diff: &'a ThreadDiff,
    /// The session's directory. Paths inside it are shown relative to it.
    pub cwd: Option<&'a Path>,
    /// Whether the user must make a decision based on the diff. If so, only unchanged lines may be omitted.
    pub shows_all: bool,
}

/// The layout of diffs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DiffLayout {
    /// Side by side if the view is wide enough, otherwise unified.
    #[default]
    Auto,
    /// Old lines above new lines.
    Unified,
    /// Old lines on the left and new lines on the right. Falls back to unified below 40 columns.
    SideBySide,
}

/// Lays out a diff as lines of at most `width` columns.
///
/// At most 5,000 changed lines are shown; the rest are counted. Tabs become spaces, and characters that are invisible or
/// change how others look are escaped. A file that was added or removed has one side and is shown unified.
pub(crate) fn render_diff(
    of: DiffRequest<'_>,
    layout: DiffLayout,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    render_diff_with_budget(DiffBudget::SCREEN_BUDGET, of, layout, width, theme)
}

fn render_diff_with_budget(
    patience: DiffBudget,
    of: DiffRequest<'_>,
    layout: DiffLayout,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let side_by_side = match layout {
        DiffLayout::Auto => width >= AUTO_SIDE_BY_SIDE_WIDTH,
        DiffLayout::Unified => false,
        DiffLayout::SideBySide => width >= MIN_SIDE_BY_SIDE_WIDTH,
    };
    let now = Instant::now();
    let for_lines = now + patience.lines;
    let mut shown = DiffOutput {
        lines: Vec::new(),
        width: usize::from(width.max(1)),
        side_by_side,
        theme,
        cwd: of.cwd,
        shows_all: of.shows_all,
        remaining: if of.shows_all {
            usize::MAX
        } else {
            MAX_CHANGED_LINES
        },
        remarks: 0,
        files: 0,
        words_deadline: now + patience.lines + patience.words,
    };
    let mut named = Vec::new();
    if let Some(patch) = &of.diff.patch {
        if patch.format == DiffPatchFormat::GitPatch {
            for part in patch::parse_parts(&patch.text) {
                match part {
                    PatchPart::Line(line) => shown.push_remark(line),
                    PatchPart::File(mut file) => {
                        let changes = &of.diff.changes;
                        if let Some(change) = changes.iter().find(|change| change.path == file.path)
                        {
                            file.add_type_note(change);
                        }
                        named.push(file.path.clone());
                        shown.push_file(&file);
                    }
                }
            }
        } else {
            for line in patch.text.lines() {
                shown.push_remark(line);
            }
        }
    }
    for change in &of.diff.changes {
        match &change.texts {
            Some(texts) => {
                let largest = if of.shows_all {
                    usize::MAX
                } else {
                    MAX_DIFF_BYTES
                };
                shown.push_file(&FileDiff::from_texts(change, texts, for_lines, largest));
            }
            None if of.shows_all || !named.contains(&change.path) => {
                shown.push_file(&FileDiff::from_report(change))
            }
            None => {}
        }
    }
    shown.finish()
}

/// The part of a diff that has been laid out so far.
struct DiffOutput<'a> {
    lines: Vec<Line<'static>>,
    width: usize,
    side_by_side: bool,
    theme: &'a Theme,
    cwd: Option<&'a Path>,
    /// Whether only unchanged lines may be omitted.
    shows_all: bool,
    /// The number of changed lines that may still be shown.
    remaining: usize,
    /// The number of remarks that have been added so far.
    remarks: usize,
    /// The number of files that have been added so far.
    files: usize,
    /// The deadline for comparing words.
    words_deadline: Instant,
}

impl DiffOutput<'_> {
    fn push_file(&mut self, file: &FileDiff<'_>) {
        self.files += 1;
        if self.files > MAX_FILES && !self.shows_all {
            return;
        }
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.push_header(file);
        let changed_before = self.remaining;
        let mut paint = DiffPainter::new(file, self.theme, self.words_deadline, self.max_chars());
        let side_by_side = self.side_by_side && !file.is_one_sided();
        for hunk in &file.hunks {
            if self.remaining == 0 {
                break;
            }
            let rows = paint.paint_hunk(hunk, &mut self.remaining);
            self.push_gap(hunk.lines_before, hunk.title);
            self.lines.extend(if side_by_side {
                side_by_side::render_lines(&rows, paint.digit_count(), self.width, self.theme)
            } else {
                unified::render_lines(&rows, paint.digit_count(), self.width, self.theme)
            });
        }
        if let Some(text) = file.hidden_lines_note(changed_before - self.remaining) {
            self.push_text(&text, self.theme.warn);
        } else {
            self.push_gap(file.lines_after, "");
        }
        for remark in &file.remarks {
            self.push_remark(remark);
        }
    }

    /// Returns the maximum number of characters shown per line.
    fn max_chars(&self) -> usize {
        if self.shows_all {
            usize::MAX
        } else {
            MAX_LINE_CHARS
        }
    }

    /// Adds the file's header: path, notes, and numbers of changed lines.
    fn push_header(&mut self, file: &FileDiff<'_>) {
        let theme = self.theme;
        let path = self
            .cwd
            .and_then(|cwd| Path::new(&file.path).strip_prefix(cwd).ok())
            .and_then(Path::to_str)
            .filter(|path| !path.is_empty())
            .unwrap_or(&file.path);
        let path = if path.is_empty() { "(no path)" } else { path };
        let path = make_visible(self.max_chars(), path, &[]);
        let mut pieces = style_pieces(&path, theme.strong, theme.warn);
        let notes = file.notes.join(", ");
        let notes = make_visible(self.max_chars(), &notes, &[]);
        if !notes.text.is_empty() {
            pieces.push(("  ", theme.text));
            pieces.extend(style_pieces(&notes, theme.dim, theme.warn));
        }
        let added = format!(" +{}", group_thousands(file.added));
        let removed = format!(" -{}", group_thousands(file.removed));
        if file.changed_line_count() > 0 {
            pieces.push((" ", theme.text));
        }
        if file.added > 0 {
            pieces.push((&added, theme.good));
        }
        if file.removed > 0 {
            pieces.push((&removed, theme.bad));
        }
        self.push(pieces);
    }

    /// Adds a note that counts the unchanged lines between two hunks.
    fn push_gap(&mut self, lines: usize, title: &str) {
        if lines > 0 {
            let title = if title.is_empty() {
                String::new()
            } else {
                format!(" · {title}")
            };
            let text = format!("⋯ {}{title}", pluralize(lines, "unchanged line"));
            self.push_text(&text, self.theme.dim);
        }
    }

    /// Adds a patch line that is not part of a change.
    fn push_remark(&mut self, text: &str) {
        self.remarks += 1;
        if self.remarks <= MAX_REMARKS || self.shows_all {
            self.push_text(text, self.theme.dim);
        }
    }

    fn push_text(&mut self, text: &str, style: Style) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = make_visible(self.max_chars(), text, &[]);
        let warn = self.theme.warn;
        self.push(style_pieces(&text, style, warn));
    }

    fn push(&mut self, pieces: Vec<(&str, Style)>) {
        let rows = break_rows(pieces, self.width);
        self.lines
            .extend(rows.into_iter().map(|row| Line::from(row.spans)));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if self.shows_all {
            return self.lines;
        }
        let more = [
            (self.files.saturating_sub(MAX_FILES), "more file"),
            (self.remarks.saturating_sub(MAX_REMARKS), "other line"),
        ];
        for (count, one) in more {
            if count > 0 {
                let text = format!("⋯ {} hidden", pluralize(count, one));
                self.push_text(&text, self.theme.warn);
            }
        }
        self.lines
    }
}

/// Splits visible text into pieces, so that escapes have their own style.
fn style_pieces(text: &VisibleLine, style: Style, named: Style) -> Vec<(&str, Style)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for range in &text.escapes {
        pieces.push((text.text.get(at..range.start).unwrap_or_default(), style));
        pieces.push((
            text.text.get(range.clone()).unwrap_or_default(),
            style.patch(named),
        ));
        at = range.end;
    }
    pieces.push((text.text.get(at..).unwrap_or_default(), style));
    pieces
}
