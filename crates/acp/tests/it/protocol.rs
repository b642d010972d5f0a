//! Tests that both sides handle every message of both versions, as documented in `docs/protocol.md`.
//!
//! The messages are the test data of the types (`acp-wire/tests/data`), so that these tests notice a row of a method
//! table that neither side handles.

use std::collections::BTreeSet;
use std::path::Path;

use acp::agent::{
    ArchiveSession, AuthContext, AuthStatusHandler, Authentication, CancelWork, CloseSession,
    DeleteSession, ForkSession, ListSessions, LoadSession, OpenedSession, Prompt, Providers,
    ResumeSession, Session, SessionSetup, SessionStatusHandler, SetSessionTitle, SteerTurn, Turn,
};
use acp::client::{Client, Elicitation, ReadTextFile, Terminals, WriteTextFile};
use acp::v1::*;
use acp::wire::{Method, MethodKind, Sender, v2};
use acp::{Agent, Options, Result};
use serde_json::{Value, json};

use crate::common::{PIPE_CAPACITY, TestPeer, connect_pipes, wait_until_idle, with_timeout};

/// Returns the method and the params of each message in a version.
fn read_messages(version: u16) -> Vec<(String, Value)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../acp-wire/tests/data");
    let mut found = Vec::new();
    for file in std::fs::read_dir(data.join(format!("v{version}"))).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let messages: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        for message in messages.values() {
            if let Some(params) = message.get("params") {
                let method = message["method"].as_str().unwrap().to_owned();
                found.push((method, params.clone()));
            }
        }
    }
    found
}

/// Returns the methods that the given side sends.
fn method_names(methods: &[Method], sender: Sender, kind: MethodKind) -> BTreeSet<&'static str> {
    let of_it = methods
        .iter()
        .filter(|m| m.sender == sender && m.kind == kind);
    of_it.map(|m| m.name).collect()
}

/// An agent and a client that implement every method but do nothing.
struct FullPeer;

impl Agent for FullPeer {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }
    fn resume_session(&self) -> Option<&impl ResumeSession> {
        Some(self)
    }
    fn fork_session(&self) -> Option<&impl ForkSession> {
        Some(self)
    }
    fn list_sessions(&self) -> Option<&impl ListSessions> {
        Some(self)
    }
    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }
    fn set_session_title(&self) -> Option<&impl SetSessionTitle> {
        Some(self)
    }
    fn archive_session(&self) -> Option<&impl ArchiveSession> {
        Some(self)
    }
    fn session_status(&self) -> Option<&impl SessionStatusHandler> {
        Some(self)
    }
    fn auth_status(&self) -> Option<&impl AuthStatusHandler> {
        Some(self)
    }
    fn providers(&self) -> Option<&impl Providers> {
        Some(self)
    }
    fn steer_turn(&self) -> Option<&impl SteerTurn> {
        Some(self)
    }
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        let modes = SessionSystemPromptModeCapabilities::new()
            .overriding(SessionSystemPromptOverrideCapabilities::new());
        Some(SessionSystemPromptCapabilities::new().mode(modes))
    }
    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }
    fn cancel_work(&self) -> Option<&impl CancelWork> {
        Some(self)
    }
    fn authentication(&self) -> Option<&impl Authentication> {
        Some(self)
    }
}

