//! Vim keys: an insert mode and a normal mode with motions and operators.
//!
//! The editor's other keys work in both modes, as far as normal mode has no command for them.

mod motion;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crossterm::event::KeyCode;

use self::motion::{FindKind, LineFind, Motion};
use super::keys::Modifier;
use super::marked_text::MarkedText;
use super::search::HistorySearch;
use super::text_buffer::TextDirection;
use super::{EditorOutcome, MAX_PROMPT_BYTES, PromptEditor};

/// The maximum count before a command. It bounds the work for a single key.
const MAX_COUNT: usize = 9_999;

/// The maximum number of bytes to show of the keys of a command. Only counts can be longer.
const MAX_SHOWN_KEYS: usize = 16;

/// The mode of an editor with Vim keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum VimMode {
    /// Letters are inserted.
    #[default]
    Insert,
    /// Letters are commands.
    Normal,
}

/// A command that applies to the text that a motion covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VimOperator {
    Delete,
    Change,
    Yank,
}

impl VimOperator {
    fn from_key(c: char) -> Option<Self> {
        match c {
            'd' => Some(Self::Delete),
            'c' => Some(Self::Change),
            'y' => Some(Self::Yank),
            _ => None,
        }
    }
}

/// The start of a command that needs one more key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandPrefix {
    /// `g`.
    Go,
    /// `f`, `F`, `t` or `T`.
    Find(FindKind),
    /// `r`.
    Replace,
    /// `i` or `a` after an operator. `true` includes the spaces around the word.
    Word { is_around: bool },
}

/// The text that was last deleted or yanked.
#[derive(Debug, Default)]
struct VimRegister {
    text: MarkedText,
    /// Whether the text consists of whole lines.
    has_lines: bool,
}

/// The state of an editor with Vim keys.
#[derive(Debug, Default)]
pub(super) struct VimState {
    mode: VimMode,
    /// The keys of the command so far, which the user sees.
    typed: String,
    count: Option<usize>,
    /// The operator that waits for a motion, and the count before it.
    operator: Option<(VimOperator, Option<usize>)>,
    prefix: Option<CommandPrefix>,
    last_find: Option<LineFind>,
    register: VimRegister,
}

impl VimState {
    /// Forgets the command so far.
    fn reset_command(&mut self) {
        self.typed.clear();
        self.count = None;
        self.operator = None;
        self.prefix = None;
    }

    /// Takes the count of the command, or `None` if no count was typed.
    fn take_count(&mut self) -> Option<usize> {
        let before = self.operator.and_then(|(_, count)| count);
        match (before, self.count.take()) {
            (None, None) => None,
            (one, other) => {
                let all = one.unwrap_or(1).saturating_mul(other.unwrap_or(1));
                Some(all.min(MAX_COUNT))
            }
        }
    }
}

impl PromptEditor {
    /// Turns Vim keys on or off. With Vim keys, each prompt starts in insert mode.
    pub(crate) fn set_vim(&mut self, is_on: bool) {
        self.vim = is_on.then(VimState::default);
    }

    /// Returns the name of the Vim mode and the keys of the command so far. Returns `None` without Vim keys.
    pub(crate) fn vim_mode(&self) -> Option<String> {
        let vim = self.vim.as_ref()?;
        Some(match vim.mode {
            VimMode::Insert => "INSERT".to_owned(),
            VimMode::Normal if vim.typed.is_empty() => "NORMAL".to_owned(),
            VimMode::Normal => format!("{}  NORMAL", vim.typed),
        })
    }

    /// Returns whether letters are commands.
    pub(super) fn is_in_normal_mode(&self) -> bool {
        let vim = self.vim.as_ref();
        vim.is_some_and(|vim| vim.mode == VimMode::Normal)
    }

    /// Returns whether Esc leaves insert mode or cancels a command.
    pub(crate) fn uses_escape(&self) -> bool {
        let vim = self.vim.as_ref();
        vim.is_some_and(|vim| vim.mode == VimMode::Insert || !vim.typed.is_empty())
    }

