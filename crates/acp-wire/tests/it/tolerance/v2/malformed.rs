//! Tests of messages that do not match the schema.

use super::*;

#[test]
fn malformed_optional_fields_read_as_absent() {
    for wrong in [json!(null), json!(7), json!("?"), json!(true)] {
        let request: InitializeRequest = from_json(
            json!({"protocolVersion": 2, "info": wrong, "capabilities": wrong, "_meta": wrong}),
        );
        assert_eq!(
            request,
            InitializeRequest::new(ProtocolVersion::V2, Implementation::default()),
            "{wrong}"
        );
        let response: InitializeResponse = from_json(json!({
            "protocolVersion": 2, "authMethods": wrong,
            "capabilities": {"auth": wrong, "session": {"prompt": wrong, "mcp": {"http": {}}}}
        }));
        assert_eq!(response.auth_methods, []);
        assert_eq!(
            response.capabilities,
            AgentCapabilities::new().session(
                SessionCapabilities::new()
                    .mcp(McpCapabilities::new().http(McpHttpCapabilities::new()))
            ),
            "{wrong}: its neighbours are not lost"
        );
        let request: ResumeSessionRequest = from_json(json!({
            "sessionId": "s", "cwd": "/", "additionalDirectories": wrong, "mcpServers": wrong, "replayFrom": wrong
        }));
        assert_eq!(request, ResumeSessionRequest::new("s", "/"), "{wrong}");
        let state: StateUpdate = from_json(json!({
            "state": "idle", "stopReason": if wrong == "?" { json!(5) } else { wrong.clone() },
            "error": wrong, "usage": wrong, "_meta": wrong
        }));
        assert_eq!(state, StateUpdate::Idle(IdleStateUpdate::new()), "{wrong}");
        let request: RequestPermissionRequest = from_json(json!({
            "sessionId": "s", "title": "t", "subject": wrong, "options": wrong, "_meta": wrong
        }));
        assert_eq!(
            request,
            RequestPermissionRequest::new("s", "t", []),
            "{wrong}"
        );
        let diff: Diff = from_json(json!({"changes": wrong, "patch": wrong}));
        assert_eq!(diff, Diff::new([]), "{wrong}");
    }
}

#[test]
fn invalid_item_does_not_affect_the_others() {
    let response: InitializeResponse = from_json(json!({
        "protocolVersion": 2,
        "authMethods": [
            {"type": "agent", "methodId": "a"}, {"methodId": "b", "name": "B"}, 5,
            {"type": "terminal", "methodId": "t", "name": "T", "args": ["-q", 1], "env": [{"name": "A"}, {"name": "B", "value": "b"}]}
        ]
    }));
    assert_eq!(
        response.auth_methods,
        [AuthMethod::Terminal(
            AuthMethodTerminal::new("t", "T")
                .args(["-q".to_owned()])
                .env([EnvVariable::new("B", "b")])
        )]
    );

    let response: NewSessionResponse = from_json(json!({
        "sessionId": "s",
        "configOptions": [
            {"configId": "a", "name": "A", "type": "boolean", "currentValue": "on"},
            {"configId": "b", "name": "B", "type": "boolean", "currentValue": true},
            {"configId": "c", "name": "C", "type": "select", "currentValue": "x", "options": [
                {"groupId": "g", "name": "G", "options": [{"value": "x", "name": "X"}, {"value": "y"}, null]},
                {"groupId": "h"}
            ]}
        ],
        "availableCommands": [{"type": "command"}, {"type": "command", "name": "n"}, null]
    }));
    let ids: Vec<_> = response
        .config_options
        .iter()
        .map(|option| option.0.id.as_str())
        .collect();
    assert_eq!(ids, ["b", "c"]);
    assert_eq!(
        to_json(&response.config_options[1])["options"],
        json!([{"groupId": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}])
    );
    assert_eq!(
        response.available_commands,
        [AvailableCommand::Command(Command::new("n", ""))]
    );

    let diff: Diff = from_json(json!({"changes": [
        {"operation": "move", "path": "/b"}, {"operation": "add", "path": "/a", "fileType": 5}, {"path": "/c"}
    ]}));
    assert_eq!(diff.changes, [DiffChange::Add(DiffPathChange::new("/a"))]);

    let plan: PlanUpdate = from_json(json!({"plan": {"type": "items", "planId": "p", "entries": [
        {"content": "a", "priority": "high", "status": "cancelled"}, {"priority": "low"}, 7
    ]}}));
    assert_eq!(
        plan.plan,
        PlanUpdateContent::Items(PlanItems::new(
            "p",
            [PlanEntry::new(
                "a",
                PlanEntryPriority::High,
                PlanEntryStatus::Cancelled
            )]
        ))
    );

    let state: StateUpdate = from_json(json!({"state": "requires_action", "background": [
        {"type": "terminal"}, {"type": "tool_call", "toolCallId": "c"}, "x"
    ]}));
    assert_eq!(
        state,
        StateUpdate::RequiresAction(
            RequiresActionStateUpdate::new()
                .background([BackgroundWork::ToolCall(BackgroundToolCall::new("c"))])
        )
    );

    let request: NewSessionRequest = from_json(json!({"cwd": "/", "mcpServers": [
        {"type": "http", "name": "n"}, {"type": "http", "name": "n", "url": "u", "headers": [{"name": "h"}]}
    ]}));
    assert_eq!(
        request.mcp_servers,
        [McpServer::Http(McpServerHttp::new("n", "u"))]
    );
}

