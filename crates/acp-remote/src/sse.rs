//! Writes and reads server-sent events (HTML Living Standard, 9.2).

use crate::CloseStatus;

/// The start of an event. It is followed by the data, without line feeds, and by the output of [`finish_event`].
pub(crate) const DATA_PREFIX: &[u8] = b"data: ";

/// Writes the end of an event, including its id.
pub(crate) fn finish_event(id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\nid: ");
    out.extend_from_slice(id.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// A comment that keeps a stream alive.
pub(crate) const HEARTBEAT_COMMENT: &[u8] = b": heartbeat\n\n";

/// The start of the comment at the end of a stream.
const CLOSE_PREFIX: &str = "close ";

/// Returns the comment that ends a stream and gives the reason for closing the connection.
pub(crate) fn encode_close(status: &CloseStatus) -> Vec<u8> {
    let reason = status.reason.replace(['\r', '\n'], " ");
    format!(": {CLOSE_PREFIX}{} {reason}\n\n", status.code).into_bytes()
}

/// An event stream reader that accepts bytes in pieces of any size.
#[derive(Debug)]
pub(crate) struct EventReader {
    /// The current line, which is still incomplete.
    line: Vec<u8>,
    /// The data of the current event so far.
    data: Vec<u8>,
    has_data: bool,
    id: Option<u64>,
    /// Whether the last line ended with a carriage return. A line feed after it belongs to the same line ending.
    after_return: bool,
    is_first_line: bool,
    max_message: usize,
}

/// An event or a comment that was read from a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamEvent {
    /// A message without line feeds, and the event id if it is a number.
    Message { data: Vec<u8>, id: Option<u64> },
    /// The close code and reason. Servers built with this crate send them in a comment at the end of a stream.
    Close(u16, String),
}

/// The error for a message that exceeds the maximum length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

impl EventReader {
    /// Creates a reader for messages of up to `max_message` bytes.
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            after_return: false,
            is_first_line: true,
            max_message,
        }
    }

    /// Reads the next event from `input`, and removes the bytes read. Returns `None` if more input is needed.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Result<Option<StreamEvent>, EventTooLong> {
        loop {
            if input.is_empty() {
                return Ok(None);
            }
            if std::mem::take(&mut self.after_return) && input.first() == Some(&b'\n') {
                *input = input.get(1..).unwrap_or_default();
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.line.extend_from_slice(input);
                *input = &[];
                let length = self.line.len() + self.data.len();
                return if length > self.max_message + 16 {
                    Err(EventTooLong)
                } else {
                    Ok(None)
                };
            };
            let (line, rest) = input.split_at(end);
            self.after_return = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let event = if self.line.is_empty() {
                self.end_line(line)?
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.end_line(&whole)?
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    fn end_line(&mut self, mut line: &[u8]) -> Result<Option<StreamEvent>, EventTooLong> {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let id = self.id.take();
            let data = std::mem::take(&mut self.data);
            let is_message = std::mem::take(&mut self.has_data);
            return Ok(is_message.then_some(StreamEvent::Message { data, id }));
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = line.get(colon + 1..).unwrap_or_default();
                let field = line.get(..colon).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() > self.max_message {
                    return Err(EventTooLong);
                }
                if self.has_data {
                    // Between the tokens of a message, a line feed has the same meaning as a space.
                    self.data.push(b' ');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"id" => {
                self.id = std::str::from_utf8(value)
                    .ok()
                    .and_then(|id| id.parse().ok())
            }
            b"" => {
                let text = String::from_utf8_lossy(value);
                let status = text.strip_prefix(CLOSE_PREFIX).unwrap_or_default();
                let (code, reason) = status.split_once(' ').unwrap_or((status, ""));
                if let Ok(code) = code.parse() {
                    return Ok(Some(StreamEvent::Close(code, reason.to_owned())));
                }
            }
            // Ignore the types of events and the times to wait.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_events(input: &[u8], size: usize) -> Vec<StreamEvent> {
        let mut reader = EventReader::new(100);
        let mut events = Vec::new();
        for mut piece in input.chunks(size) {
            while let Some(event) = reader.next(&mut piece).unwrap() {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn events_split_across_reads_are_parsed() {
        let input = "\u{feff}data: {\"a\":1}\nid: 7\n\n: heartbeat\n\nevent: message\r\ndata:{\r\ndata: }\r\rid: x\n\
                     data: {\"b\":\"data: \"}\n\nretry: 3\n\nnothing\n\ndata\n\n: close 1011 it broke\n\ndata: {\"lost";
        let message = |data: &str, id| StreamEvent::Message {
            data: data.into(),
            id,
        };
        let expected = [
            message("{\"a\":1}", Some(7)),
            message("{ }", None),
            message("{\"b\":\"data: \"}", None),
            message("", None),
            StreamEvent::Close(1011, "it broke".to_owned()),
        ];
        for size in 1..input.len() {
            assert_eq!(read_events(input.as_bytes(), size), expected, "by {size}");
        }
    }

    #[test]
    fn events_round_trip() {
        let mut out = DATA_PREFIX.to_vec();
        out.extend_from_slice(b"{}");
        finish_event(u64::MAX, &mut out);
        out.extend_from_slice(HEARTBEAT_COMMENT);
        let expected = StreamEvent::Message {
            data: b"{}".to_vec(),
            id: Some(u64::MAX),
        };
        assert_eq!(read_events(&out, 3), [expected]);
    }

    #[test]
    fn oversized_message_is_rejected_while_it_arrives() {
        let mut reader = EventReader::new(100);
        let mut refused = Ok(None);
        for _ in 0..100 {
            refused = reader.next(&mut &b"data: xxxxxxxxxx"[..]);
            if refused.is_err() {
                break;
            }
        }
        assert_eq!(refused, Err(EventTooLong));
        assert!(reader.line.len() < 200);
        let mut reader = EventReader::new(100);
        let lines = b"data: xxxxxxxxxx\n".repeat(20);
        assert_eq!(reader.next(&mut &*lines), Err(EventTooLong));
    }
}
