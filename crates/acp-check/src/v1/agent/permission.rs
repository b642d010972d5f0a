//! Tool calls: asking for permission.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "tool-calls";
    31 Must "The options of a permission request have ids that differ." => unique_options;
    32 Should "A permission request has options to choose from." => has_options;
    33 Should "A permission request is for a tool call that was reported." => known_call;
    34 Must "What was rejected is not done." => respects_rejection;
    35 Should "What was allowed is done." => runs_after_allow;
    36 Should "A tool call that was allowed is reported to be in progress." => in_progress;
    37 Should "What was cancelled while its permission was asked for is not done." => leaves_cancelled_action_undone;
    38 Must "A permission request that the client answers with an error leaves the session usable." => handles_error_response;
    39 Should "A turn in which a permission was rejected has not been cancelled, and does not end as `cancelled`." => not_cancelled;
}

const METHOD: &str = "session/request_permission";

/// Lets the agent edit, and gives the permission requests it has sent. Whether it succeeds is another matter.
async fn permission_requests(play: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = play.session().await?;
    play.attempt(&session, AgentTask::Edit).await?;
    requests(play)
}

/// As [`permission_requests`], of a turn that succeeds.
async fn permission_requests_of_turn(play: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Edit).await?;
    requests(play)
}

fn requests(play: &AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let asked = play.requests().filter(|(method, _)| *method == METHOD);
    let asked: Vec<Value> = asked.map(|(_, params)| params.clone()).collect();
    if asked.is_empty() {
        return skip("the agent has asked for no permission");
    }
    Ok(asked)
}

fn notes(play: &AgentHarness) -> Result<String, CheckStop> {
    let file = play.place().file("notes.txt");
    std::fs::read_to_string(&file)
        .map_err(|e| CheckStop::Harness(format!("{}: {e}", file.display())))
}

async fn unique_options(play: &mut AgentHarness) -> Result<(), CheckStop> {
    for params in permission_requests(play).await? {
        let options = params["options"].as_array().into_iter().flatten();
        let mut ids: Vec<&Value> = Vec::new();
        for option in options {
            let id = &option["optionId"];
            require(!ids.contains(&id), || {
                format!("two options have the id {id}")
            })?;
            ids.push(id);
        }
    }
    Ok(())
}

async fn has_options(play: &mut AgentHarness) -> Result<(), CheckStop> {
    for params in permission_requests(play).await? {
        let some = params["options"]
            .as_array()
            .is_some_and(|options| !options.is_empty());
        require(some, || "a permission request has no options".to_owned())?;
    }
    Ok(())
}

async fn known_call(play: &mut AgentHarness) -> Result<(), CheckStop> {
    permission_requests(play).await?;
    let mut known: Vec<&Value> = Vec::new();
    for message in &play.messages {
        let params = message.params();
        if params["update"]["sessionUpdate"] == "tool_call" {
            known.push(&params["update"]["toolCallId"]);
        }
        let id = &params["toolCall"]["toolCallId"];
        require(message.method() != METHOD || known.contains(&id), || {
            format!("permission is asked for the tool call {id}, which was not reported before")
        })?;
    }
    Ok(())
}

async fn respects_rejection(play: &mut AgentHarness) -> Result<(), CheckStop> {
    play.host.permission = PermissionReply::Reject;
    let before = notes(play)?;
    permission_requests(play).await?;
    let after = notes(play)?;
    require(before == after, || {
        format!("every permission was rejected, and the file was changed to {after:?}")
    })
}

async fn runs_after_allow(play: &mut AgentHarness) -> Result<(), CheckStop> {
    permission_requests_of_turn(play).await?;
    let after = notes(play)?;
    require(after.contains("delta"), || {
        format!("every permission was given, and the file is not changed: {after:?}")
    })
}

async fn in_progress(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let asked = permission_requests_of_turn(play).await?;
    for params in &asked {
        let id = &params["toolCall"]["toolCallId"];
        let mut updates = play.updates().map(|params| &params["update"]);
        let runs =
            updates.any(|update| &update["toolCallId"] == id && update["status"] == "in_progress");
        require(runs, || {
            format!("the tool call {id} was allowed, and never reported to be in progress")
        })?;
    }
    Ok(())
}

async fn leaves_cancelled_action_undone(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let before = notes(play)?;
    let (prompt, asked, _) = play.until_asked(&session, AgentTask::Edit, METHOD).await?;
    play.cancel(&session).await?;
    play.host.permission = PermissionReply::Cancel;
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    play.answer_open(asked, &json!({"result": outcome})).await?;
    play.end_of(&prompt).await?;
    let after = notes(play)?;
    require(before == after, || {
        format!(
            "the turn was cancelled when permission was asked for, and the file was changed to {after:?}"
        )
    })
}

async fn handles_error_response(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let error = json!({"error": {"code": -32603, "message": "Internal error"}});
    play.task_with(&session, AgentTask::Edit, METHOD, error)
        .await?;
    play.goes_on(&session, "an error for an answer to a permission request")
        .await
        .map(drop)
}

async fn not_cancelled(play: &mut AgentHarness) -> Result<(), CheckStop> {
    play.host.permission = PermissionReply::Reject;
    let session = play.session().await?;
    let turn = play.task(&session, AgentTask::Edit).await?;
    if !turn.requests.iter().any(|(method, _)| method == METHOD) {
        return skip("the agent has asked for no permission");
    }
    if turn.stop == "cancelled" {
        return fail("a permission was rejected, and the turn has ended as cancelled");
    }
    Ok(())
}
