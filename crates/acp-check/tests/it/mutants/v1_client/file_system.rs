//! Mutants that mishandle requests to read or write files.

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
            "the client writes only to existing files",
            reject_request(WRITE_METHOD, -32002),
        ),
        mutant(
            "v1/file-system/107",
            "after it was written: No such file or directory (os error 2)",
            "the client accepts a request to write a file, but does not write it",
            hide_capability("readTextFile", WRITE_METHOD, json!({})),
        ),
        mutant(
            "v1/file-system/108",
            "wrote \"short\\n\", found",
            "the client overwrites only the beginning of a file",
            change_incoming(WRITE_METHOD, |params| {
                params["content"] = json!("short\ntwo\nthree\nfour\n")
            }),
        ),
        mutant(
            "v1/file-system/109",
            "no line end\", read",
            "the client adds a line end to every file",
            change_incoming(WRITE_METHOD, |params| {
                let text = params["content"].as_str().unwrap().to_owned();
                params["content"] = json!(format!("{}\n", text.trim_end()));
            }),
        ),
        mutant(
            "v1/file-system/110",
            "a relative path succeeded with",
            "the client accepts relative paths",
            respond_with(READ_METHOD, empty()),
        ),
        mutant(
            "v1/file-system/111",
            "a file outside the session's directories succeeded with",
            "the client gives access to every file",
            respond_with(READ_METHOD, json!({"content": "secret\n"})),
        ),
        mutant(
            "v1/file-system/112",
            "`fs/read_text_file`, which the client does not support, succeeded with",
            "the client supports reading files, but does not advertise it",
            hide_capability("readTextFile", READ_METHOD, json!({"content": "alpha\n"})),
        ),
        mutant(
            "v1/file-system/113",
            "`fs/write_text_file`, which the client does not support, succeeded with",
            "the client supports writing files, but does not advertise it",
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
            "the client trims the contents of files",
            change_result(READ_METHOD, |result| {
                let text = result["content"].as_str().unwrap().to_owned();
                result["content"] = json!(text.trim_end());
            }),
        ),
        mutant(
            "v1/file-system/102",
            "returned \"four\\n\"",
            "the client counts lines from 0",
            change_incoming(READ_METHOD, |params| params["line"] = json!(4)),
        ),
        mutant(
            "v1/file-system/103",
            "returned \"one\\ntwo\\nthree\\nfour\\n\"",
            "the client ignores the limit",
            change_incoming(READ_METHOD, |params| params["limit"] = Value::Null),
        ),
        mutant(
            "v1/file-system/104",
            "returned \"two\\n\"",
            "the client treats the limit as the number of the last line",
            change_incoming(READ_METHOD, |params| params["limit"] = json!(1)),
        ),
        mutant(
            "v1/file-system/105",
            "a missing file succeeded with",
            "the client treats a missing file as empty",
            respond_with(READ_METHOD, json!({"content": ""})),
        ),
        mutant(
            "v1/file-system/106",
            "the error does not say that the file is missing:",
            "the client's error does not say that the file is missing",
            reject_request(READ_METHOD, -32603),
        ),
    ]
}

/// Stops declaring `capability`, and responds to `method` with a made-up result.
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
