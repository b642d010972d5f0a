//! Tests with a peer on an official SDK that speaks the draft of version 2. They are the same for each SDK, since our
//! programs on the SDKs do the same.

pub(crate) mod agent;
pub(crate) mod client;
