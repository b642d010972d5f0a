//! The example of the official SDK for a client, unchanged from its package. It allows everything.
#![allow(clippy::all, clippy::restriction, warnings, reason = "it is not ours")]

include!(concat!(env!("OUT_DIR"), "/yolo_one_shot_client.rs"));
