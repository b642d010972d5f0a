//! The outcome of a comparison as text: the table, the changed files, and what went wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use acp_host::terminal_text;
use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::changes::ComparedChange;
use super::outcome::{AgentOutcome, ComparedState, ComparisonOutcome, TestOutcome};
use crate::screen::Styles;

/// The maximum number of changed files to list.
const MAX_FILES: usize = 200;

/// The number of lines to show of the output of failed tests.
const TEST_OUTPUT_LINES: usize = 10;

/// What a table shows where an agent has reported nothing.
const NOTHING: &str = "-";

/// Returns everything about the outcome except the diffs.
pub(super) fn render_outcome(outcome: &ComparisonOutcome, styles: &Styles) -> String {
    let mut text = render_table(outcome, styles);
    text.push_str(&render_files(&outcome.agents));
    for agent in &outcome.agents {
        let label = terminal_text::clean_value(&agent.label);
        if let Some(error) = &agent.error {
            let error = terminal_text::clean_text(error);
            let error = terminal_text::truncate_middle(&error, terminal_text::MAX_MESSAGE_CHARS);
            push_section(&mut text, &format!("{label}: "), error.lines());
        }
        push_denials(&mut text, &label, agent);
        if let Some(test) = agent.test.as_ref().filter(|test| test.exit_code != Some(0)) {
            push_test(&mut text, &label, test);
        }
        if let Some(directory) = &agent.directory {
            let directory = terminal_text::clean_line(&directory.display().to_string());
            let _ = write!(text, "\n{label} is kept in {directory}\n");
        }
    }
    if let Some(judge) = &outcome.judge {
        if let Some(reason) = &judge.reason {
            let reason = terminal_text::clean_text(reason);
            let reason = terminal_text::truncate_middle(&reason, terminal_text::MAX_MESSAGE_CHARS);
            push_section(&mut text, "judge: ", reason.lines());
        }
        if let Some(error) = &judge.error {
            let error = terminal_text::clean_text(error);
            push_section(&mut text, "the judge failed: ", error.lines());
        }
    }
    text
}

fn render_table(outcome: &ComparisonOutcome, styles: &Styles) -> String {
    let mut head = vec!["agent", "state", "time", "tokens", "cost", "files", "lines"];
    let agents = &outcome.agents;
    let has_tests = agents.iter().any(|agent| agent.test.is_some());
    if has_tests {
        head.push("tests");
    }
    if outcome.judge.is_some() {
        head.push("score");
    }
    let head: Vec<(String, Style)> = head
        .into_iter()
        .map(|word| (word.to_owned(), styles.bold))
        .collect();
    let mut rows = vec![head];
    for agent in agents {
        rows.push(agent_row(agent, has_tests, outcome.judge.is_some(), styles));
    }
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|(cell, _)| cell.width())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut padding = 0;
        for ((cell, style), width) in row.iter().zip(&widths) {
            text.push_str(&" ".repeat(padding));
            let _ = write!(text, "{style}{cell}{style:#}");
            padding = width - cell.width() + 2;
        }
        text.push('\n');
    }
    text
}

fn agent_row(
    agent: &AgentOutcome,
    has_tests: bool,
    has_scores: bool,
    styles: &Styles,
) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::new());
    let or_nothing = |text: Option<String>| plain(text.unwrap_or_else(|| NOTHING.to_owned()));
    let state = match agent.state {
        ComparedState::Ended => (state_text(agent), styles.good),
        _ => (state_text(agent), styles.bad),
    };
    let mut row = vec![
        plain(terminal_text::clean_value(&agent.label)),
        state,
        plain(duration_text(agent.duration_ms)),
        or_nothing(agent.tokens.map(|tokens| tokens.to_string())),
        or_nothing(agent.cost.as_ref().map(|cost| {
            let currency = terminal_text::clean_value(&cost.currency);
            format!("{:.2} {currency}", cost.amount)
        })),
        or_nothing(agent.files.as_ref().map(|files| files.len().to_string())),
        or_nothing(agent.files.as_deref().map(line_counts)),
    ];
    if has_tests {
        row.push(match &agent.test {
            Some(test) if test.exit_code == Some(0) => (test.text(), styles.good),
            Some(test) => (test.text(), styles.bad),
            None => plain(NOTHING.to_owned()),
        });
    }
    if has_scores {
        row.push(or_nothing(agent.score.map(|score| score.to_string())));
    }
    row
}

fn state_text(agent: &AgentOutcome) -> String {
    let state = agent.state.text();
    match agent.denials.len() {
        0 => state.to_owned(),
        denied if agent.state == ComparedState::Denied => format!("{state} ({denied})"),
        denied => format!("{state}, {denied} denied"),
    }
}

fn duration_text(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

fn line_counts(files: &[ComparedChange]) -> String {
    let sum =
        |lines: fn(&ComparedChange) -> Option<u64>| files.iter().filter_map(lines).sum::<u64>();
    format!("+{} -{}", sum(|file| file.added), sum(|file| file.removed))
}

/// Lists the changed files, each with the agents that have changed it.
fn render_files(agents: &[AgentOutcome]) -> String {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for agent in agents {
        let label = terminal_text::clean_value(&agent.label);
        for change in agent.changes() {
            let shown = format!("{label} {}", change.summary());
            files.entry(&change.path).or_default().push(shown);
        }
    }
    let mut text = String::new();
    for (path, by) in files.iter().take(MAX_FILES) {
        if text.is_empty() {
            text.push('\n');
        }
        let path = terminal_text::clean_value(path);
        let _ = writeln!(text, "{path}: {}", by.join(", "));
    }
    if files.len() > MAX_FILES {
        let _ = writeln!(text, "… {} more files", files.len() - MAX_FILES);
    }
    text
}

fn push_denials(text: &mut String, label: &str, agent: &AgentOutcome) {
    let Some(first) = agent.denials.first() else {
        return;
    };
    let action = terminal_text::clean_value(&first.action);
    let by = terminal_text::clean_value(&first.by);
    let more = match agent.denials.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let by = match by.as_str() {
        "" => String::new(),
        by => format!(" (by {by})"),
    };
    let _ = write!(text, "\n{label}: denied: {action}{by}{more}\n");
}

fn push_test(text: &mut String, label: &str, test: &TestOutcome) {
    let what = match &test.error {
        Some(error) => terminal_text::clean_text(error),
        None => test.text(),
    };
    let _ = write!(text, "\n{label}: tests: {what}\n");
    let output = terminal_text::clean_text(&test.output);
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let begin = lines.len().saturating_sub(TEST_OUTPUT_LINES);
    for line in lines.iter().skip(begin) {
        let line = terminal_text::truncate_middle(line, terminal_text::MAX_VALUE_CHARS);
        let _ = writeln!(text, "  | {line}");
    }
}

/// Adds lines, of which all but the first are indented.
fn push_section<'a>(text: &mut String, head: &str, lines: impl Iterator<Item = &'a str>) {
    text.push('\n');
    text.push_str(head);
    for (number, line) in lines.enumerate() {
        if number > 0 {
            text.push_str("\n  ");
        }
        text.push_str(line);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(duration_text(0), "0.0 s");
        assert_eq!(duration_text(1290), "1.2 s");
        assert_eq!(duration_text(61_500), "1 min 1 s");
    }
}
