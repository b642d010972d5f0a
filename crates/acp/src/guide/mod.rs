//! How to use this library, chapter by chapter. Each example here is a test of this crate.
//!
//! | chapter | what is in it |
//! |---|---|
//! | [`agents`] | what an agent implements, what it can say in a turn, what it may offer beyond |
//! | [`clients`] | starting and connecting to an agent, what it may ask, showing what happens |
//! | [`sessions`] | opening, loading, resuming; prompts; config options and modes; commands; the thread |
//! | [`cancellation`] | what is dropped and what is told, on either side |
//! | [`ordering`] | what order is promised, what is bounded, and who waits for whom |
//! | [`errors`] | each error: who caused it, and what to do about it |
//! | [`testing`] | testing an agent or a client in ten lines |
//! | [`versions`] | one program for both versions of the protocol |
//! | [`extensions`] | methods and data of one's own |
//! | [`examples`] | whole programs |
//!
//! The protocol itself is explained at [agentclientprotocol.com](https://agentclientprotocol.com). Where this
//! documentation names a page, such as "Prompt turn", it is one of those.

pub mod agents;
pub mod cancellation;
pub mod clients;
pub mod errors;
pub mod examples;
pub mod extensions;
pub mod ordering;
pub mod sessions;
pub mod testing;
pub mod versions;
