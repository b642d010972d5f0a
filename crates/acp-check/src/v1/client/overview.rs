//! Overview: the messages of JSON-RPC 2.0, as a client answers them.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

use super::steps::{after, lives, refused, takes};

checks! { V1 Client "overview";
    101 Must "Every request gets exactly one response." => responds_once;
    102 Must "A string id stays a string in the response." => string_id;
    103 Must "A large numeric id is unchanged in the response." => large_id;
    104 Must "Client and agent request ids are independent." => same_id;
    105 Must "Unknown methods get an error." => unknown_method;
    106 Should "Unknown methods get error -32601." => method_not_found;
    107 Must "Notifications get no response." => notifications;
    108 May "Responses to unknown requests are ignored." => stray_answer;
    109 Must "Concurrent requests all get a response with their own id." => handles_many_requests;
    110 Should "Unknown fields are ignored." => unknown_fields;
}

/// The ids of all answers that the client has given.
fn received_responses(play: &ClientHarness) -> Vec<Value> {
    let answers = play.messages.iter().filter_map(|m| match m.envelope() {
        Some(Envelope::Response { id, .. }) => Some(id.clone()),
        _ => None,
    });
    answers.collect()
}

async fn with_id(play: &mut ClientHarness, id: Value) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    play.wire.send(&asked).await?;
    play.answer(&id).await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn responds_once(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let id = play.wire.ask("_acp_check/once", json!({})).await?;
    play.answer(&id).await?;
    // A second answer would come ahead of this one's.
    play.request("_acp_check/then", json!({})).await?;
    let times = received_responses(play)
        .iter()
        .filter(|of| **of == id)
        .count();
    require(times == 1, || format!("request {id} got {times} responses"))?;
    play.end_turn(&prompted, "end_turn").await
}

async fn string_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    with_id(play, json!("17")).await
}

async fn large_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    // The largest that every language's numbers hold.
    with_id(play, json!(9_007_199_254_740_991_u64)).await
}

async fn same_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let id = prompted.id.clone();
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    play.wire.send(&asked).await?;
    let answer = play.answer(&id).await;
    after("a request with the id of its own prompt", answer)?;
    play.end_turn(&prompted, "end_turn").await
}

async fn unknown_method(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let what = "a request of `acp_check/unheard_of`";
    refused(play, "acp_check/unheard_of", json!({}), what).await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn method_not_found(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    match play.request("acp_check/unheard_of", json!({})).await? {
        ReceivedResponse::Error { code: -32601, .. } => play.end_turn(&prompted, "end_turn").await,
        ReceivedResponse::Error { code, .. } => fail(format!("the error's code is {code}")),
        ReceivedResponse::Result(result) => {
            fail(format!("it was answered with the result {result}"))
        }
    }
}

async fn notifications(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    play.say(&prompted.session, "One moment.").await?;
    play.wire.notify("_acp_check/note", json!({})).await?;
    play.wire.notify("acp_check/note", json!({})).await?;
    let id = play.wire.ask("_acp_check/alive", json!({})).await?;
    play.answer(&id).await?;
    let others: Vec<Value> = received_responses(play)
        .into_iter()
        .filter(|of| *of != id)
        .collect();
    require(others.is_empty(), || {
        format!("it responded to a notification, with id {}", json!(others))
    })?;
    play.end_turn(&prompted, "end_turn").await
}

async fn stray_answer(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    play.wire
        .answer(&json!(424_242), json!({"stray": true}))
        .await?;
    play.wire.answer(&json!("stray"), json!(null)).await?;
    play.wire.refuse(&json!(424_243), -32603, "stray").await?;
    lives(play, "a response to an unknown request").await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn handles_many_requests(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let mut open = Vec::new();
    for number in 0..20 {
        open.push(
            play.wire
                .ask("_acp_check/many", json!({"number": number}))
                .await?,
        );
    }
    let last = open.last().cloned().unwrap_or_default();
    let mut waiting = open.clone();
    while !waiting.is_empty() {
        let next = tokio::time::timeout(play.wire.patience(), play.next()).await;
        let Ok(Some(message)) = next.unwrap_or(Ok(None)) else {
            return fail(format!(
                "of the concurrent requests 0 to {last}, these got no response: {}",
                json!(waiting)
            ));
        };
        match message.envelope() {
            Some(Envelope::Response { id, .. }) => waiting.retain(|of| of != id),
            _ => play.serve(&message).await?,
        }
    }
    play.end_turn(&prompted, "end_turn").await
}

async fn unknown_fields(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction["mood"] = json!("good");
    play.session["mood"] = json!(["good"]);
    let update = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "Hello.", "mood": 1},
        "mood": null,
    });
    takes(play, "unknown fields", [update]).await
}
