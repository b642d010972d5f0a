//! Tool calls and what they have produced, from version 1 to version 2.

use acp_wire::v1;
use acp_wire::v2;

use super::git_patch;

/// A new tool call. What is at its default is not told: a new call begins with it.
pub(crate) fn tool_call_to_v2(call: v1::ToolCall) -> v2::ToolCallUpdate {
    let mut new = v2::ToolCallUpdate::new(call.tool_call_id);
    new.name = call.name.map(Some);
    new.title = Some(Some(call.title)).filter(|title| *title != Some(String::new()));
    new.kind = (call.kind != v1::ToolKind::default()).then_some(Some(call.kind));
    new.status =
        (call.status != v1::ToolCallStatus::default()).then(|| Some(call.status.as_str().into()));
    new.content = (!call.content.is_empty()).then(|| Some(content_to_v2(call.content)));
    new.locations = (!call.locations.is_empty()).then_some(Some(call.locations));
    new.raw_input = call.raw_input;
    new.raw_output = call.raw_output;
    new.meta = call.meta.map(Some);
    new
}

/// A change of a tool call.
pub(crate) fn tool_call_update_to_v2(update: v1::ToolCallUpdate) -> v2::ToolCallUpdate {
    let mut new = v2::ToolCallUpdate::new(update.tool_call_id);
    new.name = update.name.map(Some);
    new.title = update.title.map(Some);
    new.kind = update.kind.map(Some);
    new.status = update.status.map(|status| Some(status.as_str().into()));
    new.content = update.content.map(|content| Some(content_to_v2(content)));
    new.locations = update.locations.map(Some);
    new.raw_input = update.raw_input;
    new.raw_output = update.raw_output;
    new.meta = update.meta.map(Some);
    new
}

fn content_to_v2(content: Vec<v1::ToolCallContent>) -> Vec<v2::ToolCallContent> {
    let one = |content| {
        Some(match content {
            v1::ToolCallContent::Content(content) => v2::ToolCallContent::Content(content),
            v1::ToolCallContent::Diff(diff) => v2::ToolCallContent::Diff(diff_to_v2(diff)),
            v1::ToolCallContent::Terminal(terminal) => v2::ToolCallContent::Terminal(terminal),
            v1::ToolCallContent::Unknown(object) => v2::ToolCallContent::Unknown(object),
            _ => return None,
        })
    };
    content.into_iter().filter_map(one).collect()
}

/// A change of a file: what happened to it, and a patch to look at.
fn diff_to_v2(diff: v1::Diff) -> v2::Diff {
    let patch = git_patch(&diff);
    let patch = patch.map(|text| v2::DiffPatch::new(v2::DiffPatchFormat::GitPatch, text));
    let change = v2::DiffPathChange::new(diff.path).file_type(v2::DiffFileType::Text);
    let change = if diff.old_text.is_some() {
        v2::DiffChange::Modify(change)
    } else {
        v2::DiffChange::Add(change)
    };
    let mut new = v2::Diff::new(vec![change]);
    (new.patch, new.meta) = (patch, diff.meta);
    new
}
