//! The official SDK's own example of a client of version 2 that opens old sessions, as it is in its package.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/v2_session_coordination.rs"));
