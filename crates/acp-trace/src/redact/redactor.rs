//! Provides the interface for redacting secrets in messages and in other lines.

use acp_rules::REDACTED;

use super::needles::GatheredLines;
use super::text_redactor::TextRedactor;
use super::{commands, message, names, patterns};

/// A redactor for secrets in messages and other lines of a recording.
#[derive(Debug)]
pub struct Redactor {
    texts: TextRedactor,
    /// Whether the current lines of stderr are inside a private key.
    is_in_key: bool,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl Redactor {
    /// Creates a redactor for all kinds of secrets.
    #[must_use]
    pub fn new() -> Self {
        Self {
            texts: TextRedactor::new(),
            is_in_key: false,
        }
    }

    /// Returns `true` if the bytes may contain a secret. This is fast, but has false positives.
    #[must_use]
    pub fn may_have_secret(&self, bytes: &[u8]) -> bool {
        self.texts.may_have_secret(bytes)
    }

    /// Redacts secrets in a JSON message. Returns the redacted message and the number of secrets, or `None` if there
    /// are none.
    #[must_use]
    pub fn redact_message(&self, json: &str) -> Option<(String, u64)> {
        message::redact_message(&self.texts, json)
    }

    /// Redacts secrets in a line that is not a message, although parts of it may be JSON. Returns `None` if there are
    /// no secrets.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> Option<String> {
        let json = text.find(['{', '[']).and_then(|start| {
            let (before, json) = text.split_at(start);
            let (json, _) = message::redact_message(&self.texts, json)?;
            Some(format!("{before}{json}"))
        });
        let loose = self.texts.redact_plain(json.as_deref().unwrap_or(text));
        loose.or(json)
    }

    /// Redacts secrets in a line of stderr. Returns `None` if there are no secrets. Keeps track of private keys, which
    /// span several lines.
    pub fn redact_stderr(&mut self, line: &str) -> Option<String> {
        if self.is_in_key {
            self.is_in_key = !patterns::ends_private_key(line);
            return Some(REDACTED.to_owned());
        }
        self.is_in_key = patterns::starts_private_key(line) && !patterns::ends_private_key(line);
        if self.may_have_secret(line.as_bytes()) {
            self.redact_text(line)
        } else {
            None
        }
    }

    /// Redacts secrets in a command line, given as its words.
    #[must_use]
    pub fn redact_command(&self, command: &[String]) -> Vec<String> {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let known = commands::redact_arguments(None, &args);
        let mut secret = false;
        let redacted = command.iter().enumerate().map(|(at, arg)| {
            if std::mem::replace(&mut secret, names::is_secret_flag(arg)) {
                return REDACTED.to_owned();
            }
            let known = known.iter().find(|(known, _)| *known == at);
            let arg = known.map_or(arg, |(_, redacted)| redacted);
            let suspected = self.may_have_secret(arg.as_bytes());
            let redacted = suspected.then(|| self.redact_text(arg)).flatten();
            redacted.unwrap_or_else(|| arg.clone())
        });
        redacted.collect()
    }

    /// Calls `each` for each line, in order, with `true` if it may contain a secret.
    pub(crate) fn search(&self, gathered: &mut GatheredLines, each: impl FnMut(bool)) {
        gathered.search(self.texts.needles(), each);
    }
}
