//! Tests of messages for which pages of the specification contradict each other.

use super::*;

#[test]
fn mode_update_accepts_both_field_names() {
    for update in [
        json!({"sessionUpdate": "current_mode_update", "modeId": "dig"}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"}),
        // Agents that want to be compatible with everyone write both.
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig", "modeId": "dig"}),
        json!({"sessionUpdate": "current_mode_update", "modeId": "dig", "currentModeId": null}),
        // With the tag last, which is read in another way.
        json!({"modeId": "dig", "sessionUpdate": "current_mode_update"}),
    ] {
        let read: SessionUpdate = from_json(update);
        assert_eq!(
            read,
            SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("dig"))
        );
        assert_eq!(
            to_json(&read),
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"})
        );
    }
    let both: CurrentModeUpdate = from_json(json!({"modeId": "old", "currentModeId": "new"}));
    assert_eq!(both, CurrentModeUpdate::new("new"), "today's name wins");
    let error = serde_json::from_str::<CurrentModeUpdate>("{}").unwrap_err();
    assert!(error.to_string().contains("currentModeId"), "{error}");
}

#[test]
fn config_option_update_accepts_both_type_names() {
    let options = json!([{"id": "tidy", "name": "Tidy", "type": "boolean", "currentValue": true}]);
    for name in ["config_option_update", "config_options_update"] {
        let update: SessionUpdate =
            from_json(json!({"sessionUpdate": name, "configOptions": options}));
        let SessionUpdate::ConfigOptionUpdate(inner) = &update else {
            panic!("{update:?}")
        };
        assert_eq!(inner.config_options.len(), 1);
        assert_eq!(
            to_json(&update),
            json!({"sessionUpdate": "config_option_update", "configOptions": options})
        );
    }
}

#[test]
fn mcp_capabilities_are_accepted_under_both_names() {
    let expected = McpCapabilities::new().http(true);
    for capabilities in [
        json!({"loadSession": true, "mcp": {"http": true}}),
        json!({"loadSession": true, "mcpCapabilities": {"http": true}}),
        json!({"loadSession": true, "mcp": {"sse": true}, "mcpCapabilities": {"http": true}}),
        json!({"loadSession": true, "mcp": {"http": true}, "mcpCapabilities": null}),
    ] {
        let response: InitializeResponse =
            from_json(json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
        let can = response.agent_capabilities;
        assert!(can.load_session, "{capabilities}");
        assert_eq!(can.mcp_capabilities, expected, "{capabilities}");
        let written = to_json(&can);
        assert_eq!(
            written["mcpCapabilities"],
            json!({"http": true, "sse": false})
        );
        assert_eq!(written.get("mcp"), None);
    }
}

#[test]
fn empty_results_may_be_null() {
    for method in [
        "session/load",
        "session/set_mode",
        "authenticate",
        "logout",
        "session/close",
    ] {
        for result in ["null", "{}"] {
            let response = AgentResponse::read(method, &raw_value(result)).unwrap();
            assert_eq!(to_json_text(&response), "{}", "{method}");
        }
    }
    for method in ["fs/write_text_file", "terminal/kill", "terminal/release"] {
        for result in ["null", "{}"] {
            let response = ClientResponse::read(method, &raw_value(result)).unwrap();
            assert_eq!(to_json_text(&response), "{}", "{method}");
        }
    }
    // A result with required fields must have them.
    let error = AgentResponse::read("session/new", &raw_value("null")).unwrap_err();
    assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);
}

#[test]
fn permission_request_content_may_be_bare_blocks() {
    let request = |content: Value| {
        json!({
            "sessionId": "s",
            "toolCall": {"toolCallId": "c", "content": [content]},
            "options": []
        })
    };
    for block in [
        json!({"type": "text", "text": "## Beds"}),
        json!({"text": "## Beds", "type": "text"}),
        json!({"type": "resource_link", "name": "n", "uri": "file:///n"}),
        json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"text": "t", "uri": "file:///t"}}),
    ] {
        let read: RequestPermissionRequest = from_json(request(block.clone()));
        assert_eq!(
            to_json(&read),
            request(json!({"type": "content", "content": block})),
            "a bare content block is wrapped"
        );
    }
}

#[test]
fn set_mode_response_may_have_custom_data() {
    for result in [
        json!({"meta": {"was": "look"}}),
        json!({"_meta": {"was": "look"}}),
        json!({"_meta": {"was": "look"}, "meta": {"was": "dig"}}),
        json!({"_meta": null, "meta": {"was": "look"}}),
    ] {
        let response: SetSessionModeResponse = from_json(result);
        assert_eq!(to_json(&response), json!({"_meta": {"was": "look"}}));
    }
}
