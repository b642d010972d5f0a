//! Tests that read every message of both versions through the method table and write it back.
//!
//! The messages are in `data`, a folder a version, in the shapes of the specification's examples. A file
//! is an object of named cases: `method`, then `params` or `result` as it arrives, and `written` where
//! what we write differs from it (a default written out, a `null` left out).

mod data;
#[macro_use]
mod table;
mod v1;
mod v2;
