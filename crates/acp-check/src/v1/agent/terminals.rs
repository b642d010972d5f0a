//! Terminals: running commands through the client.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "terminals";
    1 Must "`terminal/*` is sent only to clients with the `terminal` capability." => if_offered;
    2 Must "A terminal is released when it is no longer needed." => released;
    3 Must "A terminal is released even if its turn is cancelled." => released_when_cancelled;
    4 Must "A released terminal is not used again." => not_used_afterwards;
    5 Must "Only terminals created by the client are used." => known_terminals;
    6 Must "The working directory of a command is an absolute path." => absolute_cwd;
    7 Must "A failed `terminal/create` leaves the session usable." => not_started;
    8 Must "A failed `terminal/wait_for_exit` leaves the session usable." => no_waiting;
    9 Must "An exit status with a signal and no exit code is accepted." => signalled;
    10 Must "Truncated output without an exit status is accepted." => truncated;
}

const CREATE: &str = "terminal/create";
const WAIT: &str = "terminal/wait_for_exit";
const OUTPUT: &str = "terminal/output";
const RELEASE: &str = "terminal/release";

async fn if_offered(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["terminal"] = json!(false);
    harness.initialize_with(params).await?;
    let session = harness.session().await?;
    harness.attempt(&session, AgentTask::Run).await?;
    match harness
        .requests()
        .find(|(method, _)| method.starts_with("terminal/"))
    {
        Some((method, _)) => fail(format!(
            "it called `{method}`, which the client does not support"
        )),
        None => Ok(()),
    }
}

/// Makes the agent run a command, in a turn of its own.
async fn run(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.session().await?;
    harness.attempt(&session, AgentTask::Run).await?;
    if harness.requests().any(|(method, _)| method == CREATE) {
        Ok(session)
    } else {
        skip("the agent does not use the client's terminals")
    }
}

/// Returns the terminals that were created and not released.
fn open(harness: &AgentHarness) -> Vec<&String> {
    let released = |id: &str| {
        let mut calls = harness.requests();
        calls.any(|(method, params)| method == RELEASE && params["terminalId"] == id)
    };
    harness
        .host
        .created
        .iter()
        .filter(|id| !released(id))
        .collect()
}

/// Requires that every terminal is released, at the latest when its session is closed.
async fn all_released(
    harness: &mut AgentHarness,
    session: &str,
    when: &str,
) -> Result<(), CheckStop> {
    let mut asked_to_close = false;
    loop {
        let patience = harness.wire.patience();
        let releasing = async {
            while !open(harness).is_empty() {
                if harness.next().await?.is_none() {
                    break;
                }
            }
            Ok(())
        };
        if let Ok(released) = timeout(patience, releasing).await {
            released?;
        }
        let closes = harness
            .capability("/agentCapabilities/sessionCapabilities/close")
            .is_object();
        if open(harness).is_empty() || asked_to_close || !closes {
            break;
        }
        asked_to_close = true;
        harness
            .request("session/close", json!({"sessionId": session}))
            .await?;
    }
    match open(harness).first() {
        Some(id) => fail(format!("{when}, but terminal {id:?} was not released")),
        None => Ok(()),
    }
}

async fn released(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = run(harness).await?;
    all_released(harness, &session, "the command has ended, and the turn").await
}

async fn released_when_cancelled(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.session().await?;
    let (prompt, asked, _) = harness.until_asked(&session, AgentTask::Run, WAIT).await?;
    harness.cancel(&session).await?;
    let ended = json!({"result": {"exitCode": null, "signal": "SIGKILL"}});
    harness.answer_open(asked, &ended).await?;
    harness.end_of(&prompt).await?;
    all_released(harness, &session, "the turn was cancelled").await
}

async fn not_used_afterwards(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run(harness).await?;
    harness.hush().await?;
    let mut released: HashSet<&str> = HashSet::new();
    for (method, params) in harness
        .requests()
        .filter(|(method, _)| method.starts_with("terminal/"))
    {
        let id = params["terminalId"].as_str().unwrap_or_default();
        require(!released.contains(id), || {
            format!("`{method}` uses terminal {id:?}, which was released")
        })?;
        if method == RELEASE {
            released.insert(id);
        }
    }
    Ok(())
}

async fn known_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run(harness).await?;
    let used = harness
        .requests()
        .filter(|(method, _)| method.starts_with("terminal/"));
    let used = used.filter_map(|(method, params)| Some((method, params["terminalId"].as_str()?)));
    let known = |id: &str| harness.host.created.iter().any(|created| created == id);
    match used.into_iter().find(|(_, id)| !known(id)) {
        Some((method, id)) => fail(format!(
            "`{method}` uses terminal {id:?}, which the client did not create"
        )),
        None => Ok(()),
    }
}

async fn absolute_cwd(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run(harness).await?;
    let created = harness.requests().filter(|(method, _)| *method == CREATE);
    let mut places = created
        .filter_map(|(_, params)| params["cwd"].as_str())
        .peekable();
    if places.peek().is_none() {
        return skip("the agent does not say where its commands are to run");
    }
    match places.find(|place| !std::path::Path::new(place).is_absolute()) {
        Some(place) => fail(format!(
            "the working directory {place:?} is not an absolute path"
        )),
        None => Ok(()),
    }
}

/// Responds to the first `method` with an error, and requires that the turn ends and the session continues.
async fn fails(
    harness: &mut AgentHarness,
    method: &'static str,
    what: &str,
) -> Result<(), CheckStop> {
    let session = harness.session().await?;
    let error = json!({"error": {"code": -32603, "message": "Internal error"}});
    harness
        .task_with(&session, AgentTask::Run, method, error)
        .await?;
    harness.goes_on(&session, what).await.map(drop)
}

async fn not_started(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    fails(harness, CREATE, "a command that failed to start").await
}

async fn no_waiting(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    fails(harness, WAIT, "a command that could not be waited for").await
}

/// Responds to the first `method` with this result, and requires that the turn ends with a stop reason.
async fn takes(
    harness: &mut AgentHarness,
    method: &'static str,
    result: Value,
) -> Result<(), CheckStop> {
    let session = harness.session().await?;
    let answer = json!({"result": result});
    let answer = harness
        .task_with(&session, AgentTask::Run, method, answer)
        .await?;
    harness.turn_since(&session, answer, 0).map(drop)
}

async fn signalled(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    takes(
        harness,
        WAIT,
        json!({"exitCode": null, "signal": "SIGKILL"}),
    )
    .await
}

async fn truncated(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    takes(
        harness,
        OUTPUT,
        json!({"output": "checked\n", "truncated": true}),
    )
    .await
}
