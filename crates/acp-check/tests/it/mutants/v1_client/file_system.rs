//! Wrong in lending files.

use serde_json::{Value, json};

use crate::mutants::changes::respond_with;
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_call, change_incoming, change_result, mutant,
    reject_request,
};

const READ_METHOD: &str = "fs/read_text_file";
const WRITE_METHOD: &str = "fs/write_text_file";

pub(crate) fn mutants() -> Vec<Mutant> {
    let empty = || json!({"content": ""});
    let mut mutants = reading_mutants();
    mutants.extend([
        mutant(
            "v1/file-system/107",
            "`fs/write_text_file` failed with error -32002",
            "the client writes to files that are there",
            reject_request(WRITE_METHOD, -32002),
        ),
        mutant(
            "v1/file-system/107",
            "after it was written: No such file or directory (os error 2)",
            "the client says that it has written",
            hide_capability("readTextFile", WRITE_METHOD, json!({})),
        ),
        mutant(
            "v1/file-system/108",
            "wrote \"short\\n\", found",
            "the client writes over the beginning",
            change_incoming(WRITE_METHOD, |params| {
                params["content"] = json!("short\ntwo\nthree\nfour\n")
            }),
        ),
        mutant(
            "v1/file-system/109",
            "no line end\", read",
            "the client ends every file with a line end",
            change_incoming(WRITE_METHOD, |params| {
                let text = params["content"].as_str().unwrap().to_owned();
                params["content"] = json!(format!("{}\n", text.trim_end()));
            }),
        ),
        mutant(
            "v1/file-system/110",
            "a relative path succeeded with",
            "the client finds every path",
            respond_with(READ_METHOD, empty()),
        ),
        mutant(
            "v1/file-system/111",
            "a file outside the session's directories succeeded with",
            "the client lends every file",
            respond_with(READ_METHOD, json!({"content": "secret\n"})),
        ),
        mutant(
            "v1/file-system/112",
            "`fs/read_text_file`, which the client does not support, succeeded with",
            "the client reads without offering it",
            hide_capability("readTextFile", READ_METHOD, json!({"content": "alpha\n"})),
        ),
        mutant(
            "v1/file-system/113",
            "`fs/write_text_file`, which the client does not support, succeeded with",
            "the client writes without offering it",
            hide_capability("writeTextFile", WRITE_METHOD, json!({})),
        ),
    ]);
    mutants
}

fn reading_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/file-system/101",
            "but the client returned",
            "the client trims files",
            change_result(READ_METHOD, |result| {
                let text = result["content"].as_str().unwrap().to_owned();
                result["content"] = json!(text.trim_end());
            }),
        ),
        mutant(
            "v1/file-system/102",
            "returned \"four\\n\"",
            "its lines count from 0",
            change_incoming(READ_METHOD, |params| params["line"] = json!(4)),
        ),
        mutant(
            "v1/file-system/103",
            "returned \"one\\ntwo\\nthree\\nfour\\n\"",
            "the client reads the whole file",
            change_incoming(READ_METHOD, |params| params["limit"] = Value::Null),
        ),
        mutant(
            "v1/file-system/104",
            "returned \"two\\n\"",
            "the client takes the limit for the last line",
            change_incoming(READ_METHOD, |params| params["limit"] = json!(1)),
        ),
        mutant(
            "v1/file-system/105",
            "a missing file succeeded with",
            "a missing file is empty to it",
            respond_with(READ_METHOD, json!({"content": ""})),
        ),
        mutant(
            "v1/file-system/106",
            "the error does not say that the file is missing:",
            "the client says no more than that it failed",
            reject_request(READ_METHOD, -32603),
        ),
    ]
}

/// Does not offer `capability`, and answers `method` with a result that it makes up.
fn hide_capability(
    capability: &'static str,
    method: &'static str,
    result: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    let hide = change_call("initialize", move |params| {
        params["clientCapabilities"]["fs"][capability] = json!(false);
    });
    let pretend = respond_with(method, result);
    apply_both(hide, pretend)
}
