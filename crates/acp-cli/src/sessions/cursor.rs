//! Cursors of `acp sessions watch`: how far a script has read the log of a live session.
//!
//! A server merges the chunks of a message when the turn has ended. A position between two chunks is then gone. So while
//! a message grows, a cursor is the position before the message, and how much of its text has been read.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde_json::Value;

/// A place in the log of a live session.
///
/// As text, it is `[LOG-]POSITION[+TEXT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WatchCursor {
    /// The log that the position is in. `None` if the server stores logs, whose positions stay the same.
    pub(super) log: Option<String>,
    /// Everything before this position has been read.
    pub(super) position: u64,
    /// How much of the text of the message after the position has been read, in bytes.
    pub(super) text: u64,
}

/// The text that is not a cursor, or no longer one of this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidCursor;

impl FromStr for WatchCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (log, place) = match text.split_once('-') {
            Some((log, place)) => (Some(log), place),
            None => (None, text),
        };
        let is_id = |log: &str| !log.is_empty() && log.bytes().all(|b| b.is_ascii_hexdigit());
        if log.is_some_and(|log| !is_id(log)) {
            return Err(InvalidCursor);
        }
        let (position, read) = place.split_once('+').unwrap_or((place, "0"));
        // `parse` alone would accept a sign.
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse().map_err(|_| InvalidCursor),
            false => Err(InvalidCursor),
        };
        Ok(Self {
            log: log.map(str::to_owned),
            position: number(position)?,
            text: number(read)?,
        })
    }
}

impl fmt::Display for WatchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log) = &self.log {
            write!(f, "{log}-")?;
        }
        write!(f, "{}", self.position)?;
        match self.text {
            0 => Ok(()),
            text => write!(f, "+{text}"),
        }
    }
}

/// What identifies the message that a chunk of text belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MessageHead {
    session: Value,
    kind: String,
    message: Option<String>,
}

/// The chunks of one message, one after the other.
#[derive(Debug, Clone)]
struct MessageRun {
    /// The position before the first chunk.
    start: u64,
    /// `None` until the first chunk is read.
    head: Option<MessageHead>,
    /// The length of the text so far.
    text: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams {
    session_id: Value,
    update: ChunkFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkFields {
    session_update: String,
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    content: Value,
}

/// What to do with a message of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SeenBefore {
    No,
    /// The script has read it.
    All,
    /// The script has read this many bytes of its text.
    Text(usize),
}

/// Follows the messages of a session, and says which cursor comes after each of them.
#[derive(Debug)]
pub(super) struct CursorTracker {
    log: Option<String>,
    position: u64,
    run: Option<MessageRun>,
    /// How much of the current message the script has read before.
    skip: u64,
}

impl CursorTracker {
    /// Creates a tracker for a script that has read everything before a cursor, or nothing.
    pub(super) fn new(since: Option<&WatchCursor>) -> Self {
        let position = since.map_or(0, |since| since.position);
        let skip = since.map_or(0, |since| since.text);
        Self {
            log: since.and_then(|since| since.log.clone()),
            position,
            run: (skip > 0).then_some(MessageRun {
                start: position,
                head: None,
                text: 0,
            }),
            skip,
        }
    }

    /// Takes note of a message. Fails if the script has read something else at this place.
    pub(super) fn read(&mut self, method: &str, params: &str) -> Result<SeenBefore, InvalidCursor> {
        // The server removes these from the log, and merges the chunks around them.
        if method.starts_with("_live/") {
            return Ok(SeenBefore::No);
        }
        let Some((head, length)) = text_chunk(method, params) else {
            self.run = None;
            return match self.skip {
                0 => Ok(SeenBefore::No),
                _ => Err(InvalidCursor),
            };
        };
        let length = length as u64;
        match &mut self.run {
            Some(run) if run.head.as_ref().is_none_or(|known| *known == head) => {
                run.head = Some(head);
                run.text += length;
            }
            _ if self.skip > 0 => return Err(InvalidCursor),
            _ => {
                self.run = Some(MessageRun {
                    start: self.position,
                    head: Some(head),
                    text: length,
                });
            }
        }
        let read = self.skip.min(length);
        self.skip -= read;
        Ok(match read {
            0 => SeenBefore::No,
            _ if read == length => SeenBefore::All,
            _ => SeenBefore::Text(usize::try_from(read).map_err(|_| InvalidCursor)?),
        })
    }

