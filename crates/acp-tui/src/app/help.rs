//! Help: every key there is.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph, Widget};

use crate::keys::{Action, Keys};
use crate::look::Look;

/// A list of keys, which scrolls.
pub(super) struct Help {
    rows: Vec<(String, &'static str)>,
    from: u16,
    /// How far it can scroll, as of the last drawing.
    most: u16,
}

/// Keys that are not bound to an action but belong to what has the keyboard.
const WRITING: &[(&str, &str)] = &[
    ("Enter", "Send; while the agent works, queue"),
    ("Shift-Enter, Ctrl-J", "A new line (also \\ and Enter)"),
    ("↑", "The last queued prompt; what was written before"),
    ("Ctrl-R", "Search what was written before"),
    ("/", "Commands of the agent's"),
    ("@", "A file of the project's"),
    ("Esc", "Cancel the turn"),
    ("Ctrl-C", "Cancel, empty, twice: end"),
    ("Alt-1 … Alt-9", "To that tab"),
];

const THREAD: &[(&str, &str)] = &[
    ("↑ ↓, k j", "Choose an item"),
    ("Enter", "Open or fold it"),
    ("y", "Copy it"),
    ("d", "Diffs below each other or side by side"),
    ("e", "Open or fold all"),
    ("g G", "To the beginning, to the end"),
    ("Esc", "Back to writing"),
];

impl Help {
    pub(super) fn new(keys: &Keys) -> Self {
        let own = |list: &[(&str, &'static str)]| {
            let rows = list.iter().map(|(key, about)| ((*key).to_owned(), *about));
            rows.collect::<Vec<_>>()
        };
        let mut rows = vec![(String::new(), "Writing")];
        rows.extend(own(WRITING));
        rows.push((String::new(), "In the conversation"));
        rows.extend(own(THREAD));
        rows.push((String::new(), "Everywhere"));
        for action in Action::ALL {
            let key = keys.key(*action).map(|key| key.to_string());
            rows.push((key.unwrap_or_else(|| "–".to_owned()), action.about()));
        }
        Self {
            rows,
            from: 0,
            most: 0,
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        let by = i16::try_from(by).unwrap_or_default();
        self.from = self.from.saturating_add_signed(by).min(self.most);
    }

    /// Whether it stays open.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let page = 10;
        self.from = match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.from.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.from.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.from.saturating_add(page),
            KeyCode::PageUp => self.from.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => self.most,
            _ => return false,
        }
        .min(self.most);
        true
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &Look<'_>) {
        let width = area.width.saturating_sub(4).min(78);
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let height = area.height.saturating_sub(2).min(rows + 2);
        let window = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        Clear.render(window, buf);
        let block = Block::bordered()
            .border_type(ratatui::widgets::BorderType::Rounded)
            .border_style(look.theme.focus)
            .padding(Padding::horizontal(1))
            .title(" Help ")
            .title_bottom(" ↑ ↓ scroll, any other key closes ");
        let inner = block.inner(window);
        self.most = rows.saturating_sub(inner.height);
        self.from = self.from.min(self.most);
        let lines: Vec<Line<'_>> = self
            .rows
            .iter()
            .map(|(key, about)| {
                if key.is_empty() {
                    return Line::styled(*about, look.theme.heading);
                }
                Line::from(vec![
                    Span::styled(format!("  {key:<21}"), look.theme.accent),
                    Span::styled(*about, look.theme.text),
                ])
            })
            .collect();
        Paragraph::new(lines)
            .scroll((self.from, 0))
            .block(block)
            .render(window, buf);
    }
}
