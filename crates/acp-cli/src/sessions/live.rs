//! `acp sessions status`, `cancel` and `queue`: the live sessions of an agent.

use std::fmt::Write as _;

use acp::client::AgentConnection;
use acp_config::{AgentChoice, NamedSession, SessionNames};
use acp_host::terminal_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent_session::with_agent;
use crate::args::sessions::{ManageSessionArgs, QueueArgs, SessionStatusArgs, StopArgs};
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::live::{AttachMode, LiveAttachment, LiveTarget};
use crate::screen::print;
use crate::start::{StartFailure, StartTarget};

/// The state of a live session, as the server reports it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveSessionStatus {
    session_id: String,
    #[serde(default)]
    name: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    clients: Vec<Option<String>>,
    turn: Option<LivePrompt>,
    open_questions: usize,
    queue: Vec<LivePrompt>,
}

/// A prompt that runs or waits.
#[derive(Debug, Serialize, Deserialize)]
struct LivePrompt {
    /// Its number, which stays the same.
    prompt: u64,
    client: Option<String>,
    text: String,
}

#[derive(Debug, Deserialize)]
struct LiveAgentStatus {
    sessions: Vec<LiveSessionStatus>,
}

#[derive(Debug, Deserialize)]
struct LiveQueue {
    queue: Vec<LivePrompt>,
}

pub(super) async fn show_status(args: SessionStatusArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let names = SessionNames::open(agent.storage_key(), &cwd).list()?;
    let wanted = args
        .session
        .as_deref()
        .map(|session| session_id(&names, session));
    let live = live_server(&agent, &cwd)?;
    let mut sessions = match (&live, &agent.remote) {
        // Nothing is live.
        (None, None) => Vec::new(),
        _ => {
            let target = StartTarget {
                agent: &agent,
                cwd: &cwd,
                live: live.as_ref(),
            };
            let work = async |connection: &AgentConnection, _: &_| {
                let status: LiveAgentStatus =
                    request(&agent, connection, "_live/status", &json!({})).await?;
                Ok::<_, StartFailure>(status.sessions)
            };
            with_agent(target, work).await?
        }
    };
    if let Some(wanted) = wanted {
        sessions.retain(|session| session.session_id == wanted);
    }
    for session in &mut sessions {
        let named = names.iter().find(|named| named.id == session.session_id);
        session.name = named.map(|named| named.name.clone());
    }
    if sessions.is_empty() {
        return match &args.session {
            Some(session) => Err(not_live_exit(session)),
            None => {
                eprintln!("acp: no live sessions");
                Ok(())
            }
        };
    }
    let text = match args.format {
        ListFormat::Text => sessions.iter().map(status_text).collect(),
        ListFormat::Json => sessions
            .iter()
            .filter_map(|session| serde_json::to_string(session).ok())
            .fold(String::new(), |all, line| all + &line + "\n"),
    };
    print(text.as_bytes());
    Ok(())
}

pub(super) async fn cancel_turn(args: ManageSessionArgs) -> Result<(), CommandExit> {
    let result: Value = control(&args, "_live/cancel", json!({})).await?;
    print(match result["wasRunning"].as_bool() {
        Some(true) => b"cancelled\n",
        _ => b"no turn is running\n",
    });
    Ok(())
}

pub(super) async fn change_queue(args: QueueArgs) -> Result<(), CommandExit> {
    let session = ManageSessionArgs {
        session: args.session,
        agent_choice: args.agent_choice,
        cwd: args.cwd,
    };
    let queue = match (args.take_back, args.first) {
        (Some(prompt), _) => {
            let params = json!({ "prompt": prompt });
            control::<LiveQueue>(&session, "_live/take_back", params).await?
        }
        (None, Some(prompt)) => {
            let params = json!({ "prompt": prompt, "position": 0 });
            control(&session, "_live/move", params).await?
        }
        (None, None) => control(&session, "_live/queue", json!({})).await?,
    };
    if queue.queue.is_empty() {
        eprintln!("acp: no prompts are waiting");
    }
    let lines: String = queue.queue.iter().map(prompt_line).collect();
    print(lines.as_bytes());
    Ok(())
}

pub(super) fn stop_agent(args: &StopArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    if agent.remote.is_some() {
        let message = "a remote agent cannot be stopped from here";
        return Err(CommandExit::usage(message));
    }
    let Some(live) = live_server(&agent, &cwd)? else {
        eprintln!("acp: {} is not running here", agent.display_name());
        return Ok(());
    };
    match live.stop(args.force) {
        Ok(Ok(())) => {
            print(b"stopped\n");
            Ok(())
        }
        Ok(Err(reason)) => {
            let message = format!("{reason}; stop it anyway with --force");
            Err(CommandExit::failed(message))
        }
        Err(e) => Err(CommandExit::failed(format!("cannot stop the agent: {e}"))),
    }
}

