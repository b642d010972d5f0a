//! Searches the prompt history.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::history::HistoryEntry;
use super::popup::PopupRow;

/// The number of characters of each prompt to search and show.
const MAX_SEARCHED_CHARS: usize = 1_000;

/// A search for a prompt in the history.
#[derive(Debug)]
pub(crate) struct HistorySearch {
    query: String,
    /// The prompts, newest first, without duplicates.
    entries: Vec<HistoryEntry>,
    /// The matches, as indices into `entries`.
    matches: Vec<usize>,
    pub(crate) rows: Vec<PopupRow>,
    pub(crate) selected_index: usize,
}

impl HistorySearch {
    /// Starts a search in these prompts, which must be ordered from oldest to newest.
    pub(crate) fn new(entries: Vec<HistoryEntry>) -> Self {
        let mut seen = std::collections::HashSet::new();
        let mut newest: Vec<_> = entries.into_iter().rev().collect();
        newest.retain(|entry| seen.insert(entry.text.clone()));
        let mut search = Self {
            query: String::new(),
            entries: newest,
            matches: Vec::new(),
            rows: Vec::new(),
            selected_index: 0,
        };
        search.update_matches();
        search
    }

    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// Appends text to the query.
    pub(crate) fn type_text(&mut self, text: &str) {
        let room = MAX_SEARCHED_CHARS.saturating_sub(self.query.len());
        self.query.extend(text.chars().take(room));
        self.update_matches();
    }

    pub(crate) fn erase(&mut self) {
        self.query.pop();
        self.update_matches();
    }

    pub(crate) fn clear(&mut self) {
        self.query.clear();
        self.update_matches();
    }

    /// Returns the selected prompt.
    pub(crate) fn selected_entry(&self) -> Option<&HistoryEntry> {
        self.entries.get(*self.matches.get(self.selected_index)?)
    }

    /// Selects the next older match, or the next newer one if `newer` is set. Does nothing if there is no such match.
    pub(crate) fn select_next(&mut self, newer: bool) {
        let last = self.matches.len().saturating_sub(1);
        self.selected_index = if newer {
            self.selected_index.saturating_sub(1)
        } else {
            (self.selected_index + 1).min(last)
        };
    }

    /// Finds the prompts that contain every word of the query, newest first.
    fn update_matches(&mut self) {
        let pattern = Pattern::new(
            &self.query,
            CaseMatching::Smart,
            Normalization::Smart,
            AtomKind::Substring,
        );
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        self.selected_index = 0;
        self.matches.clear();
        self.rows.clear();
        for (index, entry) in self.entries.iter().enumerate() {
            let start: String = entry.text.chars().take(MAX_SEARCHED_CHARS).collect();
            let label = acp_host::terminal_text::clean_line(&start);
            let mut matched = Vec::new();
            let shown = Utf32Str::new(&label, &mut buffer);
            if pattern.indices(shown, &mut matcher, &mut matched).is_none() {
                continue;
            }
            matched.sort_unstable();
            matched.dedup();
            self.matches.push(index);
            self.rows.push(PopupRow {
                label,
                match_indices: matched,
                detail: String::new(),
                end_first: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_found_by_words_newest_first() {
        let entries = [
            "fix the Test",
            "explain this",
            "fix it",
            "test the fix",
            "fix it",
        ];
        let entries = entries.map(|text| HistoryEntry {
            text: text.to_owned(),
            files: Vec::new(),
        });
        let mut search = HistorySearch::new(entries.into());
        assert_eq!(search.rows.len(), 4);
        search.type_text("fix te");
        let labels: Vec<_> = search.rows.iter().map(|row| &row.label).collect();
        assert_eq!(labels, ["test the fix", "fix the Test"]);
        assert_eq!(search.rows[0].match_indices, [0, 1, 9, 10, 11]);
        search.select_next(false);
        search.select_next(false);
        assert_eq!(search.selected_entry().unwrap().text, "fix the Test");
        search.select_next(true);
        assert_eq!(search.selected_entry().unwrap().text, "test the fix");
        search.type_text("nowhere");
        assert!(search.selected_entry().is_none());
        search.clear();
        assert_eq!(search.selected_entry().unwrap().text, "fix it");
    }
}
