//! The draft of version 2.

use acp_wire::jsonrpc::CancelRequestNotification;
use acp_wire::v2::*;
use proptest::prelude::*;
use serde_json::Value;

use super::check::{self, KnownVariants, are_made};
use super::envelope;
use super::samples::Samples;

/// The official types, by our names.
mod they {
    // Our type is that of version 1.
    pub(super) use agent_client_protocol_schema::v2::CancelSessionNotification as CancelNotification;
    pub(super) use agent_client_protocol_schema::v2::*;
}

/// Removes what only one of the two crates has.
fn in_common(mut json: Value) -> Value {
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
    common = super::in_common;
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
    check::all_of_the_table(METHODS, CHECKED, &[]);
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
    known.is_all_of(CHECKED);
}

#[test]
fn generated_values_cover_every_type() {
    are_made::<UpdateSessionNotification>("sessionUpdate", SessionUpdate::TAGS);
    are_made::<UpdateSessionNotification>("state", StateUpdate::TAGS);
    are_made::<UpdateSessionNotification>("type", BackgroundWork::TAGS);
    are_made::<UpdateSessionNotification>("type", ToolCallContent::TAGS);
    are_made::<UpdateSessionNotification>("type", PlanUpdateContent::TAGS);
    are_made::<UpdateSessionNotification>("type", AvailableCommand::TAGS);
    are_made::<UpdateSessionNotification>("type", AvailableCommandInput::TAGS);
    are_made::<RequestPermissionRequest>("operation", DiffChange::TAGS);
    are_made::<RequestPermissionRequest>("type", RequestPermissionSubject::TAGS);
    are_made::<PromptRequest>("type", ContentBlock::TAGS);
    are_made::<NewSessionRequest>("type", McpServer::TAGS);
    are_made::<ResumeSessionRequest>("type", ReplayFrom::TAGS);
    are_made::<InitializeResponse>("type", AuthMethod::TAGS);
    are_made::<SetSessionConfigOptionResponse>("type", &["select", "boolean"]);
    are_made::<SetSessionConfigOptionRequest>("type", &["id", "boolean"]);
    are_made::<RequestPermissionResponse>("outcome", RequestPermissionOutcome::TAGS);
}

proptest! {
    // Generated separately, because an error belongs to only one stop reason.
    #[test]
    fn errors_survive(error in envelope::error()) {
        let idle = IdleStateUpdate::new().stop_reason(StopReason::Error).error(error);
        let update = SessionUpdate::StateUpdate(StateUpdate::Idle(idle));
        let schema = jsonschema::validator_for(&check::schema_of::<they::UpdateSessionNotification>());
        check::ours_survives::<_, they::UpdateSessionNotification>(
            &UpdateSessionNotification::new("sess_1", update),
            &schema.unwrap(),
            in_common,
        );
    }
}
