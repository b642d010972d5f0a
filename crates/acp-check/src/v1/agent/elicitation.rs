//! Elicitation: what the agent asks the person.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};

checks! { V1 Agent "elicitation";
    1 Must "`elicitation/create` is for clients that offer `elicitation`." => elicits_only_if_supported;
    2 Must "What is asked is asked in a mode that the client offers." => elicits_in_supported_mode;
    3 Must "An elicitation that the person declines leaves the session usable." => continues_after_decline;
    4 Must "A page that is told to be done is one that was asked for." => known_page;
}

const CREATE: &str = "elicitation/create";

/// Opens a session for a client that offers `elicitation`.
async fn session(play: &mut AgentHarness, elicitation: Value) -> Result<String, CheckStop> {
    let mut params = play.initialize_params();
    params["clientCapabilities"]["elicitation"] = elicitation;
    play.initialize_with(params).await?;
    play.session().await
}

async fn elicits_only_if_supported(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.attempt(&session, AgentTask::Ask).await?;
    if play.requests().any(|(method, _)| method == CREATE) {
        fail("it called `elicitation/create`, which was not offered")
    } else {
        Ok(())
    }
}

async fn elicits_in_supported_mode(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = session(play, json!({"form": {}})).await?;
    play.attempt(&session, AgentTask::Ask).await?;
    let mut asked = play
        .requests()
        .filter(|(method, _)| *method == CREATE)
        .peekable();
    if asked.peek().is_none() {
        return skip("the agent has asked the person for nothing");
    }
    match asked.find(|(_, params)| params["mode"] != "form") {
        Some((_, params)) => fail(format!(
            "it has asked in the mode {}, and the client offers forms",
            params["mode"]
        )),
        None => Ok(()),
    }
}

async fn continues_after_decline(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = session(play, json!({"form": {}, "url": {}})).await?;
    let answer = json!({"result": {"action": "decline"}});
    play.task_with(&session, AgentTask::Ask, CREATE, answer)
        .await?;
    play.goes_on(&session, "an elicitation that was declined")
        .await
        .map(drop)
}

async fn known_page(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = session(play, json!({"url": {}})).await?;
    let answer = json!({"result": {"action": "accept"}});
    play.task_with(&session, AgentTask::Ask, CREATE, answer)
        .await?;
    play.hush().await?;
    let done = play
        .messages
        .iter()
        .filter(|message| message.method() == "elicitation/complete");
    let mut done = done
        .map(|message| &message.params()["elicitationId"])
        .peekable();
    if done.peek().is_none() {
        return skip("the agent has told of no page that it is done");
    }
    let asked = play.requests().filter(|(method, _)| *method == CREATE);
    let asked: Vec<&Value> = asked.map(|(_, params)| &params["elicitationId"]).collect();
    match done.find(|id| !asked.contains(id)) {
        Some(id) => fail(format!(
            "the page {id} is told to be done, and was not asked for"
        )),
        None => Ok(()),
    }
}
