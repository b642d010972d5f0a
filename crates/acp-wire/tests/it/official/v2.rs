//! Comparisons with the official crate for the version 2 draft.

use std::sync::LazyLock;

use acp_wire::jsonrpc::CancelRequestNotification;
use acp_wire::v2::*;
use proptest::prelude::*;
use serde_json::Value;

use super::check::{self, KnownVariants, assert_generated};
use super::envelope;
use super::samples::Samples;

/// The official crate's types, renamed to match this crate.
mod official_types {
    // Our type is that of version 1.
    pub(super) use agent_client_protocol_schema::v2::CancelSessionNotification as CancelNotification;
    pub(super) use agent_client_protocol_schema::v2::*;
}

/// Removes the parts of a message that only one of the two crates supports.
fn retain_common_parts(mut json: Value) -> Value {
    // `null` for absent values, which the official crate keeps in errors and next to unknown stop reasons.
    let state = match json
        .pointer("/update/sessionUpdate")
        .and_then(Value::as_str)
    {
        Some("state_update") => json.pointer_mut("/update"),
        Some("subagent_update") => json.pointer_mut("/update/state"),
        // The response to `session/status`.
        _ => json.pointer_mut("/state"),
    };
    if let Some(Value::Object(state)) = state {
        state.retain(|key, value| key != "error" || !value.is_null());
        if let Some(Value::Object(error)) = state.get_mut("error") {
            error.retain(|key, value| key != "data" || !value.is_null());
        }
    }
    json
}

messages! {
    common = super::retain_common_parts;
    InitializeRequest InitializeResponse
    LoginAuthRequest LoginAuthResponse
    LogoutAuthRequest LogoutAuthResponse
    NewSessionRequest NewSessionResponse
    ResumeSessionRequest ResumeSessionResponse
    ListSessionsRequest ListSessionsResponse
    DeleteSessionRequest DeleteSessionResponse
    CloseSessionRequest CloseSessionResponse
    ForkSessionRequest ForkSessionResponse
    SetSessionTitleRequest SetSessionTitleResponse
    ArchiveSessionRequest ArchiveSessionResponse
    UnarchiveSessionRequest UnarchiveSessionResponse
    SessionStatusRequest SessionStatusResponse
    AuthStatusRequest AuthStatusResponse
    AuthStatusUpdateNotification
    ListProvidersRequest ListProvidersResponse
    SetProviderRequest SetProviderResponse
    DisableProviderRequest DisableProviderResponse
    SetSessionConfigOptionRequest SetSessionConfigOptionResponse
    PromptRequest PromptResponse
    CancelToolCallRequest CancelToolCallResponse
    CancelTerminalRequest CancelTerminalResponse
    RequestPermissionRequest RequestPermissionResponse
    CreateElicitationRequest CreateElicitationResponse
    CancelNotification
    UpdateSessionNotification
    CompleteElicitationNotification
    CancelRequestNotification
}

#[test]
fn every_type_in_the_method_table_is_checked() {
    check::assert_covers_table(METHODS, CHECKED_TYPES, &[]);
}

