//! Completes text in the prompt. A `/` at the start completes a slash command, and an `@` after whitespace completes a
//! file.

mod commands;
mod files;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::commands::CommandItem;
pub(crate) use self::files::FileFinder;
use self::files::FileMatches;
use super::marked_text::MarkedText;
use super::popup::PopupRow;

/// The completable text before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionTrigger {
    kind: TriggerKind,
    /// The byte position of the `/` or `@` in the text.
    pub(crate) start: usize,
    /// The text between the `/` or `@` and the cursor.
    pub(crate) query: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Command,
    File,
}

impl CompletionTrigger {
    /// Finds the completable text before the cursor.
    pub(crate) fn find_before(marked: &MarkedText, cursor: usize) -> Option<Self> {
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
            "/" if word == 0 => TriggerKind::Command,
            "@" => TriggerKind::File,
            _ => return None,
        };
        (!marked).then(|| Self {
            kind,
            start: word,
            query: query.to_owned(),
        })
    }

    /// Returns whether the trigger completes a file.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == TriggerKind::File
    }
}

/// The completions currently offered for the text before the cursor.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) trigger: CompletionTrigger,
    pub(crate) selected_index: usize,
    pub(crate) rows: Vec<PopupRow>,
    items: CompletionItems,
}

#[derive(Debug)]
enum CompletionItems {
    Commands(Vec<CommandItem>),
    Files(Arc<FileMatches>),
}

/// A completion that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionChoice {
    Command(CommandItem),
    /// A file or directory of the project.
    File {
        shown: String,
        path: PathBuf,
    },
}

impl Completion {
    /// Creates the list of completions for a trigger.
    pub(crate) fn new(
        trigger: CompletionTrigger,
        commands: &[CommandItem],
        files: &FileFinder,
    ) -> Self {
        if trigger.kind == TriggerKind::File {
            files.start_query(&trigger.query);
            // Until there are matches, the previous ones are shown.
            let mut completion = Self {
                trigger,
                selected_index: 0,
                rows: Vec::new(),
                items: CompletionItems::Files(Arc::default()),
            };
            completion.set_matches(files.matches());
            return completion;
        }
        let found = commands::search_commands(commands, &trigger.query).into_iter();
        let (indices, rows): (Vec<_>, Vec<_>) = found.unzip();
        let offered = indices.into_iter().filter_map(|at| commands.get(at));
        Self {
            trigger,
            selected_index: 0,
            rows,
            items: CompletionItems::Commands(offered.cloned().collect()),
        }
    }

    /// Adds the matches found since the last refresh.
    pub(crate) fn refresh(&mut self, files: &FileFinder) {
        if self.trigger.is_file() {
            self.set_matches(files.matches());
        }
    }

    fn set_matches(&mut self, found: Arc<FileMatches>) {
        if let CompletionItems::Files(old) = &self.items
            && Arc::ptr_eq(old, &found)
        {
            return;
        }
        let rows = found.files.iter().map(|file| PopupRow {
            label: file.display_path.clone(),
            match_indices: file.match_indices.clone(),
            detail: String::new(),
            end_first: true,
        });
        self.rows = rows.collect();
        self.selected_index = self.selected_index.min(self.rows.len().saturating_sub(1));
        self.items = CompletionItems::Files(found);
    }

    /// Returns the title of the list.
    pub(crate) fn title(&self) -> &'static str {
        match &self.items {
            CompletionItems::Commands(_) => "commands",
            CompletionItems::Files(found) if found.is_searching => "files (searching…)",
            CompletionItems::Files(found) if found.has_more => "files (first 100,000)",
            CompletionItems::Files(_) => "files",
        }
    }

    /// Returns the selected completion for the text typed so far. For files, waits at most `within` for matches.
    pub(crate) fn choose(
        &mut self,
        files: &FileFinder,
        within: Duration,
    ) -> Option<CompletionChoice> {
        if self.is_stale() {
            self.set_matches(files.matches_for(&self.trigger.query, within));
            if self.is_stale() {
                return None;
            }
            // The completion was selected in a different list.
            self.selected_index = 0;
        }
        match &self.items {
            CompletionItems::Commands(commands) => commands
                .get(self.selected_index)
                .cloned()
                .map(CompletionChoice::Command),
            CompletionItems::Files(found) => {
                found
                    .files
                    .get(self.selected_index)
                    .map(|file| CompletionChoice::File {
                        shown: file.display_path.clone(),
                        path: file.path.clone(),
                    })
            }
        }
    }

    /// Returns whether the completions are for an earlier query.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.items {
            CompletionItems::Commands(_) => false,
            CompletionItems::Files(found) => found.query.as_deref() != Some(&self.trigger.query),
        }
    }

    /// Returns whether the user has typed the selected command's full name.
    pub(crate) fn is_fully_typed(&self) -> bool {
        match &self.items {
            CompletionItems::Commands(commands) => {
                let picked = commands.get(self.selected_index);
                picked.is_some_and(|command| command.name == self.trigger.query)
            }
            CompletionItems::Files(_) => false,
        }
    }

    /// Selects the next completion, or the previous one if `back` is set. Wraps around.
    pub(crate) fn select_next(&mut self, back: bool) {
        let all = self.rows.len().max(1);
        let step = if back { all - 1 } else { 1 };
        self.selected_index = (self.selected_index + step) % all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::marked_text::MarkContent;

    fn trigger_at(text: &str, cursor: usize) -> Option<(bool, usize, String)> {
        let trigger = CompletionTrigger::find_before(&MarkedText::from(text), cursor)?;
        Some((trigger.is_file(), trigger.start, trigger.query))
    }

    #[test]
    fn slash_at_the_start_and_at_sign_after_space_open_completion() {
        assert_eq!(trigger_at("/pl", 3), Some((false, 0, "pl".into())));
        assert_eq!(trigger_at("/pl", 1), Some((false, 0, String::new())));
        assert_eq!(trigger_at("/plan x", 7), None);
        assert_eq!(trigger_at("a /plan", 7), None);
        assert_eq!(trigger_at("@", 1), Some((true, 0, String::new())));
        assert_eq!(
            trigger_at("see\u{3000}@a/b", 10),
            Some((true, 6, "a/b".into()))
        );
        assert_eq!(trigger_at("me@here", 7), None);
        assert_eq!(trigger_at("é", 2), None);
        assert_eq!(trigger_at("", 0), None);
        let mut marked = MarkedText::from_mark("@a.rs", MarkContent::File("/a.rs".into()));
        assert_eq!(CompletionTrigger::find_before(&marked, 5), None);
        marked.push(&MarkedText::from(" @"));
        assert!(CompletionTrigger::find_before(&marked, 7).is_some());
    }
}
