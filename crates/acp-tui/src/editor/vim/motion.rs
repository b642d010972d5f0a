//! The motions of Vim's normal mode: where the cursor goes, and what an operator applies to.

use std::ops::Range;

use super::super::text_buffer::{TextBuffer, TextDirection};

/// A movement of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    /// To the start of the next word. `true` counts everything between spaces as one word.
    NextWord(bool),
    /// To the start of the word before.
    PreviousWord(bool),
    /// To the end of the word.
    WordEnd(bool),
    LineStart,
    FirstLetter,
    LineEnd,
    /// To the line with this number, which starts at 1.
    Line(usize),
    LastLine,
    Find(LineFind),
}

/// A search for a character in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineFind {
    pub(super) kind: FindKind,
    pub(super) target: char,
    /// Whether the search repeats an earlier one. If so, it does not stop again right before the same character.
    pub(super) is_repeat: bool,
}

/// The direction of a search in the line, and whether to stop one character before the one that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FindKind {
    way: TextDirection,
    is_till: bool,
}

impl FindKind {
    pub(super) fn from_key(c: char) -> Option<Self> {
        let (way, is_till) = match c {
            'f' => (TextDirection::Forward, false),
            'F' => (TextDirection::Back, false),
            't' => (TextDirection::Forward, true),
            'T' => (TextDirection::Back, true),
            _ => return None,
        };
        Some(Self { way, is_till })
    }
}

impl LineFind {
    /// Returns the same search as a repetition.
    pub(super) fn repeated(mut self) -> Self {
        self.is_repeat = true;
        self
    }

    /// Returns the same search in the other direction.
    pub(super) fn reversed(mut self) -> Self {
        self.kind.way = match self.kind.way {
            TextDirection::Back => TextDirection::Forward,
            TextDirection::Forward => TextDirection::Back,
        };
        self
    }
}

impl Motion {
    /// Returns the motion of a single key.
    pub(super) fn from_key(c: char) -> Option<Self> {
        Some(match c {
            'h' => Self::Left,
            'l' | ' ' => Self::Right,
            'j' => Self::Down,
            'k' => Self::Up,
            'w' => Self::NextWord(false),
            'W' => Self::NextWord(true),
            'b' => Self::PreviousWord(false),
            'B' => Self::PreviousWord(true),
            'e' => Self::WordEnd(false),
            'E' => Self::WordEnd(true),
            '0' => Self::LineStart,
            '^' => Self::FirstLetter,
            '$' => Self::LineEnd,
            _ => return None,
        })
    }

    /// Returns whether an operator applies to whole lines with this motion.
    pub(super) fn is_linewise(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::Line(_) | Self::LastLine)
    }

    /// Returns whether an operator also applies to the character that the motion leads to.
    fn is_inclusive(self) -> bool {
        match self {
            Self::WordEnd(_) => true,
            Self::Find(find) => find.kind.way == TextDirection::Forward,
            _ => false,
        }
    }
}

/// What a character is for the motions between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Space,
    Word,
    Sign,
    /// A mark, by its start. It is a word of its own.
    Mark(usize),
}

impl TextBuffer {
    fn step(&self, from: usize) -> usize {
        self.next_position(from, TextDirection::Forward)
    }

    fn step_back(&self, from: usize) -> usize {
        self.next_position(from, TextDirection::Back)
    }

    fn char_class(&self, at: usize, is_big: bool) -> CharClass {
        if let Some(mark) = self.marked().mark_containing(at) {
            return CharClass::Mark(mark.range.start);
        }
        let c = self.text().get(at..).and_then(|rest| rest.chars().next());
        match c {
            None => CharClass::Space,
            Some(c) if c.is_whitespace() => CharClass::Space,
            Some(c) if is_big || c.is_alphanumeric() || c == '_' => CharClass::Word,
            Some(_) => CharClass::Sign,
        }
    }

