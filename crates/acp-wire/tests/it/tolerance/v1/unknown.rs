//! Tests of messages from newer versions and from extensions.

use super::*;

#[test]
fn unknown_fields_are_ignored() {
    let response: InitializeResponse = from_json(json!({
        "protocolVersion": 1,
        "someday": {"deep": [1, {"deeper": null}]},
        "agentCapabilities": {"loadSession": true, "teleport": true},
        "agentInfo": {"name": "hazel", "version": "1", "mood": "good"}
    }));
    assert!(response.agent_capabilities.load_session);
    assert_eq!(response.agent_info.unwrap().name, "hazel");

    // Also values that `Value` cannot represent.
    let json = format!(
        r#"{{"sessionId":"s","far":1e999,"deep":{}{},"mode":{FORTY_DIGITS}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let cancel: CancelNotification = serde_json::from_str(&json).unwrap();
    assert_eq!(cancel, CancelNotification::new("s"));
}

#[test]
fn unknown_values_are_preserved() {
    macro_rules! keeps {
        ($($name:ident),+) => { $(
            let value: $name = assert_round_trips("\"_never \\\"heard\\\" of\"");
            assert_eq!(value, $name::Unknown("_never \"heard\" of".to_owned()));
            assert_eq!(value.as_str(), "_never \"heard\" of");
            // Case and spaces matter.
            let first = $name::KNOWN[0].as_str().to_uppercase();
            assert_eq!($name::from(first.as_str()), $name::Unknown(first.clone()));
            for known in $name::KNOWN {
                assert_eq!(&assert_round_trips::<$name>(&format!("\"{known}\"")), known);
            }
        )+ };
    }
    keeps!(
        StopReason,
        Role,
        ToolKind,
        ToolCallStatus,
        PlanEntryPriority,
        PlanEntryStatus,
        PermissionOptionKind,
        SessionConfigOptionCategory,
        StringFormat,
        ElicitationSchemaType
    );
    let update = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"levitate","status":"paused"}"#;
    let SessionUpdate::ToolCallUpdate(inner) = assert_round_trips(update) else {
        panic!()
    };
    assert_eq!(inner.kind, Some(ToolKind::Unknown("levitate".to_owned())));
    assert_eq!(
        inner.status,
        Some(ToolCallStatus::Unknown("paused".to_owned()))
    );
}

