//! Implements the prompt's text buffer, which has a cursor and can be edited by grapheme cluster, word and line.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::marked_text::MarkedText;

/// The maximum number of undo steps.
const MAX_UNDO_STEPS: usize = 500;
/// The maximum total memory of the undo steps, in bytes.
const MAX_UNDO_BYTES: usize = 8 * 1024 * 1024;

/// Editable text with a cursor and an undo history.
#[derive(Debug, Default)]
pub(crate) struct TextBuffer {
    marked_text: MarkedText,
    /// The byte position of the cursor, which is on a cluster boundary and never inside a mark.
    cursor: usize,
    /// The most recently killed text, which [`yank`](Self::yank) inserts.
    kill_buffer: MarkedText,
    undo: VecDeque<UndoStep>,
    redo: Vec<UndoStep>,
    last_edit: EditKind,
    /// A counter that is incremented with each change to the text.
    revision: u64,
}

/// A step that can be undone or redone.
#[derive(Debug)]
struct UndoStep {
    start: usize,
    removed: MarkedText,
    inserted: MarkedText,
    /// The cursor's position before the change.
    cursor_before: usize,
}

/// The kind of the last edit. Another edit of the same kind may become part of the same undo step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EditKind {
    #[default]
    Other,
    Insert,
    Erase,
    Kill,
}

/// A direction of movement in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextDirection {
    Back,
    Forward,
}

/// The definition of a word for an edit or a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// Letters and digits, as with the Alt keys in shells.
    Alphanumeric,
    /// Everything except whitespace, as with Ctrl-W.
    NonWhitespace,
}

impl TextBuffer {
    pub(crate) fn marked(&self) -> &MarkedText {
        &self.marked_text
    }

