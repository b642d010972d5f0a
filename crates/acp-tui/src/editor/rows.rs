//! Lays out text in rows of a given width.

use std::ops::Range;

use ratatui::buffer::CellWidth as _;
use unicode_segmentation::UnicodeSegmentation;

/// The number of columns between tab stops.
const TAB_WIDTH: u16 = 4;

/// A grapheme cluster in a row, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cluster<'a> {
    pub(crate) text: &'a str,
    /// The byte offset from the start of the row.
    pub(crate) offset: usize,
    /// The cluster's first column.
    pub(crate) column: u16,
    /// The number of columns that the cluster occupies.
    pub(crate) width: u16,
}

/// Returns the grapheme clusters of a row.
pub(crate) fn split_clusters(row: &str) -> impl Iterator<Item = Cluster<'_>> {
    let mut column = 0u16;
    row.grapheme_indices(true).map(move |(offset, text)| {
        let width = cluster_width(text, column);
        let cluster = Cluster {
            text,
            offset,
            column,
            width,
        };
        column = column.saturating_add(width);
        cluster
    })
}

fn cluster_width(cluster: &str, column: u16) -> u16 {
    if cluster == "\t" {
        TAB_WIDTH - column % TAB_WIDTH
    } else if cluster.contains(char::is_control) {
        0
    } else {
        cluster.cell_width()
    }
}

/// Returns the number of columns that text occupies at the start of a row.
pub(crate) fn column_count(row: &str) -> u16 {
    let last = split_clusters(row).last();
    last.map_or(0, |last| last.column.saturating_add(last.width))
}

/// Returns the rows of a text, as byte ranges without line endings. Rows break between words, inside words that are
/// longer than a row, and around wide characters, as is usual in scripts that use them.
///
/// A row is one column shorter than the width, so that the cursor fits after it. White space after the last word of a
/// row stays on that row, even if it does not fit.
pub(crate) fn wrap_rows(text: &str, width: u16) -> Vec<Range<usize>> {
    let most = width.saturating_sub(1).max(1);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        wrap_line(line, start, most, &mut rows);
        start += line.len() + 1;
    }
    rows
}

fn wrap_line(line: &str, at: usize, most: u16, rows: &mut Vec<Range<usize>>) {
    let (mut start, mut column) = (0, 0u16);
    // The last position where the row can end.
    let mut end = None;
    for (offset, cluster) in line.grapheme_indices(true) {
        let next = offset + cluster.len();
        if cluster.chars().all(char::is_whitespace) && cluster != "\u{a0}" {
            column = column.saturating_add(cluster_width(cluster, column));
            end = Some(next);
            continue;
        }
        let wide = cluster.cell_width() > 1;
        if wide {
            end = Some(offset);
        }
        while column.saturating_add(cluster_width(cluster, column)) > most && start < offset {
            let broken = end.take().filter(|end| *end > start).unwrap_or(offset);
            rows.push(at + start..at + broken);
            start = broken;
            column = column_count(&line[start..offset]);
        }
        column = column.saturating_add(cluster_width(cluster, column));
        if wide {
            end = Some(next);
        }
    }
    rows.push(at + start..at + line.len());
}

/// Returns the index of the row that contains a position. A position between two rows belongs to the second row.
pub(crate) fn row_at(rows: &[Range<usize>], at: usize) -> usize {
    let after = rows.partition_point(|row| row.start <= at);
    after.saturating_sub(1)
}

/// Returns the byte position in a row that is nearest to a column.
pub(crate) fn position_at(text: &str, rows: &[Range<usize>], row: usize, column: u16) -> usize {
    let Some(range) = rows.get(row) else {
        return text.len();
    };
    let of_row = &text[range.clone()];
    let at = split_clusters(of_row).find(|c| c.column.saturating_add(c.width) > column);
    if let Some(cluster) = at {
        return range.start + cluster.offset;
    }
    // The end of a row that continues is the start of the next.
    let goes_on = rows
        .get(row + 1)
        .is_some_and(|next| next.start == range.end);
    match split_clusters(of_row).last() {
        Some(last) if goes_on => range.start + last.offset,
        _ => range.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrapped_rows(text: &str, width: u16) -> Vec<&str> {
        wrap_rows(text, width)
            .into_iter()
            .map(|r| &text[r])
            .collect()
    }

    #[test]
    fn rows_break_between_words_or_within_long_ones() {
        assert_eq!(wrapped_rows("", 10), [""]);
        assert_eq!(
            wrapped_rows("one two, three\n", 9),
            ["one two, ", "three", ""]
        );
        assert_eq!(wrapped_rows("abcdefgh", 5), ["abcd", "efgh"]);
        assert_eq!(wrapped_rows("a    bcd", 4), ["a    ", "bcd"]);
        assert_eq!(wrapped_rows("见字如面。好", 7), ["见字如", "面。好"]);
        assert_eq!(wrapped_rows("\tx", 5), ["\t", "x"]);
        // A family emoji is one character of two columns.
        assert_eq!(column_count("👨‍👩‍👧x"), 3);
        assert_eq!(wrapped_rows("👨‍👩‍👧👨‍👩‍👧", 4), ["👨‍👩‍👧", "👨‍👩‍👧"]);
    }

    #[test]
    fn positions_are_found_by_row_and_column() {
        let text = "ab 你好 cd";
        let rows = wrap_rows(text, 5);
        assert_eq!(rows.len(), 3);
        assert_eq!(position_at(text, &rows, 0, 1), 1);
        // Both columns of a wide character belong to it.
        assert_eq!(position_at(text, &rows, 1, 0), 3);
        assert_eq!(position_at(text, &rows, 1, 1), 3);
        assert_eq!(position_at(text, &rows, 1, 2), 6);
        assert_eq!(position_at(text, &rows, 2, 50), text.len());
        assert_eq!(row_at(&rows, rows[1].start), 1);
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_no_text_is_lost(text in "(\\PC|[ \t\n\u{200d}\u{301}\u{1f469}你a-c]){0,80}", width in 1u16..200) {
            let rows = wrap_rows(&text, width);
            let mut end = 0;
            for row in &rows {
                let between = &text[end..row.start];
                prop_assert!(between.is_empty() || between == "\n");
                end = row.end;
                let shown = text[row.clone()].trim_end();
                let one = shown.graphemes(true).count() <= 1;
                prop_assert!(one || column_count(shown) < width.max(2), "{:?}", shown);
            }
            prop_assert_eq!(end, text.len());
            for (at, _) in text.grapheme_indices(true) {
                let row = row_at(&rows, at);
                prop_assert!(rows[row].start <= at && at <= rows[row].end);
            }
        }
    }
}
