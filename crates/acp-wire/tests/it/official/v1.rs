//! Version 1.

use acp_wire::jsonrpc::CancelRequestNotification;
use acp_wire::v1::*;
use agent_client_protocol_schema::{self as official, v1 as they};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{self, KnownVariants, are_made};
use super::samples::Samples;

/// Removes what only one of the two crates has.
fn in_common(json: Value) -> Value {
    fn part(name: &str, json: Value) -> Value {
        match json {
            Value::Array(items) => items.into_iter().map(|item| part(name, item)).collect(),
            Value::Object(object) => {
                let is = |key: &str, value: &str| object.get(key).is_some_and(|v| v == value);
                let tool_call = is("sessionUpdate", "tool_call");
                let resource_link = is("type", "resource_link");
                let cancelled = is("outcome", "cancelled");
                let state = name == "state";
                let only_in_one = |key: &str, value: &Value| match key {
                    // The defaults of a tool call, which this crate writes.
                    "kind" => tool_call && value == "other",
                    "status" => tool_call && value == "pending",
                    // Types that are shared with version 2, which has more variants.
                    "icons" => resource_link,
                    "_meta" => cancelled || ["compaction", "notices"].contains(&name),
                    // `null` for absent values next to unknown stop reasons.
                    "error" => state && value.is_null(),
                    "data" => name == "error" && value.is_null(),
                    // Only in version 2.
                    "background" => state,
                    // No longer in any schema, but supported by agents.
                    "models" => name.is_empty(),
                    _ => false,
                };
                let mut kept = serde_json::Map::new();
                for (key, value) in &object {
                    if !only_in_one(key, value) {
                        kept.insert(key.clone(), part(key, value.clone()));
                    }
                }
                Value::Object(kept)
            }
            other => other,
        }
    }
    part("", json)
}

messages! {
    common = super::in_common;
    InitializeRequest InitializeResponse
    AuthenticateRequest AuthenticateResponse
    LogoutRequest LogoutResponse
    NewSessionRequest NewSessionResponse
    LoadSessionRequest LoadSessionResponse
    ListSessionsRequest ListSessionsResponse
    DeleteSessionRequest DeleteSessionResponse
    ResumeSessionRequest ResumeSessionResponse
    CloseSessionRequest CloseSessionResponse
    SetSessionModeRequest SetSessionModeResponse
    SetSessionConfigOptionRequest SetSessionConfigOptionResponse
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
    PromptRequest PromptResponse
    RequestPermissionRequest RequestPermissionResponse
    WriteTextFileRequest WriteTextFileResponse
    ReadTextFileRequest ReadTextFileResponse
    CreateTerminalRequest CreateTerminalResponse
    TerminalOutputRequest TerminalOutputResponse
    ReleaseTerminalRequest ReleaseTerminalResponse
    WaitForTerminalExitRequest WaitForTerminalExitResponse
    KillTerminalRequest KillTerminalResponse
    CreateElicitationRequest CreateElicitationResponse
    CancelNotification
    SessionNotification
    CompleteElicitationNotification
    CancelRequestNotification
}

#[test]
fn every_type_in_the_method_table_is_checked() {
    // No longer in any schema. `messages` has what agents send.
    check::all_of_the_table(METHODS, CHECKED, &["session/set_model"]);
}

#[test]
fn every_type_and_value_in_the_official_schema_is_known() {
    let mut known = KnownVariants::default();
    known.add("AuthMethod", AuthMethod::TAGS);
    known.add("CompactionStatus", CompactionStatus::KNOWN);
    known.add("ContentBlock", ContentBlock::TAGS);
    known.add("CreateElicitationRequest", &["form", "url"]);
    known.add("CreateElicitationResponse", ElicitationAction::TAGS);
    known.add("ElicitationPropertySchema", ElicitationPropertySchema::TAGS);
    known.add("ElicitationSchemaType", ElicitationSchemaType::KNOWN);
    known.add("IdleStateUpdate", acp_wire::v2::StopReason::KNOWN);
    known.add("McpServer", McpServer::TAGS);
    known.add("MultiSelectItems", &["string"]);
    known.add("NoticeSeverity", NoticeSeverity::KNOWN);
    known.add("PermissionOptionKind", PermissionOptionKind::KNOWN);
    known.add("PlanEntryPriority", PlanEntryPriority::KNOWN);
    known.add("PlanEntryStatus", PlanEntryStatus::KNOWN);
    known.add("PlanUpdateContent", PlanUpdateContent::TAGS);
    known.add("RequestPermissionOutcome", RequestPermissionOutcome::TAGS);
    known.add("Role", Role::KNOWN);
    known.add("SessionConfigOption", &["boolean", "select"]);
    known.add(
        "SessionConfigOptionCategory",
        SessionConfigOptionCategory::KNOWN,
    );
    known.add("AuthState", AuthState::KNOWN);
    known.add("LlmProtocol", LlmProtocol::KNOWN);
    known.add("SessionArchiveFilter", SessionArchiveFilter::KNOWN);
    known.add("SessionStatus", SessionStatus::KNOWN);
    known.add("SystemPromptMode", SystemPromptMode::KNOWN);
    known.add("SessionUpdate", SessionUpdate::TAGS);
    known.add("SetSessionConfigOptionRequest", &["boolean"]);
    known.add("StateUpdate", acp_wire::v2::StateUpdate::TAGS);
    known.add("StopReason", StopReason::KNOWN);
    known.add("StringFormat", StringFormat::KNOWN);
    known.add("ToolCallContent", ToolCallContent::TAGS);
    known.add("ToolCallStatus", ToolCallStatus::KNOWN);
    known.add("ToolKind", ToolKind::KNOWN);
    known.is_all_of(CHECKED);
}

