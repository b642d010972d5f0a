//! Defines a single-line input for form fields and list filters.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;

/// The symbol that stands for a line feed so that the text stays on one line.
const LINE_FEED_SYMBOL: &str = "⏎";
/// The symbol that stands for each letter of masked text.
const MASK_SYMBOL: &str = "•";

/// A single-line text input.
#[derive(Clone)]
pub(crate) struct LineInput {
    text: String,
    /// The cursor's byte position, always on a grapheme boundary.
    cursor: usize,
    /// The maximum length of the input, in bytes.
    limit: usize,
    /// Whether the text is masked.
    is_masked: bool,
}

/// The effect of a key or of inserted text on an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputOutcome {
    /// The input does not use this key.
    Ignored,
    /// The cursor moved, or was already where the key would have moved it.
    Moved,
    /// The text has changed.
    Changed,
    /// The inserted text did not fit and was truncated.
    Full,
}

impl LineInput {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            cursor: 0,
            limit: most,
            is_masked: false,
        }
    }

    /// Creates an input whose text is masked.
    pub(crate) fn masked(most: usize) -> Self {
        Self {
            is_masked: true,
            ..Self::new(most)
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts as much of the text as fits at the cursor.
    ///
    /// Control characters are removed. Line feeds and tabs become spaces unless `has_lines` is set.
    pub(crate) fn insert(&mut self, text: &str, has_lines: bool) -> InputOutcome {
        let mut edit = InputOutcome::Changed;
        let mut put = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let c = match c {
                '\r' if chars.peek() == Some(&'\n') => continue,
                '\r' | '\n' if has_lines => '\n',
                '\r' | '\n' | '\t' => ' ',
                c if c.is_control() => continue,
                c => c,
            };
            if self.text.len() + put.len() + c.len_utf8() > self.limit {
                edit = InputOutcome::Full;
                break;
            }
            put.push(c);
        }
        self.text.insert_str(self.cursor, &put);
        self.cursor += put.len();
        // A combining mark has joined the letter before it in one grapheme.
        self.cursor = self.boundary(self.cursor);
        edit
    }

    /// Returns `at` if it is a grapheme boundary, or else the end of the grapheme that contains it.
    fn boundary(&self, at: usize) -> usize {
        let mut ends = self.text.grapheme_indices(true).map(|(begin, _)| begin);
        ends.find(|begin| *begin >= at).unwrap_or(self.text.len())
    }

    fn text_before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or(&self.text)
    }

    fn previous_grapheme(&self) -> usize {
        let last = self.text_before().grapheme_indices(true).next_back();
        last.map_or(0, |(begin, _)| begin)
    }

    fn next_grapheme(&self) -> usize {
        let rest = self.text.get(self.cursor..).unwrap_or_default();
        let next = rest.graphemes(true).next().map_or(0, str::len);
        self.cursor + next
    }

    /// Returns the start of the word that ends at the cursor.
    fn word_left(&self) -> usize {
        let mut words = self.text_before().trim_end().split_word_bound_indices();
        words.next_back().map_or(0, |(begin, _)| begin)
    }

    /// Returns the end of the word that starts at the cursor.
    fn word_right(&self) -> usize {
        let rest = self.text.get(self.cursor..).unwrap_or_default();
        let mut words = rest.split_word_bound_indices();
        let word = words.find(|(_, word)| !word.trim().is_empty());
        word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn remove(&mut self, from: usize, to: usize) -> InputOutcome {
        if from >= to {
            return InputOutcome::Moved;
        }
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary(from);
        InputOutcome::Changed
    }

    fn move_cursor(&mut self, to: usize) -> InputOutcome {
        self.cursor = to;
        InputOutcome::Moved
    }

    /// Handles a key, using the key bindings of shells.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> InputOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let (cursor, end) = (self.cursor, self.text.len());
        match key.code {
            KeyCode::Char('a') if control => self.move_cursor(0),
            KeyCode::Char('e') if control => self.move_cursor(end),
            KeyCode::Char('b') if control => self.move_cursor(self.previous_grapheme()),
            KeyCode::Char('f') if control => self.move_cursor(self.next_grapheme()),
            KeyCode::Char('h') if control => self.remove(self.previous_grapheme(), cursor),
            KeyCode::Char('d') if control => self.remove(cursor, self.next_grapheme()),
            KeyCode::Char('u') if control => self.remove(0, cursor),
            KeyCode::Char('k') if control => self.remove(cursor, end),
            KeyCode::Char('w') if control => self.remove(self.word_left(), cursor),
            KeyCode::Char('b') if alt => self.move_cursor(self.word_left()),
            KeyCode::Char('f') if alt => self.move_cursor(self.word_right()),
            KeyCode::Char('d') if alt => self.remove(cursor, self.word_right()),
            // With both modifiers, which is how some terminals report AltGr, the key is a letter.
            KeyCode::Char(c) if control == alt => self.insert(c.encode_utf8(&mut [0; 4]), false),
            KeyCode::Left if control || alt => self.move_cursor(self.word_left()),
            KeyCode::Right if control || alt => self.move_cursor(self.word_right()),
            KeyCode::Left => self.move_cursor(self.previous_grapheme()),
            KeyCode::Right => self.move_cursor(self.next_grapheme()),
            KeyCode::Home => self.move_cursor(0),
            KeyCode::End => self.move_cursor(end),
            KeyCode::Backspace if control || alt => self.remove(self.word_left(), cursor),
            KeyCode::Backspace => self.remove(self.previous_grapheme(), cursor),
            KeyCode::Delete => self.remove(cursor, self.next_grapheme()),
            _ => InputOutcome::Ignored,
        }
    }

    /// Returns the part of the text that fits into `width` columns, and the cursor's column in it.
    pub(crate) fn visible_part(&self, width: u16, style: Style) -> (Span<'static>, u16) {
        let room = width.saturating_sub(1);
        let shown = |grapheme: &str| -> String {
            match grapheme {
                _ if self.is_masked => MASK_SYMBOL.to_owned(),
                "\n" | "\r\n" => LINE_FEED_SYMBOL.to_owned(),
                grapheme if grapheme.cell_width() == 0 => "\u{fffd}".to_owned(),
                grapheme => grapheme.to_owned(),
            }
        };
        // Shows as much of the end of the text before the cursor as fits.
        let mut text = String::new();
        let mut column = 0;
        let mut front = Vec::new();
        for grapheme in self.text_before().graphemes(true).rev() {
            let grapheme = shown(grapheme);
            let columns = grapheme.cell_width();
            if column + columns > room {
                break;
            }
            column += columns;
            front.push(grapheme);
        }
        text.extend(front.into_iter().rev());
        let mut used = column;
        let rest = self.text.get(self.cursor..).unwrap_or_default();
        for grapheme in rest.graphemes(true) {
            let grapheme = shown(grapheme);
            used += grapheme.cell_width();
            if used > width {
                break;
            }
            text.push_str(&grapheme);
        }
        (Span::styled(text, style), column.min(room))
    }
}

