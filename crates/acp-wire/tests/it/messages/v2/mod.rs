//! Tests of messages in the version 2 draft.

use acp_wire::v2::*;
use acp_wire::{Method, MethodKind, ReadError, Sender};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::messages::data::{KnownKeys, MessageCase, read_cases};

mod reports;
mod sessions;
mod tools;

method_table_tests!("v2");

#[test]
fn every_case_is_covered_by_the_method_tables() {
    let count = |sender, kind| {
        METHODS
            .iter()
            .filter(|row| row.sender == sender && row.kind == kind)
            .count()
    };
    assert_eq!(count(Sender::Client, MethodKind::Request), 21);
    assert_eq!(count(Sender::Agent, MethodKind::Request), 2);
    assert_eq!(count(Sender::Client, MethodKind::Notification), 1);
    assert_eq!(count(Sender::Agent, MethodKind::Notification), 3);
    assert_eq!(count(Sender::Either, MethodKind::Notification), 1);
    assert_eq!(METHODS.len(), 28);
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
            "tool_call/cancel",
            "terminal/cancel",
            "auth/status_update"
        ]
    );
}

#[test]
fn every_type_and_value_has_test_data() {
    let told = KnownKeys::from_cases("v2");
    told.assert_values("state", AuthState::KNOWN);
    told.assert_values("status", SessionStatus::KNOWN);
    told.assert_values("apiType", &[LlmProtocol::Anthropic, LlmProtocol::Openai]);
    told.assert_values("mode", SystemPromptMode::KNOWN);
    told.assert_values("sessionUpdate", SessionUpdate::TAGS);
    told.assert_values("state", StateUpdate::TAGS);
    told.assert_values("stopReason", StopReason::KNOWN);
    told.assert_values("type", BackgroundWork::TAGS);
    told.assert_values("type", ContentBlock::TAGS);
    told.assert_values("type", ToolCallContent::TAGS);
    told.assert_values("type", PlanUpdateContent::TAGS);
    told.assert_values("type", McpServer::TAGS);
    told.assert_values("type", AuthMethod::TAGS);
    told.assert_values("type", AvailableCommand::TAGS);
    told.assert_values("type", AvailableCommandInput::TAGS);
    told.assert_values("type", ReplayFrom::TAGS);
    told.assert_values("type", RequestPermissionSubject::TAGS);
    told.assert_values("type", ElicitationPropertySchema::TAGS);
    told.assert_values("type", ElicitationSchemaType::KNOWN);
    told.assert_values("type", &["select", "boolean", "id"]);
    told.assert_values("operation", DiffChange::TAGS);
    told.assert_values("fileType", DiffFileType::KNOWN);
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
    told.assert_values("audience", Role::KNOWN);
    told.assert_values("theme", IconTheme::KNOWN);
    told.assert_values("category", SessionConfigOptionCategory::KNOWN);
    told.assert_values("format", StringFormat::KNOWN);
    told.assert_values("format", DiffPatchFormat::KNOWN);
}
