//! Tests that irregular messages in the version 2 draft are tolerated.

use acp_wire::v2::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tolerance::{
    FORTY_DIGITS, assert_round_trips, from_json, raw_value, to_json, to_json_text,
};

mod drafts;
mod malformed;
mod patches;
mod unknown;
