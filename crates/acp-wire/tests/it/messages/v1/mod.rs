//! Tests of version 1 messages.

use acp_wire::v1::*;
use acp_wire::{Method, MethodKind, ReadError, Sender};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::messages::data::{KnownKeys, MessageCase, read_cases};

mod client;
mod sessions;
mod settings;
mod turns;
mod unstable;

method_table_tests!("v1");

#[test]
fn every_case_is_covered_by_the_method_tables() {
    let count = |sender, kind| {
        METHODS
            .iter()
            .filter(|row| row.sender == sender && row.kind == kind)
            .count()
    };
    assert_eq!(count(Sender::Client, MethodKind::Request), 22);
    assert_eq!(count(Sender::Agent, MethodKind::Request), 9);
    assert_eq!(count(Sender::Client, MethodKind::Notification), 1);
    assert_eq!(count(Sender::Agent, MethodKind::Notification), 3);
    assert_eq!(count(Sender::Either, MethodKind::Notification), 1);
    assert_eq!(METHODS.len(), 36);
    let unstable: Vec<_> = METHODS
        .iter()
        .filter(|row| row.unstable.is_some())
        .map(|row| row.name)
        .collect();
    assert_eq!(
        unstable,
        [
            "auth/status",
            "providers/list",
            "providers/set",
            "providers/disable",
            "session/set_title",
            "session/archive",
            "session/unarchive",
            "session/status",
            "session/fork",
            "session/set_model",
            "auth/status_update"
        ]
    );
}

#[test]
fn every_type_and_value_has_test_data() {
    let told = KnownKeys::from_cases("v1");
    told.assert_values("state", AuthState::KNOWN);
    told.assert_values("status", SessionStatus::KNOWN);
    told.assert_values("apiType", &[LlmProtocol::Anthropic, LlmProtocol::Openai]);
    told.assert_values("mode", SystemPromptMode::KNOWN);
    told.assert_values("sessionUpdate", SessionUpdate::TAGS);
    told.assert_values("type", ContentBlock::TAGS);
    told.assert_values("type", ToolCallContent::TAGS);
    told.assert_values("type", PlanUpdateContent::TAGS);
    told.assert_values("type", McpServer::TAGS);
    told.assert_values("type", AuthMethod::TAGS);
    told.assert_values("type", ElicitationPropertySchema::TAGS);
    told.assert_values("type", ElicitationSchemaType::KNOWN);
    told.assert_values("type", &["select", "boolean"]);
    told.assert_values("outcome", RequestPermissionOutcome::TAGS);
    told.assert_values("action", ElicitationAction::TAGS);
    told.assert_values("mode", &["form", "url"]);
    told.assert_values("kind", ToolKind::KNOWN);
    told.assert_values("kind", PermissionOptionKind::KNOWN);
    told.assert_values("status", ToolCallStatus::KNOWN);
    told.assert_values("status", PlanEntryStatus::KNOWN);
    told.assert_values("status", CompactionStatus::KNOWN);
    told.assert_values("severity", NoticeSeverity::KNOWN);
    told.assert_values("priority", PlanEntryPriority::KNOWN);
    told.assert_values("stopReason", StopReason::KNOWN);
    told.assert_values("audience", Role::KNOWN);
    told.assert_values("category", SessionConfigOptionCategory::KNOWN);
    told.assert_values("format", StringFormat::KNOWN);
}

#[test]
fn extension_messages_round_trip() {
    let params = to_raw_value(&json!({"bed": 3})).unwrap();
    let request = ClientRequest::read("_example.org/water", Some(&params)).unwrap();
    assert_eq!(request.method(), "_example.org/water");
    let ClientRequest::Extension(extension) = &request else {
        panic!("{request:?}")
    };
    assert_eq!(extension.params.as_ref().unwrap().get(), r#"{"bed":3}"#);
    assert_eq!(serde_json::to_value(&request).unwrap(), json!({"bed": 3}));

    let result = to_raw_value(&json!({"litres": 2.5})).unwrap();
    let response = AgentResponse::read("_example.org/water", &result).unwrap();
    let AgentResponse::Extension(raw) = &response else {
        panic!("{response:?}")
    };
    assert_eq!(raw.get(), r#"{"litres":2.5}"#);
    assert_eq!(
        serde_json::to_value(&response).unwrap(),
        json!({"litres": 2.5})
    );

    let notification = AgentNotification::read("_example.org/rain", None).unwrap();
    let AgentNotification::Extension(extension) = &notification else {
        panic!("{notification:?}")
    };
    assert!(extension.params.is_none());

    // Only methods with an underscore are extensions.
    let error = ClientRequest::read("example.org/water", Some(&params)).unwrap_err();
    assert!(
        matches!(&error, ReadError::UnknownMethod(m) if m == "example.org/water"),
        "{error}"
    );
    let error = AgentResponse::read("example.org/water", &result).unwrap_err();
    assert!(
        matches!(&error, ReadError::UnknownMethod(m) if m == "example.org/water"),
        "{error}"
    );
}
