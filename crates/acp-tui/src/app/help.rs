//! The help page, which lists all keys.

use ratatui::text::{Line, Span};

use super::pager::Pager;
use crate::keys::{KeyAction, KeyBindings};
use crate::theme::Theme;

/// The keys of the prompt editor that are not bound to actions.
const PROMPT_KEYS: &[(&str, &str)] = &[
    ("Enter", "Send, or steer or queue while the agent works"),
    ("Shift-Enter, Ctrl-J", "Start a new line (or \\ then Enter)"),
    ("↑", "Edit last queued prompt, or go back in history"),
    ("Ctrl-R", "Search prompt history"),
    ("/", "Complete a slash command"),
    ("!", "Run a command of yours; !!: output is not sent"),
    ("@", "Mention a file"),
    ("Esc", "Cancel turn; twice: clear prompt or undo turns"),
    ("Ctrl-C", "Cancel turn or clear prompt; press twice to quit"),
    ("Alt-1 … Alt-9", "Go to tab 1 … 9"),
];

const QUESTION_KEYS: &[(&str, &str)] = &[
    ("y, n", "Allow once, reject once"),
    ("a, p, x", "Select an answer that lasts; Enter confirms it"),
    ("1 … 9", "Same as the letter of the answer"),
    ("↑ ↓, Enter", "Select an answer, confirm it"),
    ("w", "Reject and say what to do instead"),
    ("PgUp PgDn Home End", "Read a long question"),
    ("Esc", "Cancel turn"),
];

const CONVERSATION_KEYS: &[(&str, &str)] = &[
    ("↑ ↓, k j", "Select an item"),
    ("Enter", "Expand or collapse the item"),
    ("y", "Copy the item"),
    ("o", "Open a file or link"),
    ("d", "Change diff layout"),
    ("e", "Expand or collapse all items"),
    ("/", "Search for text; n, N: next, previous"),
    ("g, G", "Go to top, go to bottom"),
    ("Esc", "Back to the prompt"),
    ("Shift-drag", "Select text with the mouse"),
];

/// Builds the help page, with keys grouped by the part of the chat in which they work.
pub(super) fn help_pager(keys: &KeyBindings, theme: &Theme) -> Pager {
    let heading = |text: &'static str| Line::styled(text, theme.heading);
    let row = |key: &str, about: &'static str| {
        Line::from(vec![
            Span::styled(format!("  {key:<21}"), theme.accent),
            Span::styled(about, theme.text),
        ])
    };
    let mut lines = vec![heading("Prompt")];
    lines.extend(PROMPT_KEYS.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Question"));
    lines.extend(QUESTION_KEYS.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Conversation"));
    lines.extend(CONVERSATION_KEYS.iter().map(|(key, about)| row(key, about)));
    lines.push(heading("Anywhere"));
    lines.extend(KeyAction::ALL.iter().map(|action| {
        let key = keys.key(*action).map(|key| key.to_string());
        row(&key.unwrap_or_else(|| "–".to_owned()), action.about())
    }));
    Pager::new("Help", lines)
}
