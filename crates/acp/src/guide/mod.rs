//! How to use this library, chapter by chapter. Each example is a test of this crate.
//!
//! | chapter | what is in it |
//! |---|---|
//! | [`agents`] | what an agent implements, what it can do in a turn, what else it can support |
//! | [`clients`] | starting an agent and connecting to it, handling its requests, showing what happens |
//! | [`sessions`] | opening, loading, resuming; prompts; config options and modes; commands; the thread |
//! | [`cancellation`] | what is dropped and what is sent, on either side |
//! | [`ordering`] | which order is guaranteed, what is bounded, and who waits for whom |
//! | [`errors`] | each error: who causes it, and what to do about it |
//! | [`testing`] | testing an agent or a client in ten lines |
//! | [`versions`] | one program for both versions of the protocol |
//! | [`extensions`] | methods and data of your own |
//! | [`examples`] | whole programs |
//!
//! The protocol itself is explained at [agentclientprotocol.com](https://agentclientprotocol.com). When this
//! documentation names a page, such as "Prompt turn", it is on that site.

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
