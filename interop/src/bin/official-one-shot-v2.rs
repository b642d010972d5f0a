//! The official SDK's own example of a client of version 2, as it is in its package: says no to everything.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/v2_one_shot_client.rs"));
