//! The example of the official SDK for a version 2 client that opens existing sessions, unchanged from its package.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/v2_session_coordination.rs"));