    /// Returns to insert mode, for another prompt.
    pub(super) fn reset_vim(&mut self) {
        if let Some(vim) = &mut self.vim {
            vim.mode = VimMode::Insert;
            vim.reset_command();
        }
    }

    /// Handles a key in an editor with Vim keys. Returns `None` if the key is for the editor's other key bindings.
    pub(super) fn handle_vim_key(
        &mut self,
        code: KeyCode,
        with: Modifier,
        goal: Option<u16>,
    ) -> Option<EditorOutcome> {
        let vim = self.vim.as_mut()?;
        match (vim.mode, code, with) {
            (VimMode::Insert, KeyCode::Esc, Modifier::None) => {
                vim.mode = VimMode::Normal;
                vim.reset_command();
                let cursor = self.buffer.cursor();
                if self.buffer.line_edge(cursor, TextDirection::Back) < cursor {
                    let before = self.buffer.next_position(cursor, TextDirection::Back);
                    self.buffer.move_cursor(before);
                }
            }
            (VimMode::Insert, ..) => return None,
            (VimMode::Normal, KeyCode::Esc, Modifier::None) => {
                return Some(self.finish_command(EditorOutcome::Changed));
            }
            (VimMode::Normal, KeyCode::Char(c), Modifier::None | Modifier::Shift) => {
                if vim.typed.len() < MAX_SHOWN_KEYS {
                    vim.typed.push(c);
                }
                if !self.handle_command_key(c, goal) {
                    return Some(self.finish_command(EditorOutcome::Ignored));
                }
                // The command may have changed the mode.
                return Some(match self.vim.as_ref().is_some_and(VimState::is_waiting) {
                    true => EditorOutcome::Changed,
                    false => self.finish_command(EditorOutcome::Changed),
                });
            }
            (VimMode::Normal, KeyCode::Char('r'), Modifier::Ctrl) => {
                self.apply_change(super::TextBuffer::redo);
                return Some(self.finish_command(EditorOutcome::Changed));
            }
            (VimMode::Normal, KeyCode::Backspace, Modifier::None) => {
                self.move_by_motion(Motion::Left, 1, goal);
                return Some(self.finish_command(EditorOutcome::Changed));
            }
            (VimMode::Normal, ..) => {
                vim.reset_command();
                return None;
            }
        }
        self.completion = None;
        Some(EditorOutcome::Changed)
    }

    /// Ends a command: in normal mode, the cursor is on a character and no list is open.
    fn finish_command(&mut self, outcome: EditorOutcome) -> EditorOutcome {
        let Some(vim) = &mut self.vim else {
            return outcome;
        };
        vim.reset_command();
        self.completion = None;
        if vim.mode == VimMode::Normal {
            self.keep_on_character();
        }
        outcome
    }

    /// Moves the cursor back from the end of a line that is not empty, where there is no character.
    fn keep_on_character(&mut self) {
        let cursor = self.buffer.cursor();
        let start = self.buffer.line_edge(cursor, TextDirection::Back);
        if cursor > start && self.buffer.line_edge(cursor, TextDirection::Forward) == cursor {
            let before = self.buffer.next_position(cursor, TextDirection::Back);
            self.buffer.move_cursor(before.max(start));
        }
    }

    /// Handles the next letter of a command. Returns `false` if there is no such command.
    fn handle_command_key(&mut self, c: char, goal: Option<u16>) -> bool {
        let Some(vim) = &mut self.vim else {
            return false;
        };
        if let Some(prefix) = vim.prefix.take() {
            return self.handle_prefixed_key(prefix, c, goal);
        }
        match c {
            '1'..='9' | '0' if c != '0' || vim.count.is_some() => {
                let digit = c.to_digit(10).unwrap_or_default() as usize;
                let count = vim.count.unwrap_or(0) * 10 + digit;
                vim.count = Some(count.min(MAX_COUNT));
                return true;
            }
            'g' => vim.prefix = Some(CommandPrefix::Go),
            'f' | 'F' | 't' | 'T' => {
                vim.prefix = FindKind::from_key(c).map(CommandPrefix::Find);
            }
            'i' | 'a' if vim.operator.is_some() => {
                vim.prefix = Some(CommandPrefix::Word {
                    is_around: c == 'a',
                });
            }
            'r' if vim.operator.is_none() => vim.prefix = Some(CommandPrefix::Replace),
            _ => match VimOperator::from_key(c) {
                Some(operator) => return self.handle_operator_key(operator),
                None => return self.handle_plain_key(c, goal),
            },
        }
        true
    }

