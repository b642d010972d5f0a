//! Draws the completion list above the editor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::rows::{column_count, split_clusters};
use crate::Theme;

/// The maximum number of rows to show at once.
pub(crate) const MAX_ROWS: u16 = 8;

/// A row of a completion list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PopupRow {
    /// The row's main text.
    pub(crate) label: String,
    /// The indices of the matched grapheme clusters in the label, in order.
    pub(crate) match_indices: Vec<u32>,
    /// More text about the entry, shown after the label.
    pub(crate) detail: String,
    /// Whether a label that does not fit keeps its end rather than its start, as paths do.
    pub(crate) end_first: bool,
}

/// The visible part of a completion list.
#[derive(Debug)]
pub(crate) struct CompletionPopup<'a> {
    pub(crate) title: &'a str,
    pub(crate) rows: &'a [PopupRow],
    pub(crate) selected_index: usize,
}

impl CompletionPopup<'_> {
    /// Draws the list directly above the editor, over whatever is there, with as many rows as fit.
    pub(crate) fn draw(&self, editor: Rect, buf: &mut Buffer, theme: &Theme) {
        let room = editor.y.saturating_sub(buf.area.y);
        let shown = (self.rows.len().min(usize::from(MAX_ROWS)) as u16).min(room.saturating_sub(1));
        if shown == 0 || editor.width == 0 {
            return;
        }
        let first = (self.selected_index + 1).saturating_sub(usize::from(shown));
        let top = editor.y - shown - 1;
        let area = Rect::new(editor.x, top, editor.width, shown + 1).intersection(buf.area);
        let labels = self.rows.iter().skip(first).take(usize::from(shown));
        let labels = labels
            .map(|row| column_count(&row.label))
            .max()
            .unwrap_or(0);
        // The details are aligned in a column, unless labels are long.
        let labels = labels.min(area.width.saturating_sub(4) / 2);
        for y in area.rows() {
            for position in y.positions() {
                if let Some(cell) = buf.cell_mut(position) {
                    cell.reset();
                    cell.set_style(theme.text);
                }
            }
        }
        let width = usize::from(area.width);
        buf.set_stringn(area.x, top, "─".repeat(width), width, theme.border);
        let count = match self.rows.len() {
            0 => String::new(),
            all => format!(" {} of {all} ", self.selected_index + 1),
        };
        let title = format!(
            " {}{}",
            self.title,
            if count.is_empty() { " " } else { " ·" }
        );
        let title = format!("{title}{count}");
        let at = area.x.saturating_add(1);
        buf.set_stringn(at, top, title, width.saturating_sub(1), theme.dim);
        let rows = self.rows.iter().enumerate().skip(first);
        for ((index, row), y) in rows.zip(top + 1..editor.y) {
            let line = Rect::new(area.x, y, area.width, 1).intersection(buf.area);
            row.draw(line, labels, buf, theme);
            if index == self.selected_index {
                buf.set_style(line, theme.selected);
            }
        }
    }
}

impl PopupRow {
    fn draw(&self, area: Rect, labels: u16, buf: &mut Buffer, theme: &Theme) {
        let room = area.width.saturating_sub(2);
        let for_label = if self.detail.is_empty() {
            room
        } else {
            let own = column_count(&self.label);
            own.min(room.saturating_sub(3).max(room / 2))
        };
        let end = self.draw_label(area.x + 1, area.y, for_label, buf, theme);
        if self.detail.is_empty() {
            return;
        }
        let at = end.max(area.x + 1 + labels).saturating_add(2);
        let left = (area.x + 1 + room).saturating_sub(at);
        draw_truncated(buf, at, area.y, &self.detail, left, theme.dim);
    }

