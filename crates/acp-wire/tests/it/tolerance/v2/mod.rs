//! The draft of version 2.

use acp_wire::v2::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tolerance::{FORTY_DIGITS, kept, raw, read, text, written};

mod drafts;
mod malformed;
mod patches;
mod unknown;
