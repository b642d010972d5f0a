//! The list of an open page: where the messages that its filter selects are in the trace.
//!
//! The list has no text. Rows are read from the trace when the page shows them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::jsonrpc::RequestId;
use acp_trace::{EntryBuilder, Side, TraceEntry, TraceEntryKind, read_record_at};
use serde::Serialize;

use super::row::{FullMessage, TraceRow};
use crate::trace::words::format_duration;

/// The maximum number of messages in a list. After that, the oldest are dropped.
pub(super) const MAX_LISTED: usize = 1_000_000;

/// The maximum number of requests whose responses are known.
const MAX_PAIRS: usize = 200_000;

/// The maximum number of requests that wait for a response.
const MAX_WAITING: usize = 64 * 1024;

/// The maximum number of rows that a page gets at once.
const MAX_ROWS: usize = 200;

/// Where a message is in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagePlace {
    /// The line number.
    pub(super) line: u64,
    /// The position of the line in the file.
    pub(super) at: u64,
}

/// The messages that the filter of a page selects, in their order.
#[derive(Debug, Default)]
pub(super) struct MessageList {
    places: VecDeque<MessagePlace>,
    /// The number of messages that were dropped.
    dropped: u64,
    pairs: RequestPairs,
}

/// Which response belongs to which request, by the position in the file. It contains all messages of the trace, also
/// those that a filter hides.
#[derive(Debug, Default)]
struct RequestPairs {
    waiting: HashMap<(Side, RequestId), MessagePlace>,
    responses: BTreeMap<u64, MessagePlace>,
    requests: BTreeMap<u64, MessagePlace>,
}

/// The list of an open page, which its scan fills while its requests read it.
pub(super) type SharedList = Arc<Mutex<MessageList>>;

/// Locks a list. It is only locked for a moment, never while the file is read.
pub(super) fn lock_list(list: &SharedList) -> MutexGuard<'_, MessageList> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessageList {
    /// Adds a message, to the list itself only if the filter selects it.
    pub(super) fn push(&mut self, entry: &TraceEntry, at: u64, is_selected: bool) {
        let place = MessagePlace {
            line: entry.line,
            at,
        };
        self.pairs.push(entry, place);
        if !is_selected {
            return;
        }
        if self.places.len() >= MAX_LISTED {
            self.places.pop_front();
            self.dropped += 1;
        }
        self.places.push_back(place);
    }

    /// Returns the number of messages that were dropped, and of those in the list.
    pub(super) fn extent(&self) -> (u64, usize) {
        (self.dropped, self.places.len())
    }

    /// Returns the number in the list of the message on a line, or of the next one.
    pub(super) fn find_line(&self, line: u64) -> (u64, bool) {
        let at = self.places.partition_point(|place| place.line < line);
        let is_there = self.places.get(at).is_some_and(|place| place.line == line);
        (
            self.dropped + u64::try_from(at).unwrap_or_default(),
            is_there,
        )
    }

    /// Returns the places of messages, starting with number `from`. Each response comes with its request.
    fn places(&self, from: u64, count: usize) -> Vec<(MessagePlace, Option<MessagePlace>)> {
        let from = usize::try_from(from.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let places = self.places.iter().skip(from).take(count.min(MAX_ROWS));
        places
            .map(|place| (*place, self.pairs.requests.get(&place.at).copied()))
            .collect()
    }
}

impl RequestPairs {
    fn push(&mut self, entry: &TraceEntry, place: MessagePlace) {
        let (Some(from), Some(id)) = (entry.from, &entry.id) else {
            return;
        };
        match entry.kind {
            TraceEntryKind::Request if self.waiting.len() < MAX_WAITING => {
                self.waiting.insert((from, id.clone()), place);
            }
            TraceEntryKind::Response | TraceEntryKind::Error => {
                let Some(request) = self.waiting.remove(&(from.other(), id.clone())) else {
                    return;
                };
                if self.responses.len() >= MAX_PAIRS
                    && let Some((_, response)) = self.responses.pop_first()
                {
                    self.requests.remove(&response.at);
                }
                self.responses.insert(request.at, place);
                self.requests.insert(place.at, request);
            }
            _ => {}
        }
    }
}