#[test]
fn null_fields_read_as_absent() {
    let server: McpServer = from_json(json!({
        "type": null, "name": "n", "command": "/c", "args": null, "env": null, "url": null, "headers": null
    }));
    assert_eq!(server, McpServer::Stdio(McpServerStdio::new("n", "/c")));
    let command: AvailableCommand = from_json(
        json!({"type": null, "name": "n", "description": null, "input": null, "_meta": null}),
    );
    assert_eq!(command, AvailableCommand::Command(Command::new("n", "")));
    let response: NewSessionResponse =
        from_json(json!({"sessionId": "s", "configOptions": null, "availableCommands": null}));
    assert_eq!(response, NewSessionResponse::new("s"));
    let plan: PlanItems = from_json(json!({"planId": null, "id": "p", "entries": null}));
    assert_eq!(plan, PlanItems::new("p", []));
    let subject: RequestPermissionSubject = from_json(json!({
        "type": "command", "command": "make", "cwd": "/", "toolCallId": null, "terminalId": null
    }));
    assert_eq!(
        subject,
        RequestPermissionSubject::Command(CommandPermissionSubject::new("make", "/"))
    );
    let link: ResourceLink = from_json(json!({
        "name": "n", "uri": "u", "size": null,
        "icons": [{"src": "s", "mimeType": null, "sizes": null, "theme": null}]
    }));
    assert_eq!(link, ResourceLink::new("n", "u").icons([Icon::new("s")]));
    for result in ["null", "{}"] {
        for method in [
            "auth/login",
            "auth/logout",
            "session/resume",
            "session/delete",
            "session/close",
        ] {
            let response = AgentResponse::read(method, &raw_value(result)).unwrap();
            assert_eq!(to_json_text(&response), "{}", "{method}");
        }
    }
}

#[test]
fn missing_or_malformed_required_fields_are_errors() {
    fn assert_fails<T: DeserializeOwned + std::fmt::Debug>(json: Value, about: &str) {
        let error = serde_json::from_str::<T>(&json.to_string()).unwrap_err();
        assert!(error.to_string().contains(about), "{error}");
    }
    assert_fails::<PromptRequest>(json!({"prompt": []}), "sessionId");
    assert_fails::<PromptRequest>(
        json!({"sessionId": "s", "prompt": [{"type": "text"}]}),
        "text",
    );
    assert_fails::<LoginAuthRequest>(json!({}), "methodId");
    assert_fails::<UpdateSessionNotification>(
        json!({"sessionId": "s", "update": {}}),
        "sessionUpdate",
    );
    assert_fails::<SessionUpdate>(json!({"sessionUpdate": "state_update"}), "state");
    assert_fails::<SessionUpdate>(json!({"sessionUpdate": "tool_call_update"}), "toolCallId");
    assert_fails::<SessionUpdate>(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}}),
        "messageId",
    );
    assert_fails::<SessionUpdate>(
        json!({"sessionUpdate": "plan_update", "plan": {"type": "items"}}),
        "planId",
    );
    assert_fails::<SessionConfigOption>(
        json!({"name": "n", "type": "boolean", "currentValue": true}),
        "configId",
    );
    assert_fails::<SessionConfigOption>(
        json!({"configId": "c", "name": "n", "type": "boolean", "currentValue": 1}),
        "currentValue: invalid type",
    );
    assert_fails::<SetSessionConfigOptionRequest>(
        json!({"sessionId": "s", "configId": "c", "type": "id", "value": true}),
        "value: invalid type",
    );
    assert_fails::<SetSessionConfigOptionRequest>(
        json!({"sessionId": "s", "configId": "c", "type": "boolean"}),
        "value",
    );
}
