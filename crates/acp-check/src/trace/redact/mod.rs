//! Taking secrets out of what is recorded.
//!
//! Secret is what a message has where the protocol puts secrets (values of environment variables and of HTTP
//! headers), what stands under a name that tells of one (`names.rs`), what looks like one wherever it stands
//! (`patterns.rs`), and what a program is given as one on its command line (`commands.rs`). A fast search (`needles.rs`) finds the few messages that may have any; only they are taken apart
//! (`message.rs`), and of them only what is replaced changes.

mod commands;
mod message;
mod names;
mod needles;
mod patterns;

pub(super) use needles::Gathered;
use needles::Needles;
use patterns::Patterns;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Finds and replaces secrets.
#[derive(Debug)]
pub struct Redactor {
    needles: Needles,
    patterns: Patterns,
    /// The lines of standard error that come are those of a private key.
    in_key: bool,
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
            needles: Needles::new(),
            patterns: Patterns::default(),
            in_key: false,
        }
    }

    /// Whether anything in it may be secret.
    #[must_use]
    pub fn suspects(&self, bytes: &[u8]) -> bool {
        let mut folded = Vec::new();
        let scan = self.needles.scan(bytes, &mut folded);
        scan.next_from(0).is_some()
    }

    /// A message, which is JSON, without its secrets, and how many there were; `None` if there are none.
    #[must_use]
    pub fn message(&self, json: &str) -> Option<(String, u64)> {
        message::redact(self, json)
    }

    /// A line that is no message without its secrets; `None` if there are none. It may begin as JSON, or have some
    /// in it.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let json = text.find(['{', '[']).and_then(|start| {
            let (before, json) = text.split_at(start);
            let (json, _) = message::redact(self, json)?;
            Some(format!("{before}{json}"))
        });
        let loose = self.patterns.loose(json.as_deref().unwrap_or(text));
        let without = loose.or(json);
        commands::text(without.as_deref().unwrap_or(text), false).or(without)
    }

    /// A line of standard error without its secrets; `None` if there are none. A private key may take many lines.
    pub fn stderr(&mut self, line: &str) -> Option<String> {
        if self.in_key {
            self.in_key = !patterns::ends_key(line);
            return Some(REDACTED.to_owned());
        }
        self.in_key = patterns::begins_key(line) && !patterns::ends_key(line);
        if self.suspects(line.as_bytes()) {
            self.text(line)
        } else {
            None
        }
    }

    /// A command line without its secrets.
    #[must_use]
    pub fn command(&self, command: &[String]) -> Vec<String> {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let known = commands::arguments(None, &args);
        let mut secret = false;
        let redacted = command.iter().enumerate().map(|(at, arg)| {
            if std::mem::replace(&mut secret, names::is_secret_flag(arg)) {
                return REDACTED.to_owned();
            }
            let known = known.iter().find(|(known, _)| *known == at);
            let arg = known.map_or(arg, |(_, redacted)| redacted);
            let suspected = self.suspects(arg.as_bytes());
            let redacted = suspected.then(|| self.text(arg)).flatten();
            redacted.unwrap_or_else(|| arg.clone())
        });
        redacted.collect()
    }

    /// Text within a message without its secrets; `None` if there are none. `is_command`: it is a command line, or has
    /// one in it.
    fn within(&self, text: &str, is_command: bool) -> Option<String> {
        if !self.suspects(text.as_bytes()) {
            return None;
        }
        let strict = self.patterns.strict(text);
        commands::text(strict.as_deref().unwrap_or(text), is_command).or(strict)
    }
}