#[test]
fn every_type_and_value_in_the_official_schema_is_known() {
    let mut known = KnownVariants::default();
    known.add("AuthMethod", AuthMethod::TAGS);
    known.add("AvailableCommand", AvailableCommand::TAGS);
    known.add("AvailableCommandInput", AvailableCommandInput::TAGS);
    known.add("BackgroundWork", BackgroundWork::TAGS);
    known.add("CompactionStatus", CompactionStatus::KNOWN);
    known.add("ContentBlock", ContentBlock::TAGS);
    known.add("CreateElicitationRequest", &["form", "url"]);
    known.add("CreateElicitationResponse", ElicitationAction::TAGS);
    known.add("DiffChange", DiffChange::TAGS);
    known.add("DiffFileType", DiffFileType::KNOWN);
    known.add("DiffPatchFormat", DiffPatchFormat::KNOWN);
    known.add("ElicitationPropertySchema", ElicitationPropertySchema::TAGS);
    known.add("ElicitationSchemaType", ElicitationSchemaType::KNOWN);
    known.add("IconTheme", IconTheme::KNOWN);
    known.add("IdleStateUpdate", StopReason::KNOWN);
    known.add("McpServer", McpServer::TAGS);
    known.add("MultiSelectItems", &["string"]);
    known.add("NoticeSeverity", NoticeSeverity::KNOWN);
    known.add("PermissionOptionKind", PermissionOptionKind::KNOWN);
    known.add("PlanEntryPriority", PlanEntryPriority::KNOWN);
    known.add("PlanEntryStatus", PlanEntryStatus::KNOWN);
    known.add("PlanUpdateContent", PlanUpdateContent::TAGS);
    known.add("ReplayFrom", ReplayFrom::TAGS);
    known.add("RequestPermissionOutcome", RequestPermissionOutcome::TAGS);
    known.add("RequestPermissionSubject", RequestPermissionSubject::TAGS);
    known.add("Role", Role::KNOWN);
    known.add("SessionConfigOption", &["boolean", "select"]);
    known.add("AuthState", AuthState::KNOWN);
    known.add("LlmProtocol", LlmProtocol::KNOWN);
    known.add("SessionArchiveFilter", SessionArchiveFilter::KNOWN);
    known.add("SessionStatus", SessionStatus::KNOWN);
    known.add("SystemPromptMode", SystemPromptMode::KNOWN);
    known.add(
        "SessionConfigOptionCategory",
        SessionConfigOptionCategory::KNOWN,
    );
    known.add("SessionUpdate", SessionUpdate::TAGS);
    known.add("SetSessionConfigOptionRequest", &["boolean", "id"]);
    known.add("StateUpdate", StateUpdate::TAGS);
    known.add("StringFormat", StringFormat::KNOWN);
    known.add("ToolCallContent", ToolCallContent::TAGS);
    known.add("ToolCallStatus", ToolCallStatus::KNOWN);
    known.add("ToolKind", ToolKind::KNOWN);
    known.assert_covers_schemas(CHECKED_TYPES);
}

#[test]
fn generated_values_cover_every_type() {
    assert_generated::<UpdateSessionNotification>("sessionUpdate", SessionUpdate::TAGS);
    assert_generated::<UpdateSessionNotification>("state", StateUpdate::TAGS);
    assert_generated::<UpdateSessionNotification>("type", BackgroundWork::TAGS);
    assert_generated::<UpdateSessionNotification>("type", ToolCallContent::TAGS);
    assert_generated::<UpdateSessionNotification>("type", PlanUpdateContent::TAGS);
    assert_generated::<UpdateSessionNotification>("type", AvailableCommand::TAGS);
    assert_generated::<UpdateSessionNotification>("type", AvailableCommandInput::TAGS);
    assert_generated::<RequestPermissionRequest>("operation", DiffChange::TAGS);
    assert_generated::<RequestPermissionRequest>("type", RequestPermissionSubject::TAGS);
    assert_generated::<PromptRequest>("type", ContentBlock::TAGS);
    assert_generated::<NewSessionRequest>("type", McpServer::TAGS);
    assert_generated::<ResumeSessionRequest>("type", ReplayFrom::TAGS);
    assert_generated::<InitializeResponse>("type", AuthMethod::TAGS);
    assert_generated::<SetSessionConfigOptionResponse>("type", &["select", "boolean"]);
    assert_generated::<SetSessionConfigOptionRequest>("type", &["id", "boolean"]);
    assert_generated::<RequestPermissionResponse>("outcome", RequestPermissionOutcome::TAGS);
}

proptest! {
    // Generated separately, because an error belongs to only one stop reason.
    #[test]
    fn errors_survive_conversion(error in envelope::arbitrary_error()) {
        let idle = IdleStateUpdate::new().stop_reason(StopReason::Error).error(error);
        let update = SessionUpdate::StateUpdate(StateUpdate::Idle(idle));
        static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
            jsonschema::validator_for(&check::schema_of::<official_types::UpdateSessionNotification>()).unwrap()
        });
        check::assert_our_value_is_preserved::<_, official_types::UpdateSessionNotification>(
            &UpdateSessionNotification::new("sess_1", update),
            &SCHEMA,
            retain_common_parts,
        );
    }
}
