//! The parts of the correct agent that are specific to version 2.

use std::sync::atomic::{AtomicU64, Ordering};

use acp::agent::Turn;
use acp::v1::{
    ElicitationMode, ProtocolVersion, StopReason, TerminalExitStatus, ToolCall, ToolKind,
    UsageUpdate,
};
use serde_json::{Value, json};

/// Returns `true` if the connection speaks version 2.
pub(crate) fn is_version_2(turn: &Turn) -> bool {
    turn.client().version() == ProtocolVersion::V2
}

/// Returns a unique id.
pub(crate) fn next_id(what: &str) -> String {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    format!("{what}-{}", NEXT_ID.fetch_add(1, Ordering::Relaxed))
}

async fn send_update(turn: &Turn, update: Value) -> acp::Result<()> {
    turn.send_update(serde_json::from_value::<acp::v2::SessionUpdate>(update).unwrap())
        .await
}

/// Sends an answer in every possible form.
pub(crate) async fn run_answer_task(turn: &Turn) -> acp::Result<StopReason> {
    turn.set_title("Checked").await?;
    turn.report_usage(UsageUpdate::new(10_u64, 1000_u64))
        .await?;
    turn.set_config_options(turn.config_options()).await?;
    turn.send_thought("Hm.").await?;
    let text = json!({"type": "text", "text": "Hm!"});
    send_update(
        turn,
        json!({"sessionUpdate": "agent_thought", "messageId": next_id("thought"), "content": [text]}),
    )
    .await?;
    let image = json!({"type": "image", "mimeType": "image/png", "data": "eA=="});
    send_update(turn, json!({"sessionUpdate": "agent_message", "messageId": next_id("message"), "content": [image]})).await?;
    elicit_input(turn).await?;
    turn.send_message("Hello.").await?;
    Ok(StopReason::EndTurn)
}

async fn elicit_input(turn: &Turn) -> acp::Result<()> {
    let offered = turn.client().capabilities().elicitation.clone();
    let Some(offered) = offered else {
        return Ok(());
    };
    if offered.form.is_some() {
        let form = json!({
            "type": "object", "required": ["greeting"],
            "properties": {"greeting": {"type": "string", "enum": ["Hello", "Good day"]}},
        });
        let requested_schema = serde_json::from_value(form).unwrap();
        let mode = ElicitationMode::Form { requested_schema };
        turn.elicit("How shall I greet?", mode, None).await?;
    }
    if offered.url.is_some() {
        let mode = ElicitationMode::Url {
            elicitation_id: "greeting".into(),
            url: "https://example.org/greeting".to_owned(),
        };
        turn.elicit("Choose a greeting there", mode, None).await?;
        turn.complete_elicitation("greeting").await?;
    }
    Ok(())
}

/// Runs a command in a display terminal.
pub(crate) async fn run_command_task(turn: &Turn) -> acp::Result<StopReason> {
    let id = next_id("run");
    let mut terminal = turn
        .show_display_terminal(id.as_str(), "echo checked", Some(turn.cwd()))
        .await?;
    let call = ToolCall::new(id.as_str(), "Run echo checked")
        .kind(ToolKind::Execute)
        .content([terminal.as_content()]);
    let call = turn.report_tool_call(call).await?;
    call.start().await?;
    terminal.append_output(b"checked\n").await?;
    let mut ended = TerminalExitStatus::new();
    ended.exit_code = Some(0);
    terminal.set_exited(ended).await?;
    let text = json!({"type": "content", "content": {"type": "text", "text": "checked"}});
    send_update(
        turn,
        json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": id, "content": text}),
    )
    .await?;
    call.complete().await?;
    turn.send_message("It printed checked.").await?;
    Ok(StopReason::EndTurn)
}