    /// Handles an operator. If it is typed twice, it applies to whole lines.
    fn handle_operator_key(&mut self, operator: VimOperator) -> bool {
        let Some(vim) = &mut self.vim else {
            return false;
        };
        match vim.operator {
            None => {
                vim.operator = Some((operator, vim.count.take()));
                true
            }
            Some((known, _)) if known == operator => {
                let lines = vim.take_count().unwrap_or(1);
                let range = self.line_range(lines - 1);
                self.apply_to_lines(operator, range);
                true
            }
            Some(_) => false,
        }
    }

    /// Handles the key after a prefix.
    fn handle_prefixed_key(&mut self, prefix: CommandPrefix, c: char, goal: Option<u16>) -> bool {
        let Some(vim) = &mut self.vim else {
            return false;
        };
        match prefix {
            CommandPrefix::Go if c == 'g' => {
                let line = vim.take_count().unwrap_or(1);
                self.move_or_operate(Motion::Line(line), 1, goal)
            }
            CommandPrefix::Go => false,
            CommandPrefix::Find(kind) => {
                let find = LineFind {
                    kind,
                    target: c,
                    is_repeat: false,
                };
                vim.last_find = Some(find);
                let count = vim.take_count().unwrap_or(1);
                self.move_or_operate(Motion::Find(find), count, goal)
            }
            CommandPrefix::Replace => {
                let count = vim.take_count().unwrap_or(1);
                self.replace_characters(c, count)
            }
            CommandPrefix::Word { is_around } if c == 'w' => {
                let Some((operator, _)) = vim.operator else {
                    return false;
                };
                let range = self.buffer.word_around(is_around);
                self.apply_to_range(operator, range);
                true
            }
            CommandPrefix::Word { .. } => false,
        }
    }

    /// Handles a command of a single letter.
    fn handle_plain_key(&mut self, c: char, goal: Option<u16>) -> bool {
        let Some(vim) = &mut self.vim else {
            return false;
        };
        let find = vim.last_find;
        let motion = match c {
            ';' => find.map(|find| Motion::Find(find.repeated())),
            ',' => find.map(|find| Motion::Find(find.repeated().reversed())),
            'G' => {
                let line = vim.take_count();
                Some(line.map_or(Motion::LastLine, Motion::Line))
            }
            c => Motion::from_key(c),
        };
        if let Some(motion) = motion {
            let count = self.vim.as_mut().and_then(VimState::take_count);
            return self.move_or_operate(motion, count.unwrap_or(1), goal);
        }
        if vim.operator.is_some() {
            return false;
        }
        let count = vim.take_count().unwrap_or(1);
        let cursor = self.buffer.cursor();
        let end = self.buffer.line_edge(cursor, TextDirection::Forward);
        match c {
            'i' => self.start_insert(cursor),
            'a' if cursor < end => {
                self.start_insert(self.buffer.next_position(cursor, TextDirection::Forward));
            }
            'a' => self.start_insert(cursor),
            'I' => self.start_insert(self.buffer.first_letter(cursor)),
            'A' => self.start_insert(end),
            'o' => {
                self.change_text(end..end, MarkedText::from("\n"));
                self.start_insert(self.buffer.cursor());
            }
            'O' => {
                let start = self.buffer.line_edge(cursor, TextDirection::Back);
                self.change_text(start..start, MarkedText::from("\n"));
                self.start_insert(start);
            }
            'x' => return self.move_with_operator(VimOperator::Delete, Motion::Right, count),
            'X' => return self.move_with_operator(VimOperator::Delete, Motion::Left, count),
            's' => return self.move_with_operator(VimOperator::Change, Motion::Right, count),
            'D' => return self.move_with_operator(VimOperator::Delete, Motion::LineEnd, count),
            'C' => return self.move_with_operator(VimOperator::Change, Motion::LineEnd, count),
            'S' => self.apply_to_lines(VimOperator::Change, self.line_range(count - 1)),
            'Y' => self.apply_to_lines(VimOperator::Yank, self.line_range(count - 1)),
            'p' => self.put(true, count),
            'P' => self.put(false, count),
            'u' => {
                self.apply_change(super::TextBuffer::undo);
            }
            '/' => self.search = Some(HistorySearch::new(self.history.entries())),
            _ => return false,
        }
        true
    }

