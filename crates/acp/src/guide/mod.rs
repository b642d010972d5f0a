//! A guide to this library, chapter by chapter. Each example is run as a test.
//!
//! | chapter | contents |
//! |---|---|
//! | [`agents`] | writing an agent: the `Agent` trait, turns, session state, optional features |
//! | [`clients`] | writing a client: starting an agent and connecting to it, handling its requests, showing a session |
//! | [`sessions`] | opening, loading, resuming; prompts; config options and modes; commands; the thread |
//! | [`cancellation`] | which futures are dropped and which messages are sent, on either side |
//! | [`ordering`] | ordering guarantees, backpressure and limits |
//! | [`errors`] | the cause of each error, and what to do about it |
//! | [`testing`] | testing an agent or a client in ten lines |
//! | [`versions`] | writing one program for both protocol versions |
//! | [`extensions`] | custom methods and data |
//! | [`examples`] | complete programs |
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
