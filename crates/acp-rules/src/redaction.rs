//! What stands in a recorded message where a secret was.

/// What stands in place of a secret in a message that was recorded without its secrets. No rule says anything about what has
/// this in it: what was different may look the same now.
pub const REDACTED: &str = "[redacted]";
