//! A guide to this library in chapters. Its examples run as tests.
//!
//! | chapter | contents |
//! |---|---|
//! | [`agents`] | how to write an agent: the `Agent` trait, turns, session state, optional features |
//! | [`clients`] | how to write a client: starting and connecting to an agent, handling its requests, showing a session |
//! | [`sessions`] | opening, loading and resuming sessions, prompts, config options, modes, commands, the thread |
//! | [`cancellation`] | which futures are dropped and which messages are sent, on each side |
//! | [`ordering`] | ordering guarantees, back-pressure and limits |
//! | [`errors`] | the cause of each error, and what to do about it |
//! | [`testing`] | how to test an agent or a client in ten lines |
//! | [`versions`] | how to write one program for both protocol versions |
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
