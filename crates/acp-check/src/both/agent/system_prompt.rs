//! System prompts that a client sets for its sessions. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{needs_of_sessions, of_sessions, spoken, turn};
use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::kind;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "system-prompt";
    1 Must "`session/new` accepts a system prompt in append mode." => appends_to_new;
    2 Must "Loading, resuming and forking a session accept a system prompt." => appends_to_existing;
    3 Must "A system prompt with an unknown mode is rejected, and no session is opened." => unknown_mode;
    4 Must "A system prompt in override mode is accepted only if the agent supports it." => overrides;
    5 Must "A system prompt that is not text is rejected, and no session is opened." => other_content;
    6 Must "A null system prompt is treated as absent." => accepts_null;
    7 Should "The system prompt takes effect in the session." => uses_appended_prompt;
}

const OFFERED: &str = "systemPrompt";

fn prompt(mode: &str, content: Value) -> Value {
    json!({"mode": mode, "content": content})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// Returns a harmless system prompt.
fn polite_prompt(mode: &str) -> Value {
    prompt(mode, text("Be polite."))
}

/// Returns the methods by which the agent opens old sessions.
fn methods(harness: &AgentHarness) -> Vec<&'static str> {
    let mut methods = Vec::new();
    if harness.version() == SchemaVersion::V2 {
        methods.push("session/resume");
    } else {
        if harness
            .require_capability("/agentCapabilities/loadSession")
            .is_ok()
        {
            methods.push("session/load");
        }
        if harness
            .require_capability(&of_sessions(harness, "resume"))
            .is_ok()
        {
            methods.push("session/resume");
        }
    }
    if harness
        .require_capability(&of_sessions(harness, "fork"))
        .is_ok()
    {
        methods.push("session/fork");
    }
    methods
}

/// Returns a session with a turn, which was closed if the agent supports closing sessions.
async fn existing_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = spoken(harness).await?;
    if harness.version() == SchemaVersion::V2
        || harness
            .require_capability(&of_sessions(harness, "close"))
            .is_ok()
    {
        let params = json!({"sessionId": session});
        harness.result("session/close", params).await?;
    }
    Ok(session)
}

/// Returns params that open a session with this system prompt: the old one, unless the method opens a new one.
fn params(harness: &AgentHarness, method: &str, old: &str, prompt: Value) -> Value {
    let mut params = harness.session_params();
    if method != "session/new" {
        params["sessionId"] = json!(old);
    }
    params["systemPrompt"] = prompt;
    params
}

/// Requires that no method opens a session with this system prompt.
async fn require_rejected(harness: &mut AgentHarness, prompt: &Value) -> Result<(), CheckStop> {
    let old = existing_session(harness).await?;
    let mut methods = methods(harness);
    methods.push("session/new");
    for method in methods {
        let params = params(harness, method, &old, prompt.clone());
        if let ReceivedResponse::Result(_) = harness.request(method, params).await? {
            return fail(format!(
                "`{method}` with system prompt {prompt} succeeded; expected an error"
            ));
        }
    }
    Ok(())
}

async fn appends_to_new(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    let params = params(harness, "session/new", "", polite_prompt("append"));
    harness.open_session_with(params).await.map(drop)
}

async fn appends_to_existing(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    let methods = methods(harness);
    if methods.is_empty() {
        return skip("the agent cannot open existing sessions");
    }
    for method in methods {
        let old = existing_session(harness).await?;
        let params = params(harness, method, &old, polite_prompt("append"));
        harness.result(method, params).await?;
    }
    Ok(())
}

async fn unknown_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    require_rejected(harness, &polite_prompt("_acp-check/whisper")).await
}

async fn overrides(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    if harness
        .require_capability(&of_sessions(harness, "systemPrompt/mode/override"))
        .is_err()
    {
        return require_rejected(harness, &polite_prompt("override")).await;
    }
    let params = params(harness, "session/new", "", polite_prompt("override"));
    harness.open_session_with(params).await.map(drop)
}

async fn other_content(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    let said = json!({"type": "text", "text": "Be polite."});
    let image = json!({"type": "image", "mimeType": "image/png", "data": "eA=="});
    let unknown = json!({"type": "_acp-check/smell", "of": "roses"});
    for other in [image, unknown] {
        require_rejected(harness, &prompt("append", json!([said, other]))).await?;
    }
    Ok(())
}

async fn accepts_null(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    let params = params(harness, "session/new", "", Value::Null);
    harness.open_session_with(params).await.map(drop)
}

async fn uses_appended_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(harness, OFFERED).await?;
    let remember = text(&harness.text_for(AgentTask::Remember));
    let params = params(harness, "session/new", "", prompt("append", remember));
    let session = harness.open_session_with(params).await?;
    let session = session["sessionId"].as_str().unwrap_or_default();
    let turn = turn(harness, session, AgentTask::Recall).await?;
    // In version 2 a message may come as a whole.
    let said: String = turn
        .updates
        .iter()
        .filter(|update| kind(update).starts_with("agent_message"))
        .map(|update| update["content"].to_string())
        .collect();
    require(said.contains("7351"), || {
        format!(
            "the system prompt says to remember 7351, but when asked for it, the agent said {said}"
        )
    })
}
