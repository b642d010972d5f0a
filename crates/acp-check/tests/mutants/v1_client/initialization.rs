//! Wrong in initialization.

use serde_json::json;

use crate::layer::{Mutant, call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![mutant(
        "v1/initialization/102",
        "it asked for version 0",
        "it asks for a version that is none",
        call("initialize", |params| params["protocolVersion"] = json!(0)),
    )]
}
