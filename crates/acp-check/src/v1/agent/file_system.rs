//! Checks for an agent's access to the client's files.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::turns::clone_request;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "file-system";
    1 Must "`fs/read_text_file` is sent only to clients with the `readTextFile` capability." => reads_only_if_supported, fresh "declares other capabilities in `initialize`";
    2 Must "`fs/write_text_file` is sent only to clients with the `writeTextFile` capability." => writes_only_if_supported, fresh "declares other capabilities in `initialize`";
    3 Must "File paths are absolute." => uses_absolute_paths, shared;
    4 Must "Line numbers start at 1." => starts_lines_at_one, shared;
    5 Must "A failed `fs/read_text_file` leaves the session usable." => continues_after_failed_read, shared;
    6 Must "A failed `fs/write_text_file` leaves the session usable." => continues_after_failed_write, shared;
    7 Must "An empty file is read like any other file." => accepts_empty_file, shared;
    8 Should "A null result of `fs/write_text_file` is accepted." => accepts_null_result, shared;
}

const READ_METHOD: &str = "fs/read_text_file";
const WRITE_METHOD: &str = "fs/write_text_file";

/// Makes the agent read and edit a file, as a client with this value of the `fs` capability. Fails if the agent calls
/// `method`.
async fn run_without_capability(
    harness: &mut AgentHarness,
    fs: Value,
    method: &str,
) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["fs"] = fs;
    harness.initialize_with(params).await?;
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit] {
        harness.try_task(&session, task).await?;
    }
    let called = harness.requests().any(|(called, _)| called == method);
    require(!called, || {
        format!("the agent called `{method}`, which the client does not support")
    })
}

async fn reads_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run_without_capability(harness, json!({"writeTextFile": true}), READ_METHOD).await
}

async fn writes_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run_without_capability(
        harness,
        json!({"readTextFile": true, "writeTextFile": false}),
        WRITE_METHOD,
    )
    .await
}

/// Makes the agent read and edit a file, and returns its `fs/*` requests.
async fn file_requests(harness: &mut AgentHarness) -> Result<Vec<(String, Value)>, CheckStop> {
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit] {
        harness.try_task(&session, task).await?;
    }
    let files = harness
        .requests()
        .filter(|(method, _)| method.starts_with("fs/"));
    let files: Vec<_> = files.map(clone_request).collect();
    if files.is_empty() {
        return skip("the agent did not read or write files through the client");
    }
    Ok(files)
}

async fn uses_absolute_paths(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let files = file_requests(harness).await?;
    let paths = files
        .iter()
        .filter_map(|(_, params)| params["path"].as_str());
    let mut relative = paths.filter(|path| !std::path::Path::new(path).is_absolute());
    match relative.next() {
        Some(path) => fail(format!("{path:?} is not an absolute path")),
        None => Ok(()),
    }
}

async fn starts_lines_at_one(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let files = file_requests(harness).await?;
    let mut lines = files
        .iter()
        .filter_map(|(_, params)| params["line"].as_u64())
        .peekable();
    if lines.peek().is_none() {
        return skip("the agent sent no line number");
    }
    require(lines.all(|line| line > 0), || {
        "the agent requested line 0, but lines start at 1".to_owned()
    })
}

/// Makes the agent do a task, responds to its `method` requests with `response`, and requires that the session remains
/// usable.
async fn continues_after_response(
    harness: &mut AgentHarness,
    task: AgentTask,
    method: &'static str,
    response: Value,
    what: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_with_response(&session, task, method, response)
        .await?;
    harness.require_next_prompt(&session, what).await.map(drop)
}

async fn continues_after_failed_read(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let error = json!({"error": {"code": -32002, "message": "Resource not found"}});
    continues_after_response(
        harness,
        AgentTask::Read,
        READ_METHOD,
        error,
        "a file read error",
    )
    .await
}

async fn continues_after_failed_write(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let error = json!({"error": {"code": -32603, "message": "No space left"}});
    continues_after_response(
        harness,
        AgentTask::Edit,
        WRITE_METHOD,
        error,
        "a file write error",
    )
    .await
}

async fn accepts_empty_file(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let content = json!({"result": {"content": ""}});
    continues_after_response(
        harness,
        AgentTask::Read,
        READ_METHOD,
        content,
        "an empty file",
    )
    .await
}

async fn accepts_null_result(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let null = json!({"result": null});
    let response = harness
        .run_task_with_response(&session, AgentTask::Edit, WRITE_METHOD, null)
        .await?;
    harness.read_turn(&session, response, 0).map(drop)
}
