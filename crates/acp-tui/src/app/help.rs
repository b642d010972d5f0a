//! Help: every key there is.

use ratatui::text::{Line, Span};

use super::pager::Pager;
use crate::keys::{KeyAction, KeyBindings};
use crate::theme::Theme;

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

/// The keys, by where they mean something.
pub(super) fn help_pager(keys: &KeyBindings, theme: &Theme) -> Pager {
    let heading = |text: &'static str| Line::styled(text, theme.heading);
    let row = |key: &str, about: &'static str| {
        Line::from(vec![
            Span::styled(format!("  {key:<21}"), theme.accent),
            Span::styled(about, theme.text),
        ])
    };
    let mut lines = vec![heading("Writing")];
    lines.extend(WRITING.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("In the conversation"));
    lines.extend(THREAD.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Everywhere"));
    lines.extend(KeyAction::ALL.iter().map(|action| {
        let key = keys.key(*action).map(|key| key.to_string());
        row(&key.unwrap_or_else(|| "–".to_owned()), action.about())
    }));
    Pager::new("Help", lines)
}
