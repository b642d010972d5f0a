//! The official SDK's own example of an agent, as it is in its package: answers `initialize` alone.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/simple_agent.rs"));
