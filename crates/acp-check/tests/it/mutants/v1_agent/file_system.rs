//! Wrong in using the client's files.

use serde_json::json;

use crate::mutants::changes::{fail_after_success, reject_after_first};
use crate::mutants::layer::{Mutant, Mutation, change_call, change_incoming, mutant};

/// The agent believes that the client supports `fs/read_text_file`s files.
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
            "the agent reads where it may write",
            assume_file_access(),
        ),
        mutant(
            "v1/file-system/2",
            "the agent called `fs/write_text_file`",
            "the agent writes where it may read",
            assume_file_access(),
        ),
        mutant(
            "v1/file-system/3",
            "\"notes.txt\" is not an absolute path",
            "the agent names files as the project has them",
            change_call("fs/read_text_file", |params| {
                // The edit's, which has no line, is to succeed.
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
            "the agent does not get over a missing file",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/6",
            "after a file write error",
            "the agent does not get over a full disk",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/7",
            "after an empty file: `session/prompt` failed with error -32603: no more",
            "the agent does not get over an empty file",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/file-system/8",
            "error -32603",
            "the agent wants more than nothing for an answer",
            fail_after_success("session/prompt"),
        ),
    ]
}
