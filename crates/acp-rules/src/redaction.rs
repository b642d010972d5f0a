//! The text that replaces secrets in recorded messages.

/// The text that replaces a secret in a redacted message. No rule judges a value that contains it: values that
/// differed may be equal now.
pub const REDACTED: &str = "[redacted]";
