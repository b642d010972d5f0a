//! Tests that irregular version 1 messages are tolerated.

use acp_wire::jsonrpc::{CancelRequestNotification, Error, RequestId};
use acp_wire::v1::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tolerance::{
    FORTY_DIGITS, assert_round_trips, from_json, raw_value, to_json, to_json_text,
};

mod agents;
mod documents;
mod malformed;
mod unknown;