/// Rows of a list, as a page gets them.
#[derive(Debug, Serialize)]
pub(super) struct RowBatch {
    from: u64,
    rows: Vec<TraceRow>,
}

/// Reads rows of a list.
///
/// # Errors
/// The file could not be read. The error is a text for the user.
pub(super) fn read_rows(
    trace: &Path,
    list: &SharedList,
    from: u64,
    count: usize,
) -> Result<RowBatch, String> {
    let (places, from) = {
        let list = lock_list(list);
        (list.places(from, count), from.max(list.dropped))
    };
    let mut rows = Vec::with_capacity(places.len());
    for (place, request) in places {
        let entry = read_entry(trace, place, request)?;
        rows.push(TraceRow::new(&entry, place.at));
    }
    Ok(RowBatch { from, rows })
}

/// Reads a message. A response gets the method and the session of its request, and the time since then.
fn read_entry(
    trace: &Path,
    place: MessagePlace,
    request: Option<MessagePlace>,
) -> Result<TraceEntry, String> {
    let mut entries = EntryBuilder::new();
    let mut read = |place: MessagePlace| {
        let mut record = read_record_at(trace, place.at).map_err(|e| e.to_string())?;
        record.line = place.line;
        let entry = entries.build_entry(record);
        entry.ok_or_else(|| format!("line {}: not a message", place.line))
    };
    if let Some(request) = request {
        read(request)?;
    }
    read(place)
}

/// A message in full, next to the response or the request that belongs to it.
#[derive(Debug, Serialize)]
pub(super) struct OpenedMessage {
    message: FullMessage,
    /// For a request its response, for a response its request.
    other: Option<PairedMessage>,
}

/// The other message of a request and its response.
#[derive(Debug, Serialize)]
struct PairedMessage {
    line: u64,
    message: FullMessage,
    /// The time between the two.
    took: String,
}

/// Reads a message in full, with the one that belongs to it.
///
/// # Errors
/// There is no message at this position, or the file could not be read. The error is a text for the user.
pub(super) fn read_opened(
    trace: &Path,
    list: &SharedList,
    at: u64,
) -> Result<OpenedMessage, String> {
    let message = FullMessage::read(trace, at)?;
    let (request, response) = {
        let pairs = &lock_list(list).pairs;
        (
            pairs.requests.get(&at).copied(),
            pairs.responses.get(&at).copied(),
        )
    };
    let other = match request.or(response) {
        Some(place) => {
            let other = FullMessage::read(trace, place.at)?;
            let took = other.time_us.abs_diff(message.time_us);
            Some(PairedMessage {
                line: place.line,
                message: other,
                took: format_duration(took),
            })
        }
        None => None,
    };
    Ok(OpenedMessage { message, other })
}

#[cfg(test)]
mod tests {
    use acp_trace::TraceReader;

    use super::*;

    const RECORDS: &str = r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["a"],"by":"acp","secrets":"redacted"}
{"t":1,"from":"client","len":1,"msg":{"jsonrpc":"2.0","id":1,"method":"one"}}
{"t":2,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","id":1,"method":"two"}}
{"t":3,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}
{"t":4,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","id":9,"result":{}}}
"#;

    #[test]
    fn response_is_paired_with_the_request_of_the_other_side() {
        let mut list = MessageList::default();
        let mut entries = EntryBuilder::new();
        for record in TraceReader::new(RECORDS.as_bytes()).unwrap() {
            let entry = entries.build_entry(record.unwrap()).unwrap();
            // The line number stands for the position. A filter hides the request.
            list.push(&entry, entry.line, entry.line != 2);
        }
        assert_eq!(list.extent(), (0, 3));
        assert_eq!(list.find_line(2), (0, false));
        assert_eq!(list.find_line(4), (1, true));
        let lines: Vec<_> = list.places(0, 10);
        let lines: Vec<_> = lines
            .iter()
            .map(|(place, request)| (place.line, request.map(|request| request.line)))
            .collect();
        assert_eq!(lines, [(3, None), (4, Some(2)), (5, None)]);
        assert_eq!(list.pairs.responses[&2].line, 4);
        assert_eq!(list.places(1, 1).len(), 1);
        assert_eq!(list.places(7, 10).len(), 0);
    }
}
