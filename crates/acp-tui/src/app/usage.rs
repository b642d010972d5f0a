//! What the turns of a tab have taken: time, tokens and cost.

use std::time::Duration;

use acp::Thread;
use acp::v1::Cost;
use acp_host::terminal_text;
use ratatui::style::Style;
use ratatui::text::Line;

use super::overlay::ChatOverlay;
use super::pager::Pager;
use super::{App, time};
use crate::text::columns::{group_thousands, pluralize};
use crate::text::fit::truncate_to_width;

/// The maximum number of turns to list. The total counts all.
const MAX_TURNS: usize = 200;

/// The maximum width of a prompt in the list, in columns.
const MAX_PROMPT_COLUMNS: u16 = 48;

/// The cost of a session before a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct UsageBefore(Option<Cost>);

impl UsageBefore {
    pub(super) fn new(thread: &Thread) -> Self {
        Self(thread.usage().and_then(|usage| usage.cost.clone()))
    }
}

/// What a turn has taken.
#[derive(Debug, Clone)]
struct TurnUsage {
    prompt: String,
    time: Duration,
    /// The tokens that the model has read and written, if the agent reports them.
    tokens: Option<u64>,
    /// By how much the cost of the session has grown, if the agent reports it.
    cost: Option<Cost>,
}

/// What the turns of a tab have taken.
#[derive(Debug, Default)]
pub(super) struct SessionUsage {
    /// The latest turns, oldest first.
    turns: Vec<TurnUsage>,
    turn_count: usize,
    time: Duration,
    tokens: Option<u64>,
}

impl SessionUsage {
    /// Adds a turn that has ended.
    pub(super) fn add(
        &mut self,
        prompt: &str,
        time: Duration,
        before: &UsageBefore,
        after: &Thread,
    ) {
        let tokens = after.turn_usage().map(|usage| usage.total_tokens);
        let cost = after.usage().and_then(|usage| usage.cost.as_ref());
        let turn = TurnUsage {
            prompt: truncate_to_width(
                &terminal_text::clean_line(prompt.trim()),
                MAX_PROMPT_COLUMNS,
            ),
            time,
            tokens,
            cost: cost.and_then(|cost| added_cost(before.0.as_ref(), cost)),
        };
        if self.turns.len() == MAX_TURNS {
            self.turns.remove(0);
        }
        self.turns.push(turn);
        self.turn_count += 1;
        self.time += time;
        if let Some(tokens) = tokens {
            self.tokens = Some(self.tokens.unwrap_or_default().saturating_add(tokens));
        }
    }

    /// Returns a table of the turns and their sum.
    fn to_lines(&self, thread: &Thread) -> Vec<String> {
        let mut rows = vec![[
            "".to_owned(),
            "time".to_owned(),
            "tokens".to_owned(),
            "cost".to_owned(),
            "prompt".to_owned(),
        ]];
        let first = self.turn_count - self.turns.len();
        for (number, turn) in (first + 1..).zip(&self.turns) {
            rows.push([
                number.to_string(),
                time::format_duration(turn.time),
                turn.tokens.map_or_else(unknown, format_count),
                turn.cost.as_ref().map_or_else(unknown, format_cost),
                turn.prompt.clone(),
            ]);
        }
        let usage = thread.usage();
        rows.push([
            "all".to_owned(),
            time::format_duration(self.time),
            self.tokens.map_or_else(unknown, format_count),
            usage
                .and_then(|usage| usage.cost.as_ref())
                .map_or_else(unknown, format_cost),
            pluralize(self.turn_count, "turn"),
        ]);
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths = [width(0), width(1), width(2), width(3)];
        let mut lines: Vec<String> = rows
            .iter()
            .map(|row| {
                let cells = row
                    .iter()
                    .zip(widths)
                    .map(|(cell, width)| format!("{cell:>width$}  "));
                format!("{}{}", cells.collect::<String>(), row[4])
                    .trim_end()
                    .to_owned()
            })
            .collect();
        if let Some(usage) = usage {
            lines.push(String::new());
            lines.push(format!(
                "The context window contains {} of {} tokens.",
                format_count(usage.used),
                format_count(usage.size)
            ));
        }
        lines.push(String::new());
        lines.push(
            "The cost of all turns is that of the session, with turns of earlier chats.".to_owned(),
        );
        lines.push(format!(
            "{} means that the agent does not report it.",
            unknown()
        ));
        lines
    }
}

/// Returns by how much the cost has grown. Costs in different currencies cannot be compared.
fn added_cost(before: Option<&Cost>, after: &Cost) -> Option<Cost> {
    let mut added = after.clone();
    if let Some(before) = before {
        if before.currency != after.currency {
            return None;
        }
        added.amount -= before.amount;
    }
    Some(added)
}

fn unknown() -> String {
    "–".to_owned()
}

fn format_count(count: u64) -> String {
    usize::try_from(count).map_or_else(|_| count.to_string(), group_thousands)
}

fn format_cost(cost: &Cost) -> String {
    let currency = terminal_text::clean_line(&cost.currency);
    format!("{:.4} {currency}", cost.amount)
}

impl App {
    /// Shows what the turns of the active tab have taken.
    pub(super) fn show_usage(&mut self) {
        let Some(tab) = self.tabs.get(self.active) else {
            return;
        };
        if tab.usage.turn_count == 0 {
            self.show_note("no turn has ended in this chat yet");
            return;
        }
        let lines = tab.thread.read(|thread| tab.usage.to_lines(thread));
        let lines = lines
            .into_iter()
            .map(|line| Line::styled(line, Style::new()));
        let pager = Pager::new("Usage", lines.collect());
        self.overlay = Some(ChatOverlay::Pager(pager));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::v1::{SessionUpdate, UsageUpdate};

    fn set_cost(thread: &mut Thread, amount: f64, currency: &str) {
        let mut usage = UsageUpdate::new(1000_u64, 200_000_u64);
        usage.cost = Some(Cost::new(amount, currency));
        thread.apply(&SessionUpdate::UsageUpdate(usage.into()).into());
    }

    #[test]
    fn turns_are_listed_with_what_each_has_cost() {
        let mut thread = Thread::new();
        let mut usage = SessionUsage::default();
        set_cost(&mut thread, 0.5, "USD");
        let before = UsageBefore::new(&thread);
        set_cost(&mut thread, 0.75, "USD");
        usage.add("Fix\nit", Duration::from_secs(61), &before, &thread);
        let before = UsageBefore::new(&thread);
        set_cost(&mut thread, 1.0, "EUR");
        usage.add("Again", Duration::from_secs(5), &before, &thread);
        assert_eq!(
            usage.to_lines(&thread)[..4],
            [
                "          time  tokens        cost  prompt",
                "  1  1 min 1 s       –  0.2500 USD  Fix it",
                "  2        5 s       –           –  Again",
                "all  1 min 6 s       –  1.0000 EUR  2 turns",
            ]
        );
        assert_eq!(
            usage.to_lines(&thread)[5],
            "The context window contains 1,000 of 200,000 tokens."
        );
    }

    #[test]
    fn old_turns_are_still_counted() {
        let thread = Thread::new();
        let mut usage = SessionUsage::default();
        for _ in 0..MAX_TURNS + 5 {
            usage.add(
                "x",
                Duration::from_secs(1),
                &UsageBefore::default(),
                &thread,
            );
        }
        let lines = usage.to_lines(&thread);
        assert!(lines[1].starts_with("  6  "), "{}", lines[1]);
        assert!(
            lines.iter().any(|line| line.ends_with("205 turns")),
            "{lines:?}"
        );
    }
}
