//! The report, as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::claims::{Claim, ClaimBound};
use crate::metric::Metric;
use crate::peers::PeerId;
use crate::results::{Results, Runs, Spread};

/// Formats a number with three significant digits, or more if its integer part has more.
pub(crate) fn figure(value: f64) -> String {
    let plain = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    group_thousands(&plain)
}

/// Inserts thousands separators.
fn group_thousands(plain: &str) -> String {
    let (whole, rest) = plain
        .split_once('.')
        .map_or((plain, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(rest) = rest {
        text.push('.');
        text.push_str(rest);
    }
    text
}

fn format_spread(spread: Spread) -> String {
    let Spread {
        min: least,
        median,
        max: most,
    } = spread;
    if least == most {
        figure(median)
    } else {
        format!("{} ({}–{})", figure(median), figure(least), figure(most))
    }
}

/// Formats the first lines of the report: the machine, and the peers that were skipped.
pub(crate) fn head(results: &Results) -> String {
    let mut text = format!("{}.\n", results.machine);
    for (who, why) in &results.missing {
        let why = why.lines().next().unwrap_or_default();
        let _ = writeln!(text, "Skipped: {} ({why}).", who.name());
    }
    text
}

/// Formats a table for each workload, with one line per pair: its figures, and how many times as good ours are.
pub(crate) fn rows(results: &Results) -> String {
    let rows = results.rows.chunk_by(|one, next| one.row == next.row);
    rows.map(row).collect()
}

/// Returns the metric by which pairs are compared.
fn main_metric(runs: &Runs) -> Option<Metric> {
    use Metric::{
        AgentPeak, AgentRest, ClientPeak, P50, Rate, ServerConnection, Start, Throughput,
    };
    let order = [Throughput, Rate, P50, Start, AgentRest, ServerConnection];
    let has = |metric: &Metric| runs.metrics().any(|other| other == *metric);
    match runs.row {
        "stall" | "remote-stall" => Some(AgentPeak),
        "sleep" => Some(ClientPeak),
        _ => order.into_iter().find(has),
    }
}

/// Formats the table of one workload.
pub(crate) fn row(all: &[Runs]) -> String {
    let mut text = String::new();
    let Some(first) = all.iter().find(|runs| !runs.samples.is_empty()) else {
        return text;
    };
    // Not every pair has all metrics.
    let metrics: BTreeSet<Metric> = all.iter().flat_map(Runs::metrics).collect();
    let ours = all.iter().find(|runs| {
        let who = runs.peers;
        let ours = |who| matches!(who, PeerId::Ours | PeerId::AcpAgent | PeerId::OursWebSocket);
        ours(who.agent) && (ours(who.client) || first.row.ends_with("stall"))
    });
    let compared = main_metric(first);
    let _ = write!(&mut text, "\n### {}\n\n| |", first.title);
    for metric in &metrics {
        let _ = write!(&mut text, " {} |", metric.title());
    }
    let _ = writeln!(
        &mut text,
        " ratio |\n|---|{}---|",
        "---|".repeat(metrics.len())
    );
    for runs in all {
        let _ = write!(&mut text, "| {} |", runs.peers.name());
        if let Some(why) = &runs.failed {
            let why = why.lines().next().unwrap_or_default();
            let _ = writeln!(&mut text, " {why} |{}", " |".repeat(metrics.len()));
            continue;
        }
        for metric in &metrics {
            let cell = runs
                .spread(*metric)
                .map_or_else(|| "–".to_owned(), format_spread);
            let _ = write!(&mut text, " {cell} |");
        }
        let ratio = compared.and_then(|metric| {
            let ours = ours?.spread(metric)?.median;
            let theirs = runs.spread(metric)?.median;
            Some(if metric.more_is_better() {
                ours / theirs
            } else {
                theirs / ours
            })
        });
        let _ = match ratio {
            Some(ratio) => writeln!(&mut text, " {}× |", figure(ratio)),
            None => writeln!(&mut text, " – |"),
        };
    }
    text
}

/// How much slower a row may be than in the earlier build.
const ALLOWED_LOSS: f64 = 1.05;

/// The rows of this build beside those of the earlier one. A row that is more than 5 % worse stands out.
pub(crate) fn before(results: &Results) -> String {
    let mut text =
        "\n### Compared with before\n\n| row | | before | now | now / before | |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for now in &results.rows {
        let Some(metric) = main_metric(now) else {
            continue;
        };
        let before = now
            .peers
            .before()
            .and_then(|who| results.find(now.row, who.agent, who.client));
        let spreads = before.and_then(|before| Some((before.spread(metric)?, now.spread(metric)?)));
        let Some((was, is)) = spreads else { continue };
        let ratio = is.median / was.median;
        let loss = if metric.more_is_better() {
            ratio.recip()
        } else {
            ratio
        };
        let verdict = if loss > ALLOWED_LOSS { "**worse**" } else { "" };
        let _ = writeln!(
            &mut text,
            "| {}, {} | {} | {} | {} | {ratio:.2} | {verdict} |",
            now.row,
            now.peers.name(),
            metric.title(),
            format_spread(was),
            format_spread(is),
        );
    }
    text
}

/// Formats the table of promises, with whether each holds.
pub(crate) fn claims(claims: &[Claim]) -> String {
    let mut text = "\n### Promises\n\n| | measured | promised | |\n|---|---|---|---|\n".to_owned();
    for claim in claims {
        let (word, bound) = match claim.bound {
            ClaimBound::AtMost(bound) => ("at most", bound),
            ClaimBound::AtLeast(bound) => ("at least", bound),
        };
        let unit = claim.unit;
        let holds = if claim.holds() {
            "holds"
        } else {
            "**falls short**"
        };
        let measured = figure(claim.value);
        let bound = figure(bound);
        let what = &claim.title;
        let _ = writeln!(
            &mut text,
            "| {what} | {measured}{unit} | {word} {bound}{unit} | {holds} |"
        );
    }
    text
}
