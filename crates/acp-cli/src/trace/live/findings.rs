//! Broken rules, found in the background.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_html::text;
use acp_trace::{LintFinding, RecordBody, TraceEvent, TraceLinter, TraceReader};
use serde::Serialize;

/// The maximum number of findings to show.
const MAX_FINDINGS: usize = 1000;

/// How long to read at a time.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// How often to check for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// A finding, as the page shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RowFinding {
    line: u64,
    level: String,
    rule: &'static str,
    text: String,
}

/// The findings of all pages, which one task collects as soon as there is a page.
#[derive(Debug, Default)]
pub(super) struct SharedFindings(Arc<Mutex<FindingList>>);

#[derive(Debug, Default)]
struct FindingList {
    is_started: bool,
    shown: Vec<RowFinding>,
    total: u64,
}

/// Findings that a page has not got yet.
#[derive(Debug, Serialize)]
pub(super) struct NewFindings {
    findings: Vec<RowFinding>,
    /// The number of all findings. At most the first thousand are shown.
    total: u64,
}

fn lock(list: &Mutex<FindingList>) -> MutexGuard<'_, FindingList> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedFindings {
    /// Starts to collect findings, unless that has begun already.
    pub(super) fn start(&self, trace: &Path) {
        if !std::mem::replace(&mut lock(&self.0).is_started, true) {
            tokio::spawn(collect(trace.to_owned(), Arc::clone(&self.0)));
        }
    }

    /// Returns the findings after the first `known` ones, if the total is no longer `known_total`.
    pub(super) fn after(&self, known: usize, known_total: u64) -> Option<NewFindings> {
        let list = lock(&self.0);
        (list.total != known_total).then(|| NewFindings {
            findings: list.shown.get(known..).unwrap_or_default().to_vec(),
            total: list.total,
        })
    }
}

impl NewFindings {
    /// Returns the number of findings that a page knows with these, and of all.
    pub(super) fn known(&self, before: usize) -> (usize, u64) {
        (before + self.findings.len(), self.total)
    }
}

/// Checks the trace until its recording ends, or the file cannot be read.
async fn collect(trace: PathBuf, list: Arc<Mutex<FindingList>>) {
    let opened = tokio::task::spawn_blocking(move || TraceReader::open(&trace));
    let Ok(Ok(mut reader)) = opened.await else {
        return;
    };
    let mut linter = TraceLinter::new();
    loop {
        let batch_list = Arc::clone(&list);
        let batch = tokio::task::spawn_blocking(move || {
            let state = check_batch(&mut reader, &mut linter, &batch_list);
            (reader, linter, state)
        });
        let Ok((next_reader, next_linter, state)) = batch.await else {
            return;
        };
        (reader, linter) = (next_reader, next_linter);
        match state {
            BatchState::More => {}
            BatchState::AtEnd => tokio::time::sleep(POLL_INTERVAL).await,
            BatchState::Ended => return,
        }
    }
}

/// Where a batch has stopped.
enum BatchState {
    More,
    AtEnd,
    Ended,
}

fn check_batch(
    reader: &mut TraceReader<impl std::io::BufRead>,
    linter: &mut TraceLinter,
    list: &Mutex<FindingList>,
) -> BatchState {
    let start = Instant::now();
    while start.elapsed() < BATCH_TIME {
        match reader.next() {
            Some(Ok(record)) => {
                let is_end = matches!(record.body, RecordBody::Event(TraceEvent::End));
                push_all(list, linter.check_record(record));
                if is_end {
                    push_all(list, linter.end());
                    return BatchState::Ended;
                }
            }
            Some(Err(e)) if e.is_line_error() => linter.skip_line(),
            Some(Err(_)) => return BatchState::Ended,
            None => return BatchState::AtEnd,
        }
    }
    BatchState::More
}

fn push_all(list: &Mutex<FindingList>, findings: Vec<LintFinding>) {
    if findings.is_empty() {
        return;
    }
    let mut list = lock(list);
    for finding in findings {
        list.total += 1;
        if list.shown.len() < MAX_FINDINGS {
            list.shown.push(RowFinding {
                line: finding.line,
                level: finding.level.to_string(),
                rule: finding.rule,
                text: text::truncate_text(&text::sanitize_line(&finding.text), 500),
            });
        }
    }
}
