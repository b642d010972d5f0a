//! Cancellation: of what a session works on, and of single requests.

use serde_json::{Value, json};

use crate::check::checks;
use crate::host::Permission;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent_v2::Begun;
use crate::with_agent_v2::{kind, state};

checks! { V2 Agent "prompt-lifecycle";
    31 Should "Work that was cancelled ends: the agent is idle again." => ends;
    32 Should "Work that was cancelled ends with the stop reason `cancelled`." => says_cancelled;
    33 Must "A prompt that comes after a cancelled one is worked on." => takes_another;
    34 Must "A cancel when there is nothing to cancel does nothing: the next prompt is worked on to its end." => idle_is_left;
    35 Must "A cancel for a session that there is not does nothing." => unknown_session;
    36 Must "Work is cancelled in its own session only." => other_session;
    37 Should "Work that is cancelled while it waits for permission ends, too, with the stop reason `cancelled`." => while_asking;
    38 Must "What was to be allowed is not done when the permission request is answered with `cancelled`." => not_done;
    39 Must "A request that was cancelled by `$/cancel_request` is answered: with a result, or with error -32800." => answers_cancelled_request;
    40 Must "`$/cancel_request` for a request that there is not does nothing." => unknown_request;
}

/// Begins a long task, and goes on when the agent is at work. One that is over at once cannot be cancelled: that is a
/// skip, since its end and the cancel may cross.
async fn long(play: &mut AgentPlay, session: &str) -> Result<Begun, Stop> {
    let begun = play.begin_task_v2(session, Task::Long).await?;
    play.until("some output of a long task", |_, message| {
        let update = &message.params()["update"];
        let output = kind(update).starts_with("agent_") || kind(update).starts_with("tool_call");
        output.then_some(())
    })
    .await?;
    play.hush().await?;
    if play.over_v2(&begun).is_some() {
        return skip(
            "the work was over before it could be cancelled; name a task that takes longer",
        );
    }
    Ok(begun)
}

async fn cancel(play: &mut AgentPlay, session: &str) -> Result<(), Stop> {
    play.wire
        .notify("session/cancel", json!({"sessionId": session}))
        .await
}

async fn ends(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    let begun = long(play, &session).await?;
    cancel(play, &session).await?;
    play.finish_v2(&begun).await.map(drop)
}

async fn says_cancelled(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    let begun = long(play, &session).await?;
    cancel(play, &session).await?;
    let turn = play.finish_v2(&begun).await?;
    require(turn.stop == "cancelled", || {
        format!("it was cancelled, and ended with {:?}", turn.stop)
    })
}

async fn takes_another(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    let begun = long(play, &session).await?;
    cancel(play, &session).await?;
    play.finish_v2(&begun).await?;
    let turn = play.turn_v2(&session, Task::Answer).await?;
    require(turn.stop != "cancelled", || {
        "the prompt after the cancelled one was cancelled, too".to_owned()
    })
}

async fn idle_is_left(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    cancel(play, &session).await?;
    let turn = play.turn_v2(&session, Task::Answer).await?;
    require(turn.stop != "cancelled", || {
        "a cancel that came before the prompt has cancelled it".to_owned()
    })
}

async fn unknown_session(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    cancel(play, "acp-check-nobodys").await?;
    play.turn_v2(&session, Task::Answer).await.map(drop)
}

async fn other_session(play: &mut AgentPlay) -> Result<(), Stop> {
    let first = play.session_v2().await?;
    let second = play.session_v2().await?;
    let begun = long(play, &first).await?;
    cancel(play, &second).await?;
    play.quiet().await?;
    // It may have come to its end by itself meanwhile.
    let cancelled = play
        .so_far_v2(&begun)
        .any(|update| state(update) == Some("idle") && update["stopReason"] == "cancelled");
    require(!cancelled, || {
        "a cancel in another session has cancelled it".to_owned()
    })
}

/// Begins a task for which permission is asked, and leaves the request open: its id.
async fn asking(play: &mut AgentPlay, session: &str) -> Result<(Begun, Value), Stop> {
    play.host.permission = Permission::Hold;
    let begun = play.begin_task_v2(session, Task::Edit).await?;
    let asked = play.asked_v2(&begun).await?;
    match asked {
        Some((id, _)) => Ok((begun, id)),
        None => skip("the agent asks for no permission"),
    }
}

async fn while_asking(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    let (begun, id) = asking(play, &session).await?;
    cancel(play, &session).await?;
    // An agent need not wait for the answer to end its work, and the answer may take a moment.
    play.quiet().await?;
    play.wire
        .answer(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await?;
    let turn = play.finish_v2(&begun).await?;
    require(turn.stop == "cancelled", || {
        format!("it was cancelled, and ended with {:?}", turn.stop)
    })
}

async fn not_done(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    let (begun, id) = asking(play, &session).await?;
    cancel(play, &session).await?;
    play.wire
        .answer(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await?;
    play.finish_v2(&begun).await?;
    play.unchanged_v2()
}

async fn answers_cancelled_request(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    let id = play.wire.ask("_acp-check/cancelled", json!({})).await?;
    play.wire
        .notify("$/cancel_request", json!({"requestId": id}))
        .await?;
    match play.answer(&id).await? {
        Answer::Result(_) => Ok(()),
        // Nobody knows the method: it may be refused for that before it is cancelled.
        Answer::Error {
            code: -32800 | -32601,
            ..
        } => Ok(()),
        Answer::Error { code, .. } => fail(format!(
            "a request that was cancelled was answered with error {code}, not -32800"
        )),
    }
}

async fn unknown_request(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session_v2().await?;
    play.wire
        .notify(
            "$/cancel_request",
            json!({"requestId": "acp-check-nobodys"}),
        )
        .await?;
    play.turn_v2(&session, Task::Answer).await.map(drop)
}
