//! A text without its secrets: one within a message, or one that is none.

use super::commands;
use super::needles::NeedleSearch;
use super::patterns::SecretPatterns;

/// What is known of secrets in texts.
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

    /// Whether anything in it may be secret.
    pub(super) fn may_have_secret(&self, bytes: &[u8]) -> bool {
        let mut folded = Vec::new();
        let scan = self.needles.scan(bytes, &mut folded);
        scan.next_from(0).is_some()
    }

    /// Text that is no message without its secrets; `None` if there are none.
    pub(super) fn redact_plain(&self, text: &str) -> Option<String> {
        let loose = self.patterns.redact_plain(text);
        commands::text(loose.as_deref().unwrap_or(text), false).or(loose)
    }

    /// Text within a message without its secrets; `None` if there are none. `is_command`: it is a command line, or has
    /// one in it.
    pub(super) fn redact_string(&self, text: &str, is_command: bool) -> Option<String> {
        if !self.may_have_secret(text.as_bytes()) {
            return None;
        }
        let strict = self.patterns.redact_string(text);
        commands::text(strict.as_deref().unwrap_or(text), is_command).or(strict)
    }
}
