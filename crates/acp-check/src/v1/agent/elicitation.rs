//! Checks for an agent's requests for input from the user.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};

checks! { V1 Agent "elicitation"
    fresh "declares other capabilities in `initialize`";
    1 Must "`elicitation/create` is sent only to clients with the `elicitation` capability." => elicits_only_if_supported;
    2 Must "Elicitations use only modes that the client supports." => elicits_in_supported_mode;
    3 Must "A declined elicitation leaves the session usable." => continues_after_decline;
    4 Must "`elicitation/complete` refers to an existing elicitation." => completes_known_elicitations;
}

const CREATE_METHOD: &str = "elicitation/create";

/// Opens a session with a client that declares the capability `elicitation`.
async fn open_session(harness: &mut AgentHarness, elicitation: Value) -> Result<String, CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["elicitation"] = elicitation;
    harness.initialize_with(params).await?;
    harness.new_session().await
}

async fn elicits_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.try_task(&session, AgentTask::Ask).await?;
    if harness
        .requests()
        .any(|(method, _)| method == CREATE_METHOD)
    {
        fail("the agent called `elicitation/create`, which the client does not support")
    } else {
        Ok(())
    }
}

async fn elicits_in_supported_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = open_session(harness, json!({"form": {}})).await?;
    harness.try_task(&session, AgentTask::Ask).await?;
    let mut asked = harness
        .requests()
        .filter(|(method, _)| *method == CREATE_METHOD)
        .peekable();
    if asked.peek().is_none() {
        return skip("the agent sent no elicitation");
    }
    match asked.find(|(_, params)| params["mode"] != "form") {
        Some((_, params)) => fail(format!(
            "the agent used mode {}, but the client supports only forms",
            params["mode"]
        )),
        None => Ok(()),
    }
}

async fn continues_after_decline(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = open_session(harness, json!({"form": {}, "url": {}})).await?;
    let response = json!({"result": {"action": "decline"}});
    harness
        .run_task_with_response(&session, AgentTask::Ask, CREATE_METHOD, response)
        .await?;
    harness
        .require_next_prompt(&session, "a declined elicitation")
        .await
        .map(drop)
}

async fn completes_known_elicitations(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = open_session(harness, json!({"url": {}})).await?;
    let response = json!({"result": {"action": "accept"}});
    harness
        .run_task_with_response(&session, AgentTask::Ask, CREATE_METHOD, response)
        .await?;
    harness.drain_messages().await?;
    let done = harness
        .messages
        .iter()
        .filter(|message| message.method() == "elicitation/complete");
    let mut done = done
        .map(|message| &message.params()["elicitationId"])
        .peekable();
    if done.peek().is_none() {
        return skip("the agent sent no `elicitation/complete`");
    }
    let asked = harness
        .requests()
        .filter(|(method, _)| *method == CREATE_METHOD);
    let asked: Vec<&Value> = asked.map(|(_, params)| &params["elicitationId"]).collect();
    match done.find(|id| !asked.contains(id)) {
        Some(id) => fail(format!(
            "`elicitation/complete` for unknown elicitation {id}"
        )),
        None => Ok(()),
    }
}
