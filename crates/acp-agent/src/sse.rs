//! A parser for server-sent events, as specified by the HTML standard. It parses bytes as they arrive and limits the
//! size of an event. Both language models and MCP servers send such events.

/// A server-sent event, with its type and data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The type of the event. Empty for the default type, `message`.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// The error for an event larger than this limit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event larger than {0} bytes")]
pub(crate) struct EventTooLarge(pub(crate) usize);

/// Parses a stream of events from chunks that may be split anywhere. Buffers at most one event and one chunk.
pub(crate) struct SseReader {
    /// The maximum size of a single event, in bytes.
    limit: usize,
    /// The bytes received. Those before `read_position` have already been processed.
    bytes: Vec<u8>,
    /// The number of bytes that have been processed.
    read_position: usize,
    /// The number of bytes already scanned for a line end. No line ends between `read_position` and this position.
    scanned_position: usize,
    /// The event being read.
    event: SseEvent,
    has_data: bool,
    /// Whether the last line ended with CR. If so, an LF that follows belongs to the same line end.
    after_cr: bool,
    /// Whether no line has been read yet. Only the first line may start with a byte order mark.
    is_first_line: bool,
}

impl SseReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
            read_position: 0,
            scanned_position: 0,
            event: SseEvent::default(),
            has_data: false,
            after_cr: false,
            is_first_line: true,
        }
    }

    /// Adds a chunk of the stream.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.read_position > 0 {
            self.bytes.drain(..self.read_position);
            self.scanned_position = self.scanned_position.saturating_sub(self.read_position);
            self.read_position = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next complete event, if any. An event cut off by the end of the stream is never returned.
    ///
    /// # Errors
    /// The event is too large. The rest of the stream cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(end) = self.find_line_end() {
            let ended = self.process_line(self.read_position, end);
            self.after_cr = self.bytes.get(end) == Some(&b'\r');
            self.read_position = end + 1;
            self.scanned_position = self.read_position;
            self.check_size(0)?;
            if ended && std::mem::take(&mut self.has_data) {
                return Ok(Some(std::mem::take(&mut self.event)));
            }
            if ended {
                self.event.name.clear();
            }
        }
        self.check_size(self.bytes.len() - self.read_position)?;
        Ok(None)
    }

    /// Returns the index of the next line end.
    fn find_line_end(&mut self) -> Option<usize> {
        if self.after_cr && self.read_position < self.bytes.len() {
            self.after_cr = false;
            if self.bytes.get(self.read_position) == Some(&b'\n') {
                self.read_position += 1;
                self.scanned_position = self.scanned_position.max(self.read_position);
            }
        }
        let unseen = self.bytes.get(self.scanned_position..).unwrap_or_default();
        let end = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        if end.is_none() {
            self.scanned_position = self.bytes.len();
        }
        end.map(|end| self.scanned_position + end)
    }

    /// Processes a line. Returns `true` if it ends an event.
    fn process_line(&mut self, begin: usize, end: usize) -> bool {
        let mut line = self.bytes.get(begin..end).unwrap_or_default();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return true;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.event.name = value.into_owned(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
            }
            // These are comments, which keep the connection open, and fields for reconnecting.
            _ => {}
        }
        false
    }

    /// Checks the size of the current event, including `unfinished` bytes of an incomplete line.
    fn check_size(&mut self, unfinished: usize) -> Result<(), EventTooLarge> {
        let size = self.event.name.len() + self.event.data.len() + unfinished;
        if size <= self.limit {
            return Ok(());
        }
        *self = Self::new(self.limit);
        Err(EventTooLarge(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = SseReader::new(1000);
        let mut all = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(event) = reader.next().unwrap() {
                all.push((event.name, event.data));
            }
        }
        all
    }

    fn owned_events<const N: usize>(events: [(&str, &str); N]) -> Vec<(String, String)> {
        let events = events.map(|(name, data)| (name.to_owned(), data.to_owned()));
        events.into()
    }

    #[test]
    fn events_split_across_chunks_are_parsed() {
        let stream = "\u{feff}: hello\r\nevent: endpoint\r\ndata: /post?x=é\r\n\r\nid: 7\ndata:{\"a\":\ndata: 1}\n\n\
            retry: 5\n\nevent: none\n\nevent\ndata\r\rdata:  two\r\n\r\ndata: lost";
        let expected = owned_events([
            ("endpoint", "/post?x=é"),
            ("", "{\"a\":\n1}"),
            ("", ""),
            ("", " two"),
        ]);
        let stream = stream.as_bytes();
        assert_eq!(read_events(&[stream]), expected);
        for at in 0..stream.len() {
            let (one, other) = stream.split_at(at);
            assert_eq!(
                read_events(&[one, other]),
                expected,
                "stream split at byte {at}"
            );
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read_events(&bytes), expected);
    }

    #[test]
    fn every_line_ending_terminates_an_event() {
        for (text, count) in [
            ("data: 1\n\n", 1),
            ("data: 1\r\n\r\n", 1),
            // The event is returned without waiting for an LF after the last CR.
            ("data: 1\r\r", 1),
            ("data: 1\r\n\r", 1),
            ("data: 1\r\rdata: 2\n\r\n", 2),
            ("data: 1\n\ndata: 2\n\ndata", 2),
            ("data: 1\ndata: 2\n", 0),
            ("data: 1", 0),
            ("\n\n\r\r", 0),
            ("", 0),
        ] {
            assert_eq!(read_events(&[text.as_bytes()]).len(), count, "{text:?}");
        }
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(
            read_events(&[b"data: a\xff\n\n"]),
            owned_events([("", "a\u{fffd}")])
        );
    }

    #[test]
    fn oversized_event_is_rejected_and_discarded() {
        let piece = "a".repeat(100);
        for line_end in ["", "\ndata: ", "\nevent: x\ndata: "] {
            let mut reader = SseReader::new(1000);
            let mut pieces = 0;
            let error = loop {
                reader.push(format!("{line_end}{piece}").as_bytes());
                pieces += 1;
                match reader.next() {
                    Ok(event) => assert_eq!(event, None),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, EventTooLarge(1000));
            assert!((9..=11).contains(&pieces), "{line_end:?}: {pieces}");
            assert!(reader.bytes.is_empty() && reader.event.data.is_empty());
        }
        // Comments are not buffered, so their number is not limited.
        let mut reader = SseReader::new(1000);
        for _ in 0..100 {
            reader.push(format!(": {piece}\n").as_bytes());
            assert_eq!(reader.next(), Ok(None));
        }
    }
}
