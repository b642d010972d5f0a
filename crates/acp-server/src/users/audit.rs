//! A log of what clients did, for whoever has to know later: one JSON object per line.
//!
//! What cannot be recorded is not done: a prompt gets an error, and an answer does not reach the agent.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::RawValue;

/// The maximum length of the params or the result in a record, in bytes. Of longer ones, only the length is recorded.
const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// A file to which a server appends what its clients do.
#[derive(Debug)]
pub struct AuditLog(Mutex<File>);

/// Something that a client did.
#[derive(Debug)]
pub(crate) enum AuditEvent<'a> {
    /// It has sent a request, such as a prompt.
    Sent {
        method: &'a str,
        params: Option<&'a RawValue>,
    },
    /// It has answered a question of the agent. An answer without a result is an error.
    Answered {
        method: &'a str,
        question: &'a RawValue,
        answer: Option<&'a RawValue>,
    },
    /// It has sent something that its user may not do.
    Denied { method: &'a str },
}

/// Who did something, and where.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct AuditedClient<'a> {
    pub(crate) agent: &'a str,
    pub(crate) session: Option<&'a str>,
    /// The name of the user. `None` stands for whoever has the server's own token.
    pub(crate) user: Option<&'a str>,
    /// The name that the client gives itself.
    pub(crate) client: Option<&'a str>,
}

#[derive(Serialize)]
struct AuditRecord<'a> {
    time: String,
    event: &'static str,
    #[serde(flatten)]
    who: AuditedClient<'a>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<AuditContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<AuditContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AuditContent<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AuditContent<'a> {
    Whole(&'a RawValue),
    #[serde(rename_all = "camelCase")]
    TooLong {
        omitted_bytes: usize,
    },
}

impl<'a> AuditContent<'a> {
    fn new(content: &'a RawValue) -> Self {
        match content.get().len() {
            ..=MAX_CONTENT_BYTES => Self::Whole(content),
            omitted_bytes => Self::TooLong { omitted_bytes },
        }
    }
}

impl AuditLog {
    /// Opens a file, to which records are appended. If it does not exist, it is created so that only its owner can read
    /// it.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(file: &Path) -> io::Result<Arc<Self>> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        Ok(Arc::new(Self(Mutex::new(options.open(file)?))))
    }

    /// Appends a record.
    ///
    /// # Errors
    /// It cannot be written. The caller must not do what it was about to do.
    pub(crate) fn record(&self, who: AuditedClient<'_>, event: &AuditEvent<'_>) -> io::Result<()> {
        let mut record = AuditRecord {
            time: jiff::Timestamp::now().to_string(),
            event: "sent",
            who,
            method: "",
            params: None,
            question: None,
            answer: None,
        };
        match *event {
            AuditEvent::Sent { method, params } => {
                record.method = method;
                record.params = params.map(AuditContent::new);
            }
            AuditEvent::Answered {
                method,
                question,
                answer,
            } => {
                record.event = "answered";
                record.method = method;
                record.question = Some(AuditContent::new(question));
                record.answer = answer.map(AuditContent::new);
            }
            AuditEvent::Denied { method } => {
                record.event = "denied";
                record.method = method;
            }
        }
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).inspect_err(
            |error| tracing::error!(%error, "cannot write the audit log; what it would record is not done"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_lines_with_who_and_what() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("audit.jsonl");
        let who = AuditedClient {
            agent: "agent",
            session: Some("s"),
            user: Some("anna"),
            client: None,
        };
        let question: Box<RawValue> =
            serde_json::from_str(r#"{"toolCall":{"title":"rm -rf /"}}"#).unwrap();
        let long = format!("\"{}\"", "x".repeat(MAX_CONTENT_BYTES));
        let long: Box<RawValue> = serde_json::from_str(&long).unwrap();
        for _ in 0..2 {
            let log = AuditLog::open(&path).unwrap();
            let event = AuditEvent::Answered {
                method: "session/request_permission",
                question: &question,
                answer: Some(&long),
            };
            log.record(who, &event).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let records: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[1]["user"], "anna");
        assert_eq!(records[1]["question"]["toolCall"]["title"], "rm -rf /");
        assert_eq!(records[1]["answer"]["omittedBytes"], MAX_CONTENT_BYTES + 2);
    }
}
