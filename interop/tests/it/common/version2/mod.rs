//! Tests with a peer on an official SDK that speaks the draft of version 2. The tests are the same for each SDK,
//! because our programs on the SDKs behave in the same way.

pub(crate) mod agent;
pub(crate) mod client;