    /// Draws a label in at most `room` columns and returns the column after it.
    fn draw_label(&self, x: u16, y: u16, room: u16, buf: &mut Buffer, theme: &Theme) -> u16 {
        let all = column_count(&self.label);
        let skipped = if all > room && self.end_first {
            all - room + 1
        } else {
            0
        };
        let most = if all > room && !self.end_first {
            room.saturating_sub(1)
        } else {
            room
        };
        let mut at = x;
        if skipped > 0 && room > 0 {
            buf.set_stringn(at, y, "…", 1, theme.dim);
            at += 1;
        }
        let mut matched = self.match_indices.iter().peekable();
        for (index, cluster) in split_clusters(&self.label).enumerate() {
            let mut style = theme.text;
            while let Some(next) = matched.next_if(|next| **next as usize <= index) {
                if *next as usize == index {
                    style = theme.matched;
                }
            }
            if cluster.column < skipped {
                continue;
            }
            if at - x + cluster.width > most {
                break;
            }
            buf.set_stringn(at, y, cluster.text, usize::from(cluster.width), style);
            at += cluster.width;
        }
        if all > room && !self.end_first && room > 0 {
            buf.set_stringn(at, y, "…", 1, theme.dim);
            at += 1;
        }
        at
    }
}

/// Draws as much of the text as fits, ending with `…` if it is truncated. Returns the column after it.
pub(crate) fn draw_truncated(
    buf: &mut Buffer,
    x: u16,
    y: u16,
    text: &str,
    room: u16,
    style: Style,
) -> u16 {
    if room == 0 {
        return x;
    }
    if column_count(text) <= room {
        return buf.set_stringn(x, y, text, usize::from(room), style).0;
    }
    let most = usize::from(room - 1);
    let (end, _) = buf.set_stringn(x, y, text, most, style);
    buf.set_stringn(end, y, "…", 1, style).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Modifier;

    fn popup_row(label: &str, detail: &str) -> PopupRow {
        PopupRow {
            label: label.to_owned(),
            match_indices: vec![1],
            detail: detail.to_owned(),
            end_first: detail.is_empty(),
        }
    }

    fn draw_popup(
        rows: &[PopupRow],
        picked: usize,
        width: u16,
        height: u16,
    ) -> (Vec<String>, Buffer) {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        let popup = CompletionPopup {
            title: "files",
            rows,
            selected_index: picked,
        };
        let editor = Rect::new(0, height.saturating_sub(1), width, 1);
        popup.draw(editor, &mut buf, &Theme::default());
        let line = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>();
        ((0..height).map(line).collect(), buf)
    }

    #[test]
    fn rows_around_the_selection_are_shown_with_highlights() {
        let rows: Vec<_> = (0..20)
            .map(|i| popup_row(&format!("f{i}.rs"), ""))
            .collect();
        let (lines, buf) = draw_popup(&rows, 9, 30, 20);
        assert!(lines[10].contains("files · 10 of 20"), "{}", lines[10]);
        assert!(lines[11].starts_with(" f2.rs"));
        assert!(lines[18].starts_with(" f9.rs"));
        let theme = Theme::default();
        assert!(buf[(2, 18)].modifier.contains(Modifier::REVERSED));
        assert_eq!(buf[(2, 12)].fg, theme.matched.fg.unwrap());
        assert_ne!(buf[(1, 12)].fg, theme.matched.fg.unwrap());
    }

    #[test]
    fn long_labels_are_truncated_and_paths_keep_their_end() {
        let (lines, _) = draw_popup(&[popup_row("some/where/deep/main.rs", "")], 0, 14, 4);
        assert_eq!(lines[2], " …eep/main.rs ");
        let (lines, _) = draw_popup(&[popup_row("/plan", "says what it will do")], 0, 20, 4);
        assert_eq!(lines[2], " /plan  says what … ");
        let two = [popup_row("/plan", "one"), popup_row("/compact", "two")];
        let (lines, _) = draw_popup(&two, 0, 24, 4);
        assert_eq!(lines[1], " /plan     one          ");
        assert_eq!(lines[2], " /compact  two          ");
    }

    proptest! {
        #[test]
        fn any_text_fits_any_area(label in "(\\PC|你|\u{301}|\u{200d}){0,40}", detail in "\\PC{0,40}", width in 0u16..60, height in 0u16..12) {
            draw_popup(&[popup_row(&label, &detail), popup_row(&label, "")], 1, width, height);
        }
    }
}
