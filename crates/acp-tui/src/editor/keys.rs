//! Defines the editor's key bindings, which follow those of shells.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::complete::CompletionChoice;
use super::marked_text::MarkedText;
use super::rows::{position_at, row_at, split_clusters};
use super::search::HistorySearch;
use super::text_buffer::{TextDirection, WordKind};
use super::{EditorOutcome, HistoryPosition, MAX_EXPANDED_BYTES, PromptEditor, file_mention};

/// A modifier that is held while a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    Shift,
    Ctrl,
    Alt,
    Other,
}

impl Modifier {
    fn from_key_modifiers(modifiers: KeyModifiers) -> Self {
        let others = modifiers - KeyModifiers::SHIFT;
        if others == KeyModifiers::CONTROL {
            Self::Ctrl
        } else if others == KeyModifiers::ALT {
            Self::Alt
        } else if !others.is_empty() {
            Self::Other
        } else if modifiers.is_empty() {
            Self::None
        } else {
            Self::Shift
        }
    }
}

impl PromptEditor {
    /// Handles a key that is pressed in the editor.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> EditorOutcome {
        if key.kind == KeyEventKind::Release {
            return EditorOutcome::Ignored;
        }
        let with = Modifier::from_key_modifiers(key.modifiers);
        if self.search.is_some() {
            return self.handle_search_key(key.code, with);
        }
        if let Some(outcome) = self.handle_completion_key(key.code, with) {
            return outcome;
        }
        let goal = self.goal_column.take();
        if let Some(outcome) = self.handle_vim_key(key.code, with, goal) {
            return outcome;
        }
        let (revision, cursor) = (self.buffer.revision(), self.buffer.cursor());
        let outcome = self.handle_edit_key(key.code, with, goal);
        if self.buffer.revision() != revision {
            if self.walk.is_none() {
                self.update_completion();
            }
        } else if self.buffer.cursor() != cursor && self.completion.is_some() {
            // An open list follows the cursor, but moving the cursor opens none.
            self.completion = None;
        }
        outcome
    }

    fn handle_edit_key(
        &mut self,
        code: KeyCode,
        with: Modifier,
        goal: Option<u16>,
    ) -> EditorOutcome {
        use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Home, Left, Right, Tab, Up};
        let done = match (code, with) {
            (Enter, Modifier::None) => return self.submit_or_break_line(),
            (Enter, Modifier::Shift | Modifier::Alt | Modifier::Ctrl)
            | (Char('j'), Modifier::Ctrl) => {
                return self.insert(MarkedText::from("\n"));
            }
            (Char(c), Modifier::None | Modifier::Shift) => return self.type_char(c),
            (Up, Modifier::None) | (Char('p'), Modifier::Ctrl) => {
                self.move_vertically(TextDirection::Back, goal)
            }
            (Down, Modifier::None) | (Char('n'), Modifier::Ctrl) => {
                self.move_vertically(TextDirection::Forward, goal)
            }
            (Left, Modifier::None) | (Char('b'), Modifier::Ctrl) => {
                self.move_by_step(TextDirection::Back)
            }
            (Right, Modifier::None) | (Char('f'), Modifier::Ctrl) => {
                self.move_by_step(TextDirection::Forward)
            }
            (Left, Modifier::Ctrl | Modifier::Alt) | (Char('b'), Modifier::Alt) => {
                self.move_by_word(TextDirection::Back)
            }
            (Right, Modifier::Ctrl | Modifier::Alt) | (Char('f'), Modifier::Alt) => {
                self.move_by_word(TextDirection::Forward)
            }
            (Home, Modifier::None) | (Char('a'), Modifier::Ctrl) => {
                self.move_to_line_edge(TextDirection::Back)
            }
            (End, Modifier::None) | (Char('e'), Modifier::Ctrl) => {
                self.move_to_line_edge(TextDirection::Forward)
            }
            (Home, Modifier::Ctrl) | (Char('<'), Modifier::Alt) => self.move_cursor(0),
            (End, Modifier::Ctrl) | (Char('>'), Modifier::Alt) => self.move_cursor(usize::MAX),
            (Backspace, Modifier::None | Modifier::Shift) | (Char('h'), Modifier::Ctrl) => {
                self.backspace()
            }
            (Delete, Modifier::None) | (Char('d'), Modifier::Ctrl) => {
                self.apply_change(|w| w.erase(TextDirection::Forward))
            }
            (Char('w'), Modifier::Ctrl) => {
                self.apply_change(|w| w.kill_word(TextDirection::Back, WordKind::NonWhitespace))
            }
            (Backspace, Modifier::Alt | Modifier::Ctrl) => {
                self.apply_change(|w| w.kill_word(TextDirection::Back, WordKind::Alphanumeric))
            }
            (Char('d') | Delete, Modifier::Alt) | (Delete, Modifier::Ctrl) => {
                self.apply_change(|w| w.kill_word(TextDirection::Forward, WordKind::Alphanumeric))
            }
            (Char('u'), Modifier::Ctrl) => self.apply_change(|w| w.kill_line(TextDirection::Back)),
            (Char('k'), Modifier::Ctrl) => {
                self.apply_change(|w| w.kill_line(TextDirection::Forward))
            }
            (Char('y'), Modifier::Ctrl) => self.apply_change(super::TextBuffer::yank),
            // The same key, as different terminals report it.
            (Char('_' | '/' | '7'), Modifier::Ctrl) => self.apply_change(super::TextBuffer::undo),
            (Char('_' | '/'), Modifier::Alt) => self.apply_change(super::TextBuffer::redo),
            (Char('r'), Modifier::Ctrl) => {
                self.completion = None;
                self.search = Some(HistorySearch::new(self.history.entries()));
                true
            }
            (Tab, Modifier::None) => return self.expand_paste(),
            _ => false,
        };
        if done {
            EditorOutcome::Changed
        } else {
            EditorOutcome::Ignored
        }
    }

    /// Applies a change to the text. From then on, the text counts as new rather than as a prompt from the history.
    pub(super) fn apply_change(
        &mut self,
        change: impl FnOnce(&mut super::TextBuffer) -> bool,
    ) -> bool {
        let done = change(&mut self.buffer);
        if done {
            self.walk = None;
        }
        done
    }

    /// Submits the prompt. After a `\` at the end of the line, starts a new line instead, because not every terminal
    /// can distinguish Shift-Enter from Enter.
    fn submit_or_break_line(&mut self) -> EditorOutcome {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let escapes = text[..cursor]
            .bytes()
            .rev()
            .take_while(|b| *b == b'\\')
            .count();
        let at_end = self.buffer.line_edge(cursor, TextDirection::Forward) == cursor;
        if at_end && escapes % 2 == 1 {
            self.walk = None;
            self.buffer
                .change(cursor - 1..cursor, MarkedText::from("\n"));
            return EditorOutcome::Changed;
        }
        if text.trim().is_empty() && self.attachments.is_empty() {
            return EditorOutcome::Ignored;
        }
        EditorOutcome::Submit
    }

    fn type_char(&mut self, c: char) -> EditorOutcome {
        let mut own = [0; 4];
        if acp_host::terminal_text::clean_line(c.encode_utf8(&mut own)).is_empty() {
            return EditorOutcome::Ignored;
        }
        if self.buffer.marked().memory_bytes() > super::MAX_PROMPT_BYTES {
            return self.insert(MarkedText::from(c.to_string()));
        }
        self.walk = None;
        if c.is_whitespace() {
            self.mention_typed_file();
        }
        self.buffer.type_char(c);
        EditorOutcome::Changed
    }

    /// Marks a file whose name the user typed in full, as if it had been chosen from the list.
    fn mention_typed_file(&mut self) {
        let trigger = self.completion.as_ref().map(|c| &c.trigger);
        let Some(trigger) = trigger.filter(|t| t.is_file() && !t.query.is_empty()) else {
            return;
        };
        let named = std::path::Path::new(&trigger.query);
        let inside = named
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        let path = self.files.root().join(named);
        if inside && path.is_file() {
            let range = trigger.start..self.buffer.cursor();
            let mention = file_mention(&trigger.query, path);
            self.buffer.change(range, mention);
        }
    }

    fn move_cursor(&mut self, to: usize) -> bool {
        let from = self.buffer.cursor();
        self.buffer.move_cursor(to);
        self.buffer.cursor() != from
    }

    fn move_by_step(&mut self, way: TextDirection) -> bool {
        self.move_cursor(self.buffer.next_position(self.buffer.cursor(), way))
    }

    fn move_by_word(&mut self, way: TextDirection) -> bool {
        self.move_cursor(self.buffer.word_edge(way, WordKind::Alphanumeric))
    }

    fn move_to_line_edge(&mut self, way: TextDirection) -> bool {
        self.move_cursor(self.buffer.line_edge(self.buffer.cursor(), way))
    }

    fn backspace(&mut self) -> bool {
        if self.buffer.cursor() == 0 {
            return self.attachments.remove_last();
        }
        self.apply_change(|w| w.erase(TextDirection::Back))
    }

    /// Moves the cursor up or down a row. At the first or last row, moves to the previous or next prompt in the
    /// history.
    pub(super) fn move_vertically(&mut self, way: TextDirection, goal: Option<u16>) -> bool {
        self.update_layout(self.layout.width);
        let (rows, cursor) = (&self.layout.rows, self.buffer.cursor());
        let row = row_at(rows, cursor);
        let next = match way {
            TextDirection::Back => row.checked_sub(1),
            TextDirection::Forward => Some(row + 1).filter(|next| *next < rows.len()),
        };
        let Some(next) = next else {
            return self.browse_history(way);
        };
        let text = self.buffer.text();
        let column = || {
            let before = &text[rows[row].start..cursor];
            split_clusters(before)
                .last()
                .map_or(0, |last| last.column + last.width)
        };
        let goal = goal.unwrap_or_else(column);
        let to = position_at(text, rows, next, goal);
        if !self.move_cursor(to) {
            // The position is within a mark that spans both rows.
            self.move_by_step(way);
        }
        self.goal_column = Some(goal);
        true
    }

    /// Shows another prompt from the history, or returns to the text that the user was writing.
    fn browse_history(&mut self, way: TextDirection) -> bool {
        let mut walk = match (self.walk.take(), way) {
            (Some(walk), _) => walk,
            (None, TextDirection::Forward) => return false,
            (None, TextDirection::Back) => {
                let entries = self.history.entries();
                HistoryPosition {
                    index: entries.len(),
                    entries,
                    saved_text: self.buffer.marked().clone(),
                }
            }
        };
        let at = match way {
            TextDirection::Back => walk.index.checked_sub(1),
            TextDirection::Forward => Some(walk.index + 1),
        };
        let Some(at) = at.filter(|at| *at <= walk.entries.len()) else {
            // There is nothing before the oldest prompt.
            self.walk = (walk.index < walk.entries.len()).then_some(walk);
            return false;
        };
        walk.index = at;
        if let Some(entry) = walk.entries.get(at) {
            self.recall(entry);
            if way == TextDirection::Back {
                // From this position the same key moves on through the history.
                self.update_layout(self.layout.width);
                let end = position_at(self.buffer.text(), &self.layout.rows, 0, u16::MAX);
                self.buffer.move_cursor(end);
            }
            self.walk = Some(walk);
        } else {
            self.buffer.replace_all(walk.saved_text);
        }
        true
    }

    /// Expands the label next to the cursor into the text that it stands for, to make the text editable.
    fn expand_paste(&mut self) -> EditorOutcome {
        let mark = self.buffer.marked().mark_at(self.buffer.cursor());
        let hidden = mark.and_then(|m| Some((m.range.clone(), m.content.hidden_text()?)));
        let Some((range, text)) = hidden else {
            return EditorOutcome::Ignored;
        };
        if text.len() > MAX_EXPANDED_BYTES {
            let most = MAX_EXPANDED_BYTES / 1024;
            let why = format!("text larger than {most} KiB cannot be edited here");
            return EditorOutcome::Note(why);
        }
        let text = MarkedText::from(&**text);
        self.buffer.change(range, text);
        EditorOutcome::Changed
    }

    fn handle_completion_key(&mut self, code: KeyCode, with: Modifier) -> Option<EditorOutcome> {
        let completion = self.completion.as_mut()?;
        completion.refresh(&self.files);
        let shown = !completion.rows.is_empty();
        match (code, with) {
            (KeyCode::Up, Modifier::None) | (KeyCode::Char('p'), Modifier::Ctrl) if shown => {
                completion.select_next(true);
            }
            (KeyCode::Down, Modifier::None) | (KeyCode::Char('n'), Modifier::Ctrl) if shown => {
                completion.select_next(false);
            }
            (KeyCode::Esc, Modifier::None) if shown => {
                self.dismissed_at = Some(completion.trigger.start);
                self.completion = None;
            }
            (KeyCode::Enter, Modifier::None) if completion.is_fully_typed() => {
                self.completion = None;
                return None;
            }
            (KeyCode::Enter | KeyCode::Tab, Modifier::None) => {
                let start = completion.trigger.start;
                let Some(taken) = completion.choose(&self.files, self.completion_timeout) else {
                    if shown && completion.is_stale() {
                        // The user means to choose a file, so nothing is sent.
                        let why = "still searching for matching files";
                        return Some(EditorOutcome::Note(why.to_owned()));
                    }
                    self.completion = None;
                    return None;
                };
                self.completion = None;
                self.accept_completion(taken, start, code == KeyCode::Tab);
            }
            _ => return None,
        }
        Some(EditorOutcome::Changed)
    }

    fn accept_completion(&mut self, taken: CompletionChoice, start: usize, tab: bool) {
        let cursor = self.buffer.cursor();
        let followed = self.buffer.text()[cursor..].starts_with(char::is_whitespace);
        let (mut inserted, goes_on) = match taken {
            CompletionChoice::Command(command) => {
                (MarkedText::from(format!("/{}", command.name)), false)
            }
            // Tab continues into the directory; Enter chooses it.
            CompletionChoice::File { shown, .. } if tab && shown.ends_with('/') => {
                (MarkedText::from(format!("@{shown}")), true)
            }
            CompletionChoice::File { shown, path } => {
                let path = self.files.root().join(path);
                (file_mention(&shown, path), false)
            }
        };
        if !followed && !goes_on {
            inserted.push(&MarkedText::from(" "));
        }
        self.walk = None;
        self.buffer.change(start..cursor, inserted);
        if followed && !goes_on {
            self.move_by_step(TextDirection::Forward);
        }
        if goes_on {
            self.update_completion();
        }
    }

    fn handle_search_key(&mut self, code: KeyCode, with: Modifier) -> EditorOutcome {
        let Some(search) = &mut self.search else {
            return EditorOutcome::Ignored;
        };
        match (code, with) {
            (KeyCode::Char('r'), Modifier::Ctrl)
            | (KeyCode::Up, Modifier::None)
            | (KeyCode::Char('p'), Modifier::Ctrl) => search.select_next(false),
            (KeyCode::Char('s' | 'n'), Modifier::Ctrl) | (KeyCode::Down, Modifier::None) => {
                search.select_next(true);
            }
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), Modifier::Ctrl) => self.search = None,
            (KeyCode::Enter | KeyCode::Tab | KeyCode::Right, Modifier::None) => {
                if let Some(entry) = search.selected_entry().cloned() {
                    self.search = None;
                    self.walk = None;
                    self.recall(&entry);
                }
            }
            (KeyCode::Backspace, _) | (KeyCode::Char('h'), Modifier::Ctrl) => search.erase(),
            (KeyCode::Char('u' | 'w'), Modifier::Ctrl) => search.clear(),
            (KeyCode::Char(c), Modifier::None | Modifier::Shift) => {
                search.type_text(&acp_host::terminal_text::clean_line(&c.to_string()));
            }
            _ => return EditorOutcome::Ignored,
        }
        EditorOutcome::Changed
    }
}
