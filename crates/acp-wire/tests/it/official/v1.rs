//! Comparisons with the official crate for version 1.

use acp_wire::jsonrpc::CancelRequestNotification;
use acp_wire::v1::*;
use agent_client_protocol_schema::{self as official, v1 as official_types};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{self, KnownVariants, assert_generated};
use super::samples::Samples;

/// Removes the parts of a message that only one of the two crates supports.
fn retain_common_parts(json: Value) -> Value {
    fn retain_common_in(name: &str, json: Value) -> Value {
        match json {
            Value::Array(items) => items
                .into_iter()
                .map(|item| retain_common_in(name, item))
                .collect(),
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
                        kept.insert(key.clone(), retain_common_in(key, value.clone()));
                    }
                }
                Value::Object(kept)
            }
            other => other,
        }
    }
    retain_common_in("", json)
}

messages! {
    common = super::retain_common_parts;
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
    check::assert_covers_table(METHODS, CHECKED_TYPES, &["session/set_model"]);
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
    known.assert_covers_schemas(CHECKED_TYPES);
}

#[test]
fn generated_values_cover_every_type() {
    assert_generated::<SessionNotification>("sessionUpdate", SessionUpdate::TAGS);
    assert_generated::<SessionNotification>("type", ToolCallContent::TAGS);
    assert_generated::<SessionNotification>("type", PlanUpdateContent::TAGS);
    assert_generated::<PromptRequest>("type", ContentBlock::TAGS);
    assert_generated::<NewSessionRequest>("type", McpServer::TAGS);
    assert_generated::<InitializeResponse>("type", AuthMethod::TAGS);
    assert_generated::<SetSessionConfigOptionResponse>("type", &["select", "boolean"]);
    assert_generated::<RequestPermissionResponse>("outcome", RequestPermissionOutcome::TAGS);
    assert_generated::<CreateElicitationRequest>("mode", &["form", "url"]);
    assert_generated::<CreateElicitationRequest>("type", ElicitationPropertySchema::TAGS);
    assert_generated::<CreateElicitationResponse>("action", ElicitationAction::TAGS);
}

#[test]
fn constructed_values_are_preserved() {
    fn assert_official_value_is_preserved<Ours, Official>(official: &Official)
    where
        Ours: Serialize + DeserializeOwned,
        Official: Serialize + DeserializeOwned,
    {
        check::assert_official_value_is_preserved::<Ours, Official>(official, retain_common_parts);
    }

    assert_official_value_is_preserved::<InitializeRequest, _>(
        &official_types::InitializeRequest::new(official::ProtocolVersion::V1)
            .client_capabilities(
                official_types::ClientCapabilities::new()
                    .fs(official_types::FileSystemCapabilities::new().read_text_file(true))
                    .terminal(true),
            )
            .client_info(
                official_types::Implementation::new("quill", "4.2.0").title("Quill".to_owned()),
            ),
    );
    assert_official_value_is_preserved::<NewSessionRequest, _>(
        &official_types::NewSessionRequest::new("/home/ada").mcp_servers(vec![
            official_types::McpServer::Stdio(
                official_types::McpServerStdio::new("seeds", "/bin/seeds")
                    .args(vec!["-q".to_owned()]),
            ),
            official_types::McpServer::Http(official_types::McpServerHttp::new(
                "weather",
                "https://weather.example.org",
            )),
        ]),
    );
    assert_official_value_is_preserved::<PromptRequest, _>(&official_types::PromptRequest::new(
        "sess_1",
        vec![
            "What grows here?".into(),
            official_types::ContentBlock::Image(official_types::ImageContent::new(
                "AAEC",
                "image/png",
            )),
        ],
    ));
    assert_official_value_is_preserved::<PromptResponse, _>(&official_types::PromptResponse::new(
        official_types::StopReason::MaxTurnRequests,
    ));
    for update in [
        official_types::SessionUpdate::AgentMessageChunk(official_types::ContentChunk::new(
            "Beans".into(),
        )),
        official_types::SessionUpdate::ToolCall(official_types::ToolCall::new(
            "call_1", "Counting",
        )),
        official_types::SessionUpdate::ToolCallUpdate(official_types::ToolCallUpdate::new(
            "call_1",
            official_types::ToolCallUpdateFields::new()
                .status(official_types::ToolCallStatus::Completed)
                .content(vec![
                    official_types::Diff::new("/home/ada/list.txt", "peas\n").into(),
                ]),
        )),
        official_types::SessionUpdate::CurrentModeUpdate(official_types::CurrentModeUpdate::new(
            "dig",
        )),
        official_types::SessionUpdate::SessionInfoUpdate(
            official_types::SessionInfoUpdate::new()
                .title(official::MaybeUndefined::<String>::Null),
        ),
        official_types::SessionUpdate::UsageUpdate(official_types::UsageUpdate::new(u64::MAX, 1)),
    ] {
        assert_official_value_is_preserved::<SessionNotification, _>(
            &official_types::SessionNotification::new("sess_1", update),
        );
    }
    assert_official_value_is_preserved::<RequestPermissionResponse, _>(
        &official_types::RequestPermissionResponse::new(
            official_types::RequestPermissionOutcome::Selected(
                official_types::SelectedPermissionOutcome::new("yes"),
            ),
        ),
    );
    assert_official_value_is_preserved::<SetSessionConfigOptionRequest, _>(
        &official_types::SetSessionConfigOptionRequest::new("sess_1", "tidy", true),
    );
}
