//! Checks how an agent opens new sessions and handles their params.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-setup";
    1 Must "A new session has an id." => new_session_has_id, shared;
    2 Must "Session ids are unique." => has_unique_ids, shared;
    3 Must "A session uses its own working directory, not the agent's." => uses_session_directory, fresh "compares the session's directory with the agent's own";
    4 Should "Opening a session with a relative working directory fails." => rejects_relative_cwd, shared;
    5 Should "The agent connects to MCP servers over stdin and stdout." => connects_to_mcp_server, fresh "starts an MCP server, which may outlive the session";
    6 Must "MCP servers are started with the given arguments and environment." => passes_mcp_arguments, fresh "starts an MCP server, which may outlive the session";
    7 Must "Several sessions can be used at once." => supports_several_sessions, shared;
    8 Must "Updates have the id of the prompted session." => sends_updates_for_prompted_session, shared;
    9 Should "A prompt for an unknown session fails." => rejects_unknown_session, shared;
    10 Must "An agent with the capability accepts `additionalDirectories`." => accepts_additional_directories, shared;
}

async fn new_session_has_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let id = harness.new_session().await?;
    require(!id.is_empty(), || "the `sessionId` is empty".to_owned())
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..3 {
        let id = harness.new_session().await?;
        require(!ids.contains(&id), || {
            format!("the agent opened two sessions with id {id:?}")
        })?;
        ids.push(id);
    }
    Ok(())
}

/// Creates a directory outside the project, with its own `notes.txt`.
fn create_other_directory(harness: &AgentHarness) -> Result<PathBuf, CheckStop> {
    let other = harness.directory().project().with_file_name("other");
    let made = std::fs::create_dir(&other)
        .and_then(|()| std::fs::write(other.join("notes.txt"), "omega\npsi\n"));
    made.map_err(|e| CheckStop::Harness(format!("cannot create a directory: {e}")))?;
    Ok(other)
}

async fn uses_session_directory(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let other = create_other_directory(harness)?;
    harness.initialize().await?;
    let mut params = harness.session_params();
    params["cwd"] = json!(other);
    let opened = harness.open_session_with(params).await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    let turn = harness.run_task(&session, AgentTask::Read).await?;
    let read = turn.requests.iter().map(|(_, params)| &params["path"]);
    let located = turn.updates.iter().flat_map(|update| {
        let locations = update["locations"].as_array().into_iter().flatten();
        locations.map(|location| &location["path"])
    });
    let mut files = read.chain(located).filter_map(Value::as_str);
    let project = harness.directory().project();
    if let Some(wrong) = files.find(|file| Path::new(file).starts_with(project)) {
        return fail(format!(
            "the session's directory is {}, but the agent used {wrong}",
            other.display()
        ));
    }
    // The agent's answer about the file shows which file it has read.
    let said = turn.text().to_lowercase();
    let reported = tool_call_content(&turn.updates) + &said;
    match (reported.contains("omega"), reported.contains("alpha")) {
        (true, _) => Ok(()),
        (false, true) => fail(format!(
            "the session's directory is {}, but the agent reported the content of {}",
            other.display(),
            project.join("notes.txt").display()
        )),
        (false, false) => skip("the agent did not report the content that it read"),
    }
}

/// Returns the content of all tool calls, as JSON.
fn tool_call_content(updates: &[Value]) -> String {
    let shown = updates.iter().map(|update| &update["content"]);
    let shown = shown.filter(|content| content.is_array());
    shown.map(ToString::to_string).collect()
}

async fn rejects_relative_cwd(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.new_session().await?;
    let params = json!({"cwd": "project", "mcpServers": []});
    match harness.request("session/new", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent opened a session in \"project\", which is not an absolute path")
        }
    }
}

/// A shell script that acts as an MCP server and records in files how it was started.
const MCP_SERVER_SCRIPT: &str = include_str!("mcp_server.sh");

