//! Checks how an agent negotiates the version and the capabilities.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "initialization"
    fresh "tests `initialize` itself";
    1 Must "The response to `initialize` has the protocol version and the agent's name and version." => reports_name;
    2 Must "If version 2 is requested, an agent that supports version 2 responds with it." => returns_requested_version;
    3 Must "If the agent does not support the requested version, it responds with its latest version." => returns_latest_version;
    4 Must "If version 1 is negotiated, the response to a prompt ends its turn." => negotiates_version_1;
    5 Must "Unknown capabilities and fields in `initialize` are ignored." => ignores_unknown_capabilities;
    6 Must "Capabilities omitted in `initialize` are treated as unsupported." => requires_no_capabilities;
    7 Must "In version 2, the agent calls no file or terminal methods, even if the client offers them for version 1." => calls_no_version_1_client_methods;
    8 Must "In version 2, no `tool_call`, `plan` or `current_mode_update` is sent." => sends_no_version_1_updates;
}

/// The error code of an agent that supports only versions newer than the requested one.
const UNSUPPORTED_VERSION_CODE: i64 = -32022;

async fn reports_name(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    let says = |name: &str| {
        let said = said["info"][name].as_str();
        said.is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`info` with `name` and `version` is missing from the response".to_owned()
    })
}

async fn returns_requested_version(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = harness.initialize_params();
    let said = harness.request_result("initialize", params).await?;
    match said["protocolVersion"].as_u64() {
        Some(2) => Ok(()),
        Some(1) => skip("the agent speaks version 1, not 2"),
        _ => fail(format!(
            "requested version 2, got {}",
            said["protocolVersion"]
        )),
    }
}

async fn returns_latest_version(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["protocolVersion"] = json!(65535);
    let said = harness.request_result("initialize", params).await?;
    match said["protocolVersion"].as_u64() {
        Some(1 | 2) => Ok(()),
        _ => fail(format!(
            "requested the nonexistent version 65535, got {}",
            said["protocolVersion"]
        )),
    }
}

async fn negotiates_version_1(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": {},
        "clientInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
    });
    let said = match harness.request("initialize", params).await? {
        ReceivedResponse::Result(said) => said,
        // Drafts later than the one that the suite checks define this error, and some agents send it.
        ReceivedResponse::Error {
            code: UNSUPPORTED_VERSION_CODE,
            ..
        } => return skip("the agent does not support version 1"),
        ReceivedResponse::Error { code, message, .. } => {
            return fail(format!("`initialize` failed with error {code}: {message}"));
        }
    };
    match said["protocolVersion"].as_u64() {
        Some(1) => {}
        Some(2) => return skip("the agent does not support version 1"),
        _ => {
            return fail(format!(
                "requested version 1, got {}",
                said["protocolVersion"]
            ));
        }
    }
    let opened = match harness
        .request("session/new", harness.session_params())
        .await?
    {
        ReceivedResponse::Result(opened) => opened,
        ReceivedResponse::Error { code: -32000, .. } => {
            return skip("the agent requires a login");
        }
        ReceivedResponse::Error { code, message, .. } => {
            return fail(format!("`session/new` failed with error {code}: {message}"));
        }
    };
    let session = opened["sessionId"].as_str().unwrap_or_default();
    let text = harness.prompt_text(AgentTask::Answer);
    let prompt = harness.begin_prompt(session, &text).await?;
    let response = harness.wait_for_turn_response(&prompt).await?;
    harness.read_turn(session, response, 0)?;
    let new = |update: &Value| update["update"]["sessionUpdate"] == "state_update";
    require(!harness.updates().any(new), || {
        "a `state_update`, which exists only in version 2, was sent in version 1".to_owned()
    })
}

async fn ignores_unknown_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["capabilities"]["telepathy"] = json!({"range": 7});
    params["capabilities"]["_meta"] = json!({"example.org": {"telepathy": true}});
    params["mood"] = json!("good");
    match harness.request("initialize", params).await? {
        ReceivedResponse::Result(_) => Ok(()),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("`initialize` failed with error {code}: {message}"))
        }
    }
}

/// Makes the agent do tasks that may need the client, and returns the methods that it called.
async fn called_methods(harness: &mut AgentHarness) -> Result<Vec<String>, CheckStop> {
    let session = harness.new_session_v2().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        harness.run_task_v2(&session, task).await?;
    }
    Ok(harness
        .requests()
        .map(|(name, _)| name.to_owned())
        .collect())
}

async fn requires_no_capabilities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = json!({"protocolVersion": 2, "info": {"name": "acp-check", "version": "0"}});
    harness.initialize_with(params).await?;
    let called = called_methods(harness).await?;
    require(
        !called.iter().any(|name| name == "elicitation/create"),
        || "the agent called `elicitation/create`, which the client does not support".to_owned(),
    )
}

async fn calls_no_version_1_client_methods(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"] =
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    harness.initialize_with(params).await?;
    let called = called_methods(harness).await?;
    let old = |name: &&String| name.starts_with("fs/") || name.starts_with("terminal/");
    match called.iter().find(old) {
        Some(name) => fail(format!(
            "the agent called `{name}`, which does not exist in version 2"
        )),
        None => Ok(()),
    }
}

async fn sends_no_version_1_updates(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    for task in [AgentTask::Edit, AgentTask::Plan] {
        harness.run_task_v2(&session, task).await?;
    }
    let kinds = harness
        .updates()
        .map(|update| &update["update"]["sessionUpdate"]);
    let mut old = kinds
        .filter_map(Value::as_str)
        .filter(|kind| matches!(*kind, "tool_call" | "plan" | "current_mode_update"));
    match old.next() {
        Some(kind) => fail(format!(
            "the agent sent the update `{kind}`, which does not exist in version 2"
        )),
        None => Ok(()),
    }
}
