//! Reads server-sent events, as specified in the HTML Living Standard (9.2.6).

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// The lines of `data`, joined with line feeds.
    pub(crate) data: String,
}

/// A parser for a stream of events. The stream arrives in chunks that may be split anywhere.
#[derive(Debug, Default)]
pub(crate) struct StreamEventReader {
    line: Vec<u8>,
    data: Option<String>,
    after_return: bool,
    is_after_first_line: bool,
}

impl StreamEventReader {
    /// Returns the events completed by these bytes.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<ServerEvent> {
        let mut events = Vec::new();
        for byte in bytes {
            let is_rest_of_line_end = std::mem::take(&mut self.after_return) && *byte == b'\n';
            match byte {
                b'\n' if is_rest_of_line_end => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&line));
                }
                _ => self.line.push(*byte),
            }
        }
        events
    }

    /// Handles a line. Returns the event, if the line ends one.
    fn end_line(&mut self, line: &[u8]) -> Option<ServerEvent> {
        let text = String::from_utf8_lossy(line);
        let mut text = &*text;
        if !std::mem::replace(&mut self.is_after_first_line, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            return self.data.take().map(|data| ServerEvent { data });
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_in_every_valid_notation() {
        let text = "\u{feff}: hello\r\ndata: a\r\nid: 1\r\n\r\ndata:b\rdata: c\r\rretry: 1\n\ndata\n\ndata: d\n";
        for size in 1..text.len() {
            let mut reader = StreamEventReader::default();
            let pieces = text.as_bytes().chunks(size);
            let events: Vec<String> = pieces
                .flat_map(|piece| reader.read(piece))
                .map(|event| event.data)
                .collect();
            assert_eq!(events, ["a", "b\nc", ""]);
        }
    }
}
