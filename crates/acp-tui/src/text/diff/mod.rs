//! Changes of files as lines: unified or side by side, with the colours of the code over those of the change.

mod change;
mod paint;
mod patch;
mod side_by_side;
#[cfg(test)]
mod tests;
mod unified;

use std::path::Path;
use std::time::{Duration, Instant};

use acp::thread::Diff;
use acp::v2::DiffPatchFormat;
use ratatui::style::Style;
use ratatui::text::Line;

use self::change::{FileDiff, LARGEST};
use self::paint::Paint;
use self::patch::Part;
use crate::Theme;
use crate::text::columns::{LINE, Visible, broken, counted, grouped, visible};

/// How many changed lines of a diff are shown. What there is beyond is counted.
const CHANGED: usize = 5_000;

/// How many lines are shown that a patch has beside its changes.
const REMARKS: usize = 100;

/// How many files are shown.
const FILES: usize = 500;

/// From which width on two halves are shown where nobody has chosen.
const WIDE: u16 = 100;

/// Below this width there is no room for two halves.
const NARROW: u16 = 40;

/// How long is worked on a diff.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How long lines are compared before the rest is taken for changed as a whole.
    lines: Duration,
    /// How long the words of changed lines are compared before none of them is stressed.
    words: Duration,
}

impl Patience {
    /// While a person waits for the screen.
    const SCREEN: Self = Self {
        lines: Duration::from_millis(200),
        words: Duration::from_millis(100),
    };
}

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffOf<'a> {
    /// The changes.
    pub diff: &'a Diff,
    /// The session's directory: paths in it are shown from there on.
    pub cwd: Option<&'a Path>,
    /// A person decides about it: nothing is left out but what has not changed.
    pub whole: bool,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Layout {
    /// Side by side where there is room for it.
    #[default]
    Auto,
    /// One below the other.
    Unified,
    /// What was on the left, what is on the right; unified below 40 columns.
    SideBySide,
}

/// The lines of a diff, none of them wider than `width`. At most 5,000 changed lines are shown; the rest is counted.
///
/// Tabs are spaces, and characters that are not seen, or change how others are, are named. A file that is new or gone
/// has one side and is shown unified.
pub(crate) fn diff(
    of: DiffOf<'_>,
    layout: Layout,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    diff_within(Patience::SCREEN, of, layout, width, theme)
}

fn diff_within(
    patience: Patience,
    of: DiffOf<'_>,
    layout: Layout,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let side_by_side = match layout {
        Layout::Auto => width >= WIDE,
        Layout::Unified => false,
        Layout::SideBySide => width >= NARROW,
    };
    let now = Instant::now();
    let for_lines = now + patience.lines;
    let mut shown = Shown {
        lines: Vec::new(),
        width: usize::from(width.max(1)),
        side_by_side,
        theme,
        cwd: of.cwd,
        whole: of.whole,
        left: if of.whole { usize::MAX } else { CHANGED },
        remarks: 0,
        files: 0,
        for_words: now + patience.lines + patience.words,
    };
    let mut named = Vec::new();
    if let Some(patch) = &of.diff.patch {
        if patch.format == DiffPatchFormat::GitPatch {
            for part in patch::parts(&patch.text) {
                match part {
                    Part::Line(line) => shown.remark(line),
                    Part::File(mut file) => {
                        let changes = &of.diff.changes;
                        if let Some(change) = changes.iter().find(|change| change.path == file.path)
                        {
                            file.note_type(change);
                        }
                        named.push(file.path.clone());
                        shown.file(&file);
                    }
                }
            }
        } else {
            for line in patch.text.lines() {
                shown.remark(line);
            }
        }
    }
    for change in &of.diff.changes {
        match &change.texts {
            Some(texts) => {
                let largest = if of.whole { usize::MAX } else { LARGEST };
                shown.file(&FileDiff::of_texts(change, texts, for_lines, largest));
            }
            None if of.whole || !named.contains(&change.path) => {
                shown.file(&FileDiff::said(change))
            }
            None => {}
        }
    }
    shown.end()
}

