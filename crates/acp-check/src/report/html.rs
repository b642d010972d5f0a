//! Formats a report as a single HTML page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::contents::CheckReport;
use super::evidence::evidence_lines;
use crate::check::CheckProcedure;
use crate::outcome::CheckOutcome;
use crate::verdict::Verdict;

impl CheckReport {
    /// Formats the report as a single self-contained HTML page.
    #[must_use]
    pub fn to_html(&self) -> String {
        render_html(self)
    }
}

/// Renders the outcome of a check, with the messages as evidence.
fn render_outcome(report: &CheckReport, outcome: &CheckOutcome) -> Markup {
    html! {
        @let word = outcome.verdict.as_str();
        details.(word) id=(outcome.check.id()) data-verdict=(word) {
            summary {
                span.verdict { (word) }
                " "
                span.number { (match outcome.check.procedure {
                    CheckProcedure::Shape(_) => String::new(),
                    _ => outcome.check.name(),
                }) }
                " "
                span.level { (outcome.check.level) }
                " "
                span.requirement { (outcome.check.sentence()) }
                @if report.is_expected(outcome) { " (expected)" }
                @if let Some(why) = outcome.verdict.reason() {
                    span.why { (why) }
                }
            }
            @if matches!(outcome.verdict, Verdict::Pass) {
                p.took { (format!("{:.3} s", outcome.duration.as_secs_f64())) }
            }
            ol.evidence {
                @for line in evidence_lines(&outcome.transcript) {
                    li.(if line.from.is_empty() { "event" } else { line.from }) {
                        span.at { (format!("{:.3}", line.at)) }
                        @if !line.from.is_empty() { span.from { (line.from) } }
                        code { (line.text) }
                    }
                }
            }
        }
    }
}

fn render_html(report: &CheckReport) -> String {
    let summary = report.summary();
    let title = format!("acp check {}", report.side);
    let counts = [
        ("pass", "passed", summary.passed),
        ("fail", "failed", summary.failed),
        ("warn", "warned", summary.warned),
        ("skip", "skipped", summary.skipped),
        ("error", "broken", summary.harness_errors),
    ];
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    p { code { (report.program) } }
                    p.counts {
                        @for (class, word, count) in counts {
                            @if count > 0 {
                                label.(class) {
                                    input type="checkbox" data-verdict=(class) checked;
                                    (count) " " (word)
                                }
                            }
                        }
                        span.took { (format!("{:.1} s", report.duration.as_secs_f64())) }
                    }
                    @if let Some(note) = report.interruption_note() {
                        p.surprise { (note) }
                    }
                    @for version in &report.unsupported_versions {
                        p { "The " (report.side) " does not speak " (version) ", so the checks for it were skipped." }
                    }
                    @for surprise in &report.mismatches {
                        p.surprise { (surprise) }
                    }
                }
                main {
                    @for (page, outcomes) in report.pages() {
                        section {
                            h2 { a href=[outcomes.first().map(|outcome| outcome.check.page_url())] { (page) } }
                            @for outcome in outcomes {
                                (render_outcome(report, outcome))
                            }
                        }
                    }
                }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    page.into_string()
}
