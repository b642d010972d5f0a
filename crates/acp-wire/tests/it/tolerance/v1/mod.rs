//! Version 1.

use acp_wire::jsonrpc::{CancelRequestNotification, Error, RequestId};
use acp_wire::v1::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tolerance::{FORTY_DIGITS, kept, raw, read, text, written};

mod agents;
mod documents;
mod malformed;
mod unknown;
