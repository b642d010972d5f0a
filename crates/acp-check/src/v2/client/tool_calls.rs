//! Checks how a client handles partial updates of tool calls and unknown content.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "tool-calls";
    101 Must "A tool call with only an id is accepted." => accepts_call_with_id_only;
    102 Must "Tool call fields can be replaced, and cleared with null." => accepts_changed_call;
    103 Must "Tool call content can be appended in chunks." => accepts_content_chunks;
    104 Should "Unknown kinds and statuses are accepted." => accepts_unknown_values;
    105 Should "Unknown tool call content types are accepted." => accepts_unknown_content;
    106 Must "A diff without a patch is accepted." => accepts_diff_without_patch;
    107 Should "Unknown file operations and patch formats are accepted." => accepts_unknown_file_operation;
    108 Must "A terminal with only an id is accepted." => accepts_terminal_with_id_only;
    109 Must "Terminal output may contain any bytes, in chunks that may end anywhere." => accepts_binary_output;
    110 Must "Terminal fields can be replaced, and cleared with null." => accepts_changed_terminal;
    111 Must "An exit status with neither a code nor a signal is accepted." => accepts_unspecified_exit_status;
}

fn call_update(fields: &Value) -> Value {
    merge_fields(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "call"}),
        fields,
    )
}

fn terminal_update(fields: &Value) -> Value {
    merge_fields(
        json!({"sessionUpdate": "terminal_update", "terminalId": "terminal"}),
        fields,
    )
}

fn merge_fields(mut update: Value, fields: &Value) -> Value {
    for (name, field) in fields.as_object().into_iter().flatten() {
        update[name] = field.clone();
    }
    update
}

async fn accepts_call_with_id_only(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness
        .require_tolerance_v2("a tool call with only an id", &[call_update(&json!({}))])
        .await
}

async fn accepts_changed_call(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let whole = json!({
        "title": "Check", "kind": "read", "status": "in_progress", "rawInput": {"a": 1},
        "content": [{"type": "content", "content": {"type": "text", "text": "x"}}],
        "locations": [{"path": "/a", "line": 1}],
    });
    let cleared = json!({
        "title": null, "kind": null, "status": null, "content": null, "locations": null,
        "rawInput": null, "rawOutput": null,
    });
    let updates = [
        call_update(&whole),
        call_update(&json!({"status": "completed"})),
        call_update(&cleared),
    ];
    harness
        .require_tolerance_v2("a tool call that was changed and cleared", &updates)
        .await
}

async fn accepts_content_chunks(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let chunk = |id: &str| {
        let content = json!({"type": "content", "content": {"type": "text", "text": "x"}});
        json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": id, "content": content})
    };
    let updates = [
        call_update(&json!({"title": "Check"})),
        chunk("call"),
        chunk("call"),
    ];
    harness
        .require_tolerance_v2("tool call content in chunks", &updates)
        .await
}

async fn accepts_unknown_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let odd = json!({"title": "Check", "kind": "_acp-check/smell", "status": "_acp-check/asleep"});
    let later = json!({"kind": "smell", "status": "asleep"});
    harness
        .require_tolerance_v2(
            "an unknown kind and status",
            &[call_update(&odd), call_update(&later)],
        )
        .await
}

async fn accepts_unknown_content(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let odd = json!({"content": [{"type": "_acp-check/smell", "of": "rain"}, {"type": "smell"}]});
    harness
        .require_tolerance_v2("tool call content of an unknown type", &[call_update(&odd)])
        .await
}

async fn accepts_diff_without_patch(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let changes = json!([{"operation": "modify", "path": "/a"}, {"operation": "move", "oldPath": "/b", "path": "/c"}]);
    let content = json!([
        {"type": "diff", "changes": changes},
        {"type": "diff", "changes": changes, "patch": null},
    ]);
    harness
        .require_tolerance_v2(
            "a diff without a patch",
            &[call_update(&json!({"content": content}))],
        )
        .await
}

async fn accepts_unknown_file_operation(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let changes =
        json!([{"operation": "_acp-check/fold", "path": "/a", "fileType": "_acp-check/paper"}]);
    let patch = json!({"format": "_acp-check/steps", "text": "fold here"});
    let content = json!([{"type": "diff", "changes": changes, "patch": patch}]);
    harness
        .require_tolerance_v2(
            "an unknown file operation",
            &[call_update(&json!({"content": content}))],
        )
        .await
}

async fn accepts_terminal_with_id_only(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let shown = json!({"content": [{"type": "terminal", "terminalId": "terminal"}]});
    let updates = [terminal_update(&json!({})), call_update(&shown)];
    harness
        .require_tolerance_v2("a terminal with only an id", &updates)
        .await
}

async fn accepts_binary_output(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let chunk = |data: &str| json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "terminal", "data": data});
    // Half of a character, invalid data, no data, and a terminal that was not announced.
    let mut other = chunk("eA==");
    other["terminalId"] = json!("another");
    let updates = [
        terminal_update(&json!({"command": "cat"})),
        chunk("ww=="),
        chunk("pA=="),
        chunk("/wD+"),
        chunk(""),
        other,
    ];
    harness
        .require_tolerance_v2("binary output", &updates)
        .await
}

async fn accepts_changed_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let whole = json!({"command": "cat", "cwd": "/", "output": {"data": "eA=="}, "exitStatus": {"exitCode": 0}});
    let cleared = json!({"command": null, "cwd": null, "output": null, "exitStatus": null});
    harness
        .require_tolerance_v2(
            "a terminal that was changed and cleared",
            &[terminal_update(&whole), terminal_update(&cleared)],
        )
        .await
}

async fn accepts_unspecified_exit_status(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        terminal_update(&json!({"exitStatus": {}})),
        terminal_update(&json!({"exitStatus": {"exitCode": null, "signal": null}})),
        terminal_update(&json!({"exitStatus": {"signal": "SIGKILL"}})),
    ];
    harness
        .require_tolerance_v2("a terminal with an unspecified exit status", &updates)
        .await
}
