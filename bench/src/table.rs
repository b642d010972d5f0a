//! Formats the report as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::claims::{Claim, ClaimBound};
use crate::metric::Metric;
use crate::peers::PeerId;
use crate::results::{Results, Runs, Spread};

/// Formats a number with three significant digits, but with all digits of its integer part.
pub(crate) fn format_figure(value: f64) -> String {
    let plain = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    group_thousands(&plain)
}

/// Inserts thousands separators into a number.
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
        format_figure(median)
    } else {
        format!(
            "{} ({}–{})",
            format_figure(median),
            format_figure(least),
            format_figure(most)
        )
    }
}

/// Formats the head of the report: the machine, and the peers that were skipped.
pub(crate) fn render_head(results: &Results) -> String {
    let mut text = format!("{}.\n", results.machine);
    for (who, why) in &results.missing {
        let why = why.lines().next().unwrap_or_default();
        let _ = writeln!(text, "Skipped: {} ({why}).", who.name());
    }
    text
}

/// Formats a table for each workload, with one line per pair: its results, and their ratio to ours.
pub(crate) fn render_rows(results: &Results) -> String {
    let rows = results.rows.chunk_by(|one, next| one.row == next.row);
    rows.map(render_row).collect()
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
pub(crate) fn render_row(all: &[Runs]) -> String {
    let mut text = String::new();
    let Some(first) = all.iter().find(|runs| !runs.samples.is_empty()) else {
        return text;
    };
    // Some pairs do not have all metrics.
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
            Some(ratio) => writeln!(&mut text, " {}× |", format_figure(ratio)),
            None => writeln!(&mut text, " – |"),
        };
    }
    text
}

/// The maximum ratio by which a result can be worse than in the earlier build.
const MAX_SLOWDOWN: f64 = 1.05;

/// Formats the results of this build beside those of the earlier build. Results that are more than 5 % worse are
/// marked.
pub(crate) fn render_comparison(results: &Results) -> String {
    let mut text =
        "\n### Compared with the earlier build\n\n| row | | before | now | now / before | |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for now in &results.rows {
        let Some(metric) = main_metric(now) else {
            continue;
        };
        let before = now
            .peers
            .earlier_build()
            .and_then(|who| results.find(now.row, who.agent, who.client));
        let spreads = before.and_then(|before| Some((before.spread(metric)?, now.spread(metric)?)));
        let Some((was, is)) = spreads else { continue };
        let ratio = is.median / was.median;
        let loss = if metric.more_is_better() {
            ratio.recip()
        } else {
            ratio
        };
        let verdict = if loss > MAX_SLOWDOWN { "**worse**" } else { "" };
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

/// Formats the table of promises, and whether each is kept.
pub(crate) fn render_claims(claims: &[Claim]) -> String {
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
        let measured = format_figure(claim.value);
        let bound = format_figure(bound);
        let what = &claim.title;
        let _ = writeln!(
            &mut text,
            "| {what} | {measured}{unit} | {word} {bound}{unit} | {holds} |"
        );
    }
    text
}
