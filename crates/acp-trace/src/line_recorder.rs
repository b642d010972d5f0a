//! Records lines one at a time, for programs that are one side of the connection and write the trace themselves.

use std::time::Instant;

use acp_rules::Side;

use super::format::{FORMAT_VERSION, MAX_MESSAGE_BYTES, Secrets, TraceEvent, TraceHeader};
use super::inspect::LineInspector;
use super::record_writer::{LineSource, RecordWriter};
use super::redact::Redactor;

/// The capacity of the buffer for a record, in bytes. It grows for longer messages.
const BUFFER_CAPACITY: usize = 4096;

/// Turns the messages of a connection into the lines of a trace, in the order in which it is given them. Secrets are
/// redacted.
pub struct LineRecorder {
    started: Instant,
    from_client: LineInspector,
    from_agent: LineInspector,
    writer: RecordWriter,
}

impl std::fmt::Debug for LineRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineRecorder").finish_non_exhaustive()
    }
}

impl LineRecorder {
    /// Starts a trace. Returns the recorder and the first line of the trace, with its line end. `command` is the agent's
    /// command line, and `recorder` is the name and version of the program.
    ///
    /// # Errors
    /// The first line cannot be written as JSON.
    pub fn start(command: &[String], recorder: &str) -> serde_json::Result<(Self, Vec<u8>)> {
        let redactor = Redactor::new();
        let header = TraceHeader {
            version: FORMAT_VERSION,
            started: jiff::Timestamp::now().to_string(),
            command: redactor.redact_command(command),
            by: recorder.to_owned(),
            secrets: Secrets::Redacted,
        };
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        let recorder = Self {
            started: Instant::now(),
            from_client: LineInspector::default(),
            from_agent: LineInspector::default(),
            writer: RecordWriter::new(Some(redactor), BUFFER_CAPACITY),
        };
        Ok((recorder, line))
    }

    /// Returns the record of a line that one side has sent, with a line end. `line` has none.
    pub fn record(&mut self, from: Side, line: &[u8]) -> Vec<u8> {
        let source = LineSource {
            is_by_hand: false,
            time_us: self.time_us(),
            side: from,
            is_unterminated: false,
        };
        if line.len() > MAX_MESSAGE_BYTES {
            self.writer.add_oversized(source, line, line.len());
            return std::mem::take(&mut self.writer.out);
        }
        let inspector = match from {
            Side::Client => &mut self.from_client,
            Side::Agent => &mut self.from_agent,
        };
        let (results, _) = inspector.inspect(self.writer.redactor(), line);
        let look = results.first().copied().unwrap_or_default();
        self.writer.add_line(source, line, look);
        std::mem::take(&mut self.writer.out)
    }

    /// Returns the last line of the trace, with its line end.
    pub fn end(&mut self) -> Vec<u8> {
        let time = self.time_us();
        self.writer.add_event(time, &TraceEvent::End);
        std::mem::take(&mut self.writer.out)
    }

    fn time_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::TraceReader;

    #[test]
    fn recorded_lines_are_a_trace_without_secrets() {
        let command = [
            "agent".to_owned(),
            "--api-key=sk-ant-0123456789abcdef".to_owned(),
        ];
        let (mut recorder, mut trace) = LineRecorder::start(&command, "test 1").unwrap();
        let secret =
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"apiKey":"hunter2hunter2"}}"#;
        trace.extend(recorder.record(Side::Client, secret.as_bytes()));
        trace.extend(recorder.record(Side::Agent, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        trace.extend(recorder.record(Side::Agent, b"not \xff JSON"));
        trace.extend(recorder.end());
        let text = String::from_utf8(trace.clone()).unwrap();
        assert!(
            !text.contains("hunter2") && !text.contains("0123456789"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 5, "{text}");
        let senders: Vec<bool> = text
            .lines()
            .map(|line| line.contains(r#""from":"client""#))
            .collect();
        assert_eq!(senders, [false, true, false, false, false]);
        let reader = TraceReader::new(&trace[..]).unwrap();
        assert_eq!(reader.header().secrets, Secrets::Redacted);
    }
}
