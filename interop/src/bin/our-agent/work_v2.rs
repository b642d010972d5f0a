//! The prompts `work` and `wait-command` for version 2 clients. The agent reads and writes files and runs commands
//! itself.

use std::process::Stdio;

use acp::agent::Turn;
use acp::v1::{
    Cost, Diff, PlanEntry, PlanEntryPriority, PlanEntryStatus, RequestPermissionOutcome,
    StopReason, TerminalExitStatus, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolKind, UsageUpdate,
};
use acp::{Error, Result, v2};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::{config_options, permission_options};

/// Uses every feature once.
pub(crate) async fn run_work(turn: &Turn) -> Result<StopReason> {
    let file = format!("{}/note.txt", turn.cwd());
    turn.send_thought("First I look.").await?;
    for word in ["Reading ", "the ", "note."] {
        turn.send_message(word).await?;
    }
    let (done, doing, open) = (
        PlanEntryStatus::Completed,
        PlanEntryStatus::InProgress,
        PlanEntryStatus::Pending,
    );
    send_plan(turn, [doing.clone(), open.clone(), open.clone()]).await?;

    let locations = vec![ToolCallLocation::new(&file).line(1_u32)];
    let call = ToolCall::new("read", "Read note.txt").kind(ToolKind::Read);
    let call = call
        .status(ToolCallStatus::InProgress)
        .locations(locations.clone());
    let call = turn.report_tool_call(call).await?;
    let old = std::fs::read_to_string(&file).map_err(|e| Error::internal(e.to_string()))?;
    // Send the content in pieces, and then the rest of the call.
    for line in old.split_inclusive('\n') {
        let content = acp::v1::ContentBlock::text(line);
        let content = v2::ToolCallContent::Content(acp::v1::Content::new(content));
        let chunk = v2::ToolCallContentChunk::new(call.id(), content);
        turn.send_update(v2::SessionUpdate::ToolCallContentChunk(chunk))
            .await?;
    }
    let read = call.new_update().status(ToolCallStatus::Completed);
    call.send_update(read.raw_output(json!({"bytes": old.len()})))
        .await?;

    let loud = old.to_uppercase();
    let mut diff = Diff::new(&file, &loud);
    diff.old_text = Some(old);
    let diff = vec![ToolCallContent::Diff(diff)];
    let call = ToolCall::new("edit", "Shout").kind(ToolKind::Edit);
    let call = turn.report_tool_call(call.locations(locations)).await?;
    let asked = ToolCallUpdate::new("edit").content(diff.clone());
    let answer = turn.request_permission(asked, permission_options()).await?;
    if !matches!(answer, RequestPermissionOutcome::Selected(yes) if yes.option_id.as_str() == "yes")
    {
        call.send_update(call.new_update().status(ToolCallStatus::Failed))
            .await?;
        turn.send_message(" I was not allowed to.").await?;
        return Ok(StopReason::EndTurn);
    }
    call.start().await?;
    std::fs::write(&file, loud).map_err(|e| Error::internal(e.to_string()))?;
    let edited = call.new_update().status(ToolCallStatus::Completed);
    call.send_update(edited.content(diff)).await?;
    send_plan(turn, [done.clone(), doing, open]).await?;

    let script = "cat note.txt; printf 'h\\303\\251llo\\n' >&2; exit 3";
    run_command(turn, "run", "Count", script, false).await?;
    run_command(turn, "kill", "Wait", "exec sleep 600", true).await?;
    send_plan(turn, [done.clone(), done.clone(), done]).await?;

    let mut usage = UsageUpdate::new(1200_u64, 200_000_u64);
    usage.cost = Some(Cost::new(0.25, "EUR"));
    turn.report_usage(usage).await?;
    turn.set_config_options(config_options("code")).await?;
    turn.set_title("A loud note").await?;
    // Send a separate message as a whole, and then append to it.
    let whole = v2::Message::new("whole").content(vec!["Do".into()]);
    turn.send_update(v2::SessionUpdate::AgentMessage(whole))
        .await?;
    let rest = v2::ContentChunk::new("whole", acp::v1::ContentBlock::text("ne."));
    turn.send_update(v2::SessionUpdate::AgentMessageChunk(rest))
        .await?;
    Ok(StopReason::EndTurn)
}

/// Runs a command until the turn is cancelled. Dropping the future ends the command.
pub(crate) async fn wait_command(turn: &Turn) -> Result<StopReason> {
    let script = "echo $$ > pid; echo started; exec sleep 600";
    run_command(turn, "run", "Wait", script, false).await?;
    Ok(StopReason::EndTurn)
}

/// Runs a command, and shows it with its output in a tool call.
async fn run_command(turn: &Turn, id: &str, title: &str, script: &str, kill: bool) -> Result<()> {
    let failed = |e: std::io::Error| Error::internal(e.to_string());
    let mut terminal = turn
        .show_display_terminal(id, script, Some(turn.cwd()))
        .await?;
    let call = ToolCall::new(id, title).kind(ToolKind::Execute);
    let call = call
        .status(ToolCallStatus::InProgress)
        .content(vec![terminal.as_content()]);
    let call = turn.report_tool_call(call).await?;
    let mut child = tokio::process::Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {script}")])
        .current_dir(turn.cwd())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    if kill {
        child.start_kill().map_err(failed)?;
    }
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = [0; 4096];
        loop {
            let read = stdout.read(&mut buffer).await.map_err(failed)?;
            if read == 0 {
                break;
            }
            // Send the output byte by byte, so that longer characters are split.
            for byte in buffer.iter().take(read) {
                terminal.append_output(std::slice::from_ref(byte)).await?;
            }
        }
    }
    let status = child.wait().await.map_err(failed)?;
    let mut exit = TerminalExitStatus::new();
    exit.exit_code = status.code().and_then(|code| u32::try_from(code).ok());
    if exit.exit_code.is_none() {
        exit.signal = Some("SIGKILL".to_owned());
    }
    terminal.set_exited(exit).await?;
    let ended = match kill {
        true => ToolCallStatus::Failed,
        false => ToolCallStatus::Completed,
    };
    call.send_update(call.new_update().status(ended)).await
}

async fn send_plan(turn: &Turn, statuses: [PlanEntryStatus; 3]) -> Result<()> {
    let steps = ["Look", "Shout", "Count"].into_iter().zip(statuses);
    let entries =
        steps.map(|(step, status)| PlanEntry::new(step, PlanEntryPriority::Medium, status));
    turn.set_plan_by_id("steps", entries.collect()).await
}
