//! The changes of all agents as text: in two columns if there are two agents and the terminal is wide enough, otherwise
//! one agent after the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use acp_host::terminal_text;
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::outcome::AgentOutcome;
use crate::screen::Styles;

/// The smallest width of the terminal, in columns, at which two diffs are shown side by side.
const MIN_SIDE_BY_SIDE_WIDTH: usize = 100;

/// What separates two columns.
const SEPARATOR: &str = " │ ";

/// The line that begins the diff of a file.
const FILE_START: &str = "diff --git ";

/// A diff that is shown, split into files.
struct ShownDiff {
    label: String,
    /// The lines of the diff of each file, by the line that begins it.
    files: BTreeMap<String, Vec<String>>,
    is_truncated: bool,
}

/// Returns the diffs of all agents. `width` is the width of the terminal, if there is one.
pub(super) fn render_diffs(
    agents: &[AgentOutcome],
    width: Option<usize>,
    styles: &Styles,
) -> String {
    let diffs: Vec<ShownDiff> = agents.iter().filter_map(ShownDiff::of).collect();
    match (&diffs[..], width) {
        ([left, right], Some(width)) if width >= MIN_SIDE_BY_SIDE_WIDTH => {
            render_columns(left, right, width, styles)
        }
        _ => diffs.iter().map(|diff| diff.render(styles)).collect(),
    }
}

impl ShownDiff {
    fn of(agent: &AgentOutcome) -> Option<Self> {
        let diff = agent.diff.as_ref()?;
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut current = None;
        for line in diff.text.split_terminator('\n') {
            let line = terminal_text::clean_text(line).replace('\t', "    ");
            if line.starts_with(FILE_START) {
                current = Some(line.clone());
            }
            if let Some(file) = &current {
                files.entry(file.clone()).or_default().push(line);
            }
        }
        Some(Self {
            label: terminal_text::clean_value(&agent.label),
            files,
            is_truncated: diff.is_truncated,
        })
    }

    fn render(&self, styles: &Styles) -> String {
        let mut text = self.heading(styles);
        for line in self.files.values().flatten() {
            let style = line_style(line, styles);
            let _ = writeln!(text, "{style}{line}{style:#}");
        }
        text
    }

    /// Returns the label, and what there is to know about the whole diff.
    fn heading(&self, styles: &Styles) -> String {
        let note = match (self.files.is_empty(), self.is_truncated) {
            (true, false) => ": no changes",
            (_, true) => " (only the beginning)",
            (false, false) => "",
        };
        let bold = styles.bold;
        format!("\n{bold}=== {}{note}{bold:#}\n", self.label)
    }
}

fn render_columns(left: &ShownDiff, right: &ShownDiff, width: usize, styles: &Styles) -> String {
    let column = (width - SEPARATOR.width()) / 2;
    let mut text = left.heading(styles);
    text.push_str(right.heading(styles).trim_start_matches('\n'));
    let files = left.files.keys().chain(right.files.keys());
    let files: std::collections::BTreeSet<&String> = files.collect();
    let rows_of = |diff: &ShownDiff, file: &String| -> Vec<(String, Style)> {
        let lines = diff.files.get(file).into_iter().flatten();
        let rows = lines.flat_map(|line| {
            let style = line_style(line, styles);
            let pieces = break_line(line, column);
            pieces.into_iter().map(move |piece| (piece, style))
        });
        rows.collect()
    };
    for file in files {
        let (left, right) = (rows_of(left, file), rows_of(right, file));
        let empty = (String::new(), Style::new());
        for number in 0..left.len().max(right.len()) {
            let (one, one_style) = left.get(number).unwrap_or(&empty);
            let (other, other_style) = right.get(number).unwrap_or(&empty);
            let padding = " ".repeat(column.saturating_sub(one.width()));
            let _ = write!(text, "{one_style}{one}{one_style:#}{padding}{SEPARATOR}");
            let _ = writeln!(text, "{other_style}{other}{other_style:#}");
        }
    }
    text
}

/// Breaks a line into pieces of at most `width` columns.
fn break_line(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let needed = c.width().unwrap_or_default();
        if used + needed > width {
            pieces.push(String::new());
            used = 0;
        }
        if let Some(last) = pieces.last_mut() {
            last.push(c);
            used += needed;
        }
    }
    pieces
}

/// Returns the style for a line of a diff.
pub(super) fn line_style(line: &str, styles: &Styles) -> Style {
    match line.as_bytes().first() {
        _ if line.starts_with("---") || line.starts_with("+++") => styles.bold,
        _ if line.starts_with(FILE_START) => styles.bold,
        Some(b'+') => styles.good,
        Some(b'-') => styles.bad,
        Some(b'@') => styles.accent,
        _ => styles.dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(label: &str, text: &str) -> ShownDiff {
        let file = format!("{FILE_START}a/x b/x");
        let lines = text.lines().map(str::to_owned).collect();
        ShownDiff {
            label: label.to_owned(),
            files: BTreeMap::from([(file, lines)]),
            is_truncated: false,
        }
    }

    #[test]
    fn two_diffs_are_shown_in_columns() {
        let (left, right) = (diff("a", "+one\n-two"), diff("b", "+1234567890123"));
        let text = render_columns(&left, &right, 23, &Styles::default());
        assert_eq!(
            text,
            "\n=== a\n=== b\n+one       │ +123456789\n-two       │ 0123\n"
        );
    }

    #[test]
    fn wide_characters_are_not_cut() {
        assert_eq!(break_line("日本語", 5), ["日本", "語"]);
        assert_eq!(break_line("", 5), [""]);
    }
}
