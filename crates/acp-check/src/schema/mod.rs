//! The shapes of messages, and whether a message has its own.
