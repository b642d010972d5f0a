//! What keys do in the editor: as in shells, and in lists.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::complete::Taken;
use super::marked::{Marked, Stands};
use super::rows::{clusters, place, row_of};
use super::search::Search;
use super::written::{Way, Words};
use super::{Editor, OPENED, Outcome, Walk, mention};

/// With which of the keys that go with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Nothing,
    Shift,
    Ctrl,
    Alt,
    Other,
}

impl With {
    fn of(modifiers: KeyModifiers) -> Self {
        let others = modifiers - KeyModifiers::SHIFT;
        if others == KeyModifiers::CONTROL {
            Self::Ctrl
        } else if others == KeyModifiers::ALT {
            Self::Alt
        } else if !others.is_empty() {
            Self::Other
        } else if modifiers.is_empty() {
            Self::Nothing
        } else {
            Self::Shift
        }
    }
}

impl Editor {
    /// What a key does.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.kind == KeyEventKind::Release {
            return Outcome::Ignored;
        }
        let with = With::of(key.modifiers);
        if self.search.is_some() {
            return self.search_key(key.code, with);
        }
        if let Some(outcome) = self.completion_key(key.code, with) {
            return outcome;
        }
        let goal = self.goal.take();
        let (revision, cursor) = (self.written.revision(), self.written.cursor());
        let outcome = self.edit_key(key.code, with, goal);
        if self.written.revision() != revision {
            if self.walk.is_none() {
                self.complete();
            }
        } else if self.written.cursor() != cursor && self.completion.is_some() {
            // A list follows the cursor, but none opens where it goes.
            self.completion = None;
        }
        outcome
    }

    fn edit_key(&mut self, code: KeyCode, with: With, goal: Option<u16>) -> Outcome {
        use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Home, Left, Right, Tab, Up};
        let done = match (code, with) {
            (Enter, With::Nothing) => return self.enter(),
            (Enter, With::Shift | With::Alt | With::Ctrl) | (Char('j'), With::Ctrl) => {
                return self.insert(Marked::from("\n"));
            }
            (Char(c), With::Nothing | With::Shift) => return self.typed(c),
            (Up, With::Nothing) | (Char('p'), With::Ctrl) => self.vertical(Way::Back, goal),
            (Down, With::Nothing) | (Char('n'), With::Ctrl) => self.vertical(Way::Forward, goal),
            (Left, With::Nothing) | (Char('b'), With::Ctrl) => self.go_step(Way::Back),
            (Right, With::Nothing) | (Char('f'), With::Ctrl) => self.go_step(Way::Forward),
            (Left, With::Ctrl | With::Alt) | (Char('b'), With::Alt) => self.go_word(Way::Back),
            (Right, With::Ctrl | With::Alt) | (Char('f'), With::Alt) => self.go_word(Way::Forward),
            (Home, With::Nothing) | (Char('a'), With::Ctrl) => self.go_edge(Way::Back),
            (End, With::Nothing) | (Char('e'), With::Ctrl) => self.go_edge(Way::Forward),
            (Home, With::Ctrl) | (Char('<'), With::Alt) => self.go(0),
            (End, With::Ctrl) | (Char('>'), With::Alt) => self.go(usize::MAX),
            (Backspace, With::Nothing | With::Shift) | (Char('h'), With::Ctrl) => self.backspace(),
            (Delete, With::Nothing) | (Char('d'), With::Ctrl) => {
                self.changed(|w| w.erase(Way::Forward))
            }
            (Char('w'), With::Ctrl) => self.changed(|w| w.kill_word(Way::Back, Words::Solid)),
            (Backspace, With::Alt | With::Ctrl) => {
                self.changed(|w| w.kill_word(Way::Back, Words::Letters))
            }
            (Char('d') | Delete, With::Alt) | (Delete, With::Ctrl) => {
                self.changed(|w| w.kill_word(Way::Forward, Words::Letters))
            }
            (Char('u'), With::Ctrl) => self.changed(|w| w.kill_line(Way::Back)),
            (Char('k'), With::Ctrl) => self.changed(|w| w.kill_line(Way::Forward)),
            (Char('y'), With::Ctrl) => self.changed(super::Written::yank),
            // The same key, as terminals of different kinds tell of it.
            (Char('_' | '/' | '7'), With::Ctrl) => self.changed(super::Written::undo),
            (Char('_' | '/'), With::Alt) => self.changed(super::Written::redo),
            (Char('r'), With::Ctrl) => {
                self.completion = None;
                self.search = Some(Search::new(self.history.entries()));
                true
            }
            (Tab, With::Nothing) => return self.open_pasted(),
            _ => false,
        };
        if done {
            Outcome::Changed
        } else {
            Outcome::Ignored
        }
    }

    /// A change after which this is no longer a prompt of the past.
    fn changed(&mut self, change: impl FnOnce(&mut super::Written) -> bool) -> bool {
        let done = change(&mut self.written);
        if done {
            self.walk = None;
        }
        done
    }

    /// Sends, but for a line that ends with `\`, which goes on: not every terminal can tell Shift-Enter.
    fn enter(&mut self) -> Outcome {
        let (text, cursor) = (self.written.text(), self.written.cursor());
        let escapes = text[..cursor]
            .bytes()
            .rev()
            .take_while(|b| *b == b'\\')
            .count();
        let at_end = self.written.line_edge(cursor, Way::Forward) == cursor;
        if at_end && escapes % 2 == 1 {
            self.walk = None;
            self.written.change(cursor - 1..cursor, Marked::from("\n"));
            return Outcome::Changed;
        }
        if text.trim().is_empty() && self.attachments.is_empty() {
            return Outcome::Ignored;
        }
        Outcome::Submit
    }

    fn typed(&mut self, c: char) -> Outcome {
        let mut own = [0; 4];
        if acp_host::clean::line(c.encode_utf8(&mut own)).is_empty() {
            return Outcome::Ignored;
        }
        if self.written.marked().held() > super::MOST {
            return self.insert(Marked::from(c.to_string()));
        }
        self.walk = None;
        if c.is_whitespace() {
            self.name_typed();
        }
        self.written.type_char(c);
        Outcome::Changed
    }

    /// A file whose name is typed in full is named as if it had been chosen.
    fn name_typed(&mut self) {
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
            let range = trigger.start..self.written.cursor();
            let mention = mention(&trigger.query, path);
            self.written.change(range, mention);
        }
    }

    fn go(&mut self, to: usize) -> bool {
        let from = self.written.cursor();
        self.written.go(to);
        self.written.cursor() != from
    }

    fn go_step(&mut self, way: Way) -> bool {
        self.go(self.written.step(self.written.cursor(), way))
    }

    fn go_word(&mut self, way: Way) -> bool {
        self.go(self.written.word(way, Words::Letters))
    }

    fn go_edge(&mut self, way: Way) -> bool {
        self.go(self.written.line_edge(self.written.cursor(), way))
    }

    fn backspace(&mut self) -> bool {
        if self.written.cursor() == 0 {
            return self.attachments.remove_last();
        }
        self.changed(|w| w.erase(Way::Back))
    }

    /// A row up or down, and from the first or the last one into the past and back.
    fn vertical(&mut self, way: Way, goal: Option<u16>) -> bool {
        self.lay(self.laid.width);
        let (rows, cursor) = (&self.laid.rows, self.written.cursor());
        let row = row_of(rows, cursor);
        let next = match way {
            Way::Back => row.checked_sub(1),
            Way::Forward => Some(row + 1).filter(|next| *next < rows.len()),
        };
        let Some(next) = next else {
            return self.walk(way);
        };
        let text = self.written.text();
        let column = || {
            let before = &text[rows[row].start..cursor];
            clusters(before)
                .last()
                .map_or(0, |last| last.column + last.width)
        };
        let goal = goal.unwrap_or_else(column);
        let to = place(text, rows, next, goal);
        if !self.go(to) {
            // It is a mark on both rows.
            self.go_step(way);
        }
        self.goal = Some(goal);
        true
    }

    /// To another prompt of the past, or back to what is being written.
    fn walk(&mut self, way: Way) -> bool {
        let mut walk = match (self.walk.take(), way) {
            (Some(walk), _) => walk,
            (None, Way::Forward) => return false,
            (None, Way::Back) => {
                let entries = self.history.entries();
                Walk {
                    at: entries.len(),
                    entries,
                    before: self.written.marked().clone(),
                }
            }
        };
        let at = match way {
            Way::Back => walk.at.checked_sub(1),
            Way::Forward => Some(walk.at + 1),
        };
        let Some(at) = at.filter(|at| *at <= walk.entries.len()) else {
            // Beyond the oldest there is nothing.
            self.walk = (walk.at < walk.entries.len()).then_some(walk);
            return false;
        };
        walk.at = at;
        if let Some(entry) = walk.entries.get(at) {
            self.recall(entry);
            if way == Way::Back {
                // From here the same key leads on.
                self.lay(self.laid.width);
                let end = place(self.written.text(), &self.laid.rows, 0, u16::MAX);
                self.written.go(end);
            }
            self.walk = Some(walk);
        } else {
            self.written.replace_all(walk.before);
        }
        true
    }

    /// Opens the pasted text beside the cursor, so that it can be read and changed.
    fn open_pasted(&mut self) -> Outcome {
        let mark = self.written.marked().touching(self.written.cursor());
        let Some((range, Stands::Pasted(text))) = mark.map(|m| (m.range.clone(), &m.stands)) else {
            return Outcome::Ignored;
        };
        if text.len() > OPENED {
            let most = OPENED / 1024;
            let why =
                format!("what is pasted is more than {most} KiB, too much to be changed here");
            return Outcome::Told(why);
        }
        let text = Marked::from(&**text);
        self.written.change(range, text);
        Outcome::Changed
    }

    fn completion_key(&mut self, code: KeyCode, with: With) -> Option<Outcome> {
        let completion = self.completion.as_mut()?;
        completion.refresh(&self.files);
        let shown = !completion.rows.is_empty();
        match (code, with) {
            (KeyCode::Up, With::Nothing) | (KeyCode::Char('p'), With::Ctrl) if shown => {
                completion.pick(true);
            }
            (KeyCode::Down, With::Nothing) | (KeyCode::Char('n'), With::Ctrl) if shown => {
                completion.pick(false);
            }
            (KeyCode::Esc, With::Nothing) if shown => {
                self.closed = Some(completion.trigger.start);
                self.completion = None;
            }
            (KeyCode::Enter, With::Nothing) if completion.is_typed() => {
                self.completion = None;
                return None;
            }
            (KeyCode::Enter | KeyCode::Tab, With::Nothing) => {
                let start = completion.trigger.start;
                let Some(taken) = completion.take(&self.files, self.patience) else {
                    if shown && completion.is_late() {
                        // Somebody means to choose, so nothing is sent.
                        let why = "the files that fit what is typed are still being looked for";
                        return Some(Outcome::Told(why.to_owned()));
                    }
                    self.completion = None;
                    return None;
                };
                self.completion = None;
                self.take_completion(taken, start, code == KeyCode::Tab);
            }
            _ => return None,
        }
        Some(Outcome::Changed)
    }

    fn take_completion(&mut self, taken: Taken, start: usize, tab: bool) {
        let cursor = self.written.cursor();
        let followed = self.written.text()[cursor..].starts_with(char::is_whitespace);
        let (mut inserted, goes_on) = match taken {
            Taken::Command(command) => (Marked::from(format!("/{}", command.name)), false),
            // Tab goes on into a directory, and Enter takes it.
            Taken::File { shown, .. } if tab && shown.ends_with('/') => {
                (Marked::from(format!("@{shown}")), true)
            }
            Taken::File { shown, path } => {
                let path = self.files.root().join(path);
                (mention(&shown, path), false)
            }
        };
        if !followed && !goes_on {
            inserted.push(&Marked::from(" "));
        }
        self.walk = None;
        self.written.change(start..cursor, inserted);
        if followed && !goes_on {
            self.go_step(Way::Forward);
        }
        if goes_on {
            self.complete();
        }
    }

    fn search_key(&mut self, code: KeyCode, with: With) -> Outcome {
        let Some(search) = &mut self.search else {
            return Outcome::Ignored;
        };
        match (code, with) {
            (KeyCode::Char('r'), With::Ctrl)
            | (KeyCode::Up, With::Nothing)
            | (KeyCode::Char('p'), With::Ctrl) => search.pick(false),
            (KeyCode::Char('s' | 'n'), With::Ctrl) | (KeyCode::Down, With::Nothing) => {
                search.pick(true);
            }
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), With::Ctrl) => self.search = None,
            (KeyCode::Enter | KeyCode::Tab | KeyCode::Right, With::Nothing) => {
                if let Some(entry) = search.take().cloned() {
                    self.search = None;
                    self.walk = None;
                    self.recall(&entry);
                }
            }
            (KeyCode::Backspace, _) | (KeyCode::Char('h'), With::Ctrl) => search.erase(),
            (KeyCode::Char('u' | 'w'), With::Ctrl) => search.clear(),
            (KeyCode::Char(c), With::Nothing | With::Shift) => {
                search.type_text(&acp_host::clean::line(&c.to_string()));
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Changed
    }
}