    pub(crate) fn text(&self) -> &str {
        &self.marked_text.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Replaces the text and clears the undo history. Killed text can still be yanked.
    pub(crate) fn reset(&mut self, marked: MarkedText) {
        self.cursor = marked.len();
        self.marked_text = marked;
        self.undo.clear();
        self.redo.clear();
        self.last_edit = EditKind::Other;
        self.revision += 1;
    }

    /// Takes the whole text, leaving the buffer empty.
    pub(crate) fn take(&mut self) -> MarkedText {
        let taken = self.marked_text.clone();
        self.reset(MarkedText::default());
        taken
    }

    /// Replaces the whole text as one undo step.
    pub(crate) fn replace_all(&mut self, with: MarkedText) {
        self.change(0..self.marked_text.len(), with);
    }

    /// Replaces a range as one undo step and moves the cursor to the end of the inserted text.
    pub(crate) fn change(&mut self, range: Range<usize>, inserted: MarkedText) {
        let range = self.marked_text.extend_to_marks(range);
        if range.is_empty() && inserted.text.is_empty() {
            return;
        }
        let removed = self.marked_text.replace(range.clone(), &inserted);
        let change = UndoStep {
            start: range.start,
            removed,
            inserted,
            cursor_before: self.cursor,
        };
        self.cursor = change.start + change.inserted.len();
        self.undo.push_back(change);
        self.redo.clear();
        self.last_edit = EditKind::Other;
        self.revision += 1;
        self.drop_old_steps();
    }

    /// Drops the oldest undo steps if the limits are exceeded.
    fn drop_old_steps(&mut self) {
        let held = |c: &UndoStep| c.removed.memory_bytes() + c.inserted.memory_bytes();
        let mut all: usize = self.undo.iter().map(held).sum();
        while self.undo.len() > MAX_UNDO_STEPS || all > MAX_UNDO_BYTES {
            let Some(gone) = self.undo.pop_front() else {
                return;
            };
            all -= held(&gone);
        }
    }

    pub(crate) fn insert(&mut self, inserted: impl Into<MarkedText>) {
        self.change(self.cursor..self.cursor, inserted.into());
    }

    /// Inserts one typed character. A word and the whitespace after it form one undo step.
    pub(crate) fn type_char(&mut self, c: char) {
        let joins = self.last_edit == EditKind::Insert
            && self.undo.back().is_some_and(|change| {
                change.start + change.inserted.len() == self.cursor
                    && (c.is_whitespace() || !change.inserted.text.ends_with(char::is_whitespace))
            });
        let before = if joins { self.undo.pop_back() } else { None };
        self.insert(MarkedText::from(c.to_string()));
        if let Some(mut before) = before
            && let Some(now) = self.undo.pop_back()
        {
            before.inserted.push(&now.inserted);
            self.undo.push_back(before);
        }
        self.last_edit = EditKind::Insert;
    }

    /// Deletes the cluster or mark next to the cursor. Returns `false` if there is none.
    pub(crate) fn erase(&mut self, way: TextDirection) -> bool {
        let range = self.range_to(self.next_position(self.cursor, way));
        if range.is_empty() {
            return false;
        }
        let joins = way == TextDirection::Back && self.last_edit == EditKind::Erase;
        let before = if joins { self.undo.pop_back() } else { None };
        self.change(range, MarkedText::default());
        if let Some(mut before) = before
            && let Some(mut now) = self.undo.pop_back()
        {
            now.removed.push(&before.removed);
            before.start = now.start;
            before.removed = now.removed;
            self.undo.push_back(before);
        }
        if way == TextDirection::Back {
            self.last_edit = EditKind::Erase;
        }
        true
    }

    /// Deletes the text between the cursor and a position, and saves it for [`yank`](Self::yank). Text from consecutive
    /// kills is saved as one piece.
    fn kill(&mut self, to: usize) -> bool {
        let range = self.range_to(to);
        if range.is_empty() {
            return false;
        }
        let (joins, back) = (self.last_edit == EditKind::Kill, to < self.cursor);
        self.change(range, MarkedText::default());
        let Some(change) = self.undo.back() else {
            return true;
        };
        let mut killed = change.removed.clone();
        if joins && back {
            killed.push(&self.kill_buffer);
        } else if joins {
            let later = std::mem::replace(&mut killed, std::mem::take(&mut self.kill_buffer));
            killed.push(&later);
        }
        self.kill_buffer = killed;
        self.last_edit = EditKind::Kill;
        true
    }

    pub(crate) fn kill_word(&mut self, way: TextDirection, words: WordKind) -> bool {
        self.kill(self.word_edge(way, words))
    }

    /// Kills the text up to the end or the start of the line. If the cursor is already there, kills the line break.
    pub(crate) fn kill_line(&mut self, way: TextDirection) -> bool {
        let to = self.line_edge(self.cursor, way);
        self.kill(if to == self.cursor {
            self.next_position(self.cursor, way)
        } else {
            to
        })
    }

    /// Inserts the most recently killed text.
    pub(crate) fn yank(&mut self) -> bool {
        let killed = self.kill_buffer.clone();
        self.insert(killed);
        !self.kill_buffer.text.is_empty()
    }

    /// Undoes the last step. Returns `false` if there is none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some(change) = self.undo.pop_back() else {
            return false;
        };
        let range = change.start..change.start + change.inserted.len();
        self.marked_text.replace(range, &change.removed);
        self.cursor = change.cursor_before;
        self.redo.push(change);
        self.last_edit = EditKind::Other;
        self.revision += 1;
        true
    }

    /// Redoes the most recently undone step.
    pub(crate) fn redo(&mut self) -> bool {
        let Some(change) = self.redo.pop() else {
            return false;
        };
        let range = change.start..change.start + change.removed.len();
        self.marked_text.replace(range, &change.inserted);
        self.cursor = change.start + change.inserted.len();
        self.undo.push_back(change);
        self.last_edit = EditKind::Other;
        self.revision += 1;
        true
    }

    /// Moves the cursor to a position. Inside a mark, moves it to the nearer end of the mark instead.
    pub(crate) fn move_cursor(&mut self, to: usize) {
        let to = to.min(self.marked_text.len());
        self.cursor = match self.marked_text.mark_containing(to) {
            Some(mark) if mark.range.start < to => {
                let Range { start, end } = mark.range;
                if to - start < end - to { start } else { end }
            }
            _ => to,
        };
        self.last_edit = EditKind::Other;
    }

    /// Returns the next cursor position after `from` in a direction.
    pub(crate) fn next_position(&self, from: usize, way: TextDirection) -> usize {
        let (text, marks) = (&self.marked_text.text, &self.marked_text.marks);
        // Clusters are searched for between marks, because none extends across the edge of a mark.
        match way {
            TextDirection::Back => {
                let behind = marks.partition_point(|mark| mark.range.end <= from);
                let mark = behind.checked_sub(1).and_then(|index| marks.get(index));
                if let Some(mark) = mark.filter(|mark| mark.range.end == from) {
                    return mark.range.start;
                }
                let since = mark.map_or(0, |mark| mark.range.end);
                let cluster = text[since..from].graphemes(true).next_back();
                from - cluster.map_or(0, str::len)
            }
            TextDirection::Forward => {
                let next = marks.partition_point(|mark| mark.range.start < from);
                let mark = marks.get(next);
                if let Some(mark) = mark.filter(|mark| mark.range.start == from) {
                    return mark.range.end;
                }
                let until = mark.map_or(text.len(), |mark| mark.range.start);
                let cluster = text[from..until].graphemes(true).next();
                from + cluster.map_or(0, str::len)
            }
        }
    }

    /// Returns the far end of the word next to the cursor. A mark counts as one word.
    pub(crate) fn word_edge(&self, way: TextDirection, words: WordKind) -> usize {
        let mut at = self.cursor;
        let mut within = false;
        loop {
            let next = self.next_position(at, way);
            if next == at {
                return at;
            }
            let unit = at.min(next)..at.max(next);
            if self.marked_text.mark_containing(unit.start).is_some() {
                return if within { at } else { next };
            }
            let of_word = |c: char| match words {
                WordKind::Alphanumeric => c.is_alphanumeric(),
                WordKind::NonWhitespace => !c.is_whitespace(),
            };
            if self.marked_text.text[unit].chars().any(of_word) {
                within = true;
            } else if within {
                return at;
            }
            at = next;
        }
    }

    /// Returns the start or end of the line that contains the position `of`.
    pub(crate) fn line_edge(&self, of: usize, way: TextDirection) -> usize {
        let text = &self.marked_text.text;
        match way {
            TextDirection::Back => text[..of].rfind('\n').map_or(0, |end| end + 1),
            TextDirection::Forward => text[of..].find('\n').map_or(text.len(), |end| of + end),
        }
    }

    fn range_to(&self, to: usize) -> Range<usize> {
        self.cursor.min(to)..self.cursor.max(to)
    }
}
