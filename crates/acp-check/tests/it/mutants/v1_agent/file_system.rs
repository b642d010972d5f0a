//! Mutants that use the client's files wrongly.

use serde_json::json;

use crate::mutants::changes::{fails, only_once};
use crate::mutants::layer::{Mutant, Mutation, call, hear, mutant};

/// Makes the agent assume that the client supports both file methods.
fn believes() -> impl Fn() -> Mutation + Send + Sync {
    hear("initialize", |params| {
        params["clientCapabilities"]["fs"] = json!({"readTextFile": true, "writeTextFile": true});
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/file-system/1",
            "the agent called `fs/read_text_file`",
            "the agent reads files of a client that supports only writing",
            believes(),
        ),
        mutant(
            "v1/file-system/2",
            "the agent called `fs/write_text_file`",
            "the agent writes files of a client that supports only reading",
            believes(),
        ),
        mutant(
            "v1/file-system/3",
            "\"notes.txt\" is not an absolute path",
            "the agent requests files by relative paths",
            call("fs/read_text_file", |params| {
                // The read for an edit, which has no line, must succeed.
                if params["line"].is_u64() {
                    params["path"] = json!("notes.txt");
                }
            }),
        ),
        mutant(
            "v1/file-system/4",
            "the agent requested line 0, but lines start at 1",
            "the agent counts lines from 0",
            call("fs/read_text_file", |params| {
                if params["line"].is_u64() {
                    params["line"] = json!(0);
                }
            }),
        ),
        mutant(
            "v1/file-system/5",
            "after a file read error",
            "the agent fails after a file read error",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/file-system/6",
            "after a file write error",
            "the agent fails after a file write error",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/file-system/7",
            "after an empty file: `session/prompt` failed with error -32603: no more",
            "the agent fails after reading an empty file",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/file-system/8",
            "error -32603",
            "the agent rejects a null result",
            fails("session/prompt"),
        ),
    ]
}