    /// Returns the position of the first character of the line that is not a space.
    pub(super) fn first_letter(&self, of: usize) -> usize {
        let start = self.line_edge(of, TextDirection::Back);
        let end = self.line_edge(of, TextDirection::Forward);
        let line = self.text().get(start..end).unwrap_or_default();
        start + (line.len() - line.trim_start().len())
    }

    /// Returns where a motion leads from the cursor, or `None` if it leads nowhere.
    pub(super) fn motion_target(&self, motion: Motion, count: usize) -> Option<usize> {
        let from = self.cursor();
        let start = self.line_edge(from, TextDirection::Back);
        let end = self.line_edge(from, TextDirection::Forward);
        let repeat = |step: &dyn Fn(usize) -> usize| {
            let mut at = from;
            for _ in 0..count {
                let next = step(at);
                if next == at {
                    break;
                }
                at = next;
            }
            at
        };
        Some(match motion {
            Motion::Left => repeat(&|at| self.step_back(at).max(start).min(at)),
            Motion::Right => repeat(&|at| self.step(at).min(end).max(at)),
            Motion::NextWord(is_big) => repeat(&|at| self.next_word(at, is_big)),
            Motion::PreviousWord(is_big) => repeat(&|at| self.previous_word(at, is_big)),
            Motion::WordEnd(is_big) => repeat(&|at| self.word_end(at, is_big)),
            Motion::LineStart => start,
            Motion::FirstLetter => self.first_letter(from),
            Motion::LineEnd => {
                // With a count, the end of a later line.
                let mut end = end;
                for _ in 1..count {
                    if end == self.text().len() {
                        break;
                    }
                    end = self.line_edge(end + 1, TextDirection::Forward);
                }
                end
            }
            Motion::Line(number) => {
                let breaks = self.text().match_indices('\n');
                let mut starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
                let start = starts.nth(number.saturating_sub(1));
                self.first_letter(start.unwrap_or(self.text().len()))
            }
            Motion::LastLine => self.first_letter(self.text().len()),
            Motion::Find(find) => return self.find_in_line(find, count),
            Motion::Up | Motion::Down => return None,
        })
    }

    /// Returns the range of the text that an operator with this motion applies to.
    pub(super) fn motion_range(
        &self,
        motion: Motion,
        count: usize,
        is_change: bool,
    ) -> Option<Range<usize>> {
        let cursor = self.cursor();
        let is_on_space = self.char_class(cursor, false) == CharClass::Space;
        // A change of words leaves the spaces after them.
        let (motion, is_within) = match motion {
            Motion::NextWord(is_big) if is_change && !is_on_space => {
                (Motion::WordEnd(is_big), true)
            }
            motion => (motion, false),
        };
        let mut to = match (motion, is_within) {
            (Motion::WordEnd(is_big), true) => {
                // The end of this word, even if the cursor is on it.
                let mut at = self.end_of_word(cursor, is_big);
                for _ in 1..count {
                    at = self.word_end(at, is_big);
                }
                at
            }
            _ => self.motion_target(motion, count)?,
        };
        if motion.is_inclusive() && to >= cursor {
            to = self.step(to);
        }
        if matches!(motion, Motion::NextWord(_)) && to > cursor {
            // The last word of a line ends with the line.
            let covered = self.text().get(cursor..to).unwrap_or_default();
            if let Some(at) = covered.rfind('\n')
                && covered.get(at..).is_some_and(|rest| rest.trim().is_empty())
            {
                to = cursor + at;
            }
        }
        Some(cursor.min(to)..cursor.max(to))
    }

