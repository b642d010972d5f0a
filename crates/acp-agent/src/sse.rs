//! Server-sent events, as the HTML standard has them: bytes go in as they come, events come out, and none may be
//! larger than a limit. What is read for language models and for MCP servers is read here.

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Empty for a `message`.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// An event has more bytes than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("event larger than {0} bytes")]
pub(crate) struct EventTooLarge(pub(crate) usize);

/// Reads events out of pieces of a stream, wherever it is cut. It keeps no more than one event and one piece.
pub(crate) struct SseReader {
    /// How many bytes an event may have.
    limit: usize,
    /// What has come and was not read yet.
    bytes: Vec<u8>,
    /// How much of `bytes` was read.
    read_position: usize,
    /// How much of `bytes` was looked at and has no line end behind `read_position`.
    scanned_position: usize,
    /// The event so far.
    event: SseEvent,
    has_data: bool,
    /// The last line ended with CR, so that an LF which follows belongs to that end.
    after_cr: bool,
    /// No line was read yet: the first may have a byte order mark before it.
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

    /// Takes a piece of the stream.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.read_position > 0 {
            self.bytes.drain(..self.read_position);
            self.scanned_position = self.scanned_position.saturating_sub(self.read_position);
            self.read_position = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// The next event that is whole, if there is one. One that the end of the stream cuts off never is.
    ///
    /// # Errors
    /// The event is too large. There is nothing more to be read then.
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

    /// Where the next line ends.
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

    /// Reads a line. Gives whether an event ends with it.
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
            // Comments, which keep the connection open, and what is for reconnecting.
            _ => {}
        }
        false
    }

    /// That the event, with so many bytes of a line that has no end yet, is none too large.
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

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
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

    fn named<const N: usize>(events: [(&str, &str); N]) -> Vec<(String, String)> {
        let events = events.map(|(name, data)| (name.to_owned(), data.to_owned()));
        events.into()
    }

    #[test]
    fn events_are_read_wherever_the_stream_is_cut() {
        let stream = "\u{feff}: hello\r\nevent: endpoint\r\ndata: /post?x=é\r\n\r\nid: 7\ndata:{\"a\":\ndata: 1}\n\n\
            retry: 5\n\nevent: none\n\nevent\ndata\r\rdata:  two\r\n\r\ndata: lost";
        let expected = named([
            ("endpoint", "/post?x=é"),
            ("", "{\"a\":\n1}"),
            ("", ""),
            ("", " two"),
        ]);
        let stream = stream.as_bytes();
        assert_eq!(events(&[stream]), expected);
        for at in 0..stream.len() {
            let (one, other) = stream.split_at(at);
            assert_eq!(events(&[one, other]), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events(&bytes), expected);
    }

    #[test]
    fn an_event_ends_at_an_empty_line_however_lines_end() {
        for (text, count) in [
            ("data: 1\n\n", 1),
            ("data: 1\r\n\r\n", 1),
            // It is not waited for what may follow the last CR.
            ("data: 1\r\r", 1),
            ("data: 1\r\n\r", 1),
            ("data: 1\r\rdata: 2\n\r\n", 2),
            ("data: 1\n\ndata: 2\n\ndata", 2),
            ("data: 1\ndata: 2\n", 0),
            ("data: 1", 0),
            ("\n\n\r\r", 0),
            ("", 0),
        ] {
            assert_eq!(events(&[text.as_bytes()]).len(), count, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        assert_eq!(events(&[b"data: a\xff\n\n"]), named([("", "a\u{fffd}")]));
    }

    #[test]
    fn an_event_that_is_too_large_is_refused_and_forgotten() {
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
        // Comments are not kept, so that any number of them may come.
        let mut reader = SseReader::new(1000);
        for _ in 0..100 {
            reader.push(format!(": {piece}\n").as_bytes());
            assert_eq!(reader.next(), Ok(None));
        }
    }
}
