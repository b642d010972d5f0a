//! Version 1.

use acp_wire::v1::*;
use acp_wire::{Method, MethodKind, ReadError, Sender};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::messages::data::{KnownKeys, MessageCase, cases};

mod client;
mod sessions;
mod settings;
mod turns;
mod unstable;

method_table_tests!("v1");

#[test]
fn the_table_is_complete() {
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
fn every_type_and_value_is_in_the_test_data() {
    let told = KnownKeys::by("v1");
    told.has("state", AuthState::KNOWN);
    told.has("status", SessionStatus::KNOWN);
    told.has("apiType", &[LlmProtocol::Anthropic, LlmProtocol::Openai]);
    told.has("mode", SystemPromptMode::KNOWN);
    told.has("sessionUpdate", SessionUpdate::TAGS);
    told.has("type", ContentBlock::TAGS);
    told.has("type", ToolCallContent::TAGS);
    told.has("type", PlanUpdateContent::TAGS);
    told.has("type", McpServer::TAGS);
    told.has("type", AuthMethod::TAGS);
    told.has("type", ElicitationPropertySchema::TAGS);
    told.has("type", ElicitationSchemaType::KNOWN);
    told.has("type", &["select", "boolean"]);
    told.has("outcome", RequestPermissionOutcome::TAGS);
    told.has("action", ElicitationAction::TAGS);
    told.has("mode", &["form", "url"]);
    told.has("kind", ToolKind::KNOWN);
    told.has("kind", PermissionOptionKind::KNOWN);
    told.has("status", ToolCallStatus::KNOWN);
    told.has("status", PlanEntryStatus::KNOWN);
    told.has("status", CompactionStatus::KNOWN);
    told.has("severity", NoticeSeverity::KNOWN);
    told.has("priority", PlanEntryPriority::KNOWN);
    told.has("stopReason", StopReason::KNOWN);
    told.has("audience", Role::KNOWN);
    told.has("category", SessionConfigOptionCategory::KNOWN);
    told.has("format", StringFormat::KNOWN);
}

#[test]
fn extensions() {
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
