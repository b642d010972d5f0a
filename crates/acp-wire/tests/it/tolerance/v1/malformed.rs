//! Tests of messages that do not match the schema.

use super::*;

#[test]
fn malformed_optional_fields_read_as_absent() {
    for wrong in [
        json!(null),
        json!(7),
        json!("?"),
        json!([1]),
        json!({"a": 1}),
        json!(true),
        json!(1.5),
    ] {
        let request: InitializeRequest = from_json(
            json!({"protocolVersion": 1, "clientCapabilities": wrong, "clientInfo": wrong}),
        );
        // An object counts as an object of capabilities without any capability.
        assert_eq!(
            request,
            InitializeRequest::new(ProtocolVersion::V1),
            "{wrong}"
        );

        let update: ToolCallUpdate = from_json(json!({
            "toolCallId": "c", "content": {"not": "a list"}, "locations": "nowhere", "_meta": 3
        }));
        assert_eq!(update, ToolCallUpdate::new("c"));
    }
    let bad_numbers = [
        json!(-1),
        json!(1.5),
        json!("1"),
        json!(null),
        json!([]),
        json!(4_294_967_296_u64),
    ];
    for wrong in bad_numbers {
        let request: ReadTextFileRequest =
            from_json(json!({"sessionId": "s", "path": "/p", "line": wrong, "limit": wrong}));
        assert_eq!((request.line, request.limit), (None, None), "{wrong}");
    }
    let call: ToolCall = from_json(
        json!({"toolCallId": "c", "title": "t", "kind": 5, "status": [], "content": 1, "locations": null}),
    );
    assert_eq!(call, ToolCall::new("c", "t"));
}

#[test]
fn a_malformed_part_does_not_affect_its_neighbors() {
    let response: InitializeResponse = from_json(json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": "yes",
            "promptCapabilities": {"image": true, "audio": 1},
            "sessionCapabilities": {"list": {}, "resume": false, "close": 1}
        },
        "agentInfo": {"name": 5}
    }));
    let can = response.agent_capabilities;
    assert!(!can.load_session && can.prompt_capabilities.image && !can.prompt_capabilities.audio);
    assert_eq!(
        can.session_capabilities,
        SessionCapabilities::new().list(SessionListCapabilities::new())
    );
    assert_eq!(response.agent_info, None);
}

#[test]
fn invalid_items_of_lists_are_skipped() {
    let call: ToolCall = from_json(json!({
        "toolCallId": "c", "title": "t",
        "content": [
            {"type": "diff", "path": "/p"},
            null, 5, "text", [],
            {"no": "type"},
            {"type": 5},
            {"type": "terminal", "terminalId": "term_1"}
        ],
        "locations": [{"line": 1}, {"path": "/a", "line": "x"}, {"path": "/b", "line": 2}]
    }));
    assert_eq!(call.content, [TerminalId::from("term_1").into()]);
    assert_eq!(
        call.locations,
        [
            ToolCallLocation::new("/a"),
            ToolCallLocation::new("/b").line(2_u32)
        ]
    );

    let plan: Plan = from_json(json!({"entries": [
        {"content": "a", "priority": "high", "status": "pending"}, {"priority": "low"}, 7
    ]}));
    assert_eq!(plan.entries.len(), 1);

    let request: RequestPermissionRequest = from_json(json!({
        "sessionId": "s", "toolCall": {"toolCallId": "c"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"name": "?"}, "no"]
    }));
    assert_eq!(request.options.len(), 1);

    let commands: AvailableCommandsUpdate =
        from_json(json!({"availableCommands": [{"name": "a", "input": 5}, {}]}));
    assert_eq!(
        commands.available_commands,
        [AvailableCommand::new("a", "")]
    );

    let response: NewSessionResponse = from_json(json!({"sessionId": "s", "configOptions": [
        {"id": "a", "name": "A", "type": "boolean", "currentValue": "on"},
        {"id": "b", "name": "B", "type": "boolean", "currentValue": true},
        {"id": "c", "name": "C", "type": "select", "currentValue": "x", "options": [
            {"value": "x", "name": "X"}, {"value": "y"}, null
        ]}
    ]}));
    let options = response.config_options.unwrap();
    assert_eq!(
        options.iter().map(|o| o.id.as_str()).collect::<Vec<_>>(),
        ["b", "c"]
    );
    let SessionConfigKind::Select(select) = &options[1].kind else {
        panic!()
    };
    assert_eq!(select.options.iter().count(), 1);

    let hints: Annotations =
        from_json(json!({"audience": ["user", 5, null, "assistant"], "priority": "high"}));
    assert_eq!(
        hints,
        Annotations::new().audience([Role::User, Role::Assistant])
    );
}

