//! Detects which protocol versions a program supports.

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

/// A version number that no program supports.
const UNKNOWN_VERSION: u16 = u16::MAX;

/// How long to wait for a program to exit after it has closed its stdin or stdout. Its exit status can then be
/// reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the versions that the agent supports, based on its responses to `initialize`.
///
/// Some agents echo any version. They count as supporting only version 1, which all of them do. A check reports the
/// fault.
///
/// # Errors
/// The agent could not be started, has exited, or does not respond. The error is the reason.
pub async fn detect_agent_versions(
    target: &dyn CheckTarget,
    options: &CheckOptions,
) -> Result<Vec<SchemaVersion>, String> {
    // Start with the version that all agents know. An agent that does not respond to it cannot be checked.
    let mut spoken = Vec::new();
    for (version, needed) in [(SchemaVersion::V1, true), (SchemaVersion::V2, false)] {
        let number = version.number();
        match negotiated_version(target, options, number).await {
            Ok(response) if response == Some(u64::from(number)) => spoken.push(version),
            Ok(_) => {}
            Err(why) if needed => return Err(why),
            // A check tests how the agent handles a version that it does not know.
            Err(_) => {}
        }
    }
    let echoes = spoken.contains(&SchemaVersion::V2)
        && negotiated_version(target, options, UNKNOWN_VERSION).await
            == Ok(Some(u64::from(UNKNOWN_VERSION)));
    // The agent may support none of the suite's versions. The checks of version 1 report that.
    if spoken.is_empty() || echoes {
        spoken = vec![SchemaVersion::V1];
    }
    Ok(spoken)
}

/// Sends `initialize` with the version `number`, and returns the version from the response. Returns `None` if the
/// response is an error.
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
    let response = harness.request("initialize", params).await;
    let late = began.elapsed() >= options.timeout;
    let (wire, _host, process, _place) = harness.into_wire();
    match response {
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

/// Closes the program's input, and kills the program if it does not exit by itself.
async fn close_connection(mut wire: Wire, process: Option<Arc<AgentProcess>>) {
    wire.close();
    TargetProcess::end_process(process).await;
}

/// Describes why a program did not start properly, including the end of its stderr. If it exited, the description says
/// so and ends with `before`. Otherwise, the description is `why`.
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
    // The pipes close before the exit can be detected. A program that is merely late has closed none of them.
    let ending = if late { Duration::ZERO } else { EXIT_TIMEOUT };
    let exit = tokio::time::timeout(ending, running.wait()).await.ok();
    close_connection(wire, process).await;
    let what = match exit {
        Some(exit) => format!("{who} exited ({exit}) {before}; check its command line"),
        None => why,
    };
    what + &running.stderr_excerpt()
}

/// Returns the versions that the client supports. This is based on its `initialize` request, and on whether it
/// continues after a response with version 1.
///
/// # Errors
/// The client could not be started, or sent no `initialize`. The error is the reason.
pub async fn detect_client_versions(
    target: &dyn CheckTarget,
    options: &CheckOptions,
) -> Result<Vec<SchemaVersion>, String> {
    let place = CheckDirectory::new().map_err(|e| format!("cannot create a directory: {e}"))?;
    let started = target.start(&place).await?;
    let mut harness =
        ClientHarness::new(started, place, Arc::new(options.clone()), SchemaVersion::V1);
    let began = Instant::now();
    let said = harness.wait_for_message("initialize").await;
    let late = began.elapsed() >= options.timeout;
    let latest = said
        .as_ref()
        .ok()
        .and_then(|(_, params)| params["protocolVersion"].as_u64());
    let goes_on = match (&said, latest) {
        (Ok((id, _)), Some(2)) => {
            let introduction = harness.initialize_result.clone();
            harness.wire.send_result(id, introduction).await.is_ok()
                && harness.wait_for_message("session/new").await.is_ok()
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
        // If the client requests any other version, the checks of version 1 report that.
        _ => vec![SchemaVersion::V1],
    })
}
