//! System prompts that a client gives to its sessions. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::Version;

use super::steps::{needs_of_sessions, of_sessions, spoken, turn};
use crate::check::checks;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent_v2::kind;

checks! { V1 V2 Agent "system-prompt";
    1 Must "A session opens with a system prompt that is appended." => appended;
    2 Must "An old session opens with a system prompt as well, however it is opened." => appended_to_old;
    3 Must "A system prompt of a mode that the agent does not know is refused, and no session opens." => unknown_mode;
    4 Must "A system prompt that overrides the agent's own is taken where that is offered, and refused where it is not." => overrides;
    5 Must "A system prompt that is not text is refused, and no session opens." => other_content;
    6 Must "A session opens with a system prompt that is null, as if there were none." => null;
    7 Should "What the system prompt says is known in the session." => known;
}

const OFFERED: &str = "systemPrompt";

fn prompt(mode: &str, content: Value) -> Value {
    json!({"mode": mode, "content": content})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// A system prompt that nobody can mind.
fn polite(mode: &str) -> Value {
    prompt(mode, text("Be polite."))
}

/// By which methods the agent opens old sessions.
fn methods(play: &AgentPlay) -> Vec<&'static str> {
    let mut methods = Vec::new();
    if play.version() == Version::V2 {
        methods.push("session/resume");
    } else {
        if play.needs("/agentCapabilities/loadSession").is_ok() {
            methods.push("session/load");
        }
        if play.needs(&of_sessions(play, "resume")).is_ok() {
            methods.push("session/resume");
        }
    }
    if play.needs(&of_sessions(play, "fork")).is_ok() {
        methods.push("session/fork");
    }
    methods
}

/// A session in which something was said, and which was closed, if the agent closes sessions.
async fn old(play: &mut AgentPlay) -> Result<String, Stop> {
    let session = spoken(play).await?;
    if play.version() == Version::V2 || play.needs(&of_sessions(play, "close")).is_ok() {
        let params = json!({"sessionId": session});
        play.result("session/close", params).await?;
    }
    Ok(session)
}

/// Params for opening a session, the old one unless it is a new one, with this system prompt.
fn params(play: &AgentPlay, method: &str, old: &str, prompt: Value) -> Value {
    let mut params = play.session_params();
    if method != "session/new" {
        params["sessionId"] = json!(old);
    }
    params["systemPrompt"] = prompt;
    params
}

/// That no session opens with this system prompt, by any method.
async fn is_refused(play: &mut AgentPlay, prompt: &Value) -> Result<(), Stop> {
    let old = old(play).await?;
    let mut methods = methods(play);
    methods.push("session/new");
    for method in methods {
        let params = params(play, method, &old, prompt.clone());
        if let Answer::Result(_) = play.request(method, params).await? {
            return fail(format!(
                "`{method}` with the system prompt {prompt} was answered with a result"
            ));
        }
    }
    Ok(())
}

async fn appended(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    let params = params(play, "session/new", "", polite("append"));
    play.open_session_with(params).await.map(drop)
}

async fn appended_to_old(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    let methods = methods(play);
    if methods.is_empty() {
        return skip("the agent opens no old sessions");
    }
    for method in methods {
        let old = old(play).await?;
        let params = params(play, method, &old, polite("append"));
        play.result(method, params).await?;
    }
    Ok(())
}

async fn unknown_mode(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    is_refused(play, &polite("_acp-check/whisper")).await
}

async fn overrides(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    if play
        .needs(&of_sessions(play, "systemPrompt/mode/override"))
        .is_err()
    {
        return is_refused(play, &polite("override")).await;
    }
    let params = params(play, "session/new", "", polite("override"));
    play.open_session_with(params).await.map(drop)
}

async fn other_content(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    let said = json!({"type": "text", "text": "Be polite."});
    let image = json!({"type": "image", "mimeType": "image/png", "data": "eA=="});
    let unknown = json!({"type": "_acp-check/smell", "of": "roses"});
    for other in [image, unknown] {
        is_refused(play, &prompt("append", json!([said, other]))).await?;
    }
    Ok(())
}

async fn null(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    let params = params(play, "session/new", "", Value::Null);
    play.open_session_with(params).await.map(drop)
}

async fn known(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, OFFERED).await?;
    let remember = text(&play.text_for(Task::Remember));
    let params = params(play, "session/new", "", prompt("append", remember));
    let session = play.open_session_with(params).await?;
    let session = session["sessionId"].as_str().unwrap_or_default();
    let turn = turn(play, session, Task::Recall).await?;
    // In version 2 a message may come whole.
    let said: String = turn
        .updates
        .iter()
        .filter(|update| kind(update).starts_with("agent_message"))
        .map(|update| update["content"].to_string())
        .collect();
    require(said.contains("7351"), || {
        format!("told by the system prompt to remember 7351, and asked for it, it said {said}")
    })
}