    /// Takes note of the position after the last message.
    pub(super) fn set_position(&mut self, log: Option<String>, position: u64) {
        self.log = log;
        self.position = position;
    }

    /// Returns the cursor after the last message.
    pub(super) fn cursor(&self) -> WatchCursor {
        let (position, text) = match &self.run {
            Some(run) => (run.start, run.text),
            None => (self.position, 0),
        };
        WatchCursor {
            log: self.log.clone(),
            position,
            text,
        }
    }
}

/// Returns the message that a chunk of text belongs to, and the length of the text.
fn text_chunk(method: &str, params: &str) -> Option<(MessageHead, usize)> {
    if method != "session/update" {
        return None;
    }
    let params: UpdateParams = serde_json::from_str(params).ok()?;
    let update = params.update;
    let is_chunk = matches!(
        update.session_update.as_str(),
        "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk"
    );
    if !is_chunk || update.content["type"] != "text" {
        return None;
    }
    let length = update.content["text"].as_str()?.len();
    let head = MessageHead {
        session: params.session_id,
        kind: update.session_update,
        message: update.message_id,
    };
    Some((head, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(kind: &str, text: &str) -> String {
        let content = json!({ "type": "text", "text": text });
        json!({ "sessionId": "s", "update": { "sessionUpdate": kind, "content": content } })
            .to_string()
    }

    /// Reads the chunks of a message, each of which is an entry. Returns the cursors after them.
    fn cursors(chunks: &[String]) -> Vec<WatchCursor> {
        let mut tracker = CursorTracker::new(None);
        let read = chunks.iter().zip(1..).map(|(chunk, position)| {
            tracker.read("session/update", chunk).unwrap();
            tracker.set_position(Some("a1".to_owned()), position);
            tracker.cursor()
        });
        read.collect()
    }

    #[test]
    fn cursor_is_the_same_after_it_was_written_and_read() {
        for text in ["7", "7+30", "00ff-7", "00ff-7+30"] {
            assert_eq!(text.parse::<WatchCursor>().unwrap().to_string(), text);
        }
        for wrong in ["", "-1", "x", "x-1", "1+", "1+x", "+1", "1-", "1+-2", "1 "] {
            assert_eq!(wrong.parse::<WatchCursor>(), Err(InvalidCursor), "{wrong}");
        }
    }

    #[test]
    fn text_is_neither_missed_nor_repeated_when_chunks_have_been_merged() {
        let chunks = ["ab", "cd", "éf"].map(|text| chunk("agent_message_chunk", text));
        let read = cursors(&chunks);
        assert_eq!(read[1].to_string(), "a1-0+4");
        let mut again = CursorTracker::new(Some(&read[1]));
        let merged = chunk("agent_message_chunk", "abcdéf");
        let seen = again.read("session/update", &merged);
        assert_eq!(seen, Ok(SeenBefore::Text(4)));
        // The same if they have not been merged.
        let mut again = CursorTracker::new(Some(&read[1]));
        let seen = chunks
            .iter()
            .map(|chunk| again.read("session/update", chunk).unwrap());
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [SeenBefore::All, SeenBefore::All, SeenBefore::No]
        );
        assert_eq!(again.cursor().text, 7);
    }

    #[test]
    fn events_between_chunks_do_not_end_the_message() {
        let mut tracker = CursorTracker::new(None);
        tracker
            .read("session/update", &chunk("agent_message_chunk", "ab"))
            .unwrap();
        tracker.set_position(None, 1);
        tracker.read("_live/queue_changed", "{}").unwrap();
        tracker.set_position(None, 2);
        assert_eq!(tracker.cursor().to_string(), "0+2");
        tracker
            .read("session/update", &chunk("agent_thought_chunk", "c"))
            .unwrap();
        tracker.set_position(None, 3);
        assert_eq!(tracker.cursor().to_string(), "2+1");
        tracker
            .read(
                "session/update",
                r#"{"sessionId":"s","update":{"sessionUpdate":"plan"}}"#,
            )
            .unwrap();
        tracker.set_position(None, 4);
        assert_eq!(tracker.cursor().to_string(), "4");
    }

    #[test]
    fn other_log_is_noticed() {
        let since: WatchCursor = "5+3".parse().unwrap();
        let mut tracker = CursorTracker::new(Some(&since));
        let plan = r#"{"sessionId":"s","update":{"sessionUpdate":"plan"}}"#;
        assert_eq!(tracker.read("session/update", plan), Err(InvalidCursor));
    }
}
