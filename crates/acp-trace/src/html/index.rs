//! What the page knows of each record before it looks at its message. In columns: that is half the size, and a browser
//! reads it several times as fast.

use std::collections::HashMap;

use acp_wire::jsonrpc::RequestId;
use serde::Serialize;

use super::plain;
use crate::show::{Entry, Kind};
use acp_rules::Side;

/// How many requests are remembered that wait for their answers.
const PENDING: usize = 64 * 1024;

/// How much of a summary is in the index, in characters.
const SUMMARY: usize = 160;

/// The columns, a value for each record.
#[derive(Debug, Default, Serialize)]
pub(super) struct Index {
    /// Microseconds since the start.
    t: Vec<u64>,
    /// The line of the trace.
    line: Vec<u64>,
    /// `q` a request, `n` a notification, `a` an answer, `e` an error, `x` no message, `s` stderr, `v` an event.
    kind: String,
    /// `c` the client, `a` the agent, `-` neither.
    from: String,
    /// `1`: something is wrong.
    bad: String,
    /// Which of the names.
    name: Vec<usize>,
    /// Which of the sessions; -1 for none.
    session: Vec<i64>,
    /// The request's id, as JSON.
    id: Vec<Option<String>>,
    /// The record that is the answer, or the request; -1 for none.
    mate: Vec<i64>,
    len: Vec<u64>,
    redacted: Vec<u64>,
    summary: Vec<String>,
    #[serde(skip)]
    waiting: HashMap<(Side, RequestId), usize>,
    names: Names<(String, String)>,
    sessions: Names<String>,
}

/// Words that come again and again.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Names<T> {
    all: Vec<T>,
    #[serde(skip)]
    known: HashMap<T, usize>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Names<T> {
    fn number(&mut self, name: T) -> usize {
        if let Some(&number) = self.known.get(&name) {
            return number;
        }
        let number = self.all.len();
        self.all.push(name.clone());
        self.known.insert(name, number);
        number
    }
}

/// The columns, and where the blocks begin.
#[derive(Serialize)]
pub(super) struct Whole<'a> {
    #[serde(flatten)]
    index: &'a Index,
    blocks: &'a [usize],
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.t.len()
    }

    pub(super) fn whole<'a>(&'a self, blocks: &'a [usize]) -> Whole<'a> {
        Whole {
            index: self,
            blocks,
        }
    }

    pub(super) fn push(&mut self, entry: &Entry, length: u64, redacted: u64) {
        let row = self.len();
        let mate = self.mate_of(entry, row);
        self.t.push(entry.at);
        self.line.push(entry.line);
        self.kind.push(match entry.kind {
            Kind::Request => 'q',
            Kind::Notification => 'n',
            Kind::Answer => 'a',
            Kind::Error => 'e',
            Kind::Noise => 'x',
            Kind::Stderr => 's',
            Kind::Event => 'v',
        });
        self.from.push(match entry.from {
            Some(Side::Client) => 'c',
            Some(Side::Agent) => 'a',
            None => '-',
        });
        self.bad.push(if entry.is_error { '1' } else { '0' });
        let name = match entry.kind {
            Kind::Event => "process",
            _ => entry.name(),
        };
        let name = (plain::line(name), plain::line(&entry.method));
        self.name.push(self.names.number(name));
        let session = entry.session.as_ref();
        let session = session.map(|session| number(self.sessions.number(session.clone())));
        self.session.push(session.unwrap_or(-1));
        self.id.push(entry.id.as_ref().map(RequestId::to_string));
        self.mate.push(mate.map_or(-1, number));
        self.len.push(length);
        self.redacted.push(redacted);
        self.summary
            .push(plain::shortened(&plain::line(&entry.summary), SUMMARY));
    }

    /// The request that this answers; the request is told so, too.
    fn mate_of(&mut self, entry: &Entry, row: usize) -> Option<usize> {
        let (from, id) = (entry.from?, entry.id.clone()?);
        match entry.kind {
            Kind::Request => {
                if self.waiting.len() < PENDING {
                    self.waiting.insert((from, id), row);
                }
                None
            }
            Kind::Answer | Kind::Error => {
                let asked = self.waiting.remove(&(from.other(), id))?;
                if let Some(mate) = self.mate.get_mut(asked) {
                    *mate = number(row);
                }
                Some(asked)
            }
            _ => None,
        }
    }
}

fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(-1)
}
