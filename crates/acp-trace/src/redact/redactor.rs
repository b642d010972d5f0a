//! Finding and replacing secrets: what is looked at, and by whom.

use acp_rules::REDACTED;

use super::needles::GatheredLines;
use super::text_redactor::TextRedactor;
use super::{commands, message, names, patterns};

/// Finds and replaces secrets.
#[derive(Debug)]
pub struct Redactor {
    texts: TextRedactor,
    /// The lines of standard error that come are those of a private key.
    is_in_key: bool,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl Redactor {
    /// One that knows of all of the above.
    #[must_use]
    pub fn new() -> Self {
        Self {
            texts: TextRedactor::new(),
            is_in_key: false,
        }
    }

    /// Whether anything in it may be secret.
    #[must_use]
    pub fn may_have_secret(&self, bytes: &[u8]) -> bool {
        self.texts.may_have_secret(bytes)
    }

    /// A message, which is JSON, without its secrets, and how many there were; `None` if there are none.
    #[must_use]
    pub fn redact_message(&self, json: &str) -> Option<(String, u64)> {
        message::redact(&self.texts, json)
    }

    /// A line that is no message without its secrets; `None` if there are none. It may begin as JSON, or have some
    /// in it.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> Option<String> {
        let json = text.find(['{', '[']).and_then(|start| {
            let (before, json) = text.split_at(start);
            let (json, _) = message::redact(&self.texts, json)?;
            Some(format!("{before}{json}"))
        });
        let loose = self.texts.redact_plain(json.as_deref().unwrap_or(text));
        loose.or(json)
    }

    /// A line of standard error without its secrets; `None` if there are none. A private key may take many lines.
    pub fn redact_stderr(&mut self, line: &str) -> Option<String> {
        if self.is_in_key {
            self.is_in_key = !patterns::ends_key(line);
            return Some(REDACTED.to_owned());
        }
        self.is_in_key = patterns::begins_key(line) && !patterns::ends_key(line);
        if self.may_have_secret(line.as_bytes()) {
            self.redact_text(line)
        } else {
            None
        }
    }

    /// A command line without its secrets.
    #[must_use]
    pub fn redact_command(&self, command: &[String]) -> Vec<String> {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let known = commands::arguments(None, &args);
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

    /// Whether each of the lines that were gathered may have something secret in it, in their order.
    pub(crate) fn search(&self, gathered: &mut GatheredLines, each: impl FnMut(bool)) {
        gathered.search(self.texts.needles(), each);
    }
}
