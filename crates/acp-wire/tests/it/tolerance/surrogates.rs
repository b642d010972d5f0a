//! Tests of lone surrogates: escapes for half a character, which JavaScript programs sometimes write.

use acp_wire::jsonrpc::{self, Error, Incoming, RequestId};
use acp_wire::{v1, v2};
use serde_json::json;

use crate::tolerance::{raw_value, to_json_text};

/// Parses an update as part of a whole line, like a receiver does.
fn parse_update(update: &str) -> v1::SessionUpdate {
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    );
    let Incoming::Notification { method, params } = jsonrpc::parse(line.as_bytes()).unwrap() else {
        panic!("{line}")
    };
    match v1::AgentNotification::read(&method, params).unwrap() {
        v1::AgentNotification::SessionUpdate(notification) => notification.update,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lone_surrogates_in_params_are_replaced() {
    // At the end of a chunk, and at the start of the next one.
    for (half, expected) in [
        (r"bees \ud83d", "bees \u{fffd}"),
        (r"\uDC1D hum", "\u{fffd} hum"),
        (r"\ud83d\ud83d\udc1d", "\u{fffd}\u{1f41d}"),
    ] {
        // With the tag first and last, which are read in different ways.
        for json in [
            format!(
                r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{half}"}}}}"#
            ),
            format!(
                r#"{{"content":{{"text":"{half}","type":"text"}},"sessionUpdate":"agent_message_chunk"}}"#
            ),
        ] {
            let v1::SessionUpdate::AgentMessageChunk(chunk) = parse_update(&json) else {
                panic!("{json}")
            };
            assert_eq!(chunk.content.as_text(), Some(expected), "{json}");
        }
    }
}

#[test]
fn lone_surrogates_in_optional_fields_are_replaced() {
    // Lists, optional fields, any values and `_meta` are read leniently: none of them may be treated as malformed and
    // skipped.
    let json = r#"{
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "\ud83d",
        "content": [
            {"type": "content", "content": {"type": "text", "text": "\ud83d"}},
            {"type": "content", "content": {"type": "text", "text": "whole"}}
        ],
        "locations": [{"path": "/\udc1d"}],
        "rawInput": {"\ud83d": ["\ud83d"]},
        "_meta": {"half": "\ud83d"}
    }"#;
    let v1::SessionUpdate::ToolCallUpdate(read) = parse_update(json) else {
        panic!()
    };
    let half = "\u{fffd}";
    let expected = v1::ToolCallUpdate::new("c")
        .title(half)
        .content([
            v1::ContentBlock::text(half).into(),
            v1::ContentBlock::text("whole").into(),
        ])
        .locations([v1::ToolCallLocation::new("/\u{fffd}")])
        .raw_input(json!({half: [half]}))
        .meta(serde_json::Map::from_iter([(
            "half".to_owned(),
            json!(half),
        )]));
    assert_eq!(*read, expected);

    // The same without the title, so that the message itself is valid.
    let json = json.replace(r#""title": "\ud83d","#, "");
    let v1::SessionUpdate::ToolCallUpdate(read) = parse_update(&json) else {
        panic!()
    };
    assert_eq!(read.title, None);
    assert_eq!(read.content, expected.content);
    assert_eq!(read.locations, expected.locations);
    assert_eq!(read.raw_input, expected.raw_input);
    assert_eq!(read.meta, expected.meta);
}

#[test]
fn lone_surrogates_in_patches_are_replaced() {
    let params = r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c",
        "title":"\ud83d","status":null,"content":[{"type":"content","content":{"type":"text","text":"\ud83d"}}],
        "rawOutput":"\ud83d","_meta":{"m":"\ud83d"}}}"#;
    let notification =
        v2::AgentNotification::read("session/update", Some(&raw_value(params))).unwrap();
    assert_eq!(
        to_json_text(&notification),
        params
            .replace(r"\ud83d", "\u{fffd}")
            .split_whitespace()
            .collect::<String>()
    );
}

