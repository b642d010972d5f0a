//! Checks how a client gives access to its files.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

use super::steps::{
    ScratchDirectory, has_capability, request_error, request_result,
    wait_for_prompt_with_capability,
};

checks! { V1 Client "file-system";
    101 Must "A file is read verbatim, including the final newline." => reads_verbatim;
    102 Must "`line` starts at 1." => reads_from_line;
    103 Must "At most `limit` lines are read." => limits_lines;
    104 Must "`line` and `limit` together select a range of lines." => reads_range;
    105 Should "Reading a missing file fails." => rejects_missing_file;
    106 Should "The error for a missing file has code -32002, or its message says that the file is missing." => reports_missing_file;
    107 Must "Writing creates a missing file." => creates_file;
    108 Must "Writing replaces the whole file." => replaces_file;
    109 Must "Written text is read back unchanged." => keeps_written_text;
    110 May "A request with a relative path fails." => rejects_relative_path;
    111 Should "Files outside the session's directories are not accessible." => rejects_file_outside_directories;
    112 Should "`fs/read_text_file` fails if the client does not support it." => rejects_unsupported_read;
    113 Should "`fs/write_text_file` fails if the client does not support it." => rejects_unsupported_write;
}

const READ_CAPABILITY: &str = "/clientCapabilities/fs/readTextFile";
const WRITE_CAPABILITY: &str = "/clientCapabilities/fs/writeTextFile";
const FILE_TEXT: &str = "one\ntwo\nthree\nfour\n";

async fn read_file(
    harness: &mut ClientHarness,
    session: &str,
    path: &std::path::Path,
    part: Value,
) -> Result<String, CheckStop> {
    let mut params = json!({"sessionId": session, "path": path});
    if let (Some(params), Value::Object(part)) = (params.as_object_mut(), part) {
        params.extend(part);
    }
    let response = request_result(harness, "fs/read_text_file", params).await?;
    match response["content"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => fail(format!("the response has no `content`: {response}")),
    }
}

