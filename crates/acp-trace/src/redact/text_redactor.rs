//! Redacts secrets in text, both inside and outside messages.

use super::commands;
use super::needles::NeedleSearch;
use super::patterns::SecretPatterns;

/// A redactor for secrets in text, which uses patterns and the table of programs.
#[derive(Debug)]
pub(super) struct TextRedactor {
    needles: NeedleSearch,
    patterns: SecretPatterns,
}

impl TextRedactor {
    pub(super) fn new() -> Self {
        Self {
            needles: NeedleSearch::new(),
            patterns: SecretPatterns::default(),
        }
    }

    pub(super) fn needles(&self) -> &NeedleSearch {
        &self.needles
    }

    /// Returns `true` if the bytes may contain a secret. This is fast, but has false positives.
    pub(super) fn may_have_secret(&self, bytes: &[u8]) -> bool {
        let mut folded = Vec::new();
        let scan = self.needles.scan(bytes, &mut folded);
        scan.next_from(0).is_some()
    }

    /// Redacts secrets in text outside a message. Returns `None` if there are no secrets.
    pub(super) fn redact_plain(&self, text: &str) -> Option<String> {
        let loose = self.patterns.redact_plain(text);
        commands::redact_text(loose.as_deref().unwrap_or(text), false).or(loose)
    }

    /// Redacts secrets in text from a message. `is_command` means that the text is a command line or may contain one.
    /// Returns `None` if there are no secrets.
    pub(super) fn redact_string(&self, text: &str, is_command: bool) -> Option<String> {
        if !self.may_have_secret(text.as_bytes()) {
            return None;
        }
        let strict = self.patterns.redact_string(text);
        commands::redact_text(strict.as_deref().unwrap_or(text), is_command).or(strict)
    }
}
