//! Builds the page's index, which contains the data about each record that the script needs before it parses the
//! message.
//!
//! The index is stored in columns, which halves its size and lets a browser read it several times as fast.

use std::collections::HashMap;

use acp_wire::jsonrpc::RequestId;
use serde::Serialize;

use crate::entry::{TraceEntry, TraceEntryKind};
use acp_html::text;
use acp_rules::Side;

/// The maximum number of pending requests to remember for linking them to their responses.
const MAX_PENDING_REQUESTS: usize = 64 * 1024;

/// The maximum length of a summary in the index, in characters.
const MAX_SUMMARY_CHARS: usize = 160;

/// The index of the page, with one value per record in each column.
#[derive(Debug, Default, Serialize)]
pub(super) struct PageIndex {
    /// The time of each record, in microseconds since the start of the trace.
    t: Vec<u64>,
    /// The line number of each record in the trace.
    line: Vec<u64>,
    /// The kind of each record: `q` request, `n` notification, `a` response, `e` error response, `x` noise, `s` stderr,
    /// `v` event.
    kind: String,
    /// The sender of each record: `c` client, `a` agent, `-` neither.
    from: String,
    /// `1` for each record that is or contains an error.
    bad: String,
    /// The position of each record's name in `names`.
    name: Vec<usize>,
    /// The position of each record's session in `sessions`, or -1 if it has none.
    session: Vec<i64>,
    /// The id of each request or response, as JSON.
    id: Vec<Option<String>>,
    /// For a request, the record of its response. For a response, the record of its request. -1 if there is none.
    mate: Vec<i64>,
    len: Vec<u64>,
    redacted: Vec<u64>,
    summary: Vec<String>,
    #[serde(skip)]
    pending: HashMap<(Side, RequestId), usize>,
    names: InternTable<(String, String)>,
    sessions: InternTable<String>,
}

/// A table of strings that occur often. Records refer to a string by its position.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct InternTable<T> {
    all: Vec<T>,
    #[serde(skip)]
    numbers: HashMap<T, usize>,
}

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> InternTable<T> {
    fn intern(&mut self, name: T) -> usize {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = self.all.len();
        self.all.push(name.clone());
        self.numbers.insert(name, number);
        number
    }
}

/// The page's index, with the number of the first line of each block.
#[derive(Serialize)]
pub(super) struct IndexWithBlocks<'a> {
    #[serde(flatten)]
    index: &'a PageIndex,
    blocks: &'a [usize],
}

impl PageIndex {
    pub(super) fn len(&self) -> usize {
        self.t.len()
    }

    pub(super) fn with_blocks<'a>(&'a self, blocks: &'a [usize]) -> IndexWithBlocks<'a> {
        IndexWithBlocks {
            index: self,
            blocks,
        }
    }

    pub(super) fn push(&mut self, entry: &TraceEntry, length: u64, redacted: u64) {
        let row = self.len();
        let mate = self.link_response(entry, row);
        self.t.push(entry.time_us);
        self.line.push(entry.line);
        self.kind.push(match entry.kind {
            TraceEntryKind::Request => 'q',
            TraceEntryKind::Notification => 'n',
            TraceEntryKind::Response => 'a',
            TraceEntryKind::Error => 'e',
            TraceEntryKind::Noise => 'x',
            TraceEntryKind::Stderr => 's',
            TraceEntryKind::Event => 'v',
        });
        self.from.push(match entry.from {
            Some(Side::Client) => 'c',
            Some(Side::Agent) => 'a',
            None => '-',
        });
        self.bad.push(if entry.is_error { '1' } else { '0' });
        let name = match entry.kind {
            TraceEntryKind::Event => "process",
            _ => entry.name(),
        };
        let name = (
            text::sanitize_line(name),
            text::sanitize_line(&entry.method),
        );
        self.name.push(self.names.intern(name));
        let session = entry.session.as_ref();
        let session = session.map(|session| to_i64(self.sessions.intern(session.clone())));
        self.session.push(session.unwrap_or(-1));
        self.id.push(entry.id.as_ref().map(RequestId::to_string));
        self.mate.push(mate.map_or(-1, to_i64));
        self.len.push(length);
        self.redacted.push(redacted);
        let mark = if entry.is_by_hand { "(by hand) " } else { "" };
        self.summary.push(text::truncate_text(
            &format!("{mark}{}", text::sanitize_line(&entry.summary)),
            MAX_SUMMARY_CHARS,
        ));
    }

    /// Links a response and its request in both directions. Returns the record number of the request.
    fn link_response(&mut self, entry: &TraceEntry, row: usize) -> Option<usize> {
        let (from, id) = (entry.from?, entry.id.clone()?);
        match entry.kind {
            TraceEntryKind::Request => {
                if self.pending.len() < MAX_PENDING_REQUESTS {
                    self.pending.insert((from, id), row);
                }
                None
            }
            TraceEntryKind::Response | TraceEntryKind::Error => {
                let asked = self.pending.remove(&(from.other(), id))?;
                if let Some(mate) = self.mate.get_mut(asked) {
                    *mate = to_i64(row);
                }
                Some(asked)
            }
            _ => None,
        }
    }
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(-1)
}
