//! A text without its secrets: one within a message, or one that is none.

use super::commands;
use super::needles::Needles;
use super::patterns::Patterns;

/// What is known of secrets in texts.
#[derive(Debug)]
pub(super) struct Texts {
    needles: Needles,
    patterns: Patterns,
}

impl Texts {
    pub(super) fn new() -> Self {
        Self {
            needles: Needles::new(),
            patterns: Patterns::default(),
        }
    }

    pub(super) fn needles(&self) -> &Needles {
        &self.needles
    }

    /// Whether anything in it may be secret.
    pub(super) fn suspects(&self, bytes: &[u8]) -> bool {
        let mut folded = Vec::new();
        let scan = self.needles.scan(bytes, &mut folded);
        scan.next_from(0).is_some()
    }

    /// Text that is no message without its secrets; `None` if there are none.
    pub(super) fn loose(&self, text: &str) -> Option<String> {
        let loose = self.patterns.loose(text);
        commands::text(loose.as_deref().unwrap_or(text), false).or(loose)
    }

    /// Text within a message without its secrets; `None` if there are none. `is_command`: it is a command line, or has
    /// one in it.
    pub(super) fn within(&self, text: &str, is_command: bool) -> Option<String> {
        if !self.suspects(text.as_bytes()) {
            return None;
        }
        let strict = self.patterns.strict(text);
        commands::text(strict.as_deref().unwrap_or(text), is_command).or(strict)
    }
}
