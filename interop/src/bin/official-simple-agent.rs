//! The example of the official SDK for an agent, unchanged from its package. It responds only to `initialize`.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/simple_agent.rs"));
