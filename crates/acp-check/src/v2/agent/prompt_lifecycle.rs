//! Checks for an agent's turns, from the acknowledged prompt to the end of the turn.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::{reported_state, text_prompt, update_type};
use crate::check::checks;
use crate::options::AgentTask;
use crate::turns::CheckTurn;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "prompt-lifecycle";
    1 Must "An accepted prompt gets a response." => acknowledges_prompt, shared;
    2 Must "The start of a turn is reported with a `state_update` to `running`." => reports_running, shared;
    3 Must "The end of a turn is reported with a `state_update` to `idle`." => reports_idle, shared;
    4 Should "The `idle` that ends a turn has a stop reason." => has_stop_reason, shared;
    5 Should "A turn ends with exactly one `idle`." => becomes_idle_once, shared;
    6 Should "The agent reports the accepted user message." => reports_prompt, shared;
    7 Should "The reported user message matches the prompt." => reports_prompt_unchanged, shared;
    8 Must "User messages, agent messages and thoughts have different ids." => separates_ids_by_role, shared;
    9 Must "Messages of different turns have different ids." => separates_ids_by_turn, shared;
    10 Must "When idle, the agent accepts another prompt." => accepts_next_prompt, shared;
    11 Must "Every agent accepts text in prompts." => accepts_text, shared;
    12 Must "Every agent accepts resource links in prompts." => accepts_links, shared;
    13 Must "An agent with `session.prompt.image` accepts images in prompts." => accepts_images, shared;
    14 Must "An agent with `session.prompt.audio` accepts audio in prompts." => accepts_audio, shared;
    15 Must "An agent with `session.prompt.embeddedContext` accepts embedded resources in prompts." => accepts_resources, shared;
    16 Must "A prompt for an unknown session fails." => rejects_unknown_session, shared;
    17 Should "Turns in two sessions run concurrently." => supports_concurrent_turns, shared;
}

async fn acknowledges_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness
        .begin_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}

async fn finish_prompt(harness: &mut AgentHarness) -> Result<(String, CheckTurn), CheckStop> {
    let session = harness.new_session_v2().await?;
    let turn = harness.run_task_v2(&session, AgentTask::Answer).await?;
    Ok((session, turn))
}

async fn reports_running(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn) = finish_prompt(harness).await?;
    let states = turn
        .updates
        .iter()
        .filter_map(reported_state)
        .collect::<Vec<_>>();
    require(states.contains(&"running"), || {
        format!("no `state_update` with `running`; got: {states:?}")
    })
}

async fn reports_idle(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    finish_prompt(harness).await.map(drop)
}

async fn has_stop_reason(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn) = finish_prompt(harness).await?;
    require(!turn.stop_reason.is_empty(), || {
        "the `idle` that ended the turn has no `stopReason`".to_owned()
    })
}

async fn becomes_idle_once(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let accepted = harness.begin_task_v2(&session, AgentTask::Answer).await?;
    harness.finish_turn_v2(&accepted).await?;
    harness.wait_until_quiet().await?;
    let mut states = harness
        .updates_of_prompt_v2(&accepted)
        .filter_map(reported_state);
    // Start at the first `running`, because anything before it was already on its way.
    states.find(|state| *state != "idle");
    let ends = states.filter(|state| *state == "idle").count();
    require(ends <= 1, || {
        format!("the end of one turn was reported {ends} times")
    })
}

/// Returns the text of the user message as the agent reported it, either whole or in chunks.
fn reported_prompt(turn: &CheckTurn) -> Option<String> {
    let mut said = None::<String>;
    for update in &turn.updates {
        match update_type(update) {
            "user_message" => {
                let blocks = update["content"].as_array().into_iter().flatten();
                let texts = blocks.filter_map(|block| block["text"].as_str());
                said = Some(texts.collect());
            }
            "user_message_chunk" => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                said.get_or_insert_default().push_str(text);
            }
            _ => {}
        }
    }
    said
}

async fn reports_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn) = finish_prompt(harness).await?;
    require(reported_prompt(&turn).is_some(), || {
        "no `user_message` or `user_message_chunk` for the prompt".to_owned()
    })
}

async fn reports_prompt_unchanged(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn) = finish_prompt(harness).await?;
    let sent = harness.prompt_text(AgentTask::Answer);
    match reported_prompt(&turn) {
        Some(said) => require(said == sent, || {
            format!("the message was {sent:?}, but was reported as {said:?}")
        }),
        None => skip("the agent does not report the message"),
    }
}