/// Reads some lines of the file [`FILE_TEXT`], selected by the params `part`, and requires that the content is
/// `expected`.
async fn require_partial_read(
    harness: &mut ClientHarness,
    part: Value,
    expected: &str,
) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let path = scratch.create_file("notes.txt", FILE_TEXT)?;
    let text = read_file(harness, &prompted.session, &path, part.clone()).await?;
    // The specification does not say whether the line end belongs to the last line.
    let same = text == expected || Some(text.as_str()) == expected.strip_suffix('\n');
    require(same, || {
        format!("reading {part} of {FILE_TEXT:?} returned {text:?}; expected {expected:?}")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn reads_verbatim(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    for text in [
        "alpha\nbeta\n",
        "ends without\na line end",
        "",
        "Grüße, 世界 🦀\n\ttab\n\n",
    ] {
        let path = scratch.create_file("notes.txt", text)?;
        let read = read_file(harness, &prompted.session, &path, json!({})).await?;
        require(read == text, || {
            format!("the file contains {text:?}, but the client returned {read:?}")
        })?;
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn reads_from_line(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_partial_read(harness, json!({"line": 3}), "three\nfour\n").await
}

async fn limits_lines(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_partial_read(harness, json!({"limit": 2}), "one\ntwo\n").await
}

async fn reads_range(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_partial_read(harness, json!({"line": 2, "limit": 2}), "two\nthree\n").await
}

async fn rejects_missing_file(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let params = json!({"sessionId": prompted.session, "path": scratch.file("missing.txt")});
    request_error(harness, "fs/read_text_file", params, "a missing file").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn reports_missing_file(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let params = json!({"sessionId": prompted.session, "path": scratch.file("missing.txt")});
    let response = request_error(harness, "fs/read_text_file", params, "a missing file").await?;
    let ReceivedResponse::Error { code, error, .. } = response else {
        return Ok(());
    };
    // Agents that test whether a file exists rely on the code or on the message.
    let words = error.to_string().to_lowercase();
    let says = [
        "not found",
        "no such file",
        "does not exist",
        "enoent",
        "cannot find",
    ];
    require(
        code == -32002 || says.iter().any(|says| words.contains(says)),
        || format!("the error does not say that the file is missing: {error}"),
    )?;
    harness.end_turn(&prompted, "end_turn").await
}

/// Writes a file through the client, and returns its content afterwards.
async fn write_file(
    harness: &mut ClientHarness,
    session: &str,
    path: &std::path::Path,
    text: &str,
) -> Result<String, CheckStop> {
    let params = json!({"sessionId": session, "path": path, "content": text});
    request_result(harness, "fs/write_text_file", params).await?;
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        // An editor may keep the text unsaved.
        Err(_) if has_capability(harness, READ_CAPABILITY) => {
            read_file(harness, session, path, json!({})).await
        }
        Err(e) => fail(format!(
            "cannot read {} after it was written: {e}",
            path.display()
        )),
    }
}

async fn creates_file(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, WRITE_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let path = scratch.file("new.txt");
    let found = write_file(harness, &prompted.session, &path, "new\n").await?;
    require(found == "new\n", || {
        format!("wrote \"new\\n\", found {found:?}")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn replaces_file(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, WRITE_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let path = scratch.create_file("notes.txt", FILE_TEXT)?;
    write_file(harness, &prompted.session, &path, "short\n").await?;
    // If the file is open in an editor, the editor's buffer counts.
    let found = if has_capability(harness, READ_CAPABILITY) {
        read_file(harness, &prompted.session, &path, json!({})).await?
    } else {
        std::fs::read_to_string(&path).unwrap_or_default()
    };
    require(found == "short\n", || {
        format!("wrote \"short\\n\", found {found:?}")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn keeps_written_text(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, WRITE_CAPABILITY).await?;
    super::steps::require_capability(harness, READ_CAPABILITY)?;
    let scratch = ScratchDirectory::new(harness)?;
    let path = scratch.file("odd.txt");
    let text = "tab\t, quote\", backslash\\, ü, 世, 🦀, \u{7f}, \u{2028}\n\n  no line end";
    write_file(harness, &prompted.session, &path, text).await?;
    let found = read_file(harness, &prompted.session, &path, json!({})).await?;
    require(found == text, || format!("wrote {text:?}, read {found:?}"))?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_relative_path(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let file = scratch.create_file("notes.txt", FILE_TEXT)?;
    let parent = scratch.path().parent().unwrap_or(scratch.path());
    let Ok(path) = file.strip_prefix(parent) else {
        return skip("the check's file is not inside the session's `cwd`");
    };
    let params = json!({"sessionId": prompted.session, "path": path});
    request_error(harness, "fs/read_text_file", params, "a relative path").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_file_outside_directories(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, READ_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let Ok(elsewhere) = tempfile::tempdir() else {
        return skip("cannot create a directory outside the session's directory");
    };
    if elsewhere
        .path()
        .starts_with(scratch.path().parent().unwrap_or(scratch.path()))
    {
        return skip("the session's directory contains the system's temporary directory");
    }
    let path = elsewhere.path().join("secret.txt");
    if let Err(e) = std::fs::write(&path, "secret\n") {
        return Err(CheckStop::Harness(format!("{}: {e}", path.display())));
    }
    let params = json!({"sessionId": prompted.session, "path": path});
    request_error(
        harness,
        "fs/read_text_file",
        params,
        "a file outside the session's directories",
    )
    .await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unsupported_read(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if has_capability(harness, READ_CAPABILITY) {
        return skip("the client supports `fs/read_text_file`");
    }
    let params =
        json!({"sessionId": prompted.session, "path": harness.directory().file("notes.txt")});
    request_error(
        harness,
        "fs/read_text_file",
        params,
        "`fs/read_text_file`, which the client does not support,",
    )
    .await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unsupported_write(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if has_capability(harness, WRITE_CAPABILITY) {
        return skip("the client supports `fs/write_text_file`");
    }
    let path = harness.directory().file("new.txt");
    let params = json!({"sessionId": prompted.session, "path": path, "content": "new\n"});
    request_error(
        harness,
        "fs/write_text_file",
        params,
        "`fs/write_text_file`, which the client does not support,",
    )
    .await?;
    harness.end_turn(&prompted, "end_turn").await
}
