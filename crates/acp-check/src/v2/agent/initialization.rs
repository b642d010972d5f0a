//! Initialization: versions and capabilities.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "initialization";
    1 Must "The agent answers `initialize` with the protocol version and with its own name and version." => says_who;
    2 Must "An agent that speaks version 2 answers with it when it is asked for it." => same_version;
    3 Must "An agent that does not speak the version it is asked for answers with the latest that it does speak." => latest_version;
    4 Must "Where version 1 was agreed on, version 1 is spoken: the answer to a prompt ends its turn." => negotiates_version_1;
    5 Must "Capabilities and fields that the agent does not know do not keep it from answering." => unknown_capabilities;
    6 Must "Whatever a client does not offer in `initialize` counts as not offered." => nothing_offered;
    7 Must "Version 2 has no methods for a client's files and terminals: none is called, whatever the client also says for agents of version 1." => no_client_files;
    8 Must "What version 1 alone has is not sent in version 2: no `tool_call`, `plan` or `current_mode_update`." => no_old_updates;
}

/// The code of an agent that speaks no version as old as the one that it is asked for.
const UNSUPPORTED_VERSION: i64 = -32022;

async fn says_who(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = play.initialize().await?;
    let says = |name: &str| {
        let said = said["info"][name].as_str();
        said.is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`info` with `name` and `version` is missing in the answer".to_owned()
    })
}

async fn same_version(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = play.initialize_params();
    let said = play.result("initialize", params).await?;
    match said["protocolVersion"].as_u64() {
        Some(2) => Ok(()),
        Some(1) => skip("it speaks version 1, and not 2"),
        _ => fail(format!(
            "asked for version 2, it answered {}",
            said["protocolVersion"]
        )),
    }
}

async fn latest_version(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = play.initialize_params();
    params["protocolVersion"] = json!(65535);
    let said = play.result("initialize", params).await?;
    match said["protocolVersion"].as_u64() {
        Some(1 | 2) => Ok(()),
        _ => fail(format!(
            "asked for version 65535, which nobody speaks, it answered {}",
            said["protocolVersion"]
        )),
    }
}

async fn negotiates_version_1(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": {},
        "clientInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
    });
    let said = match play.request("initialize", params).await? {
        ReceivedResponse::Result(said) => said,
        // Later drafts than the one that is checked have this error for it, and agents in use give it.
        ReceivedResponse::Error {
            code: UNSUPPORTED_VERSION,
            ..
        } => return skip("it does not speak version 1"),
        ReceivedResponse::Error { code, message, .. } => {
            return fail(format!(
                "`initialize` was answered with error {code}: {message}"
            ));
        }
    };
    match said["protocolVersion"].as_u64() {
        Some(1) => {}
        Some(2) => return skip("it does not speak version 1"),
        _ => {
            return fail(format!(
                "asked for version 1, it answered {}",
                said["protocolVersion"]
            ));
        }
    }
    let opened = match play.request("session/new", play.session_params()).await? {
        ReceivedResponse::Result(opened) => opened,
        ReceivedResponse::Error { code: -32000, .. } => {
            return skip("the agent wants a login first");
        }
        ReceivedResponse::Error { code, message, .. } => {
            return fail(format!(
                "`session/new` was answered with error {code}: {message}"
            ));
        }
    };
    let session = opened["sessionId"].as_str().unwrap_or_default();
    let text = play.text_for(AgentTask::Answer);
    let prompt = play.begin_prompt(session, &text).await?;
    let answer = play.turn_answer(&prompt).await?;
    play.turn_since(session, answer, 0)?;
    let new = |update: &Value| update["update"]["sessionUpdate"] == "state_update";
    require(!play.updates().any(new), || {
        "a `state_update`, which is version 2's, was sent in version 1".to_owned()
    })
}

async fn unknown_capabilities(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = play.initialize_params();
    params["capabilities"]["telepathy"] = json!({"range": 7});
    params["capabilities"]["_meta"] = json!({"example.org": {"telepathy": true}});
    params["mood"] = json!("good");
    match play.request("initialize", params).await? {
        ReceivedResponse::Result(_) => Ok(()),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("it answered with error {code}: {message}"))
        }
    }
}

/// Has the agent do all that may need something of the client, and gives what it called.
async fn called_methods(play: &mut AgentHarness) -> Result<Vec<String>, CheckStop> {
    let session = play.session_v2().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        play.turn_v2(&session, task).await?;
    }
    Ok(play.requests().map(|(name, _)| name.to_owned()).collect())
}

async fn nothing_offered(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = json!({"protocolVersion": 2, "info": {"name": "acp-check", "version": "0"}});
    play.initialize_with(params).await?;
    let called = called_methods(play).await?;
    require(
        !called.iter().any(|name| name == "elicitation/create"),
        || "it called `elicitation/create`, which was not offered".to_owned(),
    )
}

async fn no_client_files(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = play.initialize_params();
    params["clientCapabilities"] =
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    play.initialize_with(params).await?;
    let called = called_methods(play).await?;
    let old = |name: &&String| name.starts_with("fs/") || name.starts_with("terminal/");
    match called.iter().find(old) {
        Some(name) => fail(format!("it called `{name}`, which version 2 has not")),
        None => Ok(()),
    }
}

async fn no_old_updates(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session_v2().await?;
    for task in [AgentTask::Edit, AgentTask::Plan] {
        play.turn_v2(&session, task).await?;
    }
    let kinds = play
        .updates()
        .map(|update| &update["update"]["sessionUpdate"]);
    let mut old = kinds
        .filter_map(Value::as_str)
        .filter(|kind| matches!(*kind, "tool_call" | "plan" | "current_mode_update"));
    match old.next() {
        Some(kind) => fail(format!(
            "it has sent the update `{kind}`, which version 2 has not"
        )),
        None => Ok(()),
    }
}
