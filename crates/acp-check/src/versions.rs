//! Which versions a program speaks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_host::AgentProcess;
use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::options::CheckOptions;
use super::target::{CheckTarget, TargetProcess};
use super::verdict::CheckStop;
use super::wire::{ReceivedResponse, Wire};
use crate::agent_harness::AgentHarness;
use crate::check_directory::CheckDirectory;
use crate::client_harness::ClientHarness;

/// A version that nobody speaks.
const NOBODYS: u16 = u16::MAX;

/// How long a program that has closed its input or output may take to end, so that its exit can be told.
const ENDING: Duration = Duration::from_secs(2);

/// The versions that the agent speaks, by what it answers to `initialize`.
///
/// There are agents that echo whatever they are asked for. Those count as speaking version 1 alone, which is what all
/// of them speak; a check says what is wrong with it.
///
/// # Errors
/// It could not be started, has ended, or does not answer, and why.
pub async fn agent_versions(
    target: &dyn CheckTarget,
    options: &CheckOptions,
) -> Result<Vec<SchemaVersion>, String> {
    // First what each of them knows: one that does not answer this cannot be checked at all.
    let mut spoken = Vec::new();
    for (version, needed) in [(SchemaVersion::V1, true), (SchemaVersion::V2, false)] {
        let number = version.number();
        match negotiated_version(target, options, number).await {
            Ok(answer) if answer == Some(u64::from(number)) => spoken.push(version),
            Ok(_) => {}
            Err(why) if needed => return Err(why),
            // How it takes a version that it does not know is for a check to say.
            Err(_) => {}
        }
    }
    let echoes = spoken.contains(&SchemaVersion::V2)
        && negotiated_version(target, options, NOBODYS).await == Ok(Some(u64::from(NOBODYS)));
    // What it does speak may be none of ours: the checks of version 1 say so.
    if spoken.is_empty() || echoes {
        spoken = vec![SchemaVersion::V1];
    }
    Ok(spoken)
}

/// The version that the agent answers when it is asked for `number`; `None` for an error.
async fn negotiated_version(
    target: &dyn CheckTarget,
    options: &CheckOptions,
    number: u16,
) -> Result<Option<u64>, String> {
    let place = CheckDirectory::new().map_err(|e| format!("cannot create a directory: {e}"))?;
    let started = target.start(&place).await?;
    let version = if number == 1 {
        SchemaVersion::V1
    } else {
        SchemaVersion::V2
    };
    let mut harness = AgentHarness::new(started, place, Arc::new(options.clone()), version);
    let mut params = harness.initialize_params();
    params["protocolVersion"] = json!(number);
    let began = Instant::now();
    let answer = harness.request("initialize", params).await;
    let late = began.elapsed() >= options.patience;
    let (wire, _host, process, _place) = harness.into_wire();
    match answer {
        Ok(ReceivedResponse::Result(said)) => {
            close_connection(wire, process).await;
            Ok(said.get("protocolVersion").and_then(Value::as_u64))
        }
        Ok(ReceivedResponse::Error { .. }) => {
            close_connection(wire, process).await;
            Ok(None)
        }
        Err(CheckStop::Fail(why) | CheckStop::Skip(why) | CheckStop::Harness(why)) => {
            let before = "before responding to `initialize`";
            let why = format!("no response to `initialize`: {why}");
            Err(describe_failure("the agent", before, why, late, wire, process).await)
        }
    }
}

/// Closes the program's input, and ends it if that does not.
async fn close_connection(mut wire: Wire, process: Option<Arc<AgentProcess>>) {
    wire.close();
    TargetProcess::end(process).await;
}

/// What is told of a program that does not even begin: who ended before what, if it has ended by itself; else `why`. In
/// both cases with the end of what it printed to stderr.
async fn describe_failure(
    who: &str,
    before: &str,
    why: String,
    late: bool,
    wire: Wire,
    process: Option<Arc<AgentProcess>>,
) -> String {
    let Some(running) = process.clone() else {
        close_connection(wire, None).await;
        return why;
    };
    // Its pipes are closed before it can be seen that it has ended. One that is merely late has closed none.
    let ending = if late { Duration::ZERO } else { ENDING };
    let exit = tokio::time::timeout(ending, running.wait()).await.ok();
    close_connection(wire, process).await;
    let what = match exit {
        Some(exit) => format!("{who} exited ({exit}) {before}; check its command line"),
        None => why,
    };
    what + &running.stderr_excerpt()
}

/// The versions that the client speaks, by what it asks for in `initialize`, and whether it goes on when it is answered
/// version 1.
///
/// # Errors
/// It could not be started, or does not begin, and why.
pub async fn client_versions(
    target: &dyn CheckTarget,
    options: &CheckOptions,
) -> Result<Vec<SchemaVersion>, String> {
    let place = CheckDirectory::new().map_err(|e| format!("cannot create a directory: {e}"))?;
    let started = target.start(&place).await?;
    let mut harness =
        ClientHarness::new(started, place, Arc::new(options.clone()), SchemaVersion::V1);
    let began = Instant::now();
    let said = harness.expect("initialize").await;
    let late = began.elapsed() >= options.patience;
    let latest = said
        .as_ref()
        .ok()
        .and_then(|(_, params)| params["protocolVersion"].as_u64());
    let goes_on = match (&said, latest) {
        (Ok((id, _)), Some(2)) => {
            let introduction = harness.introduction.clone();
            harness.wire.answer(id, introduction).await.is_ok()
                && harness.expect("session/new").await.is_ok()
        }
        _ => false,
    };
    let (wire, process, _place) = harness.into_wire();
    if let Err(CheckStop::Fail(why) | CheckStop::Skip(why) | CheckStop::Harness(why)) = said {
        let why = format!("the first message is not `initialize`: {why}");
        let before = "before sending `initialize`";
        return Err(describe_failure("the client", before, why, late, wire, process).await);
    }
    close_connection(wire, process).await;
    Ok(match latest {
        Some(2) if goes_on => vec![SchemaVersion::V1, SchemaVersion::V2],
        Some(2) => vec![SchemaVersion::V2],
        // Whatever else it asks for, the checks of version 1 say so.
        _ => vec![SchemaVersion::V1],
    })
}
