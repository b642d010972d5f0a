//! Formats a report as JSON.

use serde_json::{Value, json};

use super::contents::CheckReport;
use super::evidence::evidence_lines;
use crate::verdict::Verdict;

impl CheckReport {
    /// Formats the report as JSON, with the fields that `docs/check.md` lists.
    #[must_use]
    pub fn to_json(&self) -> Value {
        render_json(self)
    }
}

fn render_json(report: &CheckReport) -> Value {
    let summary = report.summary();
    let checks: Vec<Value> = report
        .outcomes
        .iter()
        .map(|outcome| {
            let check = &outcome.check;
            let mut said = json!({
                "id": check.id(),
                "version": check.version.number(),
                "page": check.page,
                "level": check.level.to_string(),
                "requirement": check.sentence(),
                "verdict": outcome.verdict.as_str(),
                "seconds": outcome.duration.as_secs_f64(),
            });
            if let Some(why) = outcome.verdict.reason() {
                said["reason"] = json!(why);
            }
            if report.is_expected(outcome) {
                said["expected"] = json!(true);
            }
            if let Some(result) = &outcome.shared_result {
                said["shared_result"] = json!(result);
            }
            if !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)) {
                let lines = evidence_lines(&outcome.transcript).into_iter();
                let lines = lines
                    .map(|line| json!({"seconds": line.at, "from": line.from, "text": line.text}));
                said["evidence"] = lines.collect();
            }
            said
        })
        .collect();
    json!({
        "side": report.side.to_string(),
        "program": report.program,
        "seconds": report.duration.as_secs_f64(),
        "summary": {
            "pass": summary.passed,
            "fail": summary.failed,
            "warn": summary.warned,
            "skip": summary.skipped,
            "error": summary.harness_errors,
        },
        "unfinished": report.unfinished_count,
        "unsupported_versions": report.unsupported_versions.iter().map(|version| version.number()).collect::<Vec<_>>(),
        "baseline_mismatches": report.mismatches,
        "checks": checks,
    })
}
