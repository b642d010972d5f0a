//! The official SDK's own example of a client, as it is in its package: says yes to everything.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/yolo_one_shot_client.rs"));
