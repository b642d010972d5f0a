//! The help: a list of all keys.

use ratatui::text::{Line, Span};

use super::pager::Pager;
use crate::keys::{KeyAction, KeyBindings};
use crate::theme::Theme;

/// Keys that are not bound to an action but belong to whatever has the focus.
const WRITING: &[(&str, &str)] = &[
    ("Enter", "Send (queues while the agent is working)"),
    (
        "Shift-Enter, Ctrl-J",
        "Insert a new line (also \\ then Enter)",
    ),
    ("↑", "Edit the last queued prompt, or go back in history"),
    ("Ctrl-R", "Search prompt history"),
    ("/", "Slash commands"),
    ("@", "Mention a file"),
    ("Esc", "Cancel the turn"),
    ("Ctrl-C", "Cancel, clear the prompt; twice: quit"),
    ("Alt-1 … Alt-9", "Go to tab"),
];

const THREAD: &[(&str, &str)] = &[
    ("↑ ↓, k j", "Select an item"),
    ("Enter", "Expand or collapse it"),
    ("y", "Copy it"),
    ("d", "Toggle unified and side-by-side diffs"),
    ("e", "Expand or collapse all"),
    ("g G", "Go to the top, the bottom"),
    ("Esc", "Back to the prompt"),
];

/// Builds the help, with the keys grouped by where they work.
pub(super) fn help_pager(keys: &KeyBindings, theme: &Theme) -> Pager {
    let heading = |text: &'static str| Line::styled(text, theme.heading);
    let row = |key: &str, about: &'static str| {
        Line::from(vec![
            Span::styled(format!("  {key:<21}"), theme.accent),
            Span::styled(about, theme.text),
        ])
    };
    let mut lines = vec![heading("Prompt")];
    lines.extend(WRITING.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Conversation"));
    lines.extend(THREAD.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Anywhere"));
    lines.extend(KeyAction::ALL.iter().map(|action| {
        let key = keys.key(*action).map(|key| key.to_string());
        row(&key.unwrap_or_else(|| "–".to_owned()), action.about())
    }));
    Pager::new("Help", lines)
}
