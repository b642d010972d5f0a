//! Mutants that misuse the client's file access.

use serde_json::json;

use crate::mutants::changes::{fail_after_success, reject_after_first};
use crate::mutants::layer::{Mutant, Mutation, change_call, change_incoming, mutant};

/// Makes the agent assume that the client supports both file methods.
fn assume_file_access() -> impl Fn() -> Mutation + Send + Sync {
    change_incoming("initialize", |params| {
        params["clientCapabilities"]["fs"] = json!({"readTextFile": true, "writeTextFile": true});
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/file-system/1",
            "the agent called `fs/read_text_file`",
            "the agent reads files of a client that supports only writing",
            assume_file_access(),
        ),
        mutant(
            "v1/file-system/2",
            "the agent called `fs/write_text_file`",
            "the agent writes files of a client that supports only reading",
            assume_file_access(),
        ),
        mutant(
            "v1/file-system/3",
            "\"notes.txt\" is not an absolute path",
            "the agent requests files by relative paths",
            change_call("fs/read_text_file", |params| {
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
            change_call("fs/read_text_file", |params| {
                if params["line"].is_u64() {
                    params["line"] = json!(0);
                }
            }),
        ),
        mutant(
            "v1/file-system/5",
            "after a file read error",
            "the agent fails after a file read error",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/6",
            "after a file write error",
            "the agent fails after a file write error",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/7",
            "after an empty file: `session/prompt` failed with error -32603: no more",
            "the agent fails after reading an empty file",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/8",
            "error -32603",
            "the agent rejects a null result",
            fail_after_success("session/prompt"),
        ),
    ]
}
