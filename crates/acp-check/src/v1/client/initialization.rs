//! Initialization: versions and capabilities.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};

use super::steps::{lives, sent, watch};

checks! { V1 Client "initialization";
    101 Must "The client's first message is `initialize`." => begins;
    102 Must "`initialize` has the client's latest protocol version." => says_version;
    103 Should "A client that does not support the agent's version closes the connection." => closes;
    104 Must "Capabilities omitted by the agent are treated as unsupported." => nothing_offered;
    105 Should "The client reports its name and version." => says_its_name;
    106 Must "Unknown capabilities and fields are ignored." => unknown_capabilities;
    107 Must "`initialize` is sent once, at the beginning." => initializes_once;
    108 Must "Optional fields of the response may be omitted or null." => accepts_minimal_initialize;
    109 Must "No session is opened before the response to `initialize`." => waits;
    110 Must "No session is opened when `initialize` fails." => opens_no_session_after_failure;
}

async fn begins(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.expect("initialize").await?;
    require(play.messages.len() == 1, || {
        "the first message is not `initialize`".to_owned()
    })
}

async fn says_version(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = play.expect("initialize").await?;
    match params.get("protocolVersion").and_then(Value::as_u64) {
        Some(1..=2) => Ok(()),
        _ => fail(format!(
            "it asked for version {}",
            params["protocolVersion"]
        )),
    }
}

async fn closes(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction["protocolVersion"] = json!(999);
    let (id, _) = play.expect("initialize").await?;
    let introduction = play.introduction.clone();
    play.wire.answer(&id, introduction).await?;
    let patience = play.wire.patience();
    let ending = async {
        while let Some(message) = play.next().await? {
            if !message.method().is_empty() {
                return fail(format!("it went on with `{}`", message.method()));
            }
        }
        Ok(())
    };
    match tokio::time::timeout(patience, ending).await {
        Ok(ended) => ended,
        Err(_) => fail(format!(
            "it did not close the connection within {patience:?}"
        )),
    }
}

async fn nothing_offered(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let blocks = prompted.prompt.as_array().into_iter().flatten();
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        require(matches!(kind, "text" | "resource_link"), || {
            format!(
                "the prompt contains content of type {kind:?}, which the agent does not support"
            )
        })?;
    }
    let sent = play.messages.iter().map(|message| message.method());
    let baseline = [
        "initialize",
        "authenticate",
        "session/new",
        "session/prompt",
        "session/cancel",
        "",
    ];
    let mut others =
        sent.filter(|method| !baseline.contains(method) && !method.starts_with(['_', '$']));
    match others.next() {
        Some(method) => fail(format!(
            "it sent `{method}`, which the agent does not support"
        )),
        None => play.end_turn(&prompted, "end_turn").await,
    }
}

async fn says_its_name(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (_, params) = play.expect("initialize").await?;
    let says = |name: &str| {
        let said = params["clientInfo"][name].as_str();
        said.is_some_and(|said| !said.is_empty())
    };
    require(says("name") && says("version"), || {
        "`clientInfo` with `name` and `version` is missing".to_owned()
    })
}

async fn unknown_capabilities(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction["agentCapabilities"]["telepathy"] = json!({"range": 7});
    play.introduction["agentCapabilities"]["promptCapabilities"] = json!({"smell": true});
    play.introduction["agentCapabilities"]["_meta"] = json!({"example.org": {"telepathy": true}});
    play.introduction["mood"] = json!("good");
    let prompted = play.wait_for_prompt().await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn initializes_once(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    lives(play, "its prompt").await?;
    let times = sent(play, "initialize").count();
    require(times == 1, || format!("it sent `initialize` {times} times"))?;
    play.end_turn(&prompted, "end_turn").await
}

async fn accepts_minimal_initialize(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction = json!({"protocolVersion": 1, "agentInfo": null});
    let prompted = play.wait_for_prompt().await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn waits(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, params) = play.expect("initialize").await?;
    play.initialized = Some(params);
    watch(
        play,
        &["session/new", "session/load", "session/prompt"],
        "before the response to `initialize`",
    )
    .await?;
    let introduction = play.introduction.clone();
    play.wire.answer(&id, introduction).await?;
    let prompted = play.wait_for_prompt().await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn opens_no_session_after_failure(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = play.expect("initialize").await?;
    play.wire
        .refuse(&id, -32603, "The agent is not well")
        .await?;
    watch(
        play,
        &["session/new", "session/load", "session/prompt"],
        "although `initialize` failed",
    )
    .await
}
