//! Prompt turn: from the prompt to the stop reason.

use acp_wire::v1::StopReason;
use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "prompt-turn";
    1 Must "A prompt is answered with a stop reason, one of those that there are." => stop_reason;
    2 Must "What the agent says and does in a turn is reported by `session/update` before the prompt is answered." => reports;
    3 Should "Nothing of a turn is reported after its prompt was answered." => nothing_afterwards;
    4 Must "Every update names the session that it is about." => updates_of_session;
    5 Must "Whatever the agent asks for in a turn names its session." => requests_of_session;
    6 Must "When a turn is over, the session takes another prompt." => second_turn;
    7 Should "A turn builds on what was said in those before it." => uses_history;
    8 Must "The stop reason `cancelled` is that of turns that the client has cancelled." => not_cancelled;
    9 Must "A prompt without any content is answered, and leaves the session as it was." => empty_prompt;
    10 Should "A prompt for a session that is not there is refused." => unknown_session;
    11 Must "Prompts in two sessions at once are both answered, and each is reported in its own." => two_sessions;
    12 Should "A long turn does not keep other sessions waiting." => not_kept_waiting;
    13 Must "Every prompt is answered, also one that comes before the turn in its session is over." => second_at_once;
}

/// Updates that come of what a model says or does. Others, such as those of usage, may come at any time.
pub(super) const OF_A_TURN: [&str; 5] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

async fn stop_reason(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let turn = play.turn(&session, AgentTask::Answer).await?;
    let there_are: Vec<&str> = StopReason::KNOWN.iter().map(StopReason::as_str).collect();
    require(there_are.contains(&turn.stop.as_str()), || {
        let there_are = there_are.join(", ");
        format!("the stop reason {:?} is none of {there_are}", turn.stop)
    })
}

async fn reports(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let turn = play.task(&session, AgentTask::Answer).await?;
    if turn.stop != "end_turn" {
        return skip(format!("the turn ended with {:?}", turn.stop));
    }
    let reported = OF_A_TURN
        .iter()
        .any(|kind| turn.of_kind(kind).next().is_some());
    require(reported, || {
        "the turn has ended without an update that says anything".to_owned()
    })
}

/// The first update of what a turn does that has come for a session, after so many messages.
pub(super) fn of_a_turn(play: &AgentHarness, session: &str, after: usize) -> Option<String> {
    let of_session = play.updates_since(after);
    let mut kinds = of_session
        .filter(|params| params["sessionId"] == session)
        .filter_map(|params| params["update"]["sessionUpdate"].as_str());
    kinds
        .find(|kind| OF_A_TURN.contains(kind))
        .map(str::to_owned)
}

async fn nothing_afterwards(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Answer).await?;
    let before = play.messages.len();
    play.hush().await?;
    match of_a_turn(play, &session, before) {
        Some(kind) => fail(format!("`{kind}` has come after the answer to the prompt")),
        None => Ok(()),
    }
}

async fn updates_of_session(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Answer).await?;
    let other = play
        .updates()
        .find(|params| params["sessionId"] != session.as_str());
    match other {
        Some(params) => fail(format!(
            "an update is for the session {}, and the only one is {session:?}",
            params["sessionId"]
        )),
        None => Ok(()),
    }
}

/// Whether it is a request that has a `sessionId`.
fn is_session_method(method: &str) -> bool {
    method == "session/request_permission"
        || method.starts_with("fs/")
        || method.starts_with("terminal/")
}

async fn requests_of_session(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        play.attempt(&session, task).await?;
    }
    let mut asked = play
        .requests()
        .filter(|(method, _)| is_session_method(method))
        .peekable();
    if asked.peek().is_none() {
        return skip("the agent has asked for nothing");
    }
    match asked.find(|(_, params)| params["sessionId"] != session.as_str()) {
        Some((method, params)) => fail(format!(
            "`{method}` is for the session {}, and the only one is {session:?}",
            params["sessionId"]
        )),
        None => Ok(()),
    }
}

async fn second_turn(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Answer).await?;
    play.goes_on(&session, "a first turn").await.map(drop)
}

async fn uses_history(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Remember).await?;
    let said = play.task(&session, AgentTask::Recall).await?.text();
    require(said.contains("7351"), || {
        format!("asked to remember 7351, and which number that was, it said {said:?}")
    })
}

async fn not_cancelled(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let turn = play.task(&session, AgentTask::Answer).await?;
    require(turn.stop != "cancelled", || {
        "the stop reason is \"cancelled\", and nobody has cancelled".to_owned()
    })
}

async fn empty_prompt(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let params = json!({"sessionId": session, "prompt": []});
    let prompt = play.wire.ask("session/prompt", params).await?;
    // Whether it is done or refused is the agent's own.
    play.turn_answer(&prompt).await?;
    play.goes_on(&session, "a prompt without content")
        .await
        .map(drop)
}

async fn unknown_session(play: &mut AgentHarness) -> Result<(), CheckStop> {
    play.session().await?;
    let prompt = play.begin_prompt("sess_nobody_has_opened", "Hello").await?;
    match play.turn_answer(&prompt).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(result) => fail(format!(
            "a prompt for a session that nobody has opened was answered with {result}"
        )),
    }
}

async fn two_sessions(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = play.session().await?;
    let second = play.session().await?;
    let text = play.text_for(AgentTask::Answer);
    let mut prompts: Vec<(String, Value)> = Vec::new();
    for session in [first, second] {
        let prompt = play.begin_prompt(&session, &text).await?;
        prompts.push((session, prompt));
    }
    for (session, prompt) in &prompts {
        let answer = play.end_of(prompt).await?;
        let turn = play.turn_since(session, answer, 0)?;
        let reported = OF_A_TURN
            .iter()
            .any(|kind| turn.of_kind(kind).next().is_some());
        require(reported || turn.stop != "end_turn", || {
            format!("of two prompts at once, that in {session:?} has ended without an update")
        })?;
    }
    Ok(())
}

async fn not_kept_waiting(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let busy = play.session().await?;
    let other = play.session().await?;
    let prompt = play.long_turn(&busy).await?;
    let turn = play.turn(&other, AgentTask::Answer).await;
    play.cancel(&busy).await?;
    match turn {
        Err(CheckStop::Fail(why)) => fail(format!(
            "while a turn was under way in another session: {why}"
        )),
        turn => {
            turn?;
            play.end_of(&prompt).await.map(drop)
        }
    }
}

async fn second_at_once(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let text = play.text_for(AgentTask::Answer);
    let first = play.begin_prompt(&session, &text).await?;
    let second = play.begin_prompt(&session, &text).await?;
    for prompt in [first, second] {
        // Whether it waits, is refused or ends the first is the agent's own.
        play.end_of(&prompt).await?;
    }
    Ok(())
}
