//! Tests of `session/archive` and `session/unarchive` in both versions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use acp::agent::{
    Agent, ArchiveSession, CloseSession, ListSessions, OpenedSession, Prompt, Session,
    SessionSetup, Turn,
};
use acp::testing::{NoopClient, connect, connect_with};
use acp::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionId, SessionInfo,
    StopReason,
};
use acp::{Error, Options, Result, jsonrpc};
use serde_json::json;

use crate::common::{TestPeer, idle_agent};

/// An agent that tracks which of its sessions are archived.
#[derive(Default, Clone)]
struct ArchivingAgent(Arc<Mutex<BTreeMap<SessionId, bool>>>);

impl ArchivingAgent {
    fn set_archived(&self, session: &SessionId, archived: bool) -> Result<()> {
        match self.0.lock().unwrap().get_mut(session) {
            Some(is_archived) => *is_archived = archived,
            None => {
                let missing = format!("session {session}");
                return Err(jsonrpc::Error::resource_not_found(missing).into());
            }
        }
        Ok(())
    }
}

impl Agent for ArchivingAgent {
    type State = ArchivingAgent;

    async fn new_session(
        &self,
        session: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<ArchivingAgent>> {
        self.0.lock().unwrap().insert(session.id().clone(), false);
        Ok(OpenedSession::with_state(self.clone()))
    }

    async fn prompt(&self, _: &ArchivingAgent, turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message("I think").await?;
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        Some(self)
    }
    fn close_session(&self) -> Option<&impl CloseSession<ArchivingAgent>> {
        Some(self)
    }
    fn archive_session(&self) -> Option<&impl ArchiveSession<ArchivingAgent>> {
        Some(self)
    }
}

impl ListSessions for ArchivingAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        let sessions = self.0.lock().unwrap();
        let asked_for = sessions
            .iter()
            .filter(|(_, archived)| match request.archived {
                Some(SessionArchiveFilter::Include) => true,
                Some(SessionArchiveFilter::Only) => **archived,
                _ => !**archived,
            });
        let infos =
            asked_for.map(|(id, archived)| SessionInfo::new(id, "/garden").archived(*archived));
        Ok(ListSessionsResponse::new(infos.collect::<Vec<_>>()))
    }
}

impl CloseSession<ArchivingAgent> for ArchivingAgent {
    async fn close(&self, shelf: &ArchivingAgent, session: &SessionId) -> Result<()> {
        // The session is closed before it is archived.
        assert!(!shelf.0.lock().unwrap()[session]);
        Ok(())
    }
}

impl ArchiveSession<ArchivingAgent> for ArchivingAgent {
    async fn archive(&self, session: &SessionId) -> Result<()> {
        self.set_archived(session, true)
    }
    async fn unarchive(&self, _: Option<&ArchivingAgent>, session: &SessionId) -> Result<()> {
        self.set_archived(session, false)
    }
}

#[tokio::test(start_paused = true)]
async fn an_archived_session_is_closed_and_listed_only_on_request() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let (agent, _serving) = connect_with(ArchivingAgent::default(), NoopClient, options).await;
        let offered = &agent.capabilities().session_capabilities;
        assert!(offered.archive.is_some(), "{offered:?}");
        let session = agent.new_session("/garden").await.unwrap();
        let id = session.id().clone();
        let listed = async |archived: Option<SessionArchiveFilter>| {
            let mut request = ListSessionsRequest::new();
            request.archived = archived;
            let page = agent.list_sessions(&request).await.unwrap();
            let sessions = page.sessions.into_iter();
            let sessions = sessions.map(|info| (info.session_id, info.archived));
            sessions.collect::<Vec<_>>()
        };
        let only = || Some(SessionArchiveFilter::Only);
        assert_eq!(listed(None).await, [(id.clone(), Some(false))]);
        assert_eq!(listed(only()).await, []);

        // A turn is running when the session is archived.
        let turn = session.prompt("think");
        let archiving = agent.archive_session(&id);
        let (ended, archived) = tokio::join!(turn, archiving);
        archived.unwrap();
        assert!(
            matches!(&ended, Ok(StopReason::Cancelled) | Err(_)),
            "{ended:?}"
        );
        assert_eq!(listed(None).await, []);
        assert_eq!(listed(only()).await, [(id.clone(), Some(true))]);
        // Archiving it again changes nothing.
        agent.archive_session(&id).await.unwrap();
        assert!(session.prompt("again").await.is_err(), "it is closed");

        agent.unarchive_session(&id).await.unwrap();
        agent.unarchive_session(&id).await.unwrap();
        assert_eq!(listed(None).await, [(id, Some(false))]);
        let missing = agent.archive_session(&"none".into()).await.unwrap_err();
        let Error::Rpc(error) = &missing else {
            panic!("{missing:?}");
        };
        assert_eq!(error.code, jsonrpc::Error::RESOURCE_NOT_FOUND);
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_methods_are_not_sent() {
    let (agent, _serving) = connect(idle_agent(), NoopClient).await;
    for error in [
        agent.archive_session(&"s".into()).await.unwrap_err(),
        agent.unarchive_session(&"s".into()).await.unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("sessionCapabilities.archive"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_rejects_an_unknown_filter() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(ArchivingAgent::default());
    peer.initialize(json!({})).await;
    let params = json!({"archived": "_yesterday's"});
    peer.send_request(1, "session/list", params).await;
    let (code, message) = peer.expect_error(1).await;
    assert_eq!(code, -32602);
    assert!(message.contains("_yesterday's"), "{message}");
}
