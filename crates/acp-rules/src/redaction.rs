//! The text that replaces secrets in recorded messages.

/// The text that replaces a secret in a redacted message. No rule checks a value that contains it, because redaction
/// can make different values equal.
pub const REDACTED: &str = "[redacted]";