/// Omits the text from the output, because it may be secret.
impl std::fmt::Debug for LineInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input_after_keys(keys: &[KeyEvent]) -> LineInput {
        let mut input = LineInput::new(100);
        for key in keys {
            input.handle_key(*key);
        }
        input
    }

    fn key_event(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn ctrl_event(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn editing_works_by_grapheme_clusters() {
        let mut input = input_after_keys(&[]);
        assert_eq!(
            input.insert("né\u{301}e 日本\u{1b}[2J\n👩\u{200d}👧", false),
            InputOutcome::Changed
        );
        assert_eq!(input.text(), "né\u{301}e 日本[2J 👩\u{200d}👧");
        input.handle_key(key_event(KeyCode::Backspace));
        input.handle_key(ctrl_event('w'));
        assert_eq!(input.text(), "né\u{301}e 日本[");
        input.handle_key(key_event(KeyCode::Home));
        input.handle_key(key_event(KeyCode::Right));
        input.handle_key(key_event(KeyCode::Delete));
        assert_eq!(input.text(), "ne 日本[");
        assert_eq!(
            input.handle_key(key_event(KeyCode::Char('x'))),
            InputOutcome::Changed
        );
        assert_eq!(
            input.handle_key(key_event(KeyCode::Tab)),
            InputOutcome::Ignored
        );
        assert_eq!(input.handle_key(ctrl_event('c')), InputOutcome::Ignored);
        assert_eq!(input.text(), "nxe 日本[");
        input.handle_key(ctrl_event('k'));
        assert_eq!(input.text(), "nx");
    }

    #[test]
    fn cursor_is_always_visible_and_masked_text_never_is() {
        let mut input = LineInput::new(20);
        input.insert("日本語日本", false);
        assert_eq!(input.visible_part(6, Style::new()).0.content, "日本");
        assert_eq!(input.visible_part(6, Style::new()).1, 4);
        input.handle_key(key_event(KeyCode::Home));
        assert_eq!(input.visible_part(5, Style::new()).0.content, "日本");
        assert_eq!(input.insert("123456", false), InputOutcome::Full);
        assert_eq!(input.text(), "12345日本語日本");

        let mut secret = LineInput::masked(20);
        secret.insert("open\nsesame", true);
        assert_eq!(secret.text(), "open\nsesame");
        assert_eq!(
            secret.visible_part(40, Style::new()).0.content,
            "•".repeat(11)
        );
        assert!(!format!("{secret:?}").contains("sesame"));
        let mut lines = LineInput::new(20);
        lines.insert("a\r\nb\n", true);
        assert_eq!(lines.text(), "a\nb\n");
        assert_eq!(lines.visible_part(40, Style::new()).0.content, "a⏎b⏎");
    }

    proptest! {
        #[test]
        fn arbitrary_keys_do_not_break_the_input(
            pieces in prop::collection::vec((".{0,4}", 0_usize..12), 0..12),
            width in 0_u16..40,
        ) {
            let mut input = LineInput::new(64);
            let codes = [KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::Backspace, KeyCode::Delete];
            for (text, n) in pieces {
                input.insert(&text, true);
                match codes.get(n) {
                    Some(code) => input.handle_key(key_event(*code)),
                    None => input.handle_key(ctrl_event(['w', 'u', 'k', 'b', 'f', 'd'][n - codes.len()])),
                };
                let (span, column) = input.visible_part(width, Style::new());
                let columns: u16 = span.content.graphemes(true).map(CellWidth::cell_width).sum();
                prop_assert!(columns <= width && column <= width.saturating_sub(1));
                prop_assert!(!span.content.contains(char::is_control));
                prop_assert!(input.text().len() <= 64);
            }
        }
    }
}
