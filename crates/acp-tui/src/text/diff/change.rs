//! Represents the change to a file, whatever the format in which it was received.

use std::ops::Range;
use std::time::Instant;

use acp::thread::{FileChange, FileOperation, FileTexts};
use acp::v2::DiffFileType;
use similar::{ChangeTag, DiffOp, InlineChangeOptions, TextDiff};

use crate::text::columns::{group_thousands, pluralize};

/// The maximum total size of the two texts to compare, in bytes.
pub(super) const MAX_DIFF_BYTES: usize = 4 * 1024 * 1024;

/// The number of context lines around a change.
const CONTEXT_LINES: usize = acp_host::question::CONTEXT_LINES;

/// The maximum length of text to compare word by word, in bytes. Longer text was probably rewritten.
const MAX_WORD_DIFF_BYTES: usize = 64 * 1024;

/// The change to one file, as shown to the user.
#[derive(Debug, Default)]
pub(super) struct FileDiff<'t> {
    /// The path of the file.
    pub path: String,
    /// Notes to show beside the path.
    pub notes: Vec<String>,
    /// The changed parts of the file.
    pub hunks: Vec<Hunk<'t>>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The number of lines after the last hunk.
    pub lines_after: usize,
    /// The lines of the old and the new text, if known.
    pub texts: Option<(Vec<&'t str>, Vec<&'t str>)>,
    /// Remarks to show below the change.
    pub remarks: Vec<String>,
}

/// Changed lines and their context.
#[derive(Debug, Default)]
pub(super) struct Hunk<'t> {
    /// The number of lines between the previous hunk and this one.
    pub lines_before: usize,
    /// The section heading in the hunk header, after the second `@@`. May be empty.
    pub title: &'t str,
    /// The hunk's lines.
    pub rows: Vec<DiffRow<'t>>,
}

/// A line of a diff.
#[derive(Debug, Clone)]
pub(super) struct DiffRow<'t> {
    /// The kind of the line: unchanged, removed or added.
    pub kind: DiffRowKind,
    /// The old and new line numbers. On the side that lacks the line, the number of the neighboring line.
    pub numbers: [usize; 2],
    /// The line without its line ending.
    pub text: &'t str,
    /// Whether the line does not end with a line feed.
    pub lacks_final_newline: bool,
}

/// The kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffRowKind {
    /// The line is unchanged.
    Context,
    /// The line was removed.
    Removed,
    /// The line was added.
    Added,
}

impl<'t> FileDiff<'t> {
    /// Creates a diff from a change that the agent reported without the file's texts.
    pub(super) fn from_report(change: &FileChange) -> Self {
        let mut file = Self {
            path: change.path.clone(),
            ..Self::default()
        };
        let from = change.old_path.as_deref().unwrap_or_default();
        match &change.operation {
            FileOperation::Add => file.add_note("new file"),
            FileOperation::Delete => file.add_note("deleted"),
            FileOperation::Modify if change.texts.is_none() => file.add_note("changed"),
            FileOperation::Move => file.add_note(format!("moved from {from}")),
            FileOperation::Copy => file.add_note(format!("copied from {from}")),
            FileOperation::Unknown(name) => file.add_note(name.as_str()),
            _ => {}
        }
        file.add_type_note(change);
        file
    }

    /// Creates a diff from the old and the new text of a file. Texts of more than `largest` bytes are not compared.
    pub(super) fn from_texts(
        change: &FileChange,
        texts: &'t FileTexts,
        until: Instant,
        largest: usize,
    ) -> Self {
        let mut file = Self::from_report(change);
        let old = texts.old.as_deref().unwrap_or_default();
        if texts.old.is_some() && old.len() + texts.new.len() > largest {
            file.remarks.push(format!(
                "too large to compare: {} bytes before, {} bytes now",
                group_thousands(old.len()),
                group_thousands(texts.new.len())
            ));
            return file;
        }
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = texts.new.split_inclusive('\n').collect();
        let compared = TextDiff::configure()
            .deadline(until)
            .diff_slices(&old, &new);
        let mut shown = 0;
        for group in compared.grouped_ops(CONTEXT_LINES) {
            let mut hunk = Hunk::default();
            for op in &group {
                let (was, is) = (op.old_range(), op.new_range());
                if hunk.rows.is_empty() {
                    hunk.lines_before = was.start.saturating_sub(shown);
                }
                shown = was.end;
                if let DiffOp::Equal { .. } = op {
                    hunk.extend(DiffRowKind::Context, &old, was, is.start);
                } else {
                    file.removed += was.len();
                    file.added += is.len();
                    hunk.extend(DiffRowKind::Removed, &old, was.clone(), is.start);
                    hunk.extend(DiffRowKind::Added, &new, is, was.end);
                }
            }
            file.hunks.push(hunk);
        }
        file.lines_after = old.len().saturating_sub(shown);
        if file.hunks.is_empty() {
            file.lines_after = 0;
            file.remarks.push(if texts.old.is_none() {
                "empty file".to_owned()
            } else {
                "no changes".to_owned()
            });
        }
        if !file.hunks.is_empty() && Instant::now() > until {
            file.remarks
                .push("approximate diff (too large to compare exactly)".to_owned());
        }
        file.texts = Some((old, new));
        file
    }

