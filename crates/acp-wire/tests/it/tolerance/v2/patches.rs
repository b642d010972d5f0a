//! Tests of patch updates. An absent field is unchanged, `null` clears the field, and a value replaces it.

use std::collections::BTreeSet;

use super::*;

/// Returns the JSON of an update that contains its ids and at most one other field.
fn patch_update(kind: &str, ids: &Value, field: Option<(&str, &str)>) -> String {
    let mut json = format!(r#"{{"sessionUpdate":"{kind}""#);
    for (key, value) in ids.as_object().unwrap() {
        json += &format!(r#","{key}":{value}"#);
    }
    if let Some((key, value)) = field {
        json += &format!(r#","{key}":{value}"#);
    }
    json + "}"
}

#[test]
fn absent_null_and_set_values_are_distinct_in_every_field() {
    let tool_call = json!({"toolCallId": "c"});
    let terminal = json!({"terminalId": "t"});
    let message = json!({"messageId": "m"});
    let compaction = json!({"compactionId": "c", "status": "completed"});
    let nothing = json!({});
    let usage = json!({"used": 1, "size": 2});
    let mut kinds = BTreeSet::new();
    for (kind, ids, field, value) in [
        ("tool_call_update", &tool_call, "name", r#""grep""#),
        ("tool_call_update", &tool_call, "title", r#""Look""#),
        ("tool_call_update", &tool_call, "kind", r#""search""#),
        ("tool_call_update", &tool_call, "status", r#""failed""#),
        ("tool_call_update", &tool_call, "content", "[]"),
        (
            "tool_call_update",
            &tool_call,
            "locations",
            r#"[{"path":"/a"}]"#,
        ),
        (
            "tool_call_update",
            &tool_call,
            "rawInput",
            r#"{"a":[null]}"#,
        ),
        ("tool_call_update", &tool_call, "rawOutput", "false"),
        (
            "tool_call_update",
            &tool_call,
            "capabilities",
            r#"{"cancel":{}}"#,
        ),
        ("tool_call_update", &tool_call, "_meta", r#"{"m":null}"#),
        ("terminal_update", &terminal, "command", r#""make""#),
        ("terminal_update", &terminal, "cwd", r#""/""#),
        ("terminal_update", &terminal, "output", r#"{"data":"AA=="}"#),
        (
            "terminal_update",
            &terminal,
            "exitStatus",
            r#"{"exitCode":-1}"#,
        ),
        (
            "terminal_update",
            &terminal,
            "size",
            r#"{"cols":80,"rows":24}"#,
        ),
        ("terminal_update", &terminal, "capabilities", "{}"),
        ("terminal_update", &terminal, "_meta", "{}"),
        (
            "user_message",
            &message,
            "content",
            r#"[{"type":"text","text":"a"}]"#,
        ),
        ("user_message", &message, "_meta", "{}"),
        ("agent_message", &message, "content", "[]"),
        ("agent_message", &message, "_meta", "{}"),
        ("agent_thought", &message, "content", "[]"),
        ("agent_thought", &message, "_meta", "{}"),
        ("session_info_update", &nothing, "title", r#""""#),
        (
            "session_info_update",
            &nothing,
            "updatedAt",
            r#""2026-03-01T08:15:00Z""#,
        ),
        ("session_info_update", &nothing, "_meta", r#"{"m":1}"#),
        ("compaction_update", &compaction, "summary", "[]"),
        ("compaction_update", &compaction, "error", r#""full""#),
        ("compaction_update", &compaction, "_meta", "{}"),
        (
            "usage_update",
            &usage,
            "cost",
            r#"{"amount":0.5,"currency":"EUR"}"#,
        ),
    ] {
        let absent = assert_round_trips::<SessionUpdate>(&patch_update(kind, ids, None));
        let null =
            assert_round_trips::<SessionUpdate>(&patch_update(kind, ids, Some((field, "null"))));
        let set =
            assert_round_trips::<SessionUpdate>(&patch_update(kind, ids, Some((field, value))));
        assert!(!matches!(absent, SessionUpdate::Unknown(_)), "{kind}");
        assert_ne!(absent, null, "{kind}: {field}");
        assert_ne!(null, set, "{kind}: {field}");
        assert_ne!(absent, set, "{kind}: {field}");
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}

#[test]
fn malformed_fields_change_nothing() {
    for wrong in [json!(7.5), json!(-1), json!(true)] {
        let call: ToolCallUpdate = from_json(json!({
            "toolCallId": "c", "name": wrong, "title": wrong, "kind": wrong, "status": wrong,
            "content": wrong, "locations": wrong, "capabilities": wrong, "_meta": wrong
        }));
        assert_eq!(call, ToolCallUpdate::new("c"), "{wrong}");
        let terminal: TerminalUpdate = from_json(json!({
            "terminalId": "t", "command": wrong, "cwd": wrong, "output": wrong, "exitStatus": wrong,
            "size": wrong, "capabilities": wrong, "_meta": wrong
        }));
        assert_eq!(terminal, TerminalUpdate::new("t"), "{wrong}");
        let message: Message = from_json(json!({"messageId": "m", "content": wrong}));
        assert_eq!(message, Message::new("m"), "{wrong}");
        let usage: UsageUpdate = from_json(json!({"used": 1, "size": 2, "cost": wrong}));
        assert_eq!(usage, UsageUpdate::new(1_u64, 2_u64), "{wrong}");
    }
    // An invalid size.
    let terminal: TerminalUpdate = from_json(
        json!({"terminalId": "t", "size": {"cols": 80}, "exitStatus": {"exitCode": "x"}}),
    );
    assert_eq!(
        terminal,
        TerminalUpdate::new("t").exit_status(TerminalExitStatus::new()),
        "it has ended, whatever the code"
    );
}

#[test]
fn an_invalid_item_does_not_affect_the_others() {
    let call: ToolCallUpdate = from_json(json!({
        "toolCallId": "c",
        "content": [
            null, 5, {"no": "type"}, {"type": "diff"}, {"type": "terminal", "terminalId": 5},
            {"type": "terminal", "terminalId": "t"}
        ],
        "locations": [{"line": 1}, {"path": "/b", "line": 2}]
    }));
    assert_eq!(
        call,
        ToolCallUpdate::new("c")
            .content([
                ToolCallContent::Diff(Diff::new([])),
                TerminalId::from("t").into()
            ])
            .locations([ToolCallLocation::new("/b").line(2_u32)])
    );
    let message: Message = from_json(
        json!({"messageId": "m", "content": ["a", {"type": "text"}, {"type": "text", "text": "b"}]}),
    );
    assert_eq!(
        message,
        Message::new("m").content([ContentBlock::text("b")])
    );
}

#[test]
fn unrepresentable_values_change_nothing() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for wrong in ["1e999", &deep] {
        let json = format!(
            r#"{{"toolCallId":"c","rawInput":{wrong},"rawOutput":null,"_meta":{{"x":{wrong}}}}}"#
        );
        let call: ToolCallUpdate = serde_json::from_str(&json).unwrap();
        assert_eq!(call, ToolCallUpdate::new("c").raw_output(Value::Null));
    }
}