/// Returns the ids of messages of one type, such as `agent_message`.
fn message_ids<'a>(turn: &'a CheckTurn, of: &'static str) -> impl Iterator<Item = &'a str> {
    let own = move |update: &&Value| update_type(update).trim_end_matches("_chunk") == of;
    let own = turn.updates.iter().filter(own);
    own.filter_map(|update| update["messageId"].as_str())
}

async fn separates_ids_by_role(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn) = finish_prompt(harness).await?;
    let sides = ["user_message", "agent_message", "agent_thought"];
    for (number, side) in sides.into_iter().enumerate() {
        for id in message_ids(&turn, side) {
            let others = sides.iter().skip(number + 1);
            if let Some(other) = others
                .clone()
                .find(|other| message_ids(&turn, other).any(|o| o == id))
            {
                return fail(format!(
                    "`{side}` and `{other}` have the same message id {id:?}"
                ));
            }
        }
    }
    Ok(())
}

async fn separates_ids_by_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, first) = finish_prompt(harness).await?;
    let second = harness.run_task_v2(&session, AgentTask::Answer).await?;
    let before: Vec<&str> = message_ids(&first, "agent_message").collect();
    match message_ids(&second, "agent_message").find(|id| before.contains(id)) {
        Some(id) => fail(format!("messages of two turns have the same id {id:?}")),
        None => Ok(()),
    }
}

async fn accepts_next_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = finish_prompt(harness).await?;
    harness
        .run_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}

/// Requires that the agent accepts a prompt that includes this block.
async fn require_accepted(
    harness: &mut AgentHarness,
    needs: Option<&str>,
    block: Value,
) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    if let Some(needs) = needs {
        harness.require_capability(needs)?;
    }
    let mut prompt = text_prompt(&harness.prompt_text(AgentTask::Answer));
    let kind = block["type"].as_str().unwrap_or_default().to_owned();
    if let Some(blocks) = prompt.as_array_mut() {
        blocks.push(block);
    }
    let params = json!({"sessionId": session, "prompt": prompt});
    match harness.request("session/prompt", params).await? {
        ReceivedResponse::Result(_) => Ok(()),
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "a prompt with content of type `{kind}` failed with error {code}: {message}"
        )),
    }
}

async fn accepts_text(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_accepted(
        harness,
        None,
        json!({"type": "text", "text": "It is **bold** — ünïcode."}),
    )
    .await
}

async fn accepts_links(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let uri = format!("file://{}", harness.directory().file("notes.txt").display());
    require_accepted(
        harness,
        None,
        json!({"type": "resource_link", "name": "notes.txt", "uri": uri}),
    )
    .await
}

async fn accepts_images(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    // An image of one pixel.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let block = json!({"type": "image", "mimeType": "image/png", "data": data});
    require_accepted(harness, Some("/capabilities/session/prompt/image"), block).await
}

async fn accepts_audio(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    // An empty audio clip.
    let data = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
    let block = json!({"type": "audio", "mimeType": "audio/wav", "data": data});
    require_accepted(harness, Some("/capabilities/session/prompt/audio"), block).await
}

async fn accepts_resources(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let uri = format!("file://{}", harness.directory().file("notes.txt").display());
    let resource = json!({"uri": uri, "mimeType": "text/plain", "text": "alpha\n"});
    let block = json!({"type": "resource", "resource": resource});
    require_accepted(
        harness,
        Some("/capabilities/session/prompt/embeddedContext"),
        block,
    )
    .await
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.new_session_v2().await?;
    let prompt = text_prompt(&harness.prompt_text(AgentTask::Answer));
    let params = json!({"sessionId": "acp-check-nobodys", "prompt": prompt});
    match harness.request("session/prompt", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("the agent accepted a prompt for an unknown session"),
    }
}

async fn supports_concurrent_turns(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session_v2().await?;
    let second = harness.new_session_v2().await?;
    let of_first = harness.begin_task_v2(&first, AgentTask::Answer).await?;
    let of_second = harness.begin_task_v2(&second, AgentTask::Answer).await?;
    harness.finish_turn_v2(&of_second).await?;
    harness.finish_turn_v2(&of_first).await.map(drop)
}
