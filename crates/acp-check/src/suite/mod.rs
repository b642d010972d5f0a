//! The conformance suite: checks of what the specification requires, and their verdicts.
