//! Tests `session/archive`, `session/unarchive` and `session/status` for sessions that are stored, archived or closed.

use acp::v1::{ListSessionsRequest, SessionArchiveFilter, SessionId, SessionStatus};
use acp::{Error, Options, jsonrpc};
use acp_agent::store::{MemoryStore, PostgresStore, SessionStore, SqliteStore};
use acp_agent::{CodingAgent, ScriptedModel};
use acp_postgres::TestPostgres;

use crate::common::{AgentFixture, NO_CAPABILITIES};

const SCRIPT: &str = r#"{"turns": [[{"say": "one"}], [{"say": "two"}], [{"say": "three"}]]}"#;

#[tokio::test]
async fn archived_session_is_hidden_but_kept() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sessions = tempfile::tempdir().unwrap();
        check_archiving(SqliteStore::open(sessions.path()).unwrap(), options.clone()).await;
        check_archiving(MemoryStore::new(), options.clone()).await;
        if let Some(postgres) = TestPostgres::shared() {
            let store = PostgresStore::new(&postgres.new_database(), None).unwrap();
            check_archiving(store, options).await;
        }
    }
}

async fn check_archiving(store: impl SessionStore, options: Options) {
    let agent = CodingAgent::with_model(ScriptedModel::parse(SCRIPT).unwrap()).keep_sessions(store);
    let f = AgentFixture::start_with_options(options, agent, NO_CAPABILITIES).await;
    let id = f.session.id().clone();
    let listed = async |archived: Option<SessionArchiveFilter>| {
        let mut request = ListSessionsRequest::new().cwd(f.cwd());
        request.archived = archived;
        let page = f.agent.list_sessions(&request).await.unwrap();
        let sessions = page.sessions.into_iter();
        let sessions = sessions.map(|info| (info.session_id, info.archived));
        sessions.collect::<Vec<(SessionId, Option<bool>)>>()
    };
    let status = async || f.agent.session_status(&id).await.unwrap().status;
    f.prompt_for_text("first").await;
    assert_eq!(listed(None).await, [(id.clone(), Some(false))]);
    assert_eq!(status().await, SessionStatus::Open);

    f.agent.archive_session(&id).await.unwrap();
    assert_eq!(status().await, SessionStatus::Saved);
    assert_eq!(listed(None).await, []);
    for filter in [SessionArchiveFilter::Only, SessionArchiveFilter::Include] {
        assert_eq!(listed(Some(filter)).await, [(id.clone(), Some(true))]);
    }
    // The session can be opened and continued, and stays archived.
    let again = f.agent.load_session(id.clone(), f.cwd()).await.unwrap();
    again.prompt("second").await.unwrap();
    assert_eq!(listed(None).await, []);

    f.agent.unarchive_session(&id).await.unwrap();
    assert_eq!(listed(None).await, [(id.clone(), Some(false))]);
    assert_eq!(listed(Some(SessionArchiveFilter::Only)).await, []);
    // The session is open and can be continued.
    again.prompt("third").await.unwrap();

    // A fork of an archived session is not archived.
    f.agent.archive_session(&id).await.unwrap();
    let copy = f.agent.fork_session(id.clone(), f.cwd()).await.unwrap();
    assert_eq!(listed(None).await, [(copy.id().clone(), Some(false))]);

    let none = SessionId::from("none");
    for refused in [
        f.agent.archive_session(&none).await,
        f.agent.unarchive_session(&none).await,
        f.agent.session_status(&none).await.map(drop),
    ] {
        match refused {
            Err(Error::Rpc(error)) => {
                assert_eq!(error.code, jsonrpc::Error::RESOURCE_NOT_FOUND, "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}