/// Sends a request about a live session.
async fn control<T: DeserializeOwned>(
    args: &ManageSessionArgs,
    method: &str,
    mut params: Value,
) -> Result<T, CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let names = SessionNames::open(agent.storage_key(), &cwd).list()?;
    let live = live_server(&agent, &cwd)?;
    if live.is_none() && agent.remote.is_none() {
        return Err(not_live_exit(&args.session));
    }
    params["sessionId"] = session_id(&names, &args.session).into();
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: live.as_ref(),
    };
    let work = async |connection: &AgentConnection, _: &_| match request(
        &agent, connection, method, &params,
    )
    .await
    {
        Err(StartFailure::Agent(error)) if crate::start::is_not_found(&error) => {
            match params.get("prompt") {
                Some(prompt) => {
                    let message = format!("prompt {prompt} is not waiting in the queue");
                    Err(CommandExit::failed(message).into())
                }
                None => Err(not_live_exit(&args.session).into()),
            }
        }
        done => done,
    };
    with_agent(target, work).await
}

async fn request<T: DeserializeOwned>(
    agent: &AgentChoice,
    connection: &AgentConnection,
    method: &str,
    params: &Value,
) -> Result<T, StartFailure> {
    let result = match connection.connection().request_raw(method, params).await {
        Err(acp::Error::Rpc(error)) if error.code == acp::jsonrpc::Error::METHOD_NOT_FOUND => {
            let message = format!("{} has no live sessions", agent.display_name());
            return Err(CommandExit::usage(message).into());
        }
        result => result?,
    };
    serde_json::from_str(result.get())
        .map_err(|e| CommandExit::failed(format!("invalid response to {method}: {e}")).into())
}

/// Attaches to the local server of an agent and directory, if there is one.
pub(super) fn live_server(
    agent: &AgentChoice,
    cwd: &std::path::Path,
) -> Result<Option<LiveAttachment>, CommandExit> {
    let target = LiveTarget {
        agent,
        cwd,
        confinement: None,
        policy: None,
    };
    target.attach(AttachMode::IfRunning)
}

/// Returns the id of a session, given its name or id.
fn session_id(names: &[NamedSession], name_or_id: &str) -> String {
    let named = names.iter().find(|named| named.name == name_or_id);
    named.map_or_else(|| name_or_id.to_owned(), |named| named.id.clone())
}

fn not_live_exit(session: &str) -> CommandExit {
    CommandExit::failed(format!(
        "session not live: {session}; list live sessions with `acp sessions status`"
    ))
}

fn status_text(session: &LiveSessionStatus) -> String {
    let clean = |text: &str| terminal_text::clean_value(text);
    let mut text = String::new();
    let name = session
        .name
        .as_deref()
        .map(|name| format!("{}  ", clean(name)));
    let _ = writeln!(
        text,
        "{}{}",
        name.unwrap_or_default(),
        clean(&session.session_id)
    );
    if let Some(title) = &session.title {
        let _ = writeln!(text, "  title:   {}", clean(title));
    }
    let turn = match &session.turn {
        Some(turn) => format!("running {}", prompt_line(turn).trim_end()),
        None => "none".to_owned(),
    };
    let _ = writeln!(text, "  turn:    {turn}");
    if session.open_questions > 0 {
        let noun = match session.open_questions {
            1 => "question",
            _ => "questions",
        };
        let _ = writeln!(
            text,
            "  waiting: for an answer to {} {noun}",
            session.open_questions
        );
    }
    for prompt in &session.queue {
        let _ = writeln!(text, "  queued:  {}", prompt_line(prompt).trim_end());
    }
    let clients: Vec<String> = session
        .clients
        .iter()
        .map(|name| clean(name.as_deref().unwrap_or("unnamed client")))
        .collect();
    let clients = match clients.is_empty() {
        true => "none".to_owned(),
        false => clients.join(", "),
    };
    let _ = writeln!(text, "  clients: {clients}");
    text
}

/// Returns a line with a prompt's number, text and sender.
fn prompt_line(prompt: &LivePrompt) -> String {
    let text = terminal_text::clean_value(&prompt.text);
    match &prompt.client {
        Some(client) => {
            let client = terminal_text::clean_value(client);
            format!("{}  {text}  ({client})\n", prompt.prompt)
        }
        None => format!("{}  {text}\n", prompt.prompt),
    }
}
