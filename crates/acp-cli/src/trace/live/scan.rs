//! Reading a trace from its start, through a filter.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acp_html::text;
use acp_trace::{
    EntryBuilder, RecordBody, TraceEntry, TraceEvent, TraceHeader, TraceReadError, TraceReader,
};
use serde::Serialize;

use super::filter::RowFilter;
use super::list::{SharedList, lock_list};

/// How long to read at a time.
const BATCH_TIME: Duration = Duration::from_millis(50);

/// The maximum number of sessions, and of methods, to offer for filtering.
const MAX_NAMES: usize = 300;

/// A scan of a trace. It adds the messages that the filter selects to the list of the page.
pub(super) struct TraceScan {
    path: PathBuf,
    reader: TraceReader<BufReader<File>>,
    entries: EntryBuilder,
    filter: RowFilter,
    list: SharedList,
    counts: ScanCounts,
    sessions: SeenNames,
    methods: SeenNames,
    is_ended: bool,
}

/// How many messages a scan has read.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct ScanCounts {
    /// All of them.
    total: u64,
    /// Those that the filter selects.
    matched: u64,
    /// Those of them that are no longer in the list, because there are too many.
    dropped: u64,
}

/// The names that were seen so far.
#[derive(Debug, Default)]
struct SeenNames {
    all: BTreeSet<String>,
    new: Vec<String>,
}

/// What a scan has counted, and found since the last time.
#[derive(Debug, Serialize)]
pub(super) struct ScanResult {
    #[serde(flatten)]
    counts: ScanCounts,
    /// Sessions and methods that were not seen before.
    sessions: Vec<String>,
    methods: Vec<String>,
    /// Whether the recording has ended.
    is_ended: bool,
}

impl TraceScan {
    pub(super) fn open(
        path: &Path,
        filter: RowFilter,
        list: SharedList,
    ) -> Result<Self, TraceReadError> {
        Ok(Self {
            path: path.to_owned(),
            reader: TraceReader::open(path)?,
            entries: EntryBuilder::new(),
            filter,
            list,
            counts: ScanCounts::default(),
            sessions: SeenNames::default(),
            methods: SeenNames::default(),
            is_ended: false,
        })
    }

    pub(super) fn header(&self) -> &TraceHeader {
        self.reader.header()
    }

    /// Returns how many bytes were read, and how many there are.
    pub(super) fn progress(&self) -> (u64, u64) {
        let size = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        (self.reader.bytes_read(), size)
    }

    /// Reads for a short time. Returns `true` at the end, after which there may be more later.
    ///
    /// # Errors
    /// The file could not be read, or was overwritten. The error is a text for the user.
    pub(super) fn read_batch(&mut self) -> Result<bool, String> {
        let start = Instant::now();
        while start.elapsed() < BATCH_TIME {
            match self.reader.next() {
                Some(Ok(record)) => {
                    self.is_ended |= matches!(record.body, RecordBody::Event(TraceEvent::End));
                    if let Some(entry) = self.entries.build_entry(record) {
                        self.push(&entry);
                    }
                }
                // Lines that are not records are not messages either.
                Some(Err(e)) if e.is_line_error() => {}
                Some(Err(e)) => return Err(e.to_string()),
                None => {
                    let (read, size) = self.progress();
                    return match size < read {
                        true => Err("the file was overwritten: reload the page".to_owned()),
                        false => Ok(true),
                    };
                }
            }
        }
        Ok(false)
    }

    fn push(&mut self, entry: &TraceEntry) {
        self.counts.total += 1;
        if let Some(session) = &entry.session {
            self.sessions.see(session);
        }
        self.methods.see(&entry.method);
        if let Some(update) = &entry.update {
            self.methods.see(update);
        }
        let is_selected = self.filter.matches(entry);
        let mut list = lock_list(&self.list);
        list.push(entry, self.reader.position(), is_selected);
        self.counts.matched += u64::from(is_selected);
        self.counts.dropped = list.extent().0;
    }

    /// Returns `true` if there is anything new.
    pub(super) fn has_news(&self, told: ScanCounts) -> bool {
        self.counts.total != told.total
    }

    pub(super) fn counts(&self) -> ScanCounts {
        self.counts
    }

    /// Takes what was found since the last time.
    pub(super) fn take(&mut self) -> ScanResult {
        ScanResult {
            counts: self.counts,
            sessions: std::mem::take(&mut self.sessions.new),
            methods: std::mem::take(&mut self.methods.new),
            is_ended: self.is_ended,
        }
    }
}

impl SeenNames {
    fn see(&mut self, name: &str) {
        if name.is_empty() || self.all.len() >= MAX_NAMES || self.all.contains(name) {
            return;
        }
        self.all.insert(name.to_owned());
        // A name that would be shown differently cannot be chosen.
        if text::sanitize_line(name) == name && name.len() <= 200 {
            self.new.push(name.to_owned());
        }
    }
}
