//! Tests of messages from newer versions and from extensions.

use super::*;

#[test]
fn unknown_fields_are_ignored() {
    let response: InitializeResponse = from_json(json!({
        "protocolVersion": 2,
        "someday": {"deep": [1, {"deeper": null}]},
        "capabilities": {"session": {"prompt": {"smell": {}}, "teleport": {}}, "nes": {}},
        "info": {"name": "hazel", "version": "1", "mood": "good"}
    }));
    assert_eq!(
        response,
        InitializeResponse::new(ProtocolVersion::V2, Implementation::new("hazel", "1"))
            .capabilities(
                AgentCapabilities::new()
                    .session(SessionCapabilities::new().prompt(PromptCapabilities::new()))
            )
    );

    // Also values that `Value` cannot represent.
    let json = format!(
        r#"{{"sessionId":"s","update":{{"sessionUpdate":"state_update","far":1e999,"state":"running","deep":{}{},"n":{FORTY_DIGITS}}}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let update: UpdateSessionNotification = serde_json::from_str(&json).unwrap();
    assert_eq!(
        update.update,
        SessionUpdate::StateUpdate(StateUpdate::Running(RunningStateUpdate::new()))
    );
}

#[test]
fn unknown_values_are_preserved() {
    macro_rules! keeps {
        ($($name:ident),+) => { $(
            let value: $name = assert_round_trips("\"_never \\\"heard\\\" of\"");
            assert_eq!(value, $name::Unknown("_never \"heard\" of".to_owned()));
            for known in $name::KNOWN {
                assert_eq!(&assert_round_trips::<$name>(&format!("\"{known}\"")), known);
            }
        )+ };
    }
    keeps!(
        StopReason,
        ToolKind,
        ToolCallStatus,
        PlanEntryPriority,
        PlanEntryStatus,
        PermissionOptionKind,
        DiffFileType,
        DiffPatchFormat,
        IconTheme,
        NoticeSeverity,
        CompactionStatus
    );
    let update = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"levitate","status":"asleep"}"#;
    let SessionUpdate::ToolCallUpdate(call) = assert_round_trips(update) else {
        panic!()
    };
    assert_eq!(
        call.kind,
        Some(Some(ToolKind::Unknown("levitate".to_owned())))
    );
    assert_eq!(
        call.status,
        Some(Some(ToolCallStatus::Unknown("asleep".to_owned())))
    );
    let idle = r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"_rain"}"#;
    let SessionUpdate::StateUpdate(StateUpdate::Idle(idle)) = assert_round_trips(idle) else {
        panic!()
    };
    assert_eq!(
        idle.stop_reason,
        Some(StopReason::Unknown("_rain".to_owned()))
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
            SessionUpdate by "sessionUpdate", StateUpdate by "state", BackgroundWork by "type",
            ToolCallContent by "type", DiffChange by "operation", ContentBlock by "type",
            McpServer by "type", AuthMethod by "type", AvailableCommand by "type",
            AvailableCommandInput by "type", ReplayFrom by "type", PlanUpdateContent by "type",
            RequestPermissionSubject by "type", RequestPermissionOutcome by "outcome",
            ElicitationAction by "action"
        );
    }
}

#[test]
fn unknown_types_are_preserved_within_messages() {
    fn assert_big_round_trips<
        T: DeserializeOwned + serde::Serialize + PartialEq + std::fmt::Debug,
    >(
        json: &str,
    ) {
        assert_round_trips::<T>(&json.replace("BIG", FORTY_DIGITS));
    }
    fn assert_update_round_trips(json: &str) {
        assert_big_round_trips::<UpdateSessionNotification>(&format!(
            r#"{{"sessionId":"s","update":{json}}}"#
        ));
    }
    assert_update_round_trips(r#"{"n":1e999,"sessionUpdate":"_rain","mm":12.0}"#);
    assert_update_round_trips(r#"{"sessionUpdate":"state_update","state":"_dreaming","of":BIG}"#);
    assert_update_round_trips(
        r#"{"sessionUpdate":"state_update","state":"running","background":[{"type":"_sun","w":BIG}]}"#,
    );
    assert_update_round_trips(
        r#"{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"_smell","n":BIG}]}"#,
    );
    assert_update_round_trips(
        r#"{"sessionUpdate":"plan_update","plan":{"type":"_map","planId":"p","scale":BIG}}"#,
    );
    assert_update_round_trips(
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"_chart","n":0.10}}"#,
    );
    assert_update_round_trips(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","changes":[{"operation":"_swap","n":BIG}]}]}"#,
    );
    assert_update_round_trips(
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"n","description":"d","input":{"type":"_voice","hz":BIG}},{"type":"_macro","n":BIG}]}"#,
    );
    assert_big_round_trips::<NewSessionRequest>(
        r#"{"cwd":"/","mcpServers":[{"type":"_pigeon","name":"p","n":BIG}]}"#,
    );
    assert_big_round_trips::<ResumeSessionRequest>(
        r#"{"sessionId":"s","cwd":"/","replayFrom":{"type":"_noon","n":BIG}}"#,
    );
    assert_big_round_trips::<RequestPermissionRequest>(
        r#"{"sessionId":"s","title":"t","subject":{"type":"_moon","n":BIG},"options":[]}"#,
    );
    assert_big_round_trips::<InitializeResponse>(
        r#"{"protocolVersion":2,"info":{"name":"n","version":"v"},"capabilities":{},"authMethods":[{"type":"_stamp","methodId":"i","name":"n","ink":BIG}]}"#,
    );
}

#[test]
fn a_plan_of_an_unknown_type_has_its_id() {
    for (json, id) in [
        (json!({"type": "_map", "planId": "p"}), Some("p")),
        (json!({"type": "_map", "id": "p"}), Some("p")),
        (json!({"type": "_map"}), None),
    ] {
        let plan: PlanUpdateContent = from_json(json);
        assert_eq!(plan.plan_id(), id.map(PlanId::from));
    }
}

#[test]
fn unknown_config_option_types_are_preserved() {
    // Fields that mean something in other types of options, or in version 1, mean nothing here.
    let json = format!(
        r#"{{"configId":"volume","name":"Volume","category":"_sound","type":"_slider","currentValue":{FORTY_DIGITS},"id":"x","group":1,"options":[{{"groupId":"g","group":"h"}}],"_meta":{{"m":1}}}}"#
    );
    let option: SessionConfigOption = assert_round_trips(&json);
    assert_eq!(option.0.id.as_str(), "volume");
    let acp_wire::v1::SessionConfigKind::Unknown(rest) = &option.0.kind else {
        panic!("{option:?}")
    };
    assert_eq!(rest.field::<String>("id").as_deref(), Some("x"));
    assert_eq!(rest.get("currentValue").unwrap().get(), FORTY_DIGITS);
}

#[test]
fn unknown_config_value_types_are_preserved() {
    let json = format!(
        r#"{{"sessionId":"s","configId":"c","type":"_level","value":{FORTY_DIGITS},"by":[1.0]}}"#
    );
    let request: SetSessionConfigOptionRequest = assert_round_trips(&json);
    assert!(matches!(
        request.value,
        SessionConfigOptionValue::Unknown(_)
    ));
}

#[test]
fn unknown_form_values_are_preserved() {
    let json = r#"{"action":"accept","content":{"color":{"r":0.5,"g":[1,null]},"when":[1,2]}}"#;
    assert_round_trips::<CreateElicitationResponse>(json);
}
