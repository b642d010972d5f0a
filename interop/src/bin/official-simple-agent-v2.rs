//! The example of the official SDK for a version 2 agent, unchanged from its package. It repeats each prompt.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/simple_agent_v2.rs"));
