//! Mutants that give wrong access to files.

use serde_json::{Value, json};

use crate::mutants::changes::pretend;
use crate::mutants::layer::{Mutant, Mutation, answer, both, call, hear, mutant, refuse};

const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

pub(crate) fn mutants() -> Vec<Mutant> {
    let empty = || json!({"content": ""});
    let mut mutants = reading();
    mutants.extend([
        mutant(
            "v1/file-system/107",
            "`fs/write_text_file` failed with error -32002",
            "the client writes only to existing files",
            refuse(WRITE, -32002),
        ),
        mutant(
            "v1/file-system/107",
            "after it was written: No such file or directory (os error 2)",
            "the client accepts a request to write a file, but does not write it",
            without("readTextFile", WRITE, json!({})),
        ),
        mutant(
            "v1/file-system/108",
            "wrote \"short\\n\", found",
            "the client overwrites only the beginning of a file",
            hear(WRITE, |params| {
                params["content"] = json!("short\ntwo\nthree\nfour\n")
            }),
        ),
        mutant(
            "v1/file-system/109",
            "no line end\", read",
            "the client adds a line end to every file",
            hear(WRITE, |params| {
                let text = params["content"].as_str().unwrap().to_owned();
                params["content"] = json!(format!("{}\n", text.trim_end()));
            }),
        ),
        mutant(
            "v1/file-system/110",
            "a relative path succeeded with",
            "the client accepts relative paths",
            pretend(READ, empty()),
        ),
        mutant(
            "v1/file-system/111",
            "a file outside the session's directories succeeded with",
            "the client gives access to every file",
            pretend(READ, json!({"content": "secret\n"})),
        ),
        mutant(
            "v1/file-system/112",
            "`fs/read_text_file`, which the client does not support, succeeded with",
            "the client supports reading files, but does not advertise it",
            without("readTextFile", READ, json!({"content": "alpha\n"})),
        ),
        mutant(
            "v1/file-system/113",
            "`fs/write_text_file`, which the client does not support, succeeded with",
            "the client supports writing files, but does not advertise it",
            without("writeTextFile", WRITE, json!({})),
        ),
    ]);
    mutants
}

fn reading() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/file-system/101",
            "but the client returned",
            "the client trims the contents of files",
            answer(READ, |result| {
                let text = result["content"].as_str().unwrap().to_owned();
                result["content"] = json!(text.trim_end());
            }),
        ),
        mutant(
            "v1/file-system/102",
            "returned \"four\\n\"",
            "the client counts lines from 0",
            hear(READ, |params| params["line"] = json!(4)),
        ),
        mutant(
            "v1/file-system/103",
            "returned \"one\\ntwo\\nthree\\nfour\\n\"",
            "the client ignores the limit",
            hear(READ, |params| params["limit"] = Value::Null),
        ),
        mutant(
            "v1/file-system/104",
            "returned \"two\\n\"",
            "the client treats the limit as the number of the last line",
            hear(READ, |params| params["limit"] = json!(1)),
        ),
        mutant(
            "v1/file-system/105",
            "a missing file succeeded with",
            "the client treats a missing file as empty",
            pretend(READ, json!({"content": ""})),
        ),
        mutant(
            "v1/file-system/106",
            "the error does not say that the file is missing:",
            "the client's error does not say that the file is missing",
            refuse(READ, -32603),
        ),
    ]
}

/// Does not advertise `capability`, and responds to `method` with a made-up result.
fn without(
    capability: &'static str,
    method: &'static str,
    result: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    let hide = call("initialize", move |params| {
        params["clientCapabilities"]["fs"][capability] = json!(false);
    });
    let pretend = pretend(method, result);
    both(hide, pretend)
}
