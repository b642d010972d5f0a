//! Checks how a client handles tool calls.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

use super::steps::require_updates_accepted;

checks! { V1 Client "tool-calls";
    101 Must "Tool calls of every kind and status are accepted." => accepts_every_kind;
    102 Must "A tool call update may change any field, and may omit the other fields or set them to null." => accepts_partial_update;
    103 Must "Diffs are accepted, including diffs for new files." => accepts_diffs;
    104 Must "Content blocks and locations are accepted." => accepts_content;
    105 Must "`rawInput` and `rawOutput` may be any JSON values." => accepts_raw_values;
    106 Must "A tool call id may be any string." => accepts_any_id;
    107 May "Updates for unknown tool calls are accepted." => accepts_unannounced_call;
    108 May "A tool call announced twice is accepted." => accepts_repeated_call;
    109 May "An unknown terminal in a tool call is accepted." => accepts_unknown_terminal;
    110 May "Unknown kinds, statuses and content types are accepted." => accepts_unknown_values;
    111 May "Output from the agent's own terminals, sent in `_meta`, is accepted." => accepts_agent_terminal;
}

/// Returns an update that starts a tool call with these fields.
fn tool_call(id: &str, fields: Value) -> Value {
    merge_fields(
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": format!("Call {id}")}),
        fields,
    )
}

/// Returns an update of a tool call with these fields.
fn tool_call_update(id: &str, fields: Value) -> Value {
    merge_fields(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id}),
        fields,
    )
}

fn merge_fields(mut message: Value, fields: Value) -> Value {
    if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
        message.extend(fields);
    }
    message
}

async fn accepts_every_kind(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let kinds = [
        "read",
        "edit",
        "delete",
        "move",
        "search",
        "execute",
        "think",
        "fetch",
        "switch_mode",
        "other",
    ];
    let statuses = ["pending", "in_progress", "completed", "failed"];
    let mut updates = vec![tool_call("least", json!({}))];
    for kind in kinds {
        updates.push(tool_call(kind, json!({"kind": kind, "status": "pending"})));
        updates.extend(statuses.map(|status| tool_call_update(kind, json!({"status": status}))));
    }
    require_updates_accepted(harness, "tool calls of every kind", updates).await
}

async fn accepts_partial_update(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let nulls = json!({
        "kind": null, "status": null, "title": null, "content": null, "locations": null,
        "rawInput": null, "rawOutput": null, "_meta": null,
    });
    let updates = [
        tool_call("partial", json!({"status": "pending"})),
        tool_call_update("partial", json!({})),
        tool_call_update("partial", json!({"title": "Another title"})),
        tool_call_update("partial", json!({"kind": "search"})),
        tool_call_update("partial", json!({"content": []})),
        tool_call_update("partial", nulls),
        tool_call_update("partial", json!({"status": "completed"})),
    ];
    require_updates_accepted(harness, "partial updates of a tool call", updates).await
}

async fn accepts_diffs(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let diff = |old: Value, new: &str| json!({"type": "diff", "path": "/project/notes.txt", "oldText": old, "newText": new});
    let new = json!({"type": "diff", "path": "/project/new.txt", "newText": "alpha\n"});
    let content = json!([
        diff(json!("alpha\n"), "beta\n"),
        diff(Value::Null, "beta"),
        diff(json!("alpha"), ""),
        new
    ]);
    let updates = [
        tool_call("edit", json!({"kind": "edit", "content": content})),
        tool_call_update("edit", json!({"status": "completed"})),
    ];
    require_updates_accepted(harness, "diffs", updates).await
}

async fn accepts_content(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let block = |block: Value| json!({"type": "content", "content": block});
    let content = json!([
        block(json!({"type": "text", "text": "alpha"})),
        block(json!({"type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt"})),
        block(
            json!({"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "alpha"}})
        ),
    ]);
    let locations = json!([
        {"path": "/project/notes.txt"},
        {"path": "/project/notes.txt", "line": 1},
        {"path": "/project/notes.txt", "line": null},
    ]);
    let updates = [
        tool_call(
            "look",
            json!({"kind": "read", "content": content, "locations": locations}),
        ),
        tool_call_update("look", json!({"content": content, "locations": []})),
    ];
    require_updates_accepted(harness, "tool call content", updates).await
}

async fn accepts_raw_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let deep = (0..32).fold(json!("deep"), |inner, _| json!({ "in": inner }));
    let any = [
        json!({"path": "/x"}),
        json!([1, "two"]),
        json!("text"),
        json!(1.5e-3),
        json!(false),
        deep,
    ];
    let updates = any.into_iter().enumerate().map(|(number, value)| {
        tool_call(
            &format!("raw-{number}"),
            json!({"rawInput": value, "rawOutput": value}),
        )
    });
    require_updates_accepted(harness, "raw input and output", updates.collect::<Vec<_>>()).await
}

async fn accepts_any_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let ids = ["0", "a/b/../c", "toolu_01 x", "ключ:🦀", "", "{\"id\":1}"];
    let updates = ids.into_iter().flat_map(|id| {
        [
            tool_call(id, json!({"status": "pending"})),
            tool_call_update(id, json!({"status": "completed"})),
        ]
    });
    require_updates_accepted(harness, "unusual tool call ids", updates).await
}

async fn accepts_unannounced_call(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        tool_call_update("never-announced", json!({"status": "in_progress"})),
        tool_call_update(
            "never-announced",
            json!({"status": "completed", "content": []}),
        ),
    ];
    require_updates_accepted(
        harness,
        "updates for a tool call that was not announced",
        updates,
    )
    .await
}

async fn accepts_repeated_call(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        tool_call("twice", json!({"status": "completed"})),
        tool_call("twice", json!({"status": "pending", "kind": "read"})),
        tool_call_update("twice", json!({"status": "in_progress"})),
    ];
    require_updates_accepted(harness, "a tool call announced twice", updates).await
}

async fn accepts_unknown_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let content = json!([{"type": "terminal", "terminalId": "term_nobodys"}]);
    let updates = [
        tool_call("run", json!({"kind": "execute", "content": content})),
        tool_call_update("run", json!({"content": content, "status": "completed"})),
    ];
    require_updates_accepted(harness, "an unknown terminal", updates).await
}

async fn accepts_unknown_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        tool_call("odd", json!({"kind": "juggle", "status": "in_the_air"})),
        tool_call_update(
            "odd",
            json!({"status": "dropped", "content": [{"type": "smell", "data": "roses"}]}),
        ),
    ];
    require_updates_accepted(harness, "unknown tool call kinds", updates).await
}

async fn accepts_agent_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let meta = |fields: Value| json!({ "_meta": fields });
    let content = json!([{"type": "terminal", "terminalId": "own-1"}]);
    let begin = merge_fields(
        meta(json!({"terminal_info": {"terminal_id": "own-1", "cwd": "/project"}})),
        json!({"kind": "execute", "content": content}),
    );
    let updates = [
        tool_call("own", begin),
        tool_call_update(
            "own",
            meta(json!({"terminal_output": {"terminal_id": "own-1", "data": "checked\n"}})),
        ),
        tool_call_update(
            "own",
            meta(
                json!({"terminal_exit": {"terminal_id": "own-1", "exit_code": 0, "signal": null}}),
            ),
        ),
    ];
    require_updates_accepted(harness, "output from the agent's own terminal", updates).await
}
