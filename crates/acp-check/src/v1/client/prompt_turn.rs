//! Checks for a client's turns: the prompts it sends, the messages it receives, and cancellation.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

use super::steps::{
    CANCEL_REQUEST_TEXT, WAIT_REQUEST_TEXT, WATCH_TIME, add_context, find_response,
    require_none_of, require_responsive, require_updates_accepted, sent_params,
    wait_for_optional_message, wait_for_response,
};

checks! { V1 Client "prompt-turn";
    101 Should "No prompt is sent while a turn is running in the session." => waits_for_turn_end;
    102 Must "Message, thought and user message chunks are accepted." => accepts_chunks;
    103 Must "Session title and usage updates are accepted." => accepts_session_updates;
    104 Should "Unknown update types are ignored." => ignores_unknown_update;
    105 May "Updates for unknown sessions are ignored." => ignores_unknown_session;
    106 May "Updates after the end of the turn are accepted." => accepts_late_updates;
    107 Must "Further prompts use the same session id." => keeps_session_id;
    108 Must "`session/cancel` refers to a known session." => cancels_known_session;
    109 Must "When a turn is cancelled, all pending permission requests get `cancelled`." => cancels_pending_permissions;
    110 Should "Tool call updates are accepted after `session/cancel`." => accepts_updates_after_cancel;
    111 Must "Requests from the agent between turns get a response." => responds_between_turns;
}

async fn waits_for_turn_end(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.send_text(&prompted.session, "One moment.").await?;
    require_none_of(harness, &["session/prompt"], "while a turn was running").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_chunks(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let kinds = [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
    ];
    let pieces = kinds.into_iter().flat_map(|kind| {
        ["", "Hel", "lo.\n\n```rust\nfn", " main() {}"].map(|text| {
            let content = json!({"type": "text", "text": text});
            json!({"sessionUpdate": kind, "content": content, "messageId": kind})
        })
    });
    let last = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "No id."},
        "messageId": null,
    });
    require_updates_accepted(harness, "message chunks", pieces.chain([last])).await
}

async fn accepts_session_updates(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        json!({"sessionUpdate": "session_info_update", "title": "A check", "updatedAt": "2026-01-02T03:04:05Z"}),
        json!({"sessionUpdate": "session_info_update", "title": null, "updatedAt": null}),
        json!({"sessionUpdate": "usage_update", "used": 1000, "size": 200_000}),
        json!({"sessionUpdate": "usage_update", "used": 0, "size": 0, "cost": {"amount": 0.25, "currency": "EUR"}}),
        json!({"sessionUpdate": "usage_update", "used": 300_000, "size": 200_000, "cost": null}),
    ];
    require_updates_accepted(harness, "updates of the session's title and usage", updates).await
}

async fn ignores_unknown_update(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        json!({"sessionUpdate": "mood_update", "mood": "good"}),
        json!({"sessionUpdate": "_example.org/mood", "mood": ["good"]}),
    ];
    require_updates_accepted(harness, "unknown update types", updates).await
}

async fn ignores_unknown_session(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .send_text("sess_nobodys", "Is anyone there?")
        .await?;
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "elsewhere", "status": "completed"});
    harness.send_update("sess_nobodys", call).await?;
    require_responsive(harness, "updates for an unknown session").await?;
    harness.end_turn(&prompted, "end_turn").await
}

/// Waits for the client's next prompt. Skips the check if there is none.
async fn next_prompt(harness: &mut ClientHarness) -> Result<ReceivedPrompt, CheckStop> {
    match wait_for_optional_message(harness, "session/prompt").await? {
        Some((id, params)) => Ok(ReceivedPrompt {
            id,
            session: params["sessionId"].as_str().unwrap_or_default().to_owned(),
            prompt: params["prompt"].clone(),
        }),
        None => skip("the client sent only one prompt"),
    }
}

/// Requires that the client still responds after the turn has ended. Skips the check if the client has exited, which is
/// allowed.
async fn require_responsive_after_turn(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let asked = harness.request("_acp_check/alive", json!({})).await;
    let Err(CheckStop::Fail(why)) = asked else {
        return asked.map(drop);
    };
    // If the client has exited, its output ends at once.
    let draining = async { while let Ok(Some(_)) = harness.next().await {} };
    let _ = tokio::time::timeout(WATCH_TIME, draining).await;
    if harness.wire.has_ended() {
        return skip("the client exited after its turn");
    }
    fail(why)
}

