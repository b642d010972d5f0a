//! Checks for an agent's support for system prompts set by the client. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{
    new_session_with_turn, require_session_capability, run_task, session_capability,
};
use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::update_type;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "system-prompt";
    1 Must "`session/new` accepts a system prompt in append mode." => appends_to_new_session, shared;
    2 Must "Requests that load, resume or fork a session accept a system prompt." => appends_to_existing_session, shared;
    3 Must "A system prompt with an unknown mode is rejected, and no session is opened." => rejects_unknown_mode, shared;
    4 Must "A system prompt in override mode is accepted only if the agent supports it." => accepts_override_only_if_supported, shared;
    5 Must "A system prompt that is not text is rejected, and no session is opened." => rejects_non_text_system_prompt, shared;
    6 Must "A null system prompt is treated as absent." => accepts_null_system_prompt, shared;
    7 Should "The agent follows the system prompt in the session." => uses_appended_prompt, shared;
}

const CAPABILITY_NAME: &str = "systemPrompt";

fn system_prompt(mode: &str, content: Value) -> Value {
    json!({"mode": mode, "content": content})
}

fn text_content(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// Returns a harmless system prompt with this mode.
fn harmless_system_prompt(mode: &str) -> Value {
    system_prompt(mode, text_content("Be polite."))
}

/// Returns the methods that the agent supports for opening an existing session.
fn opening_methods(harness: &AgentHarness) -> Vec<&'static str> {
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
            .require_capability(&session_capability(harness, "resume"))
            .is_ok()
        {
            methods.push("session/resume");
        }
    }
    if harness
        .require_capability(&session_capability(harness, "fork"))
        .is_ok()
    {
        methods.push("session/fork");
    }
    methods
}

/// Opens a session, runs one turn, closes the session if the agent supports that, and returns its id.
async fn create_existing_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = new_session_with_turn(harness).await?;
    if harness.version() == SchemaVersion::V2
        || harness
            .require_capability(&session_capability(harness, "close"))
            .is_ok()
    {
        let params = json!({"sessionId": session});
        harness.request_result("session/close", params).await?;
    }
    Ok(session)
}

/// Returns params for opening a session with this system prompt. `old` is the existing session to open, which is
/// ignored for `session/new`.
fn opening_params(harness: &AgentHarness, method: &str, old: &str, prompt: Value) -> Value {
    let mut params = harness.session_params();
    if method != "session/new" {
        params["sessionId"] = json!(old);
    }
    params["systemPrompt"] = prompt;
    params
}

/// Requires that no method opens a session with this system prompt.
async fn require_rejected(harness: &mut AgentHarness, prompt: &Value) -> Result<(), CheckStop> {
    let old = create_existing_session(harness).await?;
    let mut methods = opening_methods(harness);
    methods.push("session/new");
    for method in methods {
        let params = opening_params(harness, method, &old, prompt.clone());
        if let ReceivedResponse::Result(_) = harness.request(method, params).await? {
            return fail(format!(
                "`{method}` with system prompt {prompt} succeeded; expected an error"
            ));
        }
    }
    Ok(())
}

async fn appends_to_new_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    let params = opening_params(harness, "session/new", "", harmless_system_prompt("append"));
    harness.open_session_with(params).await.map(drop)
}

async fn appends_to_existing_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    let methods = opening_methods(harness);
    if methods.is_empty() {
        return skip("the agent cannot open existing sessions");
    }
    for method in methods {
        let old = create_existing_session(harness).await?;
        let params = opening_params(harness, method, &old, harmless_system_prompt("append"));
        harness.request_result(method, params).await?;
    }
    Ok(())
}

async fn rejects_unknown_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    require_rejected(harness, &harmless_system_prompt("_acp-check/whisper")).await
}

async fn accepts_override_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    if harness
        .require_capability(&session_capability(harness, "systemPrompt/mode/override"))
        .is_err()
    {
        return require_rejected(harness, &harmless_system_prompt("override")).await;
    }
    let params = opening_params(
        harness,
        "session/new",
        "",
        harmless_system_prompt("override"),
    );
    harness.open_session_with(params).await.map(drop)
}

async fn rejects_non_text_system_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    let said = json!({"type": "text", "text": "Be polite."});
    let image = json!({"type": "image", "mimeType": "image/png", "data": "eA=="});
    let unknown = json!({"type": "_acp-check/smell", "of": "roses"});
    for other in [image, unknown] {
        require_rejected(harness, &system_prompt("append", json!([said, other]))).await?;
    }
    Ok(())
}

async fn accepts_null_system_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    let params = opening_params(harness, "session/new", "", Value::Null);
    harness.open_session_with(params).await.map(drop)
}

async fn uses_appended_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, CAPABILITY_NAME).await?;
    let remember = text_content(&harness.prompt_text(AgentTask::Remember));
    let params = opening_params(
        harness,
        "session/new",
        "",
        system_prompt("append", remember),
    );
    let session = harness.open_session_with(params).await?;
    let session = session["sessionId"].as_str().unwrap_or_default();
    let turn = run_task(harness, session, AgentTask::Recall).await?;
    // In version 2, a message may arrive as a whole.
    let said: String = turn
        .updates
        .iter()
        .filter(|update| update_type(update).starts_with("agent_message"))
        .map(|update| update["content"].to_string())
        .collect();
    require(said.contains("7351"), || {
        format!(
            "the system prompt says to remember 7351, but when asked for the number, the agent answered {said}"
        )
    })
}
