//! Truncates text to fit on one line.

use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation;

/// Returns text truncated to `width` columns. Truncated text ends with `…`.
pub(crate) fn truncate_to_width(text: &str, width: u16) -> String {
    let width = usize::from(width);
    let columns = |text: &str| usize::from(text.cell_width());
    if text.graphemes(true).map(columns).sum::<usize>() <= width {
        return text.to_owned();
    }
    let mut fitting = String::new();
    let mut used = 1;
    for grapheme in text.graphemes(true) {
        used += columns(grapheme);
        if used > width {
            break;
        }
        fitting.push_str(grapheme);
    }
    if width > 0 {
        fitting.push('…');
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        assert_eq!(truncate_to_width("日本語", 5), "日本…");
        assert_eq!(truncate_to_width("日本語", 6), "日本語");
    }
}
