//! The draft of version 2.

use acp_wire::v2::*;
use acp_wire::{Method, MethodKind, ReadError, Sender};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::messages::data::{KnownKeys, MessageCase, cases};

mod reports;
mod sessions;
mod tools;

method_table_tests!("v2");

#[test]
fn the_table_is_complete() {
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
fn every_type_and_value_is_in_the_test_data() {
    let told = KnownKeys::by("v2");
    told.has("state", AuthState::KNOWN);
    told.has("status", SessionStatus::KNOWN);
    told.has("apiType", &[LlmProtocol::Anthropic, LlmProtocol::Openai]);
    told.has("mode", SystemPromptMode::KNOWN);
    told.has("sessionUpdate", SessionUpdate::TAGS);
    told.has("state", StateUpdate::TAGS);
    told.has("stopReason", StopReason::KNOWN);
    told.has("type", BackgroundWork::TAGS);
    told.has("type", ContentBlock::TAGS);
    told.has("type", ToolCallContent::TAGS);
    told.has("type", PlanUpdateContent::TAGS);
    told.has("type", McpServer::TAGS);
    told.has("type", AuthMethod::TAGS);
    told.has("type", AvailableCommand::TAGS);
    told.has("type", AvailableCommandInput::TAGS);
    told.has("type", ReplayFrom::TAGS);
    told.has("type", RequestPermissionSubject::TAGS);
    told.has("type", ElicitationPropertySchema::TAGS);
    told.has("type", ElicitationSchemaType::KNOWN);
    told.has("type", &["select", "boolean", "id"]);
    told.has("operation", DiffChange::TAGS);
    told.has("fileType", DiffFileType::KNOWN);
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
    told.has("audience", Role::KNOWN);
    told.has("theme", IconTheme::KNOWN);
    told.has("category", SessionConfigOptionCategory::KNOWN);
    told.has("format", StringFormat::KNOWN);
    told.has("format", DiffPatchFormat::KNOWN);
}
