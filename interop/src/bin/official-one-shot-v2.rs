//! The official SDK's own example of a client of version 2, as it is in its package: says no to everything.
#![allow(
    clippy::collapsible_match,
    clippy::print_stdout,
    reason = "it is not ours"
)]

include!(concat!(env!("OUT_DIR"), "/v2_one_shot_client.rs"));
