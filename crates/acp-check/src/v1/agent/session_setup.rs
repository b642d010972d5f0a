//! Session setup: new sessions, and their params.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::NO_SESSION;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-setup";
    1 Must "A new session has an id." => has_id;
    2 Must "Session ids are unique." => ids_differ;
    3 Must "A session uses its own working directory, not the agent's." => working_directory;
    4 Should "A relative working directory fails." => rejects_relative_cwd;
    5 Should "The agent connects to MCP servers over stdin and stdout." => mcp_stdio;
    6 Must "MCP servers are started with the given arguments and environment." => mcp_arguments;
    7 Must "Several sessions can be used at once." => supports_several_sessions;
    8 Must "Updates have the id of the prompted session." => own_session;
    9 Should "A prompt for an unknown session fails." => rejects_unknown_session;
    10 Must "An agent with the capability accepts `additionalDirectories`." => further_directories;
}

async fn has_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let id = harness.session().await?;
    require(!id.is_empty(), || "the `sessionId` is empty".to_owned())
}

async fn ids_differ(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..3 {
        let id = harness.session().await?;
        require(!ids.contains(&id), || {
            format!("it opened two sessions with id {id:?}")
        })?;
        ids.push(id);
    }
    Ok(())
}

/// Creates a directory outside the project, which is not the agent's own working directory.
fn other_directory(harness: &AgentHarness) -> Result<PathBuf, CheckStop> {
    let other = harness.place().project().with_file_name("other");
    let made = std::fs::create_dir(&other)
        .and_then(|()| std::fs::write(other.join("notes.txt"), "omega\npsi\n"));
    made.map_err(|e| CheckStop::Harness(format!("cannot create a directory: {e}")))?;
    Ok(other)
}

async fn working_directory(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let other = other_directory(harness)?;
    harness.initialize().await?;
    let mut params = harness.session_params();
    params["cwd"] = json!(other);
    let opened = harness.open_session_with(params).await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    let turn = harness.turn(&session, AgentTask::Read).await?;
    let read = turn.requests.iter().map(|(_, params)| &params["path"]);
    let located = turn.updates.iter().flat_map(|update| {
        let locations = update["locations"].as_array().into_iter().flatten();
        locations.map(|location| &location["path"])
    });
    let mut files = read.chain(located).filter_map(Value::as_str);
    let project = harness.place().project();
    if let Some(wrong) = files.find(|file| Path::new(file).starts_with(project)) {
        return fail(format!(
            "the session is in {}, but it used {wrong}",
            other.display()
        ));
    }
    // What it says about the file shows which one it has read.
    let said = turn.text().to_lowercase();
    let told = reported_files(&turn.updates) + &said;
    match (told.contains("omega"), told.contains("alpha")) {
        (true, _) => Ok(()),
        (false, true) => fail(format!(
            "the session is in {}, and it said what is in {}",
            other.display(),
            project.join("notes.txt").display()
        )),
        (false, false) => skip("the agent did not say what it has read"),
    }
}

/// Returns the output of tool calls, as text.
fn reported_files(updates: &[Value]) -> String {
    let shown = updates.iter().map(|update| &update["content"]);
    let shown = shown.filter(|content| content.is_array());
    shown.map(ToString::to_string).collect()
}

async fn rejects_relative_cwd(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.session().await?;
    let params = json!({"cwd": "project", "mcpServers": []});
    match harness.request("session/new", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("it opened a session in \"project\", which is not an absolute path")
        }
    }
}

/// An MCP server that writes down how it was started. The script requires a shell.
const MCP_SERVER: &str = include_str!("mcp_server.sh");

/// How often to check for the server's notes.
const LOOK: Duration = Duration::from_millis(20);

/// Opens a session with an MCP server, sends a prompt, and returns the server's note `of`: "started" has its argument
/// and an environment variable, "initialized" the client's first request.
async fn server_note(harness: &mut AgentHarness, of: &str) -> Result<Option<String>, CheckStop> {
    if !cfg!(unix) {
        return skip("the server that is tried is a shell script");
    }
    let (script, notes) = (
        harness.place().file("server.sh"),
        harness.place().file("server"),
    );
    std::fs::write(&script, MCP_SERVER)
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
    // It may connect lazily, but not after the first prompt.
    harness.turn(&session, AgentTask::Answer).await?;
    let file = notes.with_extension(of);
    let patience = harness.wire.patience();
    let looking = async {
        loop {
            if let Ok(noted) = std::fs::read_to_string(&file) {
                return Ok(Some(noted));
            }
            harness.collect(LOOK).await?;
            if harness.wire.has_ended() {
                return Ok(None);
            }
        }
    };
    tokio::time::timeout(patience, looking)
        .await
        .unwrap_or(Ok(None))
}

async fn mcp_stdio(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match server_note(harness, "initialized").await? {
        Some(_) => Ok(()),
        None => fail("the session was opened and prompted, but its MCP server got no `initialize`"),
    }
}

async fn mcp_arguments(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let Some(noted) = server_note(harness, "started").await? else {
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
    let sessions = [harness.session().await?, harness.session().await?];
    let text = harness.text_for(AgentTask::Answer);
    let mut prompts = Vec::new();
    for session in &sessions {
        prompts.push(harness.begin_prompt(session, &text).await?);
    }
    for (answer, session) in harness.answers(&prompts).await?.into_iter().zip(&sessions) {
        harness.turn_since(session, answer, 0)?;
    }
    Ok(())
}

async fn own_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.session().await?;
    harness.session().await?;
    let before = harness.messages.len();
    harness.turn(&session, AgentTask::Answer).await?;
    // Other sessions may get updates at any time, but not everything of this turn.
    let of_turn = harness.updates_since(before).filter(|told| {
        let kind = told["update"]["sessionUpdate"].as_str();
        matches!(
            kind,
            Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call")
        )
    });
    let sessions: Vec<&Value> = of_turn.map(|told| &told["sessionId"]).collect();
    match sessions.first() {
        None => skip("the turn had no updates"),
        Some(_) if sessions.iter().any(|told| **told == session) => Ok(()),
        Some(other) => fail(format!(
            "session {session:?} was prompted, but updates were sent for session {other}"
        )),
    }
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.session().await?;
    let text = harness.text_for(AgentTask::Answer);
    let id = harness.begin_prompt(NO_SESSION, &text).await?;
    match harness.turn_answer(&id).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("it accepted a prompt for an unknown session"),
    }
}

async fn further_directories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/sessionCapabilities/additionalDirectories")?;
    let other = other_directory(harness)?;
    let mut params = harness.session_params();
    params["additionalDirectories"] = json!([other]);
    harness.open_session_with(params).await?;
    Ok(())
}
