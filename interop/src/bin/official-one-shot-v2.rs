//! The example of the official SDK for a version 2 client, unchanged from its package. It rejects everything.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/v2_one_shot_client.rs"));