#[test]
fn invalid_entries_of_maps_are_skipped() {
    let form: ElicitationSchema = from_json(json!({"properties": {
        "a": {"type": "string"}, "b": {"no": "type"}, "c": 5, "d": {"type": "array"}, "e": {"type": "boolean"}
    }}));
    assert_eq!(form.properties.keys().collect::<Vec<_>>(), ["a", "e"]);

    let method: AuthMethod = from_json(
        json!({"type": "terminal", "id": "t", "name": "T", "env": {"A": "1", "B": 2, "C": null}}),
    );
    let AuthMethod::Terminal(terminal) = method else {
        panic!("{method:?}")
    };
    assert_eq!(terminal.env, [("A".to_owned(), "1".to_owned())].into());

    let response: CreateElicitationResponse =
        from_json(json!({"action": "accept", "content": {"name": "x", "age": null, "pets": [{}]}}));
    assert_eq!(
        to_json(&response),
        json!({"action": "accept", "content": {"name": "x", "pets": [{}]}}),
        "what no field of version 1 holds is kept, but `null` is no value"
    );
}

#[test]
fn missing_or_malformed_required_fields_are_errors() {
    fn assert_fails<T: DeserializeOwned + std::fmt::Debug>(json: Value, about: &str) {
        let error = serde_json::from_str::<T>(&json.to_string()).unwrap_err();
        assert!(error.to_string().contains(about), "{error}");
    }
    assert_fails::<PromptRequest>(json!({"prompt": []}), "sessionId");
    assert_fails::<PromptRequest>(json!({"sessionId": "s", "prompt": null}), "sequence");
    assert_fails::<PromptRequest>(
        json!({"sessionId": "s", "prompt": [{"type": "text"}]}),
        "text",
    );
    assert_fails::<PromptRequest>(json!({"sessionId": "s", "prompt": [{"text": "t"}]}), "type");
    assert_fails::<PromptRequest>(json!({"sessionId": null, "prompt": []}), "string");
    assert_fails::<SessionNotification>(
        json!({"sessionId": "s", "update": {"content": {}}}),
        "sessionUpdate",
    );
    assert_fails::<SessionNotification>(json!({"sessionId": "s", "update": null}), "sessionUpdate");
    assert_fails::<PromptResponse>(json!({}), "stopReason");
    assert_fails::<CancelRequestNotification>(json!({}), "requestId");
    assert_fails::<CancelRequestNotification>(json!({"requestId": 1.5}), "an integer");
    assert_fails::<CreateElicitationRequest>(
        json!({"message": "m", "mode": "url", "url": "u", "sessionId": "s"}),
        "elicitationId",
    );
    assert_fails::<CreateElicitationRequest>(
        json!({"message": "m", "mode": "form", "sessionId": "s"}),
        "requestedSchema",
    );
    assert_fails::<CreateElicitationRequest>(json!({"message": "m", "mode": "_x"}), "sessionId");
    assert_fails::<UsageUpdate>(json!({"used": -1, "size": 2}), "not a valid u64");
    assert_fails::<UsageUpdate>(json!({"used": 1}), "size");
}

#[test]
fn unrepresentable_values_read_as_absent() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for wrong in ["1e999", &deep] {
        let json = format!(
            r#"{{"toolCallId":"c","title":"t","rawInput":{wrong},"rawOutput":[1],"_meta":{{"x":{wrong}}}}}"#
        );
        let call: ToolCall = serde_json::from_str(&json).unwrap();
        assert_eq!(call, ToolCall::new("c", "t").raw_output(json!([1])));

        let json = format!(r#"{{"code":-32000,"message":"m","data":{wrong}}}"#);
        let error: Error = serde_json::from_str(&json).unwrap();
        assert_eq!(error, Error::new(Error::AUTH_REQUIRED, "m"));
    }
    // A number that is too large for an integer is read as a float.
    let call: ToolCall = serde_json::from_str(&format!(
        r#"{{"toolCallId":"c","title":"t","rawInput":{FORTY_DIGITS}}}"#
    ))
    .unwrap();
    assert_eq!(call.raw_input.unwrap().as_f64(), FORTY_DIGITS.parse().ok());
}

