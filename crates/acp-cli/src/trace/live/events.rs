//! The events of an open page.
//!
//! An event is made only when the browser can take it. A slow browser gets fewer of them, each with more rows.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use acp_html::text;
use acp_trace::Secrets;
use axum::response::sse::Event;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use serde_json::json;

use super::filter::RowFilter;
use super::scan::{ScanCounts, TraceScan};
use super::state::OpenPage;

/// How often to check for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a stream of events has sent so far.
struct PageEvents {
    open: OpenPage,
    state: EventState,
    findings_sent: (usize, u64),
}

enum EventState {
    /// Nothing was sent yet.
    New(RowFilter),
    /// The trace is read for the first time.
    CatchingUp(TraceScan),
    /// Everything was sent, up to these counts.
    Live(TraceScan, ScanCounts),
    Closed,
}

/// Returns the events of a page. It ends when the file cannot be read, or the browser disconnects.
pub(super) fn page_events(
    open: OpenPage,
    filter: RowFilter,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let events = PageEvents {
        state: EventState::New(filter),
        open,
        findings_sent: (0, 0),
    };
    stream::unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((Ok(event), events))
    })
}

impl PageEvents {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let state = std::mem::replace(&mut self.state, EventState::Closed);
            let (next, event) = match state {
                EventState::New(filter) => self.open(filter).await,
                EventState::CatchingUp(scan) => catch_up(scan).await,
                EventState::Live(scan, told) => self.follow(scan, told).await,
                EventState::Closed => return None,
            };
            self.state = next;
            if event.is_some() {
                return event;
            }
        }
    }

    async fn open(&self, filter: RowFilter) -> (EventState, Option<Event>) {
        let page = &self.open.page;
        let (path, list) = (page.trace().to_owned(), self.open.list.clone());
        let opened = tokio::task::spawn_blocking(move || TraceScan::open(&path, filter, list));
        let scan = match opened.await {
            Ok(Ok(scan)) => scan,
            Ok(Err(e)) => return failed(&e.to_string()),
            Err(e) => return failed(&e.to_string()),
        };
        page.findings.start(page.trace());
        let header = scan.header();
        let start = json!({
            "command": text::sanitize_line(&header.command.join(" ")),
            "started": text::sanitize_line(&header.started),
            "by": text::sanitize_line(&header.by),
            "hasSecrets": header.secrets == Secrets::Kept,
            "canSend": page.sender.is_some(),
            "list": self.open.number,
            // To say how to open the trace when the command has ended.
            "later": (!page.is_temporary).then(|| html_command(page.trace())),
        });
        let event = event("start", &start);
        (EventState::CatchingUp(scan), event)
    }

    async fn follow(&mut self, scan: TraceScan, told: ScanCounts) -> (EventState, Option<Event>) {
        let (known, total) = self.findings_sent;
        if let Some(new) = self.open.page.findings.after(known, total) {
            self.findings_sent = new.known(known);
            let event = event("findings", &new);
            return (EventState::Live(scan, told), event);
        }
        let (mut scan, read) = match read_batch(scan).await {
            Ok(read) => read,
            Err(why) => return failed(&why),
        };
        if scan.has_news(told) {
            let counts = scan.counts();
            let event = event("rows", &scan.take());
            return (EventState::Live(scan, counts), event);
        }
        if read {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        (EventState::Live(scan, told), None)
    }
}

/// Reads on, and sends what was found, so that the page shows the first messages at once.
async fn catch_up(scan: TraceScan) -> (EventState, Option<Event>) {
    let (mut scan, is_at_end) = match read_batch(scan).await {
        Ok(read) => read,
        Err(why) => return failed(&why),
    };
    if is_at_end {
        let counts = scan.counts();
        let event = event("rows", &scan.take());
        return (EventState::Live(scan, counts), event);
    }
    let (read, size) = scan.progress();
    let found = scan.take();
    let event = event(
        "progress",
        &json!({ "read": read, "size": size, "found": found }),
    );
    (EventState::CatchingUp(scan), event)
}

async fn read_batch(mut scan: TraceScan) -> Result<(TraceScan, bool), String> {
    let reading = tokio::task::spawn_blocking(move || {
        let read = scan.read_batch()?;
        Ok((scan, read))
    });
    reading.await.map_err(|e| e.to_string())?
}

/// Returns the command that makes a page of the trace, for a shell.
fn html_command(trace: &Path) -> String {
    let trace = std::path::absolute(trace).unwrap_or_else(|_| trace.to_owned());
    let words = ["acp", "trace", "html", &trace.to_string_lossy()];
    text::sanitize_line(&shell_words::join(words))
}

fn failed(why: &str) -> (EventState, Option<Event>) {
    let event = event("failed", &text::sanitize_line(why));
    (EventState::Closed, event)
}

fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    let data = serde_json::to_string(data).ok()?;
    Some(Event::default().event(name).data(data))
}
