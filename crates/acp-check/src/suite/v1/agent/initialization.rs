//! Initialization: versions and capabilities.

use serde_json::{Value, json};

use crate::suite::check::checks;
use crate::suite::verdict::{Stop, fail, require};
use crate::suite::{AgentPlay, Answer};

checks! { V1 Agent "initialization";
    1 Must "The agent answers `initialize` with the protocol version and what it can do." => answers;
    2 Must "An agent that speaks the version it is asked for answers with that version." => same_version;
    3 Must "An agent that does not speak the version it is asked for answers with the latest that it does speak." => latest_version;
    4 Must "Whatever a client does not offer in `initialize` counts as not offered." => nothing_offered;
    5 Must "Capabilities and fields that the agent does not know do not keep it from answering." => unknown_capabilities;
    6 Should "The agent says its name and version." => says_its_name;
}

async fn answers(play: &mut AgentPlay) -> Result<(), Stop> {
    let said = play.initialize().await?;
    require(
        said.get("protocolVersion").is_some_and(Value::is_u64),
        || "the answer has no `protocolVersion`".to_owned(),
    )
}

async fn same_version(play: &mut AgentPlay) -> Result<(), Stop> {
    let params = play.initialize_params();
    let said = play.result("initialize", params).await?;
    require(said.get("protocolVersion") == Some(&json!(1)), || {
        format!(
            "asked for version 1, it answered {}",
            said["protocolVersion"]
        )
    })
}

async fn latest_version(play: &mut AgentPlay) -> Result<(), Stop> {
    let mut params = play.initialize_params();
    params["protocolVersion"] = json!(65535);
    let said = play.result("initialize", params).await?;
    match said.get("protocolVersion").and_then(Value::as_u64) {
        Some(1 | 2) => Ok(()),
        _ => fail(format!(
            "asked for version 65535, which nobody speaks, it answered {}",
            said["protocolVersion"]
        )),
    }
}

async fn nothing_offered(play: &mut AgentPlay) -> Result<(), Stop> {
    use crate::suite::Task;

    play.initialize_with(json!({"protocolVersion": 1})).await?;
    let session = play.session().await?;
    for task in [Task::Read, Task::Edit, Task::Run] {
        play.turn(&session, task).await?;
    }
    let used = play.requests.iter().map(|(method, _)| method.as_str());
    let used =
        used.filter(|method| *method != "session/request_permission" && !method.starts_with('_'));
    match used.collect::<Vec<_>>().first() {
        Some(method) => fail(format!("it called `{method}`, which was not offered")),
        None => Ok(()),
    }
}

async fn unknown_capabilities(play: &mut AgentPlay) -> Result<(), Stop> {
    let mut params = play.initialize_params();
    params["clientCapabilities"]["telepathy"] = json!({"range": 7});
    params["clientCapabilities"]["_meta"] = json!({"example.org": {"telepathy": true}});
    params["mood"] = json!("good");
    match play.request("initialize", params).await? {
        Answer::Result(_) => Ok(()),
        Answer::Error { code, message, .. } => {
            fail(format!("it answered with error {code}: {message}"))
        }
    }
}

async fn says_its_name(play: &mut AgentPlay) -> Result<(), Stop> {
    let said = play.initialize().await?;
    let says = |name: &str| {
        said["agentInfo"][name]
            .as_str()
            .is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`agentInfo` with `name` and `version` is missing".to_owned()
    })
}