#[test]
fn unknown_types_are_preserved_exactly() {
    let rest = format!(
        r#""b":{FORTY_DIGITS},"a":[1.50,1e999,{{"x":null}}],"s":"\u00e9\/","z":{{ "sp" : 1 }}"#
    );
    for json in [
        format!(r#"{{"TAG":"_new",{rest}}}"#),
        format!(r#"{{{rest},"TAG":"_new"}}"#),
        format!(r#"{{"first":true,"TAG":"_new",{rest}}}"#),
    ] {
        let of = |tag: &str| json.replace("TAG", tag);
        macro_rules! keeps {
            ($($name:ident by $tag:literal),+) => { $(
                let value: $name = assert_round_trips(&of($tag));
                let $name::Unknown(object) = &value else { panic!("{value:?}") };
                assert_eq!(object.get("b").unwrap().get(), FORTY_DIGITS);
                assert_eq!(object.field::<String>($tag).as_deref(), Some("_new"));
            )+ };
        }
        keeps!(
            SessionUpdate by "sessionUpdate", ContentBlock by "type", ToolCallContent by "type",
            McpServer by "type", AuthMethod by "type", RequestPermissionOutcome by "outcome",
            ElicitationPropertySchema by "type", ElicitationAction by "action"
        );
        assert_round_trips::<MultiSelectItems>(&of("type"));
    }
}

#[test]
fn unknown_types_are_preserved_within_messages() {
    let update = r#"{"sessionId":"s","update":{"n":1e999,"sessionUpdate":"_rain","mm":12.0}}"#;
    let notification: SessionNotification = assert_round_trips(update);
    assert!(matches!(notification.update, SessionUpdate::Unknown(_)));

    let prompt =
        r#"{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"_smell","strength":9}]}"#;
    let request: PromptRequest = assert_round_trips(prompt);
    assert!(matches!(request.prompt[1], ContentBlock::Unknown(_)));

    let call = r#"{"toolCallId":"c","title":"t","kind":"other","status":"pending","content":[{"type":"_chart","points":[0.10]}]}"#;
    let call: ToolCall = assert_round_trips(call);
    assert!(matches!(call.content[0], ToolCallContent::Unknown(_)));

    let servers = r#"{"cwd":"/","mcpServers":[{"type":"_pigeon","name":"p"}]}"#;
    let request: NewSessionRequest = assert_round_trips(servers);
    assert_eq!(request.mcp_servers[0].name(), None);

    let outcome = r#"{"outcome":{"outcome":"_later","in":60}}"#;
    let response: RequestPermissionResponse = assert_round_trips(outcome);
    assert!(matches!(
        response.outcome,
        RequestPermissionOutcome::Unknown(_)
    ));

    let form = r#"{"type":"object","properties":{"c":{"type":"_color","gamut":"p3"}}}"#;
    let form: ElicitationSchema = assert_round_trips(form);
    assert!(matches!(
        form.properties["c"],
        ElicitationPropertySchema::Unknown(_)
    ));
}

#[test]
fn unknown_auth_methods_have_names() {
    let method: AuthMethod = from_json(json!({"type": "_stamp", "id": "i", "name": "n", "ink": 1}));
    assert_eq!(method.id_and_name(), Some(("i".into(), "n".to_owned())));
    let method: AuthMethod = from_json(json!({"type": "_stamp"}));
    assert_eq!(method.id_and_name(), None);
}

#[test]
fn unknown_config_option_types_are_preserved() {
    let option = json!({
        "id": "volume", "name": "Volume", "description": "How loud", "category": "_sound",
        "type": "slider", "currentValue": 0.5, "min": 0, "max": 11, "_meta": {"m": 1}
    });
    let read: SessionConfigOption = from_json(option.clone());
    assert_eq!((read.id.as_str(), read.name.as_str()), ("volume", "Volume"));
    let SessionConfigKind::Unknown(rest) = &read.kind else {
        panic!("{:?}", read.kind)
    };
    assert_eq!(rest.field::<u8>("max"), Some(11));
    assert_eq!(to_json(&read), option);

    let digits =
        format!(r#"{{"id":"i","name":"n","type":"slider","currentValue":{FORTY_DIGITS}}}"#);
    assert_round_trips::<SessionConfigOption>(&digits);
}

#[test]
fn unknown_elicitation_modes_are_preserved() {
    let request = json!({
        "mode": "_voice", "language": "en", "seconds": 30,
        "sessionId": "s", "toolCallId": "c", "message": "Say it", "_meta": {"m": 1}
    });
    let read: CreateElicitationRequest = from_json(request.clone());
    assert_eq!(read.message, "Say it");
    assert!(matches!(read.mode, ElicitationMode::Unknown(_)));
    assert_eq!(to_json(&read), request);

    let digits =
        format!(r#"{{"mode":"_voice","hertz":{FORTY_DIGITS},"requestId":"r","message":"Say it"}}"#);
    assert_round_trips::<CreateElicitationRequest>(&digits);
}

#[test]
fn unknown_elicitation_actions_are_preserved() {
    for json in [
        r#"{"action":"_snooze","for":60,"_meta":{"m":1}}"#,
        r#"{"for":60,"_meta":{"m":1},"action":"_snooze"}"#,
    ] {
        let response: CreateElicitationResponse = assert_round_trips(json);
        assert!(matches!(response.action, ElicitationAction::Unknown(_)));
    }
}