impl LoadSession for FullPeer {
    async fn load(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }
}
impl ResumeSession for FullPeer {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }
}
impl ForkSession for FullPeer {
    async fn fork(&self, _: &SessionId, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }
}
impl ListSessions for FullPeer {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse> {
        Ok(ListSessionsResponse::new(Vec::new()))
    }
}
impl CloseSession for FullPeer {
    async fn close(&self, (): &(), _: &SessionId) -> Result<()> {
        Ok(())
    }
}
impl SetSessionTitle for FullPeer {
    async fn set_title(&self, _: Option<&()>, _: &SessionId, title: &str) -> Result<String> {
        Ok(title.to_owned())
    }
}
impl ArchiveSession for FullPeer {
    async fn archive(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
    async fn unarchive(&self, _: Option<&()>, _: &SessionId) -> Result<()> {
        Ok(())
    }
}
impl SessionStatusHandler for FullPeer {
    async fn status(&self, _: &SessionId) -> Result<Option<SessionStatus>> {
        Ok(Some(SessionStatus::Saved))
    }
}
impl AuthStatusHandler for FullPeer {
    async fn auth_state(&self) -> Result<AuthStatusResponse> {
        Ok(AuthStatusResponse::new(AuthState::NotRequired))
    }
}
impl Providers for FullPeer {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        Ok(Vec::new())
    }
    async fn set(&self, _: SetProviderRequest) -> Result<()> {
        Ok(())
    }
    async fn disable(&self, _: &ProviderId) -> Result<()> {
        Ok(())
    }
}
impl SteerTurn for FullPeer {
    async fn steer(&self, (): &(), _: &Session, _: &Prompt) -> Result<bool> {
        Ok(true)
    }
}
impl DeleteSession for FullPeer {
    async fn delete(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
}
impl CancelWork for FullPeer {
    async fn cancel_tool_call(&self, (): &(), _: &Session, _: &ToolCallId) -> Result<()> {
        Ok(())
    }
    async fn cancel_terminal(&self, (): &(), _: &Session, _: &TerminalId) -> Result<()> {
        Ok(())
    }
}
impl Authentication for FullPeer {
    fn methods(&self) -> Vec<AuthMethod> {
        Vec::new()
    }
    fn can_logout(&self) -> bool {
        true
    }
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> Result<()> {
        Ok(())
    }
}

impl Client for FullPeer {
    type State = ();

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }
    fn write_text_file(&self) -> Option<&impl WriteTextFile<()>> {
        Some(self)
    }
    fn terminals(&self) -> Option<&impl Terminals<()>> {
        Some(self)
    }
    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for FullPeer {
    async fn read(&self, (): &(), _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new(""))
    }
}
impl WriteTextFile<()> for FullPeer {
    async fn write(&self, (): &(), _: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        Ok(WriteTextFileResponse::new())
    }
}
impl Terminals<()> for FullPeer {
    async fn create(&self, (): &(), _: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        Ok(CreateTerminalResponse::new("t"))
    }
    async fn output(&self, (): &(), _: TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        Ok(TerminalOutputResponse::new("", false))
    }
    async fn wait_for_exit(
        &self,
        (): &(),
        _: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        Ok(WaitForTerminalExitResponse::new())
    }
    async fn kill(&self, (): &(), _: KillTerminalRequest) -> Result<KillTerminalResponse> {
        Ok(KillTerminalResponse::new())
    }
    async fn release(&self, (): &(), _: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse> {
        Ok(ReleaseTerminalResponse::new())
    }
}
impl Elicitation<()> for FullPeer {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
    }
    async fn create(
        &self,
        _: Option<&()>,
        _: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        let nothing = ElicitationNoContent::default();
        Ok(CreateElicitationResponse::new(ElicitationAction::Cancel(
            nothing,
        )))
    }
}

/// Checks that the peer does not respond to a method with an unknown-method error.
async fn assert_handled(peer: &mut TestPeer, id: i64, method: &str, params: &Value) {
    peer.send_request(id, method, params.clone()).await;
    loop {
        let message = peer.next().await;
        if message["id"] == id && message.get("method").is_none() {
            assert_ne!(message["error"]["code"], -32601, "{method}: {params}");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_handles_every_request_of_both_versions() {
    for (version, methods) in [(1, METHODS), (2, v2::METHODS)] {
        let mut rows = method_names(methods, Sender::Client, MethodKind::Request);
        for (n, (method, params)) in read_messages(version).iter().enumerate() {
            if !method_names(methods, Sender::Client, MethodKind::Request).contains(&method[..]) {
                continue;
            }
            rows.remove(&method[..]);
            let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
            let _conn =
                acp::testing::start_agent(transport, FullPeer, Options::new().draft_version_2());
            if method != "initialize" {
                peer.send_request("init", "initialize", json!({"protocolVersion": version}))
                    .await;
                peer.expect_result("init").await;
            }
            assert_handled(&mut peer, n.try_into().unwrap(), method, params).await;
        }
        assert!(
            rows.is_empty(),
            "version {version}: {rows:?} have no message"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_handles_every_request_and_update_of_both_versions() {
    for (version, methods) in [(1, METHODS), (2, v2::METHODS)] {
        let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
        let options = Options::new().draft_version_2();
        let connecting = tokio::spawn(acp::testing::start_client(transport, FullPeer, options));
        let (id, _) = peer.expect_request("initialize").await;
        let answer = match version {
            1 => json!({"protocolVersion": 1}),
            _ => {
                json!({"protocolVersion": 2, "info": {"name": "n", "version": "1"}, "capabilities": {"session": {}}})
            }
        };
        peer.answer(&id, answer).await;
        let conn = with_timeout("it connects", connecting)
            .await
            .unwrap()
            .unwrap();
        let requests = method_names(methods, Sender::Agent, MethodKind::Request);
        let told = method_names(methods, Sender::Agent, MethodKind::Notification);
        let mut rows: BTreeSet<&str> = requests.union(&told).copied().collect();
        for (n, (method, params)) in read_messages(version).iter().enumerate() {
            rows.remove(&method[..]);
            if requests.contains(&method[..]) {
                assert_handled(&mut peer, n.try_into().unwrap(), method, params).await;
            } else if told.contains(&method[..]) {
                peer.notify(method, params.clone()).await;
                wait_until_idle().await;
                assert_eq!(
                    conn.connection().noise().unread_notifications,
                    0,
                    "{method}: {params}"
                );
            }
        }
        assert!(
            rows.is_empty(),
            "version {version}: {rows:?} have no message"
        );
    }
}