    /// Returns the range of the whole lines that an operator with this motion applies to, without the last line break.
    pub(super) fn lines_to(&self, motion: Motion, count: usize) -> Option<Range<usize>> {
        let cursor = self.cursor();
        let mut to = cursor;
        match motion {
            Motion::Up => {
                for _ in 0..count {
                    let start = self.line_edge(to, TextDirection::Back);
                    to = start.checked_sub(1)?;
                }
            }
            Motion::Down => {
                for _ in 0..count {
                    let end = self.line_edge(to, TextDirection::Forward);
                    if end == self.text().len() {
                        return None;
                    }
                    to = end + 1;
                }
            }
            motion => to = self.motion_target(motion, count)?,
        }
        let start = self.line_edge(cursor.min(to), TextDirection::Back);
        let end = self.line_edge(cursor.max(to), TextDirection::Forward);
        Some(start..end)
    }

    /// Returns the range of the word at the cursor, or of the spaces there.
    pub(super) fn word_around(&self, is_around: bool) -> Range<usize> {
        let cursor = self.cursor();
        let line_start = self.line_edge(cursor, TextDirection::Back);
        let line_end = self.line_edge(cursor, TextDirection::Forward);
        if cursor == line_end {
            return cursor..cursor;
        }
        let class = self.char_class(cursor, false);
        let mut start = cursor;
        while start > line_start && self.char_class(self.step_back(start), false) == class {
            start = self.step_back(start);
        }
        let mut end = cursor;
        while end < line_end && self.char_class(end, false) == class {
            end = self.step(end);
        }
        if is_around {
            while end < line_end && self.char_class(end, false) == CharClass::Space {
                end = self.step(end);
            }
        }
        start..end.min(line_end)
    }

    fn next_word(&self, from: usize, is_big: bool) -> usize {
        let len = self.text().len();
        let mut at = from;
        let class = self.char_class(at, is_big);
        if class != CharClass::Space {
            while at < len && self.char_class(at, is_big) == class {
                at = self.step(at);
            }
        }
        while at < len && self.char_class(at, is_big) == CharClass::Space {
            at = self.step(at);
        }
        at
    }

    fn previous_word(&self, from: usize, is_big: bool) -> usize {
        let mut at = self.step_back(from);
        while at > 0 && self.char_class(at, is_big) == CharClass::Space {
            at = self.step_back(at);
        }
        let class = self.char_class(at, is_big);
        while at > 0 && self.char_class(self.step_back(at), is_big) == class {
            at = self.step_back(at);
        }
        at
    }

    /// Returns the position of the last character of the next word.
    fn word_end(&self, from: usize, is_big: bool) -> usize {
        let len = self.text().len();
        let mut at = self.step(from);
        while at < len && self.char_class(at, is_big) == CharClass::Space {
            at = self.step(at);
        }
        match at < len {
            true => self.end_of_word(at, is_big),
            false => from,
        }
    }

    /// Returns the position of the last character of the word at `from`.
    fn end_of_word(&self, from: usize, is_big: bool) -> usize {
        let class = self.char_class(from, is_big);
        let mut at = from;
        loop {
            let next = self.step(at);
            if next == at || next >= self.text().len() || self.char_class(next, is_big) != class {
                return at;
            }
            at = next;
        }
    }

    /// Returns the position that a search in the line leads to.
    fn find_in_line(&self, find: LineFind, count: usize) -> Option<usize> {
        let cursor = self.cursor();
        let FindKind { way, is_till } = find.kind;
        let edge = self.line_edge(cursor, way);
        let is_target = |at: usize| {
            let rest = self.text().get(at..).unwrap_or_default();
            rest.starts_with(find.target)
        };
        let mut at = cursor;
        let mut left = count;
        while left > 0 {
            let next = self.next_position(at, way);
            let is_past = match way {
                TextDirection::Forward => next >= edge,
                TextDirection::Back => next < edge,
            };
            if next == at || is_past {
                return None;
            }
            let is_adjacent = find.is_repeat && is_till && at == cursor;
            at = next;
            if is_target(at) && !is_adjacent {
                left -= 1;
            }
        }
        Some(match (is_till, way) {
            (false, _) => at,
            (true, TextDirection::Forward) => self.step_back(at),
            (true, TextDirection::Back) => self.step(at),
        })
    }
}