async fn accepts_late_updates(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    let content = json!({"type": "text", "text": "One more thing."});
    for update in [
        json!({"sessionUpdate": "agent_message_chunk", "content": content}),
        json!({"sessionUpdate": "usage_update", "used": 10, "size": 1000}),
    ] {
        if harness
            .send_update(&prompted.session, update)
            .await
            .is_err()
        {
            return skip("the client exited after its turn");
        }
    }
    add_context(
        "updates after the end of the turn",
        require_responsive_after_turn(harness).await,
    )
}

async fn keeps_session_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let first = harness.wait_for_prompt().await?;
    harness.end_turn(&first, "end_turn").await?;
    let second = next_prompt(harness).await?;
    let opened = sent_params(harness, "session/new").count();
    require(opened > 1 || second.session == first.session, || {
        format!(
            "the client sent a prompt to session {:?}, but its first prompt was for {:?}",
            second.session, first.session
        )
    })?;
    harness.end_turn(&second, "end_turn").await
}

/// Starts a turn in which the agent asks the user to cancel.
async fn begin_turn_to_cancel(harness: &mut ClientHarness) -> Result<ReceivedPrompt, CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "long", "title": "Count to a million", "status": "in_progress",
    });
    harness.send_update(&prompted.session, call).await?;
    harness
        .send_text(&prompted.session, CANCEL_REQUEST_TEXT)
        .await?;
    Ok(prompted)
}

async fn cancels_known_session(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = begin_turn_to_cancel(harness).await?;
    let Some((_, params)) = wait_for_optional_message(harness, "session/cancel").await? else {
        return skip("the client did not cancel the turn");
    };
    let named = &params["sessionId"];
    require(*named == prompted.session, || {
        format!(
            "the client cancelled session {named} instead of {:?}",
            prompted.session
        )
    })?;
    harness.end_turn(&prompted, "cancelled").await
}

fn is_cancelled(response: &ReceivedResponse) -> bool {
    matches!(response, ReceivedResponse::Result(result) if result["outcome"]["outcome"] == "cancelled")
}

async fn cancels_pending_permissions(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let mut open = Vec::new();
    for (number, title) in [WAIT_REQUEST_TEXT, CANCEL_REQUEST_TEXT]
        .into_iter()
        .enumerate()
    {
        let call = format!("open-{number}");
        let params = json!({
            "sessionId": prompted.session,
            "toolCall": {"toolCallId": call, "title": title, "kind": "other", "status": "pending"},
            "options": [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ],
        });
        open.push(
            harness
                .wire
                .send_request("session/request_permission", params)
                .await?,
        );
    }
    // If the client responds before it cancels the turn, the user chose an option.
    if wait_for_optional_message(harness, "session/cancel")
        .await?
        .is_none()
    {
        return skip("the client did not cancel the turn");
    }
    // Some clients respond with `cancelled` first, and then cancel the turn.
    open.retain(|id| find_response(harness, id).as_ref().is_none_or(is_cancelled));
    if open.is_empty() {
        return skip(
            "the client responded to the permission requests before it cancelled the turn",
        );
    }
    for id in open {
        let said = add_context("`session/cancel`", wait_for_response(harness, &id).await)?;
        require(is_cancelled(&said), || {
            format!("a pending permission request got {said:?} instead of `cancelled`")
        })?;
    }
    harness.end_turn(&prompted, "cancelled").await
}

async fn accepts_updates_after_cancel(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = begin_turn_to_cancel(harness).await?;
    if wait_for_optional_message(harness, "session/cancel")
        .await?
        .is_none()
    {
        return skip("the client did not cancel the turn");
    }
    let last = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "long", "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": "Got to 17."}}],
    });
    harness.send_update(&prompted.session, last).await?;
    require_responsive(harness, "a tool call update after `session/cancel`").await?;
    harness.end_turn(&prompted, "cancelled").await
}

async fn responds_between_turns(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    add_context(
        "the end of its turn",
        require_responsive_after_turn(harness).await,
    )
}