/// How often to look for the files that the MCP server writes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Opens a session with an MCP server and sends a prompt. Returns a file written by the server: `started` contains its
/// argument and an environment variable, and `initialized` contains the client's first request.
async fn read_server_note(
    harness: &mut AgentHarness,
    of: &str,
) -> Result<Option<String>, CheckStop> {
    if !cfg!(unix) {
        return skip("this check's MCP server is a shell script, which requires a Unix system");
    }
    let (script, notes) = (
        harness.directory().file("server.sh"),
        harness.directory().file("server"),
    );
    std::fs::write(&script, MCP_SERVER_SCRIPT)
        .map_err(|e| CheckStop::Harness(format!("cannot write the server script: {e}")))?;
    harness.initialize().await?;
    let mut params = harness.session_params();
    params["mcpServers"] = json!([{
        "name": "acp-check",
        "command": "/bin/sh",
        "args": [script, notes, "an argument"],
        "env": [{"name": "ACP_CHECK", "value": "a variable"}],
    }]);
    let opened = harness.open_session_with(params).await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    // The agent may connect lazily, but not after the first prompt.
    harness.run_task(&session, AgentTask::Answer).await?;
    let file = notes.with_extension(of);
    let patience = harness.wire.timeout();
    let looking = async {
        loop {
            if let Ok(noted) = std::fs::read_to_string(&file) {
                return Ok(Some(noted));
            }
            harness.collect(POLL_INTERVAL).await?;
            if harness.wire.has_ended() {
                return Ok(None);
            }
        }
    };
    tokio::time::timeout(patience, looking)
        .await
        .unwrap_or(Ok(None))
}

async fn connects_to_mcp_server(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match read_server_note(harness, "initialized").await? {
        Some(_) => Ok(()),
        None => fail(
            "the session was opened and sent a prompt, but the MCP server received no `initialize`",
        ),
    }
}

async fn passes_mcp_arguments(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let Some(noted) = read_server_note(harness, "started").await? else {
        return skip("the agent did not start the MCP server");
    };
    let mut lines = noted.lines();
    for expected in ["an argument", "a variable"] {
        let got = lines.next().unwrap_or_default();
        require(got == expected, || {
            format!("the MCP server expected {expected:?}, got {got:?}")
        })?;
    }
    Ok(())
}

async fn supports_several_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let sessions = [harness.new_session().await?, harness.new_session().await?];
    let text = harness.prompt_text(AgentTask::Answer);
    let mut prompts = Vec::new();
    for session in &sessions {
        prompts.push(harness.begin_prompt(session, &text).await?);
    }
    for (response, session) in harness
        .wait_for_responses(&prompts)
        .await?
        .into_iter()
        .zip(&sessions)
    {
        harness.read_turn(session, response, 0)?;
    }
    Ok(())
}

async fn sends_updates_for_prompted_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.new_session().await?;
    let before = harness.messages.len();
    harness.run_task(&session, AgentTask::Answer).await?;
    // Other sessions may get updates at any time, but not all updates of this turn.
    let of_turn = harness.updates_since(before).filter(|reported| {
        let kind = reported["update"]["sessionUpdate"].as_str();
        matches!(
            kind,
            Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call")
        )
    });
    let sessions: Vec<&Value> = of_turn.map(|reported| &reported["sessionId"]).collect();
    match sessions.first() {
        None => skip("the agent sent no updates during the turn"),
        Some(_) if sessions.iter().any(|reported| **reported == session) => Ok(()),
        Some(other) => fail(format!(
            "the prompt was for session {session:?}, but updates were sent for session {other}"
        )),
    }
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Answer);
    let id = harness.begin_prompt(UNKNOWN_SESSION, &text).await?;
    match harness.wait_for_turn_response(&id).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("the agent accepted a prompt for an unknown session"),
    }
}

async fn accepts_additional_directories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/sessionCapabilities/additionalDirectories")?;
    let other = create_other_directory(harness)?;
    let mut params = harness.session_params();
    params["additionalDirectories"] = json!([other]);
    harness.open_session_with(params).await?;
    Ok(())
}
