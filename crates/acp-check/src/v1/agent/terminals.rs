//! Checks how an agent runs commands through the client.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "terminals";
    1 Must "`terminal/*` is sent only to clients with the `terminal` capability." => uses_terminals_only_if_supported, fresh "declares other capabilities in `initialize`";
    2 Must "A terminal is released when it is no longer needed." => releases_terminal, shared;
    3 Must "A terminal is released even if its turn is cancelled." => releases_terminal_after_cancel, shared;
    4 Must "A released terminal is not used again." => does_not_use_released_terminal, shared;
    5 Must "Only terminals created by the client are used." => uses_known_terminals, shared;
    6 Must "The working directory of a command is an absolute path." => uses_absolute_cwd, shared;
    7 Must "A failed `terminal/create` leaves the session usable." => continues_after_failed_start, shared;
    8 Must "A failed `terminal/wait_for_exit` leaves the session usable." => continues_after_failed_wait, shared;
    9 Must "An exit status with a signal and no exit code is accepted." => accepts_exit_by_signal, shared;
    10 Must "Truncated output without an exit status is accepted." => accepts_truncated_output, shared;
}

const CREATE_METHOD: &str = "terminal/create";
const WAIT_METHOD: &str = "terminal/wait_for_exit";
const OUTPUT_METHOD: &str = "terminal/output";
const RELEASE_METHOD: &str = "terminal/release";

async fn uses_terminals_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["terminal"] = json!(false);
    harness.initialize_with(params).await?;
    let session = harness.new_session().await?;
    harness.try_task(&session, AgentTask::Run).await?;
    match harness
        .requests()
        .find(|(method, _)| method.starts_with("terminal/"))
    {
        Some((method, _)) => fail(format!(
            "the agent called `{method}`, which the client does not support"
        )),
        None => Ok(()),
    }
}

/// Makes the agent run a command, and returns the session's id. Skips the check unless the agent uses a client
/// terminal.
async fn run_command(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.new_session().await?;
    harness.try_task(&session, AgentTask::Run).await?;
    if harness
        .requests()
        .any(|(method, _)| method == CREATE_METHOD)
    {
        Ok(session)
    } else {
        skip("the agent does not use the client's terminals")
    }
}

/// Returns the ids of terminals that were created but not released.
fn unreleased_terminals(harness: &AgentHarness) -> Vec<&String> {
    let released = |id: &str| {
        let mut calls = harness.requests();
        calls.any(|(method, params)| method == RELEASE_METHOD && params["terminalId"] == id)
    };
    harness
        .host
        .created_terminals
        .iter()
        .filter(|id| !released(id))
        .collect()
}

/// Requires that every terminal is released by the time the session is closed.
async fn require_all_released(
    harness: &mut AgentHarness,
    session: &str,
    when: &str,
) -> Result<(), CheckStop> {
    let mut asked_to_close = false;
    loop {
        let patience = harness.wire.timeout();
        let releasing = async {
            while !unreleased_terminals(harness).is_empty() {
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
        if unreleased_terminals(harness).is_empty() || asked_to_close || !closes {
            break;
        }
        asked_to_close = true;
        harness
            .request("session/close", json!({"sessionId": session}))
            .await?;
    }
    match unreleased_terminals(harness).first() {
        Some(id) => fail(format!("{when}, but terminal {id:?} was not released")),
        None => Ok(()),
    }
}

async fn releases_terminal(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = run_command(harness).await?;
    require_all_released(harness, &session, "the turn ended").await
}

async fn releases_terminal_after_cancel(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let (prompt, asked, _) = harness
        .wait_for_held_request(&session, AgentTask::Run, WAIT_METHOD)
        .await?;
    harness.cancel(&session).await?;
    let ended = json!({"result": {"exitCode": null, "signal": "SIGKILL"}});
    harness.respond_to_held_requests(asked, &ended).await?;
    harness.prompt_response(&prompt).await?;
    require_all_released(harness, &session, "the turn was cancelled").await
}

async fn does_not_use_released_terminal(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run_command(harness).await?;
    harness.drain_messages().await?;
    let mut released: HashSet<&str> = HashSet::new();
    for (method, params) in harness
        .requests()
        .filter(|(method, _)| method.starts_with("terminal/"))
    {
        let id = params["terminalId"].as_str().unwrap_or_default();
        require(!released.contains(id), || {
            format!("`{method}` uses terminal {id:?}, which was released")
        })?;
        if method == RELEASE_METHOD {
            released.insert(id);
        }
    }
    Ok(())
}

async fn uses_known_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run_command(harness).await?;
    let used = harness
        .requests()
        .filter(|(method, _)| method.starts_with("terminal/"));
    let used = used.filter_map(|(method, params)| Some((method, params["terminalId"].as_str()?)));
    let known = |id: &str| {
        harness
            .host
            .created_terminals
            .iter()
            .any(|created| created == id)
    };
    match used.into_iter().find(|(_, id)| !known(id)) {
        Some((method, id)) => fail(format!(
            "`{method}` uses terminal {id:?}, which the client did not create"
        )),
        None => Ok(()),
    }
}

async fn uses_absolute_cwd(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    run_command(harness).await?;
    let created = harness
        .requests()
        .filter(|(method, _)| *method == CREATE_METHOD);
    let mut places = created
        .filter_map(|(_, params)| params["cwd"].as_str())
        .peekable();
    if places.peek().is_none() {
        return skip("the agent does not set a working directory for its commands");
    }
    match places.find(|place| !std::path::Path::new(place).is_absolute()) {
        Some(place) => fail(format!(
            "the working directory {place:?} is not an absolute path"
        )),
        None => Ok(()),
    }
}

/// Responds to `method` requests with an error, and requires that the session remains usable.
async fn require_failure_handled(
    harness: &mut AgentHarness,
    method: &'static str,
    what: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let error = json!({"error": {"code": -32603, "message": "Internal error"}});
    harness
        .run_task_with_response(&session, AgentTask::Run, method, error)
        .await?;
    harness.require_next_prompt(&session, what).await.map(drop)
}

async fn continues_after_failed_start(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_failure_handled(harness, CREATE_METHOD, "a failed `terminal/create`").await
}

async fn continues_after_failed_wait(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_failure_handled(harness, WAIT_METHOD, "a failed `terminal/wait_for_exit`").await
}

/// Responds to `method` requests with this result, and requires that the turn ends with a stop reason.
async fn require_result_accepted(
    harness: &mut AgentHarness,
    method: &'static str,
    result: Value,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let response = json!({"result": result});
    let response = harness
        .run_task_with_response(&session, AgentTask::Run, method, response)
        .await?;
    harness.read_turn(&session, response, 0).map(drop)
}

async fn accepts_exit_by_signal(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_result_accepted(
        harness,
        WAIT_METHOD,
        json!({"exitCode": null, "signal": "SIGKILL"}),
    )
    .await
}

async fn accepts_truncated_output(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_result_accepted(
        harness,
        OUTPUT_METHOD,
        json!({"output": "checked\n", "truncated": true}),
    )
    .await
}
