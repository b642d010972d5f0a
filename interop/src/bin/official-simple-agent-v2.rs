//! The official SDK's own example of an agent of version 2, as it is in its package: says everything back.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/simple_agent_v2.rs"));
