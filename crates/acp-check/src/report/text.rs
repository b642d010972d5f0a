//! Formats a report as text.

use std::fmt::Write as _;

use super::contents::{CheckReport, padded_level};
use super::evidence::{direction_arrow, evidence_lines, strip_controls};
use crate::check::CheckProcedure;
use crate::outcome::CheckOutcome;
use crate::verdict::{Verdict, truncate};

/// The maximum number of evidence lines to show for a failure. Only the last ones are shown.
const MAX_EVIDENCE_LINES: usize = 12;

/// How many checks must share a reason for it to be listed in the summary.
const MIN_COMMON_CHECKS: usize = 5;

/// The maximum length of a reason listed in the summary, in characters.
const MAX_CAUSE_LEN: usize = 200;

/// The options for formatting a report as text.
#[derive(Debug, Clone, Copy)]
pub struct TextStyle {
    /// Whether to use colors on the terminal.
    pub color: bool,
    /// Whether to show all evidence, even for checks that passed.
    pub verbose: bool,
    /// Whether to show only the summary and the checks that did not pass.
    pub quiet: bool,
    /// The maximum width of an evidence line, in characters.
    pub width: usize,
}

impl TextStyle {
    /// Returns `words` in a color if colors are enabled. `code` is the color's number in an SGR escape sequence.
    fn paint(self, code: &str, words: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{words}\u{1b}[0m")
        } else {
            words.to_owned()
        }
    }
}

impl CheckReport {
    /// Formats the report as text.
    #[must_use]
    pub fn to_text(&self, style: TextStyle) -> String {
        render_text(self, style)
    }
}

fn render_text(report: &CheckReport, style: TextStyle) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut text, report, style);
    text
}

/// Writes the summary, then the checks that did not pass, and then the others.
fn write_report(text: &mut String, report: &CheckReport, style: TextStyle) -> std::fmt::Result {
    write_summary(text, report, style)?;
    write_pages(text, report, style, is_wrong)?;
    write_shared_results(text, report, style)?;
    if !style.quiet {
        write_pages(text, report, style, |outcome| !is_wrong(outcome))?;
    }
    Ok(())
}

fn write_summary(text: &mut String, report: &CheckReport, style: TextStyle) -> std::fmt::Result {
    let paint = |code: &str, words: &str| style.paint(code, words);
    let summary = report.summary();
    let color = if summary.failed + summary.harness_errors > 0 {
        "31"
    } else {
        "32"
    };
    let counts = summary.format_summary(report.duration);
    writeln!(text, "{}", paint(color, &counts))?;
    if let Some(note) = report.interruption_note() {
        writeln!(text, "{}", paint("33", &note))?;
    }
    for surprise in &report.mismatches {
        writeln!(text, "{}", paint("31", surprise))?;
    }
    for version in &report.unsupported_versions {
        let side = report.side;
        writeln!(
            text,
            "The {side} does not speak {version}, so the checks for it were skipped."
        )?;
    }
    for (why, count) in common_causes(report) {
        let why = truncate(&strip_controls(why), MAX_CAUSE_LEN);
        let line = format!("{count} checks with the same result: {why}");
        writeln!(text, "{}", paint("33", &line))?;
    }
    Ok(())
}

/// Writes the outcomes that `belongs` selects, page by page.
fn write_pages(
    text: &mut String,
    report: &CheckReport,
    style: TextStyle,
    belongs: impl Fn(&CheckOutcome) -> bool,
) -> std::fmt::Result {
    for (page, mut outcomes) in report.pages() {
        outcomes.retain(|outcome| belongs(outcome));
        if outcomes.is_empty() {
            continue;
        }
        writeln!(text, "\n{}", style.paint("1", &page))?;
        for outcome in outcomes {
            write_outcome(text, report, outcome, style)?;
        }
    }
    Ok(())
}

/// Writes which checks failed only because other checks had run before.
fn write_shared_results(
    text: &mut String,
    report: &CheckReport,
    style: TextStyle,
) -> std::fmt::Result {
    let outcomes = report.outcomes.iter();
    let shared: Vec<(String, &str)> = outcomes
        .filter_map(|outcome| Some((outcome.check.id(), outcome.shared_result.as_deref()?)))
        .collect();
    if shared.is_empty() {
        return Ok(());
    }
    let what = "These checks failed only with an agent that had run other checks before. Their verdicts are those of a new agent:";
    writeln!(text, "\n{}", style.paint("33", what))?;
    for (id, result) in shared {
        writeln!(text, "  {id}: {}", strip_controls(result))?;
    }
    Ok(())
}

fn is_wrong(outcome: &CheckOutcome) -> bool {
    matches!(
        outcome.verdict,
        Verdict::Fail(_) | Verdict::Warn(_) | Verdict::Harness(_)
    )
}

/// Writes the outcome of a check. If something is wrong, also writes the messages as evidence.
fn write_outcome(
    text: &mut String,
    report: &CheckReport,
    outcome: &CheckOutcome,
    style: TextStyle,
) -> std::fmt::Result {
    let paint = |code: &str, words: &str| style.paint(code, words);
    let check = &outcome.check;
    let (mark, color) = verdict_mark(outcome);
    let mark = paint(color, mark);
    let expected = if report.is_expected(outcome) && outcome.verdict.reason().is_some() {
        " (expected)"
    } else {
        ""
    };
    // A shape is identified by its sentence.
    let number = match check.procedure {
        CheckProcedure::Shape(_) => String::new(),
        _ => check.name(),
    };
    let level = padded_level(check.level);
    let requirement = check.sentence();
    writeln!(text, "  {mark} {number:>3} {level} {requirement}{expected}")?;
    if let Some(why) = outcome.verdict.reason() {
        let why = paint(color, &strip_controls(why));
        writeln!(text, "               {why}")?;
    }
    if is_wrong(outcome) || style.verbose {
        let lines = evidence_lines(&outcome.transcript);
        let first = if style.verbose {
            0
        } else {
            lines.len().saturating_sub(MAX_EVIDENCE_LINES)
        };
        if first > 0 {
            let s = if first == 1 { "" } else { "s" };
            writeln!(
                text,
                "               … {first} earlier line{s} (show with --verbose)"
            )?;
        }
        for line in lines.iter().skip(first) {
            let room = style.width.saturating_sub(32).max(40);
            let said = truncate(&line.text, room);
            let at = format!("{:8.3}", line.at);
            let line = format!("{at} {}{said}", direction_arrow(line.from));
            writeln!(text, "               {}", paint("2", &line))?;
        }
    }
    Ok(())
}

/// Returns each reason shared by many checks, with the number of checks. Often, a single fault makes many checks fail.
fn common_causes(report: &CheckReport) -> Vec<(&str, usize)> {
    let mut causes: Vec<(&str, usize)> = Vec::new();
    for outcome in &report.outcomes {
        let (Verdict::Fail(why) | Verdict::Warn(why)) = &outcome.verdict else {
            continue;
        };
        match causes.iter_mut().find(|(cause, _)| cause == why) {
            Some((_, count)) => *count += 1,
            None => causes.push((why, 1)),
        }
    }
    causes.retain(|(_, count)| *count >= MIN_COMMON_CHECKS);
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    causes
}

fn verdict_mark(outcome: &CheckOutcome) -> (&'static str, &'static str) {
    match outcome.verdict {
        Verdict::Pass => ("✓", "32"),
        Verdict::Fail(_) => ("✗", "31"),
        Verdict::Warn(_) => ("!", "33"),
        Verdict::Skip(_) => ("-", "2"),
        Verdict::Harness(_) => ("?", "35"),
    }
}
