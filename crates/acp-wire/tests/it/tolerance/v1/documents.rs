//! Contradictions between pages of the specification.

use super::*;

#[test]
fn the_mode_of_a_mode_update() {
    for update in [
        json!({"sessionUpdate": "current_mode_update", "modeId": "dig"}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"}),
        // Agents that want to be compatible with everyone write both.
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig", "modeId": "dig"}),
        json!({"sessionUpdate": "current_mode_update", "modeId": "dig", "currentModeId": null}),
        // With the tag last, which is read in another way.
        json!({"modeId": "dig", "sessionUpdate": "current_mode_update"}),
    ] {
        let read: SessionUpdate = read(update);
        assert_eq!(
            read,
            SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("dig"))
        );
        assert_eq!(
            written(&read),
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"})
        );
    }
    let both: CurrentModeUpdate = read(json!({"modeId": "old", "currentModeId": "new"}));
    assert_eq!(both, CurrentModeUpdate::new("new"), "today's name wins");
    let error = serde_json::from_str::<CurrentModeUpdate>("{}").unwrap_err();
    assert!(error.to_string().contains("currentModeId"), "{error}");
}

#[test]
fn the_name_of_the_config_option_update() {
    let options = json!([{"id": "tidy", "name": "Tidy", "type": "boolean", "currentValue": true}]);
    for name in ["config_option_update", "config_options_update"] {
        let update: SessionUpdate = read(json!({"sessionUpdate": name, "configOptions": options}));
        let SessionUpdate::ConfigOptionUpdate(inner) = &update else {
            panic!("{update:?}")
        };
        assert_eq!(inner.config_options.len(), 1);
        assert_eq!(
            written(&update),
            json!({"sessionUpdate": "config_option_update", "configOptions": options})
        );
    }
}

#[test]
fn the_mcp_capabilities_of_an_agent() {
    let expected = McpCapabilities::new().http(true);
    for capabilities in [
        json!({"loadSession": true, "mcp": {"http": true}}),
        json!({"loadSession": true, "mcpCapabilities": {"http": true}}),
        json!({"loadSession": true, "mcp": {"sse": true}, "mcpCapabilities": {"http": true}}),
        json!({"loadSession": true, "mcp": {"http": true}, "mcpCapabilities": null}),
    ] {
        let response: InitializeResponse =
            read(json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
        let can = response.agent_capabilities;
        assert!(can.load_session, "{capabilities}");
        assert_eq!(can.mcp_capabilities, expected, "{capabilities}");
        let written = written(&can);
        assert_eq!(
            written["mcpCapabilities"],
            json!({"http": true, "sse": false})
        );
        assert_eq!(written.get("mcp"), None);
    }
}

#[test]
fn empty_results() {
    for method in [
        "session/load",
        "session/set_mode",
        "authenticate",
        "logout",
        "session/close",
    ] {
        for result in ["null", "{}"] {
            let response = AgentResponse::read(method, &raw(result)).unwrap();
            assert_eq!(text(&response), "{}", "{method}");
        }
    }
    for method in ["fs/write_text_file", "terminal/kill", "terminal/release"] {
        for result in ["null", "{}"] {
            let response = ClientResponse::read(method, &raw(result)).unwrap();
            assert_eq!(text(&response), "{}", "{method}");
        }
    }
    // A result with required fields must have them.
    let error = AgentResponse::read("session/new", &raw("null")).unwrap_err();
    assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);
}

#[test]
fn the_content_of_a_permission_request() {
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
        let read: RequestPermissionRequest = read(request(block.clone()));
        assert_eq!(
            written(&read),
            request(json!({"type": "content", "content": block})),
            "a bare content block is wrapped"
        );
    }
}

#[test]
fn the_custom_data_of_the_set_mode_response() {
    for result in [
        json!({"meta": {"was": "look"}}),
        json!({"_meta": {"was": "look"}}),
        json!({"_meta": {"was": "look"}, "meta": {"was": "dig"}}),
        json!({"_meta": null, "meta": {"was": "look"}}),
    ] {
        let response: SetSessionModeResponse = read(result);
        assert_eq!(written(&response), json!({"_meta": {"was": "look"}}));
    }
}
