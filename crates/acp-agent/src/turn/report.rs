//! Reports a tool call to the client and to the model.

use acp::v1::{ToolCall, ToolCallStatus, ToolCallUpdate};
use serde_json::{Value, json};

use crate::model::message::{ToolRequest, ToolResult, ToolStatus};
use crate::reported_call::ReportedCall;
use crate::tools::tool::ToolOutput;

/// Explains to the model why the arguments it wrote are not a JSON object.
pub(super) fn invalid_arguments_message(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(_) => "The arguments must be a JSON object.".to_owned(),
        Err(error) => format!("The arguments are not valid JSON: {error}. Nothing was done."),
    }
}

/// Creates an update with all fields of a call that was already shown as a draft. The status does not change.
pub(super) fn complete_update(report: &ToolCall) -> ToolCallUpdate {
    let mut update = ToolCallUpdate::new(&report.tool_call_id)
        .title(&report.title)
        .kind(report.kind.clone())
        .locations(report.locations.clone());
    if !report.content.is_empty() {
        update = update.content(report.content.clone());
    }
    update.raw_input.clone_from(&report.raw_input);
    update
}

/// Reports the result of a call to the client.
pub(super) async fn finish(handle: &ReportedCall, output: &ToolOutput) -> acp::Result<()> {
    let status = match output.status {
        ToolStatus::Done => ToolCallStatus::Completed,
        ToolStatus::Failed | ToolStatus::Rejected | ToolStatus::Cancelled => ToolCallStatus::Failed,
    };
    let mut update = handle
        .new_update()
        .status(status)
        .raw_output(output.data.clone());
    update.content.clone_from(&output.content);
    update.locations.clone_from(&output.locations);
    handle.update(update).await
}

/// Returns the output of a failed call.
pub(super) fn failed_output(why: String) -> ToolOutput {
    ToolOutput {
        status: ToolStatus::Failed,
        content: None,
        locations: None,
        data: json!({ "error": why }),
        images: Vec::new(),
        text: why,
    }
}

/// Returns the result of a call that did not run.
pub(super) fn skipped_result(call: &ToolRequest) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        status: ToolStatus::Cancelled,
        text: "Not run: the turn ended before this call started.".to_owned(),
        data: Value::Null,
        images: Vec::new(),
    }
}
