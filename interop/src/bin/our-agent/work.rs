//! The prompt `work` for version 1 clients, whose files and terminals the agent uses.

use acp::Result;
use acp::agent::{TerminalCommand, Turn};
use acp::v1::{
    ContentBlock, Cost, Diff, EnvVariable, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    RequestPermissionOutcome, StopReason, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolKind, UsageUpdate,
};
use serde_json::json;

use crate::{ask_permission, config_options};

/// Uses every feature once.
pub(crate) async fn run_work(turn: &Turn) -> Result<StopReason> {
    let file = format!("{}/note.txt", turn.cwd());
    turn.send_thought("First I look.").await?;
    for word in ["Reading ", "the ", "note."] {
        turn.send_message(word).await?;
    }
    send_plan(
        turn,
        [
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
            PlanEntryStatus::Pending,
        ],
    )
    .await?;

    let location = vec![ToolCallLocation::new(&file).line(1_u32)];
    let call = ToolCall::new("read", "Read note.txt")
        .kind(ToolKind::Read)
        .locations(location.clone());
    let call = turn
        .report_tool_call(call.status(ToolCallStatus::InProgress))
        .await?;
    let old = turn.read_text_file(&file, None, None).await?;
    let second = turn.read_text_file(&file, Some(2), Some(1)).await?;
    let done = call
        .new_update()
        .status(ToolCallStatus::Completed)
        .raw_output(json!({"second": second}));
    call.send_update(done.content(vec![ContentBlock::text(&old).into()]))
        .await?;

    let new = old.to_uppercase();
    let mut diff = Diff::new(&file, &new);
    diff.old_text = Some(old);
    let call = ToolCall::new("edit", "Shout")
        .kind(ToolKind::Edit)
        .locations(location);
    let call = turn.report_tool_call(call).await?;
    if !matches!(ask_permission(turn, "edit").await?, RequestPermissionOutcome::Selected(yes) if yes.option_id.as_str() == "yes")
    {
        call.send_update(call.new_update().status(ToolCallStatus::Failed))
            .await?;
        turn.send_message(" I was not allowed to.").await?;
        return Ok(StopReason::EndTurn);
    }
    call.start().await?;
    turn.write_text_file(&file, &new).await?;
    call.send_update(
        call.new_update()
            .status(ToolCallStatus::Completed)
            .content(vec![ToolCallContent::Diff(diff)]),
    )
    .await?;
    send_plan(
        turn,
        [
            PlanEntryStatus::Completed,
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
        ],
    )
    .await?;

    run_command(turn).await?;
    kill_command(turn).await?;
    send_plan(
        turn,
        [
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
        ],
    )
    .await?;

    let mut usage = UsageUpdate::new(1200_u64, 200_000_u64);
    usage.cost = Some(Cost::new(0.25, "EUR"));
    turn.report_usage(usage).await?;
    turn.set_config_options(config_options("code")).await?;
    turn.set_title("A loud note").await?;
    turn.send_message(" Done.").await?;
    Ok(StopReason::EndTurn)
}

/// Runs a command that fails on its own.
async fn run_command(turn: &Turn) -> Result<()> {
    let call = turn
        .report_tool_call(ToolCall::new("run", "Count").kind(ToolKind::Execute))
        .await?;
    let script = "cat note.txt; echo $GREETING >&2; exit 3";
    let mut command = TerminalCommand::new("sh", ["-c", script])
        .cwd(turn.cwd())
        .output_byte_limit(64 * 1024);
    command.env = vec![EnvVariable::new("GREETING", "hello")];
    let terminal = turn.create_terminal(command).await?;
    call.send_update(
        call.new_update()
            .status(ToolCallStatus::InProgress)
            .content(vec![terminal.as_content()]),
    )
    .await?;
    let exit = terminal.wait_for_exit().await?;
    let output = terminal.output().await?;
    terminal.release().await?;
    let result = json!({
        "code": exit.exit_code,
        "output": output.output,
        "truncated": output.truncated,
        "ended": output.exit_status.is_some(),
    });
    call.send_update(
        call.new_update()
            .status(ToolCallStatus::Completed)
            .raw_output(result),
    )
    .await
}

/// Runs a command that does not exit, and kills it.
async fn kill_command(turn: &Turn) -> Result<()> {
    let call = turn
        .report_tool_call(ToolCall::new("kill", "Wait").kind(ToolKind::Execute))
        .await?;
    let terminal = turn
        .create_terminal(TerminalCommand::new("sleep", ["600"]))
        .await?;
    call.send_update(
        call.new_update()
            .status(ToolCallStatus::InProgress)
            .content(vec![terminal.as_content()]),
    )
    .await?;
    let running = terminal.output().await?;
    terminal.kill().await?;
    let exit = terminal.wait_for_exit().await?;
    terminal.release().await?;
    let result = json!({"ran": running.exit_status.is_none(), "signal": exit.signal});
    call.send_update(
        call.new_update()
            .status(ToolCallStatus::Failed)
            .raw_output(result),
    )
    .await
}

pub(crate) async fn send_plan(turn: &Turn, statuses: [PlanEntryStatus; 3]) -> Result<()> {
    let steps = ["Look", "Shout", "Count"].into_iter().zip(statuses);
    turn.set_plan(
        steps
            .map(|(step, status)| PlanEntry::new(step, PlanEntryPriority::Medium, status))
            .collect(),
    )
    .await
}
