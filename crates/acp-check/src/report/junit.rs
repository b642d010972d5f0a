//! Formats a report as JUnit XML.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::contents::CheckReport;
use super::evidence::{direction_arrow, evidence_lines};
use crate::verdict::Verdict;
impl CheckReport {
    /// Formats the report as JUnit XML, a format that CI services display.
    ///
    /// # Errors
    /// The report cannot be written as XML.
    pub fn to_junit(&self) -> Result<String, String> {
        render_junit(self)
    }
}

fn render_junit(report: &CheckReport) -> Result<String, String> {
    let mut xml = quick_junit::Report::new(format!("acp check {}", report.side));
    xml.set_time(report.duration);
    for (page, outcomes) in report.pages() {
        let url = outcomes.first().map(|outcome| outcome.check.page_url());
        let class = page.replace('/', ".");
        let mut suite = TestSuite::new(page);
        suite.add_property(("specification", url.unwrap_or_default().as_str()));
        for outcome in outcomes {
            let check = &outcome.check;
            let expected = report.is_expected(outcome);
            let mut status = match &outcome.verdict {
                Verdict::Pass => TestCaseStatus::success(),
                Verdict::Skip(_) => TestCaseStatus::skipped(),
                // JUnit has no warnings, and an expected failure must not fail the run.
                Verdict::Warn(_) => TestCaseStatus::skipped(),
                Verdict::Fail(_) if expected => TestCaseStatus::skipped(),
                Verdict::Fail(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
                Verdict::Harness(_) => TestCaseStatus::non_success(NonSuccessKind::Error),
            };
            if let Some(why) = outcome.verdict.reason() {
                status.set_message(format!("{}: {why}", outcome.verdict.as_str()));
            }
            let mut case = TestCase::new(format!("{} {}", check.id(), check.sentence()), status);
            case.set_classname(class.as_str());
            case.set_time(outcome.duration);
            if !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)) {
                let said = evidence_lines(&outcome.transcript);
                let said = said
                    .iter()
                    .map(|line| format!("{}{}", direction_arrow(line.from), line.text));
                case.set_system_out(said.collect::<Vec<_>>().join("\n"));
            }
            suite.add_test_case(case);
        }
        xml.add_test_suite(suite);
    }
    xml.to_string().map_err(|e| e.to_string())
}
