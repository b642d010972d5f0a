//! Differences between drafts: contradictions between documents, and additions after the draft of August 2026.

use super::*;

#[test]
fn the_id_of_a_plan() {
    for plan in [
        json!({"type": "items", "id": "p", "entries": []}),
        json!({"type": "items", "planId": "p", "entries": []}),
        json!({"id": "old", "planId": "p", "entries": [], "type": "items"}),
        json!({"type": "items", "planId": null, "id": "p"}),
    ] {
        let read: PlanUpdate = read(json!({"plan": plan}));
        assert_eq!(
            written(&read),
            json!({"plan": {"type": "items", "planId": "p", "entries": []}})
        );
    }
}

#[test]
fn mcp_servers_without_type() {
    for server in [
        json!({"name": "n", "command": "/c", "args": ["-q"], "env": []}),
        json!({"type": "stdio", "name": "n", "command": "/c", "args": ["-q"]}),
        json!({"name": "n", "command": "/c", "args": ["-q"], "type": "stdio"}),
    ] {
        let read: McpServer = read(server);
        assert_eq!(
            written(&read),
            json!({"type": "stdio", "name": "n", "command": "/c", "args": ["-q"]})
        );
    }
}

#[test]
fn commands_without_type() {
    let full = json!({
        "type": "command", "name": "sow", "description": "Says when",
        "input": {"type": "text", "hint": "a plant"}
    });
    for command in [
        json!({"name": "sow", "description": "Says when", "input": {"hint": "a plant"}}),
        json!({"name": "sow", "description": "Says when", "input": {"hint": "a plant", "type": "text"}, "type": "command"}),
        full.clone(),
    ] {
        let read: AvailableCommand = read(command);
        assert_eq!(written(&read), full);
    }
    // Only the input of an unknown type is lost, not the command.
    let command: AvailableCommand = read(json!({"name": "sow", "description": "", "input": {}}));
    assert_eq!(command, AvailableCommand::Command(Command::new("sow", "")));
}

#[test]
fn a_prompt_response_without_a_message_id() {
    for result in ["null", "{}", r#"{"messageId":null}"#] {
        let AgentResponse::Prompt(response) =
            AgentResponse::read("session/prompt", &raw(result)).unwrap()
        else {
            panic!("{result}")
        };
        assert_eq!(response.message_id, MessageId::default());
        assert_eq!(response.message_id.as_str(), "");
    }
}

#[test]
fn the_value_of_a_config_option_without_type() {
    let request: SetSessionConfigOptionRequest =
        read(json!({"sessionId": "s", "configId": "c", "value": "v"}));
    assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", "v"));
    assert_eq!(
        text(&request),
        r#"{"sessionId":"s","configId":"c","type":"id","value":"v"}"#
    );
    let request: SetSessionConfigOptionRequest =
        read(json!({"value": true, "sessionId": "s", "configId": "c"}));
    assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", true));
}

#[test]
fn the_name_of_the_config_option_update() {
    let options =
        json!([{"configId": "tidy", "name": "Tidy", "type": "boolean", "currentValue": true}]);
    for name in ["config_option_update", "config_options_update"] {
        let update: SessionUpdate = read(json!({"sessionUpdate": name, "configOptions": options}));
        assert_eq!(
            written(&update),
            json!({"sessionUpdate": "config_option_update", "configOptions": options})
        );
    }
}

#[test]
fn an_agent_with_minimal_initialize() {
    let response: InitializeResponse = read(json!({"protocolVersion": 2}));
    assert_eq!(
        response,
        InitializeResponse::new(ProtocolVersion::V2, Implementation::default())
    );
}