#[test]
fn lone_surrogates_in_results_are_replaced() {
    let line = r#"{"id":1,"result":{"content":"caf\u00e9 \ud83d","note":"\ud83d"}}"#;
    let Incoming::Response { result, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
        panic!()
    };
    let response = v1::ClientResponse::read("fs/read_text_file", result.unwrap()).unwrap();
    let v1::ClientResponse::ReadTextFile(file) = response else {
        panic!("{response:?}")
    };
    assert_eq!(file.content, "café \u{fffd}");
}

#[test]
fn lone_surrogates_in_errors_are_replaced() {
    let line = r#"{"id":1,"error":{"code":-32002,"message":"no \ud83d","data":{"uri":"\ud83d"}}}"#;
    let Incoming::Response { result, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
        panic!()
    };
    let expected = Error::resource_not_found("x").data(json!({"uri": "\u{fffd}"}));
    let error = result.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (expected.code, "no \u{fffd}")
    );
    assert_eq!(error.data, expected.data);
}

#[test]
fn lone_surrogates_in_unknown_types_are_preserved() {
    // Preserved and written back as received. A caller that reads a field gets U+FFFD.
    let json = r#"{"sessionUpdate":"_rain","drop":"\ud83d","more":{"drops":["\udc1d"]}}"#;
    let read = parse_update(json);
    assert_eq!(to_json_text(&read), json);
    let v1::SessionUpdate::Unknown(object) = read else {
        panic!("{read:?}")
    };
    assert_eq!(object.get("drop").unwrap().get(), r#""\ud83d""#);
    assert_eq!(object.field::<String>("drop").as_deref(), Some("\u{fffd}"));
    assert_eq!(object.field("more"), Some(json!({"drops": ["\u{fffd}"]})));

    // A type and a field name with lone surrogates.
    let read = parse_update(r#"{"sessionUpdate":"_\ud83d","\ud83d":1}"#);
    assert_eq!(
        to_json_text(&read),
        "{\"sessionUpdate\":\"_\u{fffd}\",\"\u{fffd}\":1}"
    );
    // Ignored fields are not checked.
    let read = parse_update(r#"{"sessionUpdate":"plan","entries":[],"\ud83d":"\ud83d"}"#);
    assert_eq!(read, v1::SessionUpdate::Plan(v1::Plan::new([])));
}

#[test]
fn lone_surrogates_in_value_maps_are_replaced() {
    let json = r#"{"action":"accept","content":{"name":"\ud83d","\ud83d":true}}"#;
    let response = v1::ClientResponse::read("elicitation/create", &raw_value(json)).unwrap();
    assert_eq!(to_json_text(&response), json.replace(r"\ud83d", "\u{fffd}"));
}

#[test]
fn lone_surrogates_in_ids_and_methods_are_errors() {
    // An ignored member.
    let line = r#"{"\ud83d":"\ud83d","id":1,"method":"m","x":"\ud83d"}"#;
    match jsonrpc::parse(line.as_bytes()).unwrap() {
        Incoming::Request { id, method, .. } => assert_eq!((id, &*method), (1.into(), "m")),
        other => panic!("{other:?}"),
    }
    // Such an id could not be repeated, and there is no such method: both are errors.
    let (id, error) = jsonrpc::parse(br#"{"id":"\ud83d","method":"m"}"#)
        .unwrap_err()
        .to_response();
    assert_eq!((id, error.code), (RequestId::Null, Error::INVALID_REQUEST));
    let (id, error) = jsonrpc::parse(br#"{"id":1,"method":"\ud83d"}"#)
        .unwrap_err()
        .to_response();
    assert_eq!((id, error.code), (1.into(), Error::INVALID_REQUEST));
}

#[test]
fn errors_unrelated_to_surrogates_are_still_reported() {
    let params = raw_value(r#"{"sessionId":"\ud83d","prompt":5}"#);
    let error = v1::ClientRequest::read("session/prompt", Some(&params)).unwrap_err();
    assert!(
        error.to_string().contains("invalid type: integer `5`"),
        "{error}"
    );
}
