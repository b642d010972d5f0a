//! Checks how an agent negotiates the version and the capabilities.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "initialization"
    fresh "tests `initialize` itself";
    1 Must "The response to `initialize` contains the protocol version and capabilities." => returns_version_and_capabilities;
    2 Must "If the agent supports the requested version, it responds with that version." => returns_requested_version;
    3 Must "If the agent does not support the requested version, it responds with its latest version." => returns_latest_version;
    4 Must "Capabilities omitted in `initialize` are treated as unsupported." => requires_no_capabilities;
    5 Must "Unknown capabilities and fields in `initialize` are ignored." => ignores_unknown_capabilities;
    6 Should "The agent reports its name and version." => reports_name;
    7 Must "A client that supports only reading files gets no other client requests." => uses_only_reading;
    8 Must "A client that supports only writing files gets no other client requests." => uses_only_writing;
    9 Must "A client that supports only terminals gets no other client requests." => uses_only_terminals;
    10 Should "The agent reports its capabilities, even if there are none." => reports_capabilities;
    11 Must "The agent supports every method that it advertises." => supports_offered_methods;
    12 Should "Requests before `initialize` get a response." => handles_early_request;
    13 Should "A second `initialize` gets a response." => handles_second_initialize;
    14 Should "After an invalid `initialize`, a valid one succeeds." => accepts_initialize_after_invalid;
    15 Must "Null capabilities in `initialize` are treated as unsupported." => accepts_null_capabilities;
}

async fn returns_version_and_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    require(
        said.get("protocolVersion").is_some_and(Value::is_u64),
        || "the response has no `protocolVersion`".to_owned(),
    )
}

async fn returns_requested_version(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = harness.initialize_params();
    let said = harness.request_result("initialize", params).await?;
    require(said.get("protocolVersion") == Some(&json!(1)), || {
        format!(
            "requested protocol version 1, but the response has {}",
            said["protocolVersion"]
        )
    })
}

async fn returns_latest_version(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["protocolVersion"] = json!(65535);
    let said = harness.request_result("initialize", params).await?;
    match said.get("protocolVersion").and_then(Value::as_u64) {
        Some(1 | 2) => Ok(()),
        _ => fail(format!(
            "requested protocol version 65535, which does not exist; expected 1 or 2, got {}",
            said["protocolVersion"]
        )),
    }
}

async fn requires_no_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    use crate::options::AgentTask;

    harness
        .initialize_with(json!({"protocolVersion": 1}))
        .await?;
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        harness.run_task(&session, task).await?;
    }
    let used = harness.requests().map(|(method, _)| method);
    let used =
        used.filter(|method| *method != "session/request_permission" && !method.starts_with('_'));
    match used.collect::<Vec<_>>().first() {
        Some(method) => fail(format!(
            "the agent called `{method}`, which the client does not support"
        )),
        None => Ok(()),
    }
}

/// Makes the agent read a file, edit it and run a command, as a client with these capabilities. Fails if the agent
/// calls a file or terminal method that does not start with `offered`.
async fn require_only_offered_methods(
    harness: &mut AgentHarness,
    capabilities: Value,
    offered: &str,
) -> Result<(), CheckStop> {
    use crate::options::AgentTask;

    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities.clone()});
    harness.initialize_with(params).await?;
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        harness.run_task(&session, task).await?;
    }
    let needs_offer = |method: &&str| method.starts_with("fs/") || method.starts_with("terminal/");
    let used = harness.requests().map(|(method, _)| method);
    let mut others = used
        .filter(needs_offer)
        .filter(|method| !method.starts_with(offered));
    match others.next() {
        Some(method) => fail(format!(
            "the agent called `{method}`, but the client supports only {capabilities}"
        )),
        None => Ok(()),
    }
}

async fn uses_only_reading(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let capabilities = json!({"fs": {"readTextFile": true}});
    require_only_offered_methods(harness, capabilities, "fs/read_text_file").await
}

async fn uses_only_writing(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": true}});
    require_only_offered_methods(harness, capabilities, "fs/write_text_file").await
}

async fn uses_only_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_only_offered_methods(harness, json!({"terminal": true}), "terminal/").await
}

async fn ignores_unknown_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["telepathy"] = json!({"range": 7});
    params["clientCapabilities"]["_meta"] = json!({"example.org": {"telepathy": true}});
    params["mood"] = json!("good");
    match harness.request("initialize", params).await? {
        ReceivedResponse::Result(_) => Ok(()),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("`initialize` failed with error {code}: {message}"))
        }
    }
}

async fn reports_name(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    let says = |name: &str| {
        said["agentInfo"][name]
            .as_str()
            .is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`agentInfo` with `name` and `version` is missing".to_owned()
    })
}

async fn reports_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    require(said["agentCapabilities"].is_object(), || {
        "the response has no `agentCapabilities`".to_owned()
    })
}

async fn supports_offered_methods(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    const SESSION_CAPABILITIES: &str = "/agentCapabilities/sessionCapabilities";
    harness.initialize().await?;
    // `logout` is not tested here, because it would log out the user who runs the check.
    let methods = [
        ("/agentCapabilities/loadSession".to_owned(), "session/load"),
        (format!("{SESSION_CAPABILITIES}/resume"), "session/resume"),
        (format!("{SESSION_CAPABILITIES}/list"), "session/list"),
        (format!("{SESSION_CAPABILITIES}/close"), "session/close"),
        (format!("{SESSION_CAPABILITIES}/delete"), "session/delete"),
    ];
    for (capability, method) in methods {
        if harness.require_capability(&capability).is_err() {
            continue;
        }
        let mut params = json!({"sessionId": UNKNOWN_SESSION});
        match method {
            "session/list" => params = json!({}),
            "session/load" | "session/resume" => {
                params["cwd"] = harness.session_params()["cwd"].clone();
                params["mcpServers"] = json!([]);
            }
            _ => {}
        }
        let response = harness.request(method, params).await?;
        require(response.code() != Some(-32601), || {
            format!("the agent offers `{method}`, but responds to it with error -32601")
        })?;
    }
    Ok(())
}

async fn handles_early_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = harness.session_params();
    harness.request("session/new", params).await?;
    Ok(())
}

async fn handles_second_initialize(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let params = harness.initialize_params();
    harness.request("initialize", params).await?;
    Ok(())
}

async fn accepts_initialize_after_invalid(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    if let ReceivedResponse::Result(_) = harness.request("initialize", json!({})).await? {
        return skip("the agent accepted an `initialize` without a version");
    }
    harness.initialize().await?;
    Ok(())
}

async fn accepts_null_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientInfo"] = Value::Null;
    params["clientCapabilities"]["session"] = Value::Null;
    params["clientCapabilities"]["elicitation"] = Value::Null;
    harness.initialize_with(params).await?;
    Ok(())
}