    /// Moves the cursor or, after an operator, applies the operator to the text that the motion covers.
    fn move_or_operate(&mut self, motion: Motion, count: usize, goal: Option<u16>) -> bool {
        let operator = self.vim.as_ref().and_then(|vim| vim.operator);
        match operator {
            Some((operator, _)) => self.move_with_operator(operator, motion, count),
            None => self.move_by_motion(motion, count, goal),
        }
    }

    fn move_by_motion(&mut self, motion: Motion, count: usize, goal: Option<u16>) -> bool {
        let way = match motion {
            Motion::Up => TextDirection::Back,
            Motion::Down => TextDirection::Forward,
            motion => {
                let to = self.buffer.motion_target(motion, count);
                return to.is_some_and(|to| {
                    self.buffer.move_cursor(to);
                    true
                });
            }
        };
        // As with the arrow keys, the first row leads to the history.
        let mut goal = goal;
        for _ in 0..count {
            if !self.move_vertically(way, goal) {
                break;
            }
            goal = self.goal_column;
        }
        true
    }

    fn move_with_operator(&mut self, operator: VimOperator, motion: Motion, count: usize) -> bool {
        let is_change = operator == VimOperator::Change;
        if motion.is_linewise() {
            let Some(range) = self.buffer.lines_to(motion, count) else {
                return false;
            };
            self.apply_to_lines(operator, range);
            return true;
        }
        let Some(range) = self.buffer.motion_range(motion, count, is_change) else {
            return false;
        };
        if range.is_empty() && !is_change {
            // Nothing to do, such as `x` on an empty line.
            if let Some(vim) = &mut self.vim {
                vim.operator = None;
            }
            return true;
        }
        self.apply_to_range(operator, range);
        true
    }

    fn apply_to_range(&mut self, operator: VimOperator, range: Range<usize>) {
        self.set_register(range.clone(), false);
        match operator {
            VimOperator::Yank => self.buffer.move_cursor(range.start),
            VimOperator::Delete => self.change_text(range, MarkedText::default()),
            VimOperator::Change => {
                self.change_text(range, MarkedText::default());
                self.start_insert(self.buffer.cursor());
            }
        }
    }

    /// Applies an operator to whole lines. The range is without the line break after the last line.
    fn apply_to_lines(&mut self, operator: VimOperator, range: Range<usize>) {
        self.set_register(range.clone(), true);
        match operator {
            VimOperator::Yank => {
                if self.buffer.cursor() > range.end || self.buffer.cursor() < range.start {
                    self.buffer.move_cursor(range.start);
                }
            }
            VimOperator::Delete => {
                let is_last = range.end == self.buffer.text().len();
                let range = match is_last {
                    true => range.start.saturating_sub(1)..range.end,
                    false => range.start..range.end + 1,
                };
                self.change_text(range, MarkedText::default());
                let cursor = self.buffer.cursor();
                self.buffer.move_cursor(self.buffer.first_letter(cursor));
            }
            VimOperator::Change => {
                self.change_text(range, MarkedText::default());
                self.start_insert(self.buffer.cursor());
            }
        }
    }