#[test]
fn generated_values_cover_every_type() {
    are_made::<SessionNotification>("sessionUpdate", SessionUpdate::TAGS);
    are_made::<SessionNotification>("type", ToolCallContent::TAGS);
    are_made::<SessionNotification>("type", PlanUpdateContent::TAGS);
    are_made::<PromptRequest>("type", ContentBlock::TAGS);
    are_made::<NewSessionRequest>("type", McpServer::TAGS);
    are_made::<InitializeResponse>("type", AuthMethod::TAGS);
    are_made::<SetSessionConfigOptionResponse>("type", &["select", "boolean"]);
    are_made::<RequestPermissionResponse>("outcome", RequestPermissionOutcome::TAGS);
    are_made::<CreateElicitationRequest>("mode", &["form", "url"]);
    are_made::<CreateElicitationRequest>("type", ElicitationPropertySchema::TAGS);
    are_made::<CreateElicitationResponse>("action", ElicitationAction::TAGS);
}

#[test]
fn values_from_constructors_survive() {
    fn official_survives<Ours, Official>(official: &Official)
    where
        Ours: Serialize + DeserializeOwned,
        Official: Serialize + DeserializeOwned,
    {
        check::official_survives::<Ours, Official>(official, in_common);
    }

    official_survives::<InitializeRequest, _>(
        &they::InitializeRequest::new(official::ProtocolVersion::V1)
            .client_capabilities(
                they::ClientCapabilities::new()
                    .fs(they::FileSystemCapabilities::new().read_text_file(true))
                    .terminal(true),
            )
            .client_info(they::Implementation::new("quill", "4.2.0").title("Quill".to_owned())),
    );
    official_survives::<NewSessionRequest, _>(
        &they::NewSessionRequest::new("/home/ada").mcp_servers(vec![
            they::McpServer::Stdio(
                they::McpServerStdio::new("seeds", "/bin/seeds").args(vec!["-q".to_owned()]),
            ),
            they::McpServer::Http(they::McpServerHttp::new(
                "weather",
                "https://weather.example.org",
            )),
        ]),
    );
    official_survives::<PromptRequest, _>(&they::PromptRequest::new(
        "sess_1",
        vec![
            "What grows here?".into(),
            they::ContentBlock::Image(they::ImageContent::new("AAEC", "image/png")),
        ],
    ));
    official_survives::<PromptResponse, _>(&they::PromptResponse::new(
        they::StopReason::MaxTurnRequests,
    ));
    for update in [
        they::SessionUpdate::AgentMessageChunk(they::ContentChunk::new("Beans".into())),
        they::SessionUpdate::ToolCall(they::ToolCall::new("call_1", "Counting")),
        they::SessionUpdate::ToolCallUpdate(they::ToolCallUpdate::new(
            "call_1",
            they::ToolCallUpdateFields::new()
                .status(they::ToolCallStatus::Completed)
                .content(vec![they::Diff::new("/home/ada/list.txt", "peas\n").into()]),
        )),
        they::SessionUpdate::CurrentModeUpdate(they::CurrentModeUpdate::new("dig")),
        they::SessionUpdate::SessionInfoUpdate(
            they::SessionInfoUpdate::new().title(official::MaybeUndefined::<String>::Null),
        ),
        they::SessionUpdate::UsageUpdate(they::UsageUpdate::new(u64::MAX, 1)),
    ] {
        official_survives::<SessionNotification, _>(&they::SessionNotification::new(
            "sess_1", update,
        ));
    }
    official_survives::<RequestPermissionResponse, _>(&they::RequestPermissionResponse::new(
        they::RequestPermissionOutcome::Selected(they::SelectedPermissionOutcome::new("yes")),
    ));
    official_survives::<SetSessionConfigOptionRequest, _>(
        &they::SetSessionConfigOptionRequest::new("sess_1", "tidy", true),
    );
}
