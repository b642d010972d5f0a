//! Runs the turns of the correct agent, each of which handles a one-word prompt.

use std::sync::atomic::{AtomicU64, Ordering};

use acp::agent::{TerminalCommand, Turn};
use acp::v1::{
    Diff, ElicitationMode, PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, RequestPermissionOutcome, SessionConfigOption, StopReason, ToolCall,
    ToolCallLocation, ToolKind,
};

/// Returns the config options of a session.
pub(crate) fn config_options(mode: &str, loud: bool) -> Vec<SessionConfigOption> {
    serde_json::from_value(serde_json::json!([
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
         "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]},
        {"id": "tone", "name": "Tone", "category": "_tone", "type": "select", "currentValue": "plain",
         "options": [{"value": "plain", "name": "Plain"}, {"value": "warm", "name": "Warm"}]},
        {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": loud},
    ]))
    .unwrap()
}

fn notes_path(turn: &Turn) -> String {
    format!("{}/notes.txt", turn.cwd())
}

async fn read_notes(turn: &Turn) -> acp::Result<String> {
    let path = notes_path(turn);
    if turn.client().capabilities().fs.read_text_file {
        return turn.read_text_file(&path, None, None).await;
    }
    std::fs::read_to_string(path).map_err(|e| acp::Error::internal(e.to_string()))
}

/// Returns a unique id for a tool call.
fn next_call_id(what: &str) -> String {
    static NEXT_CALL_ID: AtomicU64 = AtomicU64::new(1);
    format!("{what}-{}", NEXT_CALL_ID.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn run_answer_task(turn: &Turn) -> acp::Result<StopReason> {
    turn.send_thought("A greeting.").await?;
    turn.send_message("Hello.").await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn run_read_task(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new(next_call_id("read"), "Read notes.txt")
        .kind(ToolKind::Read)
        .locations([ToolCallLocation::new(notes_path(turn)).line(1_u32)]);
    let call = turn.report_tool_call(call).await?;
    call.start().await?;
    let line = if turn.client().capabilities().fs.read_text_file {
        turn.read_text_file(&notes_path(turn), Some(1), Some(1))
            .await
    } else {
        read_notes(turn).await
    };
    match line {
        Ok(text) => {
            call.complete().await?;
            let first = text.lines().next().unwrap_or_default();
            turn.send_message(format!("It begins with {first}."))
                .await?;
        }
        Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
        Err(e) => call.fail(e.to_string()).await?,
    }
    Ok(StopReason::EndTurn)
}

pub(crate) async fn run_edit_task(turn: &Turn) -> acp::Result<StopReason> {
    let old = read_notes(turn).await?;
    let new = old.replace("beta", "delta");
    let diff = Diff::new(notes_path(turn), new.clone()).old_text(old);
    let call = ToolCall::new(next_call_id("edit"), "Edit notes.txt")
        .kind(ToolKind::Edit)
        .content([diff.into()]);
    let call = turn.report_tool_call(call).await?;
    let options = vec![
        PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
    ];
    match turn.request_permission(call.new_update(), options).await? {
        RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "yes" => {}
        RequestPermissionOutcome::Selected(_) => {
            call.fail("not allowed").await?;
            return Ok(StopReason::EndTurn);
        }
        _ => {
            call.fail("cancelled").await?;
            return Ok(StopReason::Cancelled);
        }
    }
    call.start().await?;
    if turn.client().capabilities().fs.write_text_file {
        turn.write_text_file(&notes_path(turn), &new).await?;
    } else {
        std::fs::write(notes_path(turn), new).map_err(|e| acp::Error::internal(e.to_string()))?;
    }
    call.complete().await?;
    turn.send_message("Done.").await?;
    Ok(StopReason::EndTurn)
}

pub(crate) async fn run_command_task(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new(next_call_id("run"), "Run echo checked").kind(ToolKind::Execute);
    if !turn.client().capabilities().terminal {
        let call = turn.report_tool_call(call).await?;
        call.start().await?;
        call.complete().await?;
        turn.send_message("It printed checked.").await?;
        return Ok(StopReason::EndTurn);
    }
    let cancelled = turn.take_cancellation();
    let command = TerminalCommand::new("echo", ["checked"]).cwd(turn.cwd());
    let terminal = match turn.create_terminal(command).await {
        Ok(terminal) => terminal,
        Err(e) => {
            turn.report_tool_call(call)
                .await?
                .fail(e.to_string())
                .await?;
            return Ok(StopReason::EndTurn);
        }
    };
    let call = turn
        .report_tool_call(call.content([terminal.as_content()]))
        .await?;
    call.start().await?;
    let ended = tokio::select! {
        biased;
        () = cancelled.cancelled() => {
            terminal.kill().await?;
            Err(acp::Error::Cancelled)
        }
        ended = terminal.wait_for_exit() => ended.map(drop),
    };
    let printed = terminal.output().await;
    // A client that does not release the terminal is no reason to fail.
    let _ = terminal.release().await;
    match ended.and(printed) {
        Ok(printed) => {
            call.complete().await?;
            let printed = printed.output;
            turn.send_message(format!("It printed {}.", printed.trim()))
                .await?;
        }
        Err(e) => call.fail(e.to_string()).await?,
    }
    Ok(StopReason::EndTurn)
}

pub(crate) async fn run_long_task(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new(next_call_id("long"), "Count").kind(ToolKind::Think);
    let call = turn.report_tool_call(call).await?;
    call.start().await?;
    turn.send_message("One, ").await?;
    turn.cancelled().await;
    call.fail("cancelled").await?;
    Ok(StopReason::Cancelled)
}

pub(crate) async fn run_plan_task(turn: &Turn) -> acp::Result<StopReason> {
    let what = ["Look", "Rename", "Look again"];
    for done in 0..what.len() {
        let entries = what.iter().enumerate().map(|(at, what)| {
            let status = match at.cmp(&done) {
                std::cmp::Ordering::Less => PlanEntryStatus::Completed,
                std::cmp::Ordering::Equal => PlanEntryStatus::InProgress,
                std::cmp::Ordering::Greater => PlanEntryStatus::Pending,
            };
            PlanEntry::new(*what, PlanEntryPriority::High, status)
        });
        turn.set_plan(entries.collect()).await?;
    }
    turn.send_message("That is the plan.").await?;
    // With a plan, the agent can switch to the mode for carrying it out.
    turn.set_config_options(config_options("code", false))
        .await?;
    Ok(StopReason::EndTurn)
}

/// Requests input with a form, or with a URL if that is all the client supports.
pub(crate) async fn run_ask_task(turn: &Turn) -> acp::Result<StopReason> {
    let schema = serde_json::json!({"type": "object", "properties": {"color": {"type": "string"}}});
    let form = ElicitationMode::Form {
        requested_schema: serde_json::from_value(schema).unwrap(),
    };
    let page = ElicitationMode::Url {
        elicitation_id: "page-1".into(),
        url: "https://example.org/color".to_owned(),
    };
    let elicitation = turn.client().capabilities().elicitation.clone();
    let offered = elicitation.as_ref();
    if offered.is_some_and(|offered| offered.form.is_some()) {
        turn.elicit("Which color?", form, None).await?;
    } else if offered.is_some_and(|offered| offered.url.is_some()) {
        turn.elicit("Which color?", page, None).await?;
        turn.complete_elicitation("page-1").await?;
    }
    turn.send_message("Thank you.").await?;
    Ok(StopReason::EndTurn)
}

/// Has a subagent say hello, if the client shows subagents.
pub(crate) async fn run_delegate_task(turn: &Turn) -> acp::Result<StopReason> {
    if turn.client().capabilities().subagents.is_some() {
        let subagent = turn
            .start_subagent(next_call_id("greeter"), "Greet")
            .await?;
        subagent.send_message("Hello.").await?;
        subagent.end(StopReason::EndTurn).await?;
    }
    turn.send_message("Done.").await?;
    Ok(StopReason::EndTurn)
}