    fn set_register(&mut self, range: Range<usize>, has_lines: bool) {
        let text = self.buffer.marked().slice(range);
        if let Some(vim) = &mut self.vim {
            vim.register = VimRegister { text, has_lines };
            // The command is complete.
            vim.operator = None;
        }
    }

    /// Replaces a range. From then on, the text counts as new rather than as a prompt from the history.
    fn change_text(&mut self, range: Range<usize>, inserted: MarkedText) {
        self.walk = None;
        self.buffer.change(range, inserted);
    }

    fn start_insert(&mut self, at: usize) {
        self.buffer.move_cursor(at);
        if let Some(vim) = &mut self.vim {
            vim.mode = VimMode::Insert;
        }
    }

    /// Returns the range of the cursor's line and the lines after it, without the last line break.
    fn line_range(&self, more: usize) -> Range<usize> {
        let cursor = self.buffer.cursor();
        let start = self.buffer.line_edge(cursor, TextDirection::Back);
        let mut end = self.buffer.line_edge(cursor, TextDirection::Forward);
        for _ in 0..more {
            if end == self.buffer.text().len() {
                break;
            }
            end = self.buffer.line_edge(end + 1, TextDirection::Forward);
        }
        start..end
    }

    /// Replaces the next characters of the line with `c`. Does nothing if there are fewer.
    fn replace_characters(&mut self, c: char, count: usize) -> bool {
        let cursor = self.buffer.cursor();
        let line_end = self.buffer.line_edge(cursor, TextDirection::Forward);
        let mut end = cursor;
        for _ in 0..count {
            if end >= line_end {
                return false;
            }
            end = self.buffer.next_position(end, TextDirection::Forward);
        }
        let mut own = [0; 4];
        if acp_host::terminal_text::clean_line(c.encode_utf8(&mut own)).is_empty() {
            return false;
        }
        self.change_text(cursor..end, MarkedText::from(c.to_string().repeat(count)));
        let last = self.buffer.cursor();
        let last = self.buffer.next_position(last, TextDirection::Back);
        self.buffer.move_cursor(last);
        true
    }

    /// Inserts the text that was last deleted or yanked.
    fn put(&mut self, is_after: bool, count: usize) {
        let Some(register) = self.vim.as_ref().map(|vim| &vim.register) else {
            return;
        };
        let has_lines = register.has_lines;
        let room = MAX_PROMPT_BYTES.saturating_sub(self.buffer.marked().memory_bytes());
        // Each copy of whole lines also needs a line break.
        let each = register.text.memory_bytes() + usize::from(has_lines);
        let count = count.min(room.checked_div(each).unwrap_or(0));
        if count == 0 {
            return;
        }
        let mut text = MarkedText::default();
        for n in 0..count {
            if n > 0 && has_lines {
                text.push(&MarkedText::from("\n"));
            }
            text.push(&register.text);
        }
        let cursor = self.buffer.cursor();
        let start = self.buffer.line_edge(cursor, TextDirection::Back);
        let end = self.buffer.line_edge(cursor, TextDirection::Forward);
        match (has_lines, is_after) {
            (true, true) => {
                let mut inserted = MarkedText::from("\n");
                inserted.push(&text);
                self.change_text(end..end, inserted);
                self.buffer.move_cursor(self.buffer.first_letter(end + 1));
            }
            (true, false) => {
                text.push(&MarkedText::from("\n"));
                self.change_text(start..start, text);
                self.buffer.move_cursor(self.buffer.first_letter(start));
            }
            (false, _) => {
                let at = match is_after && cursor < end {
                    true => self.buffer.next_position(cursor, TextDirection::Forward),
                    false => cursor,
                };
                self.change_text(at..at, text);
                let last = self.buffer.cursor();
                let last = self.buffer.next_position(last, TextDirection::Back);
                self.buffer.move_cursor(last);
            }
        }
    }
}

impl VimState {
    /// Returns whether a command has been started that needs more keys.
    fn is_waiting(&self) -> bool {
        let is_started = self.count.is_some() || self.operator.is_some() || self.prefix.is_some();
        is_started && self.mode == VimMode::Normal
    }
}
