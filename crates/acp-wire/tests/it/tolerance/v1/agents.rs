//! Tests of messages that agents and clients are known to send in practice.

use super::*;

#[test]
fn permission_options_without_kind_are_accepted() {
    let request: RequestPermissionRequest = from_json(json!({
        "sessionId": "s",
        "toolCall": {"toolCallId": "c"},
        "options": [{"optionId": "y", "name": "Yes"}, {"optionId": "n", "name": "No", "kind": null}]
    }));
    assert_eq!(request.options.len(), 2);
    for option in request.options {
        assert!(
            !option.kind.allows() && !option.kind.rejects(),
            "nothing may be chosen by itself"
        );
    }
}

#[test]
fn tool_calls_without_kind_or_title_are_accepted() {
    let update: SessionUpdate = from_json(json!({"sessionUpdate": "tool_call", "toolCallId": "c"}));
    let SessionUpdate::ToolCall(call) = update else {
        panic!("{update:?}")
    };
    assert_eq!(*call, ToolCall::new("c", ""));
    assert_eq!(
        (call.kind, call.status),
        (ToolKind::Other, ToolCallStatus::Pending)
    );
    let request: RequestPermissionRequest =
        from_json(json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}));
    assert_eq!(
        (request.tool_call.kind, request.tool_call.title),
        (None, None)
    );
}

#[test]
fn stdio_servers_with_type_or_without_args_are_accepted() {
    let expected = McpServer::Stdio(McpServerStdio::new("n", "c", [], []));
    for server in [
        json!({"type": "stdio", "name": "n", "command": "c", "args": [], "env": []}),
        json!({"name": "n", "command": "c", "args": [], "type": "stdio", "env": []}),
        json!({"name": "n", "command": "c"}),
        json!({"type": "stdio", "name": "n", "command": "c", "env": {}}),
    ] {
        let read: McpServer = from_json(server);
        assert_eq!(read, expected);
        assert_eq!(
            to_json(&read),
            json!({"name": "n", "command": "c", "args": [], "env": []})
        );
    }
    let server: McpServer = from_json(json!({"type": "http", "name": "n", "url": "u"}));
    assert_eq!(server, McpServer::Http(McpServerHttp::new("n", "u", [])));
}

#[test]
fn auth_methods_of_type_agent_are_accepted() {
    let expected = AuthMethod::Agent(AuthMethodAgent::new("i", "n"));
    for method in [
        json!({"type": "agent", "id": "i", "name": "n"}),
        json!({"id": "i", "name": "n", "type": "agent"}),
    ] {
        let read: AuthMethod = from_json(method);
        assert_eq!(read, expected);
        assert_eq!(to_json(&read), json!({"id": "i", "name": "n"}));
    }
    // A malformed terminal method is not treated as one that can be passed to `authenticate`.
    let response: InitializeResponse =
        from_json(json!({"protocolVersion": 1, "authMethods": [{"type": "terminal", "id": "i"}]}));
    assert_eq!(response.auth_methods, []);
}

#[test]
fn invalid_protocol_versions_are_tolerated() {
    for version in [
        json!("2025-01-01"),
        json!("1"),
        json!(null),
        json!(-1),
        json!(65536),
        json!(1.5),
        json!({}),
    ] {
        let request: InitializeRequest = from_json(json!({"protocolVersion": version}));
        assert_eq!(request.protocol_version, ProtocolVersion(0), "{version}");
    }
    let request: InitializeRequest = serde_json::from_str(r#"{"protocolVersion":1.0}"#).unwrap();
    assert_eq!(request.protocol_version, ProtocolVersion::V1);
}

#[test]
fn whole_numbers_may_be_floats() {
    let request: ReadTextFileRequest =
        serde_json::from_str(r#"{"sessionId":"s","path":"/p","line":10.0,"limit":5e1}"#).unwrap();
    assert_eq!((request.line, request.limit), (Some(10), Some(50)));
    assert_eq!(
        to_json_text(&request),
        r#"{"sessionId":"s","path":"/p","line":10,"limit":50}"#
    );
    let usage: UsageUpdate = serde_json::from_str(
        r#"{"used":5.3e4,"size":200000.0,"cost":{"amount":1,"currency":"EUR"}}"#,
    )
    .unwrap();
    assert_eq!(
        usage,
        UsageUpdate::new(53_000_u64, 200_000_u64).cost(Cost::new(1.0, "EUR"))
    );
    let link: ResourceLink = serde_json::from_str(r#"{"name":"n","uri":"u","size":-0.0}"#).unwrap();
    assert_eq!(link.size, Some(0));
    let cancel: CancelRequestNotification = serde_json::from_str(r#"{"requestId":7.0}"#).unwrap();
    assert_eq!(cancel.request_id, RequestId::Number(7));
    let error: Error = serde_json::from_str(r#"{"code":-32601.0,"message":"m"}"#).unwrap();
    assert_eq!(error.code, Error::METHOD_NOT_FOUND);
    // Beyond 2^53, a float cannot represent every whole number.
    let link: ResourceLink = serde_json::from_str(r#"{"name":"n","uri":"u","size":1e17}"#).unwrap();
    assert_eq!(link.size, None);
}

#[test]
fn params_may_be_absent_or_null() {
    for params in [None, Some(raw_value("null")), Some(raw_value("{}"))] {
        let request = ClientRequest::read("logout", params.as_deref()).unwrap();
        assert!(matches!(request, ClientRequest::Logout(_)), "{request:?}");
        let request = ClientRequest::read("session/list", params.as_deref()).unwrap();
        assert!(
            matches!(request, ClientRequest::ListSessions(_)),
            "{request:?}"
        );
        let error = ClientRequest::read("session/prompt", params.as_deref()).unwrap_err();
        assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);
    }
    let error = Error::from(ClientRequest::read("session/dance", None).unwrap_err());
    assert_eq!(error, Error::method_not_found("session/dance"));
    assert_eq!(error.message, "Method not found: session/dance");
}

#[test]
fn boolean_config_value_may_lack_its_type() {
    for request in [
        json!({"sessionId": "s", "configId": "c", "type": "boolean", "value": true}),
        json!({"sessionId": "s", "configId": "c", "value": true}),
        json!({"value": true, "type": "id", "sessionId": "s", "configId": "c"}),
    ] {
        let read: SetSessionConfigOptionRequest = from_json(request);
        assert_eq!(read, SetSessionConfigOptionRequest::new("s", "c", true));
    }
    let read: SetSessionConfigOptionRequest =
        from_json(json!({"sessionId": "s", "configId": "c", "type": "value_id", "value": "v"}));
    assert_eq!(read, SetSessionConfigOptionRequest::new("s", "c", "v"));
    assert_eq!(
        to_json_text(&read),
        r#"{"sessionId":"s","configId":"c","value":"v"}"#
    );
}
