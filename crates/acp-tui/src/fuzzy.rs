//! Performs fuzzy searches. Finds the items that match a filter, best first, and the letters that matched.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::style::Style;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;

/// An item that matches a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FuzzyMatch {
    /// The index of the item.
    pub(crate) index: usize,
    /// The indices of the matched grapheme clusters, in order.
    pub(crate) letters: Vec<u32>,
}

/// Returns the items that match `filter`, best first. Equal matches keep their order.
///
/// Returns all items if the filter is empty. The filter's words may match in any order.
pub(crate) fn find_matches<'a>(
    filter: &str,
    all: impl Iterator<Item = &'a str>,
) -> Vec<FuzzyMatch> {
    if filter.trim().is_empty() {
        let found = |(index, _)| FuzzyMatch {
            index,
            letters: Vec::new(),
        };
        return all.enumerate().map(found).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::new(
        filter,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let mut chars = Vec::new();
    let mut found: Vec<(u32, FuzzyMatch)> = Vec::new();
    for (index, text) in all.enumerate() {
        let mut letters = Vec::new();
        let text = Utf32Str::new(text, &mut chars);
        if let Some(score) = pattern.indices(text, &mut matcher, &mut letters) {
            letters.sort_unstable();
            letters.dedup();
            found.push((score, FuzzyMatch { index, letters }));
        }
    }
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, found)| found).collect()
}

/// Splits text into spans and styles the matched letters.
///
/// `first` is the index of the text's first letter.
pub(crate) fn highlight_matches(
    text: &str,
    first: usize,
    letters: &[u32],
    style: Style,
    matched: Style,
) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (n, grapheme) in text.graphemes(true).enumerate() {
        let number = u32::try_from(first + n).unwrap_or(u32::MAX);
        let style = match letters.binary_search(&number) {
            Ok(_) => style.patch(matched),
            Err(_) => style,
        };
        match spans.last_mut().filter(|last| last.style == style) {
            Some(last) => last.content.to_mut().push_str(grapheme),
            None => spans.push(Span::styled(grapheme.to_owned(), style)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_match_comes_first_and_an_empty_filter_keeps_the_order() {
        let all = ["gemini pro", "claude opus", "claude sonnet", "日本 pro"];
        let indices = |filter: &str| -> Vec<usize> {
            let found = find_matches(filter, all.iter().copied());
            found.iter().map(|found| found.index).collect()
        };
        assert_eq!(indices(" "), [0, 1, 2, 3]);
        assert_eq!(indices("son"), [2]);
        assert_eq!(indices("sonnet cl"), [2]);
        assert_eq!(indices("pro"), [0, 3]);
        assert!(indices("zz").is_empty());
        let found = find_matches("本p", all.iter().copied());
        let plain = Style::new();
        let spans = highlight_matches(all[3], 0, &found[0].letters, plain, plain.bold());
        let bold = spans.iter().filter(|span| span.style == plain.bold());
        let bold: Vec<&str> = bold.map(|span| &*span.content).collect();
        assert_eq!(bold, ["本", "p"]);
    }
}
