//! What has been written, the cursor in it, and how keys change it: by grapheme clusters, words and lines.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::marked::Marked;

/// How many changes can be undone.
const CHANGES: usize = 500;
/// How much they take in memory together, in bytes.
const CHANGED: usize = 8 * 1024 * 1024;

/// Text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    marked: Marked,
    /// In bytes; at the edge of a cluster, and never within a mark.
    cursor: usize,
    /// What was deleted last by a key that keeps what it deletes.
    killed: Marked,
    undo: VecDeque<Change>,
    redo: Vec<Change>,
    last: Last,
    /// Another one whenever the text is another one.
    revision: u64,
}

/// One step back, or forth.
#[derive(Debug)]
struct Change {
    at: usize,
    removed: Marked,
    inserted: Marked,
    /// Where the cursor was.
    cursor: usize,
}

/// What was done last: what follows may be one step with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    Typed,
    Erased,
    Killed,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Forward,
}

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// Letters and digits, as the shells' Alt keys take it.
    Letters,
    /// All that is not white space, as Ctrl-W takes it.
    Solid,
}

impl Written {
    pub(crate) fn marked(&self) -> &Marked {
        &self.marked
    }

    pub(crate) fn text(&self) -> &str {
        &self.marked.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Another text, as if it had been there from the beginning. What was killed can still be yanked.
    pub(crate) fn reset(&mut self, marked: Marked) {
        self.cursor = marked.len();
        self.marked = marked;
        self.undo.clear();
        self.redo.clear();
        self.last = Last::Other;
        self.revision += 1;
    }

    /// All of it, and nothing is left.
    pub(crate) fn take(&mut self) -> Marked {
        let taken = self.marked.clone();
        self.reset(Marked::default());
        taken
    }

    /// Another text, which can be undone.
    pub(crate) fn replace_all(&mut self, with: Marked) {
        self.change(0..self.marked.len(), with);
    }

    /// Puts something in the place of a range, which is one step. The cursor is behind it afterwards.
    pub(crate) fn change(&mut self, range: Range<usize>, inserted: Marked) {
        let range = self.marked.whole(range);
        if range.is_empty() && inserted.text.is_empty() {
            return;
        }
        let removed = self.marked.replace(range.clone(), &inserted);
        let change = Change {
            at: range.start,
            removed,
            inserted,
            cursor: self.cursor,
        };
        self.cursor = change.at + change.inserted.len();
        self.undo.push_back(change);
        self.redo.clear();
        self.last = Last::Other;
        self.revision += 1;
        self.forget();
    }

    /// The oldest changes go, when there are too many.
    fn forget(&mut self) {
        let held = |c: &Change| c.removed.held() + c.inserted.held();
        let mut all: usize = self.undo.iter().map(held).sum();
        while self.undo.len() > CHANGES || all > CHANGED {
            let Some(gone) = self.undo.pop_front() else {
                return;
            };
            all -= held(&gone);
        }
    }

    pub(crate) fn insert(&mut self, inserted: impl Into<Marked>) {
        self.change(self.cursor..self.cursor, inserted.into());
    }

    /// One character of what is typed. A word and the white space behind it are one step.
    pub(crate) fn type_char(&mut self, c: char) {
        let joins = self.last == Last::Typed
            && self.undo.back().is_some_and(|change| {
                change.at + change.inserted.len() == self.cursor
                    && (c.is_whitespace() || !change.inserted.text.ends_with(char::is_whitespace))
            });
        let before = if joins { self.undo.pop_back() } else { None };
        self.insert(Marked::from(c.to_string()));
        if let Some(mut before) = before
            && let Some(now) = self.undo.pop_back()
        {
            before.inserted.push(&now.inserted);
            self.undo.push_back(before);
        }
        self.last = Last::Typed;
    }

    /// Deletes the cluster or the mark beside the cursor. `false` if there is none.
    pub(crate) fn erase(&mut self, way: Way) -> bool {
        let range = self.span(self.step(self.cursor, way));
        if range.is_empty() {
            return false;
        }
        let joins = way == Way::Back && self.last == Last::Erased;
        let before = if joins { self.undo.pop_back() } else { None };
        self.change(range, Marked::default());
        if let Some(mut before) = before
            && let Some(mut now) = self.undo.pop_back()
        {
            now.removed.push(&before.removed);
            before.at = now.at;
            before.removed = now.removed;
            self.undo.push_back(before);
        }
        if way == Way::Back {
            self.last = Last::Erased;
        }
        true
    }

    /// Deletes from the cursor to a place, and keeps it for [`yank`](Self::yank); with what was killed
    /// just before.
    fn kill(&mut self, to: usize) -> bool {
        let range = self.span(to);
        if range.is_empty() {
            return false;
        }
        let (joins, back) = (self.last == Last::Killed, to < self.cursor);
        self.change(range, Marked::default());
        let Some(change) = self.undo.back() else {
            return true;
        };
        let mut killed = change.removed.clone();
        if joins && back {
            killed.push(&self.killed);
        } else if joins {
            let later = std::mem::replace(&mut killed, std::mem::take(&mut self.killed));
            killed.push(&later);
        }
        self.killed = killed;
        self.last = Last::Killed;
        true
    }

    pub(crate) fn kill_word(&mut self, way: Way, words: Words) -> bool {
        self.kill(self.word(way, words))
    }

    /// To the end or the beginning of the line, or, if the cursor is there, the line end.
    pub(crate) fn kill_line(&mut self, way: Way) -> bool {
        let to = self.line_edge(self.cursor, way);
        self.kill(if to == self.cursor {
            self.step(self.cursor, way)
        } else {
            to
        })
    }

    /// Inserts what was killed last.
    pub(crate) fn yank(&mut self) -> bool {
        let killed = self.killed.clone();
        self.insert(killed);
        !self.killed.text.is_empty()
    }

    /// Takes the last step back.
    pub(crate) fn undo(&mut self) -> bool {
        let Some(change) = self.undo.pop_back() else {
            return false;
        };
        let range = change.at..change.at + change.inserted.len();
        self.marked.replace(range, &change.removed);
        self.cursor = change.cursor;
        self.redo.push(change);
        self.last = Last::Other;
        self.revision += 1;
        true
    }

    /// Does again what was undone last.
    pub(crate) fn redo(&mut self) -> bool {
        let Some(change) = self.redo.pop() else {
            return false;
        };
        let range = change.at..change.at + change.removed.len();
        self.marked.replace(range, &change.inserted);
        self.cursor = change.at + change.inserted.len();
        self.undo.push_back(change);
        self.last = Last::Other;
        self.revision += 1;
        true
    }

    /// Moves the cursor there, or, if that is within a mark, to the nearer end of it.
    pub(crate) fn go(&mut self, to: usize) {
        let to = to.min(self.marked.len());
        self.cursor = match self.marked.covering(to) {
            Some(mark) if mark.range.start < to => {
                let Range { start, end } = mark.range;
                if to - start < end - to { start } else { end }
            }
            _ => to,
        };
        self.last = Last::Other;
    }

    /// The next place to either side at which a cursor can be.
    pub(crate) fn step(&self, from: usize, way: Way) -> usize {
        let (text, marks) = (&self.marked.text, &self.marked.marks);
        // A cluster is looked for between marks: it does not reach over the edge of one.
        match way {
            Way::Back => {
                let behind = marks.partition_point(|mark| mark.range.end <= from);
                let mark = behind.checked_sub(1).and_then(|index| marks.get(index));
                if let Some(mark) = mark.filter(|mark| mark.range.end == from) {
                    return mark.range.start;
                }
                let since = mark.map_or(0, |mark| mark.range.end);
                let cluster = text[since..from].graphemes(true).next_back();
                from - cluster.map_or(0, str::len)
            }
            Way::Forward => {
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

    /// The other end of the word beside the cursor. A mark is a word of its own.
    pub(crate) fn word(&self, way: Way, words: Words) -> usize {
        let mut at = self.cursor;
        let mut within = false;
        loop {
            let next = self.step(at, way);
            if next == at {
                return at;
            }
            let unit = at.min(next)..at.max(next);
            if self.marked.covering(unit.start).is_some() {
                return if within { at } else { next };
            }
            let of_word = |c: char| match words {
                Words::Letters => c.is_alphanumeric(),
                Words::Solid => !c.is_whitespace(),
            };
            if self.marked.text[unit].chars().any(of_word) {
                within = true;
            } else if within {
                return at;
            }
            at = next;
        }
    }

    /// The beginning or the end of the line.
    pub(crate) fn line_edge(&self, of: usize, way: Way) -> usize {
        let text = &self.marked.text;
        match way {
            Way::Back => text[..of].rfind('\n').map_or(0, |end| end + 1),
            Way::Forward => text[of..].find('\n').map_or(text.len(), |end| of + end),
        }
    }

    fn span(&self, to: usize) -> Range<usize> {
        self.cursor.min(to)..self.cursor.max(to)
    }
}
