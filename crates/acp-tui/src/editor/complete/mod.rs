//! Completing what is written: `/` at the beginning of it names a command of the agent's, `@` behind white space a
//! file of the project.

mod commands;
mod files;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::commands::Command;
pub(crate) use self::files::Files;
use self::files::Found;
use super::marked::Marked;
use super::popup::Row;

/// What can be completed where the cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    kind: Kind,
    /// Where the `/` or the `@` is, in bytes.
    pub(crate) start: usize,
    /// What is behind it, up to the cursor.
    pub(crate) query: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    File,
}

impl Trigger {
    /// What there is to complete before the cursor.
    pub(crate) fn at(marked: &Marked, cursor: usize) -> Option<Self> {
        let before = marked.text().get(..cursor)?;
        let word = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before[at..].chars().next().map_or(0, char::len_utf8)
        });
        let marked = marked
            .marks()
            .iter()
            .any(|m| m.range.end > word && m.range.start < cursor);
        let (first, query) = before[word..].split_at_checked(1)?;
        let kind = match first {
            "/" if word == 0 => Kind::Command,
            "@" => Kind::File,
            _ => return None,
        };
        (!marked).then(|| Self {
            kind,
            start: word,
            query: query.to_owned(),
        })
    }

    /// Whether it is a file that is named.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == Kind::File
    }
}

/// What is offered.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) trigger: Trigger,
    pub(crate) picked: usize,
    pub(crate) rows: Vec<Row>,
    offers: Offers,
}

#[derive(Debug)]
enum Offers {
    Commands(Vec<Command>),
    Files(Arc<Found>),
}

/// What was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    Command(Command),
    /// A file or a directory of the project.
    File {
        shown: String,
        path: PathBuf,
    },
}

impl Completion {
    /// What is offered for that.
    pub(crate) fn new(trigger: Trigger, commands: &[Command], files: &Files) -> Self {
        if trigger.kind == Kind::File {
            files.ask(&trigger.query);
            // Until it is answered, what was found last.
            let mut completion = Self {
                trigger,
                picked: 0,
                rows: Vec::new(),
                offers: Offers::Files(Arc::default()),
            };
            completion.look(files.found());
            return completion;
        }
        let found = commands::search(commands, &trigger.query).into_iter();
        let (indices, rows): (Vec<_>, Vec<_>) = found.unzip();
        let offered = indices.into_iter().filter_map(|at| commands.get(at));
        Self {
            trigger,
            picked: 0,
            rows,
            offers: Offers::Commands(offered.cloned().collect()),
        }
    }

    /// What was found since.
    pub(crate) fn refresh(&mut self, files: &Files) {
        if self.trigger.is_file() {
            self.look(files.found());
        }
    }

    fn look(&mut self, found: Arc<Found>) {
        if let Offers::Files(old) = &self.offers
            && Arc::ptr_eq(old, &found)
        {
            return;
        }
        let rows = found.files.iter().map(|file| Row {
            label: file.shown.clone(),
            matched: file.matched.clone(),
            detail: String::new(),
            end_first: true,
        });
        self.rows = rows.collect();
        self.picked = self.picked.min(self.rows.len().saturating_sub(1));
        self.offers = Offers::Files(found);
    }

    /// What the list is of.
    pub(crate) fn title(&self) -> &'static str {
        match &self.offers {
            Offers::Commands(_) => "commands",
            Offers::Files(found) if found.looking => "files, still looking",
            Offers::Files(found) if found.more => "files, of the first 100,000",
            Offers::Files(_) => "files",
        }
    }

    /// What is picked, for what is typed by now; for the files that fit that it waits so long.
    pub(crate) fn take(&mut self, files: &Files, within: Duration) -> Option<Taken> {
        if self.is_late() {
            self.look(files.settled(&self.trigger.query, within));
            if self.is_late() {
                return None;
            }
            // It was picked from another list.
            self.picked = 0;
        }
        match &self.offers {
            Offers::Commands(commands) => commands.get(self.picked).cloned().map(Taken::Command),
            Offers::Files(found) => found.files.get(self.picked).map(|file| Taken::File {
                shown: file.shown.clone(),
                path: file.path.clone(),
            }),
        }
    }

    /// Whether what is offered is for what was typed before.
    pub(crate) fn is_late(&self) -> bool {
        match &self.offers {
            Offers::Commands(_) => false,
            Offers::Files(found) => found.query.as_deref() != Some(&self.trigger.query),
        }
    }

    /// Whether all of the picked command has been typed.
    pub(crate) fn is_typed(&self) -> bool {
        match &self.offers {
            Offers::Commands(commands) => {
                let picked = commands.get(self.picked);
                picked.is_some_and(|command| command.name == self.trigger.query)
            }
            Offers::Files(_) => false,
        }
    }

    /// Another one is picked: round and round.
    pub(crate) fn pick(&mut self, back: bool) {
        let all = self.rows.len().max(1);
        let step = if back { all - 1 } else { 1 };
        self.picked = (self.picked + step) % all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::marked::Stands;

    fn at(text: &str, cursor: usize) -> Option<(bool, usize, String)> {
        let trigger = Trigger::at(&Marked::from(text), cursor)?;
        Some((trigger.is_file(), trigger.start, trigger.query))
    }

    #[test]
    fn a_slash_counts_at_the_beginning_and_an_at_behind_white_space() {
        assert_eq!(at("/pl", 3), Some((false, 0, "pl".into())));
        assert_eq!(at("/pl", 1), Some((false, 0, String::new())));
        assert_eq!(at("/plan x", 7), None);
        assert_eq!(at("a /plan", 7), None);
        assert_eq!(at("@", 1), Some((true, 0, String::new())));
        assert_eq!(at("see\u{3000}@a/b", 10), Some((true, 6, "a/b".into())));
        assert_eq!(at("me@here", 7), None);
        assert_eq!(at("é", 2), None);
        assert_eq!(at("", 0), None);
        let mut marked = Marked::label("@a.rs", Stands::File("/a.rs".into()));
        assert_eq!(Trigger::at(&marked, 5), None);
        marked.push(&Marked::from(" @"));
        assert!(Trigger::at(&marked, 7).is_some());
    }
}