#[test]
fn null_fields_read_as_absent() {
    let block: ContentBlock = from_json(json!({
        "type": "image", "data": "AA==", "mimeType": "image/png",
        "uri": null, "annotations": null, "_meta": null
    }));
    assert_eq!(
        block,
        ContentBlock::Image(ImageContent::new("AA==", "image/png").into())
    );

    // Some programs write the fields of all variants.
    let resource: EmbeddedResource = from_json(
        json!({"resource": {"uri": "u", "text": null, "blob": "AA==", "mimeType": null}}),
    );
    assert_eq!(
        resource.resource,
        EmbeddedResourceResource::Blob(BlobResourceContents::new("AA==", "u"))
    );
    let resource: EmbeddedResource =
        from_json(json!({"resource": {"uri": "u", "text": "", "blob": null}}));
    assert_eq!(
        resource.resource,
        EmbeddedResourceResource::Text(TextResourceContents::new("", "u"))
    );

    let option: SessionConfigOption = from_json(json!({
        "id": "i", "name": "n", "description": null, "category": null, "type": "select", "_meta": null,
        "currentValue": "x", "options": [{"value": "x", "name": "X", "group": null, "description": null}]
    }));
    assert_eq!(
        option,
        SessionConfigOption::new(
            "i",
            "n",
            SessionConfigSelect::new("x", vec![SessionConfigSelectOption::new("x", "X")])
        )
    );

    let items: MultiSelectItems =
        from_json(json!({"type": "string", "enum": ["a"], "anyOf": null}));
    assert_eq!(
        items,
        MultiSelectItems::Strings(StringMultiSelectItems::new(["a".to_owned()]))
    );

    let server: McpServer = from_json(json!({
        "type": null, "name": "n", "command": "c", "args": null, "env": null, "url": null, "headers": null
    }));
    assert_eq!(
        server,
        McpServer::Stdio(McpServerStdio::new("n", "c", [], []))
    );
    let method: AuthMethod =
        from_json(json!({"id": "i", "name": "n", "description": null, "type": null}));
    assert_eq!(method, AuthMethod::Agent(AuthMethodAgent::new("i", "n")));

    let request: CreateElicitationRequest = from_json(json!({
        "mode": "url", "url": "u", "elicitationId": "e", "message": "m",
        "sessionId": null, "toolCallId": null, "requestId": 3, "requestedSchema": null, "_meta": null
    }));
    assert_eq!(
        request.scope,
        ElicitationScope::Request {
            request_id: RequestId::Number(3)
        }
    );

    let response: NewSessionResponse =
        from_json(json!({"sessionId": "s", "modes": null, "configOptions": null}));
    assert_eq!(response, NewSessionResponse::new("s"));
    let request: NewSessionRequest =
        from_json(json!({"cwd": "/", "mcpServers": null, "additionalDirectories": null}));
    assert_eq!(request, NewSessionRequest::new("/", []));
    let request: CreateTerminalRequest = from_json(json!({
        "sessionId": "s", "command": "c", "args": null, "env": null, "cwd": null, "outputByteLimit": null
    }));
    assert_eq!(request, CreateTerminalRequest::new("s", "c"));
    let call: ToolCall = from_json(json!({
        "toolCallId": "c", "title": null, "kind": null, "status": null, "content": null,
        "locations": null, "rawInput": null, "rawOutput": null
    }));
    assert_eq!(call, ToolCall::new("c", ""));
    let accept: CreateElicitationResponse =
        from_json(json!({"action": "accept", "content": null, "_meta": null}));
    assert_eq!(to_json(&accept), json!({"action": "accept"}));
}

#[test]
fn null_clears_a_clearable_field_and_malformed_values_are_absent() {
    let cleared: SessionInfoUpdate =
        from_json(json!({"title": null, "updatedAt": "2026-01-01T00:00:00Z"}));
    assert_eq!(cleared.title, Some(None));
    assert_eq!(
        cleared.updated_at,
        Some(Some("2026-01-01T00:00:00Z".to_owned()))
    );
    let malformed: SessionInfoUpdate = from_json(json!({"title": 5, "updatedAt": {}}));
    assert_eq!(malformed, SessionInfoUpdate::new());
    assert_eq!(to_json_text(&malformed), "{}");
}