/// What is shown so far.
struct Shown<'a> {
    lines: Vec<Line<'static>>,
    width: usize,
    side_by_side: bool,
    theme: &'a Theme,
    cwd: Option<&'a Path>,
    /// Nothing is left out.
    whole: bool,
    /// How many changed lines may still be shown.
    left: usize,
    /// How many other lines there were.
    remarks: usize,
    /// How many files there were.
    files: usize,
    /// Until when words are compared.
    for_words: Instant,
}

impl Shown<'_> {
    fn file(&mut self, file: &FileDiff<'_>) {
        self.files += 1;
        if self.files > FILES && !self.whole {
            return;
        }
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.header(file);
        let changed_before = self.left;
        let mut paint = Paint::new(file, self.theme, self.for_words, self.longest());
        let side_by_side = self.side_by_side && !file.is_one_sided();
        for hunk in &file.hunks {
            if self.left == 0 {
                break;
            }
            let rows = paint.hunk(hunk, &mut self.left);
            self.gap(hunk.before, hunk.title);
            self.lines.extend(if side_by_side {
                side_by_side::lines(&rows, paint.digits(), self.width, self.theme)
            } else {
                unified::lines(&rows, paint.digits(), self.width, self.theme)
            });
        }
        if let Some(text) = file.not_shown(changed_before - self.left) {
            self.say(&text, self.theme.warn);
        } else {
            self.gap(file.after, "");
        }
        for remark in &file.remarks {
            self.remark(remark);
        }
    }

    /// How much of a line is shown, in characters.
    fn longest(&self) -> usize {
        if self.whole { usize::MAX } else { LINE }
    }

    /// The path, what is to be said of it, and how many lines have changed.
    fn header(&mut self, file: &FileDiff<'_>) {
        let theme = self.theme;
        let path = self
            .cwd
            .and_then(|cwd| Path::new(&file.path).strip_prefix(cwd).ok())
            .and_then(Path::to_str)
            .filter(|path| !path.is_empty())
            .unwrap_or(&file.path);
        let path = if path.is_empty() { "(no path)" } else { path };
        let path = visible(self.longest(), path, &[]);
        let mut pieces = styled(&path, theme.strong, theme.warn);
        let notes = file.notes.join(", ");
        let notes = visible(self.longest(), &notes, &[]);
        if !notes.text.is_empty() {
            pieces.push(("  ", theme.text));
            pieces.extend(styled(&notes, theme.dim, theme.warn));
        }
        let added = format!(" +{}", grouped(file.added));
        let removed = format!(" -{}", grouped(file.removed));
        if file.changed() > 0 {
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

    /// How many lines there are between what is shown.
    fn gap(&mut self, lines: usize, title: &str) {
        if lines > 0 {
            let title = if title.is_empty() {
                String::new()
            } else {
                format!(" · {title}")
            };
            let text = format!("⋯ {}{title}", counted(lines, "unchanged line"));
            self.say(&text, self.theme.dim);
        }
    }

    /// A line that is not of a change.
    fn remark(&mut self, text: &str) {
        self.remarks += 1;
        if self.remarks <= REMARKS || self.whole {
            self.say(text, self.theme.dim);
        }
    }

    fn say(&mut self, text: &str, style: Style) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = visible(self.longest(), text, &[]);
        let warn = self.theme.warn;
        self.push(styled(&text, style, warn));
    }

    fn push(&mut self, pieces: Vec<(&str, Style)>) {
        let rows = broken(pieces, self.width);
        self.lines
            .extend(rows.into_iter().map(|row| Line::from(row.spans)));
    }

    fn end(mut self) -> Vec<Line<'static>> {
        if self.whole {
            return self.lines;
        }
        let more = [
            (self.files.saturating_sub(FILES), "more file"),
            (self.remarks.saturating_sub(REMARKS), "other line"),
        ];
        for (count, one) in more {
            if count > 0 {
                let text = format!("⋯ {} not shown", counted(count, one));
                self.say(&text, self.theme.warn);
            }
        }
        self.lines
    }
}

/// A visible text in pieces: what is named in it in a style of its own.
fn styled(text: &Visible, style: Style, named: Style) -> Vec<(&str, Style)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for range in &text.named {
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
