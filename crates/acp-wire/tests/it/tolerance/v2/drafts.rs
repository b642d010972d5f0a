//! Tests of differences between drafts: contradictions between documents, and additions after the draft of August 2026.

use super::*;

#[test]
fn plan_id_is_accepted_in_both_places() {
    for plan in [
        json!({"type": "items", "id": "p", "entries": []}),
        json!({"type": "items", "planId": "p", "entries": []}),
        json!({"id": "old", "planId": "p", "entries": [], "type": "items"}),
        json!({"type": "items", "planId": null, "id": "p"}),
    ] {
        let read: PlanUpdate = from_json(json!({"plan": plan}));
        assert_eq!(
            to_json(&read),
            json!({"plan": {"type": "items", "planId": "p", "entries": []}})
        );
    }
}

#[test]
fn mcp_servers_without_type_are_accepted() {
    for server in [
        json!({"name": "n", "command": "/c", "args": ["-q"], "env": []}),
        json!({"type": "stdio", "name": "n", "command": "/c", "args": ["-q"]}),
        json!({"name": "n", "command": "/c", "args": ["-q"], "type": "stdio"}),
    ] {
        let read: McpServer = from_json(server);
        assert_eq!(
            to_json(&read),
            json!({"type": "stdio", "name": "n", "command": "/c", "args": ["-q"]})
        );
    }
}

#[test]
fn commands_without_type_are_accepted() {
    let full = json!({
        "type": "command", "name": "sow", "description": "Says when",
        "input": {"type": "text", "hint": "a plant"}
    });
    for command in [
        json!({"name": "sow", "description": "Says when", "input": {"hint": "a plant"}}),
        json!({"name": "sow", "description": "Says when", "input": {"hint": "a plant", "type": "text"}, "type": "command"}),
        full.clone(),
    ] {
        let read: AvailableCommand = from_json(command);
        assert_eq!(to_json(&read), full);
    }
    // Only the input of an unknown type is lost, not the command.
    let command: AvailableCommand =
        from_json(json!({"name": "sow", "description": "", "input": {}}));
    assert_eq!(command, AvailableCommand::Command(Command::new("sow", "")));
}

#[test]
fn prompt_response_without_a_message_id_is_accepted() {
    for result in ["null", "{}", r#"{"messageId":null}"#] {
        let AgentResponse::Prompt(response) =
            AgentResponse::read("session/prompt", &raw_value(result)).unwrap()
        else {
            panic!("{result}")
        };
        assert_eq!(response.message_id, MessageId::default());
        assert_eq!(response.message_id.as_str(), "");
    }
}

#[test]
fn config_option_value_without_type_is_accepted() {
    let request: SetSessionConfigOptionRequest =
        from_json(json!({"sessionId": "s", "configId": "c", "value": "v"}));
    assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", "v"));
    assert_eq!(
        to_json_text(&request),
        r#"{"sessionId":"s","configId":"c","type":"id","value":"v"}"#
    );
    let request: SetSessionConfigOptionRequest =
        from_json(json!({"value": true, "sessionId": "s", "configId": "c"}));
    assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", true));
}

#[test]
fn config_option_update_accepts_both_type_names() {
    let options =
        json!([{"configId": "tidy", "name": "Tidy", "type": "boolean", "currentValue": true}]);
    for name in ["config_option_update", "config_options_update"] {
        let update: SessionUpdate =
            from_json(json!({"sessionUpdate": name, "configOptions": options}));
        assert_eq!(
            to_json(&update),
            json!({"sessionUpdate": "config_option_update", "configOptions": options})
        );
    }
}

#[test]
fn minimal_initialize_response_is_accepted() {
    let response: InitializeResponse = from_json(json!({"protocolVersion": 2}));
    assert_eq!(
        response,
        InitializeResponse::new(ProtocolVersion::V2, Implementation::default())
    );
}