    /// Adds a note beside the path.
    pub(super) fn add_note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !note.is_empty() && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a note with the file's type, unless the file is text.
    pub(super) fn add_type_note(&mut self, change: &FileChange) {
        match &change.file_type {
            None | Some(DiffFileType::Text) => {}
            Some(DiffFileType::Symlink) => self.add_note("symbolic link"),
            Some(other) => self.add_note(other.as_str()),
        }
    }

    /// Returns whether to show carriage returns at line endings. This is only useful if some lines have them and others
    /// do not.
    pub(super) fn shows_carriage_returns(&self) -> bool {
        let mut with = false;
        let mut without = false;
        for row in self.hunks.iter().flat_map(|hunk| &hunk.rows) {
            if row.text.ends_with('\r') {
                with = true;
            } else if !row.lacks_final_newline {
                without = true;
            }
        }
        with && without
    }

    /// Returns the number of changed lines.
    pub(super) fn changed_line_count(&self) -> usize {
        self.added + self.removed
    }

    /// Returns whether the change only adds lines or only removes lines.
    pub(super) fn is_one_sided(&self) -> bool {
        let rows = self.hunks.iter().flat_map(|hunk| &hunk.rows);
        let mut kinds = rows.map(|row| row.kind);
        let first = kinds.next();
        first != Some(DiffRowKind::Context) && kinds.all(|kind| Some(kind) == first)
    }

    /// Returns a note about the changed lines that are not shown, if any.
    pub(super) fn hidden_lines_note(&self, shown: usize) -> Option<String> {
        let left = self.changed_line_count().saturating_sub(shown);
        let more = if shown > 0 { "more " } else { "" };
        (left > 0).then(|| {
            format!(
                "⋯ {} hidden",
                pluralize(left, &format!("{more}changed line"))
            )
        })
    }
}

impl<'t> Hunk<'t> {
    /// Appends lines from one text. `other` is the corresponding position in the other text.
    fn extend(&mut self, kind: DiffRowKind, lines: &[&'t str], range: Range<usize>, other: usize) {
        let start = range.start;
        for (n, line) in lines.get(range).unwrap_or_default().iter().enumerate() {
            let numbers = match kind {
                DiffRowKind::Context => [start + n + 1, other + n + 1],
                DiffRowKind::Removed => [start + n + 1, other],
                DiffRowKind::Added => [other, start + n + 1],
            };
            let text = line.strip_suffix('\n');
            self.rows.push(DiffRow {
                kind,
                numbers,
                text: text.unwrap_or(line),
                lacks_final_newline: text.is_none(),
            });
        }
    }

    /// Returns the changed byte ranges within each of the first `count` lines, for emphasis.
    pub(super) fn changed_ranges(&self, count: usize, until: Instant) -> Vec<Vec<Range<usize>>> {
        let rows = self.rows.get(..count).unwrap_or(&self.rows);
        let mut stressed = vec![Vec::new(); rows.len()];
        let mut at = 0;
        while at < rows.len() {
            let run = |from: usize, kind| {
                let rows = rows.get(from..).unwrap_or_default();
                from + rows.iter().take_while(|row| row.kind == kind).count()
            };
            let middle = run(at, DiffRowKind::Removed);
            let end = run(middle, DiffRowKind::Added);
            if middle > at && end > middle {
                let found = changed_words(
                    rows.get(at..middle).unwrap_or_default(),
                    rows.get(middle..end).unwrap_or_default(),
                    until,
                );
                for (into, ranges) in stressed.iter_mut().skip(at).zip(found) {
                    *into = ranges;
                }
            }
            at = end.max(at + 1);
        }
        stressed
    }
}

/// Returns the changed ranges, first in the removed lines and then in the lines that replace them.
fn changed_words(
    removed: &[DiffRow<'_>],
    added: &[DiffRow<'_>],
    until: Instant,
) -> Vec<Vec<Range<usize>>> {
    let text = |rows: &[DiffRow<'_>]| rows.iter().map(|row| row.text.len()).sum::<usize>();
    if text(removed) + text(added) > MAX_WORD_DIFF_BYTES || Instant::now() > until {
        return Vec::new();
    }
    let old: Vec<&str> = removed.iter().map(|row| row.text).collect();
    let new: Vec<&str> = added.iter().map(|row| row.text).collect();
    // The whole lines are known to differ, so only their words are compared.
    let diff = TextDiff::configure()
        .deadline(until)
        .diff_slices(&old, &new);
    let op = DiffOp::Replace {
        old_index: 0,
        old_len: old.len(),
        new_index: 0,
        new_len: new.len(),
    };
    let mut stressed = vec![Vec::new(); old.len() + new.len()];
    let mut options = InlineChangeOptions::new();
    options.semantic_cleanup(true);
    for change in diff.iter_inline_changes_with_options_deadline(&op, options, Some(until)) {
        let at = match change.tag() {
            ChangeTag::Delete => change.old_index(),
            ChangeTag::Insert => change.new_index().map(|at| old.len() + at),
            ChangeTag::Equal => None,
        };
        let Some(into) = at.and_then(|at| stressed.get_mut(at)) else {
            continue;
        };
        let mut start = 0;
        for (emphasized, text) in change.values() {
            if *emphasized {
                into.push(start..start + text.len());
            }
            start += text.len();
        }
    }
    stressed
}
