//! The results of the chat benchmark, for the report and for `results.json`.

use std::fmt::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::claims::{Claim, ClaimBound};
use crate::table::format_figure;

/// The latency of some keys in one situation, in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KeyLatency {
    /// The situation in which the keys were typed, such as during a response.
    pub(crate) when: &'static str,
    /// The effect of the keys that was waited for.
    pub(crate) what: &'static str,
    /// The latency of each key, in the order in which they were typed.
    #[serde(skip)]
    times: Vec<Duration>,
    count: usize,
    p50: f64,
    p99: f64,
    most: f64,
}

impl KeyLatency {
    pub(super) fn new(when: &'static str, what: &'static str, each: Vec<Duration>) -> Self {
        let mut sorted = each.clone();
        sorted.sort_unstable();
        let at = |of: usize| {
            let at = (sorted.len() * of / 100).min(sorted.len().saturating_sub(1));
            sorted.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        Self {
            when,
            what,
            count: each.len(),
            p50: at(50),
            p99: at(99),
            most: at(100),
            times: each,
        }
    }
}

impl fmt::Display for KeyLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99, most) = (
            format_figure(self.p50),
            format_figure(self.p99),
            format_figure(self.most),
        );
        write!(f, "{}: {}: {p50}, {p99}, {most} ms", self.when, self.what)
    }
}

/// A measured value of the chat other than a latency.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ChatMetric {
    what: &'static str,
    unit: &'static str,
    /// The value of each run.
    values: Vec<f64>,
}

impl ChatMetric {
    pub(super) fn new(what: &'static str, unit: &'static str, value: f64) -> Self {
        let values = vec![value];
        Self { what, unit, values }
    }

    fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    }
}

/// The results of the chat benchmark.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ChatReport {
    pub(super) reactions: Vec<KeyLatency>,
    pub(super) facts: Vec<ChatMetric>,
}

impl ChatReport {
    /// Adds the results of another run of the benchmark.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.reactions.is_empty() {
            *self = other;
            return;
        }
        for (mine, others) in self.reactions.iter_mut().zip(other.reactions) {
            let mut each = std::mem::take(&mut mine.times);
            each.extend(others.times);
            *mine = KeyLatency::new(mine.when, mine.what, each);
        }
        for (mine, others) in self.facts.iter_mut().zip(other.facts) {
            mine.values.extend(others.values);
        }
    }

    fn metric_median(&self, what: &str) -> Option<f64> {
        self.facts
            .iter()
            .find(|fact| fact.what == what)
            .map(ChatMetric::median)
    }
}

/// Formats the tables with the results, as Markdown.
pub(crate) fn render_table(chat: &ChatReport) -> String {
    let mut text =
        "\n### `acp chat`: time from a key to the end of the frame that shows it, 120×40\n\n\
        | | | keys | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for of in &chat.reactions {
        let (p50, p99, most) = (
            format_figure(of.p50),
            format_figure(of.p99),
            format_figure(of.most),
        );
        let _ = writeln!(
            &mut text,
            "| {} | {} | {} | {p50} | {p99} | {most} |",
            of.when, of.what, of.count
        );
    }
    text.push_str("\n### `acp chat`: time and memory\n\n| | |\n|---|---|\n");
    for fact in &chat.facts {
        let value = format_figure(fact.median());
        let _ = writeln!(&mut text, "| {} | {value} {} |", fact.what, fact.unit);
    }
    text
}

/// Returns the promises about the chat.
pub(crate) fn chat_claims(chat: &ChatReport) -> Vec<Claim> {
    let mut claims: Vec<Claim> = chat
        .reactions
        .iter()
        .filter(|of| !of.when.starts_with("the floor"))
        .map(|of| Claim {
            title: format!("`acp chat`, {}: {}, p99", of.when, of.what),
            value: of.p99,
            bound: ClaimBound::AtMost(16.0),
            unit: " ms",
        })
        .collect();
    for what in [
        "CPU time in 10 s without a key",
        "CPU time in 10 s without a key, background tab",
    ] {
        if let Some(measured) = chat.metric_median(what) {
            claims.push(Claim {
                title: format!("`acp chat`: {what}"),
                value: measured,
                bound: ClaimBound::AtMost(0.0),
                unit: " ticks",
            });
        }
    }
    claims
}
