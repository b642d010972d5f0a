//! `session/fork`: a session that begins as a copy of another.

use crate::common;
use crate::common::hears::HeardRequests;
use crate::common::{ALLOW, ALLOW_ALWAYS, AgentFixture, NONE, mode};
use acp::Options;
use acp::v1::ListSessionsRequest;
use acp_agent::store::{MemoryStore, SessionStore, SqliteStore};

const SCRIPT: &str = r#"{"turns": [
    [{"write": {"path": "a.txt", "text": "1"}}, {"say": "one"}],
    [{"write": {"path": "a.txt", "text": "2"}}, {"say": "two"}],
    [{"say": "three"}]
]}"#;

#[tokio::test]
async fn a_copy_goes_its_own_way() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sessions = tempfile::tempdir().unwrap();
        each(SqliteStore::open(sessions.path()).unwrap(), options.clone()).await;
        each(MemoryStore::new(), options).await;
    }
}

async fn each(store: impl SessionStore, options: Options) {
    let heard = HeardRequests::default();
    let f = AgentFixture::speaking(options, heard.agent(SCRIPT).keep_sessions(store), NONE).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("first").await;
    f.session.set_config_option("mode", "code").await.unwrap();
    let id = f.session.id().clone();
    let copy = f.agent.fork_session(id.clone(), f.cwd()).await.unwrap();
    assert_ne!(copy.id(), f.session.id());
    copy.thread()
        .read(|thread| assert_eq!(mode(thread), "code"));

    // What the model knows, what was allowed and which prompt this is, is as it was.
    copy.prompt("second").await.unwrap();
    let lines = heard.all()[2].lines();
    let whole = [
        "user first",
        "assistant  [write]",
        "result of 15 bytes",
        "assistant one []",
        "user second",
    ];
    assert_eq!(lines.len(), whole.len());
    assert_eq!(
        (&lines[0], &lines[3], &lines[4]),
        (
            &whole[0].to_owned(),
            &whole[3].to_owned(),
            &whole[4].to_owned()
        )
    );
    assert_eq!(f.text("a.txt"), "2");
    // And the other one knows nothing of it.
    f.session.set_config_option("mode", "ask").await.unwrap();
    f.says("another").await;
    let lines = heard.last().lines();
    assert!(lines.contains(&"user another".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"user second".to_owned()), "{lines:?}");

    let request = ListSessionsRequest::new().cwd(f.cwd());
    let listed = f.agent.list_sessions(&request).await.unwrap().sessions;
    assert_eq!(listed.len(), 2);
    assert!(
        listed
            .iter()
            .all(|session| session.title.as_deref() == Some("first"))
    );
    let shown = |thread: &acp::Thread| thread.items().len();
    let again = f
        .agent
        .load_session(copy.id().clone(), f.cwd())
        .await
        .unwrap();
    assert_eq!(again.thread().read(shown), 6);
    f.agent.delete_session(&id).await.unwrap();
    again.prompt("third").await.unwrap();
    assert!(heard.last().is_well_formed());
}

#[tokio::test]
async fn what_is_not_there_cannot_be_copied() {
    let f = AgentFixture::new(
        HeardRequests::default()
            .agent(SCRIPT)
            .keep_sessions(MemoryStore::new()),
        NONE,
    )
    .await;
    let error = f.agent.fork_session("nothing", f.cwd()).await.unwrap_err();
    let code = error.peer_error().unwrap().code;
    assert_eq!(code, acp::jsonrpc::Error::RESOURCE_NOT_FOUND, "{error}");
    // An agent that keeps nothing has nothing to copy.
    let f = AgentFixture::new(HeardRequests::default().agent(SCRIPT), NONE).await;
    assert!(f.agent.capabilities().session_capabilities.fork.is_none());
    let id = f.session.id().clone();
    f.agent.fork_session(id, f.cwd()).await.unwrap_err();
}

#[tokio::test]
async fn a_session_that_works_is_copied_as_it_is() {
    let script = r#"{"turns": [
        [{"say": "Wait."}, {"run": {"command": "echo begun; sleep 1000"}}],
        [{"say": "Here."}]
    ]}"#;
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(script).keep_sessions(MemoryStore::new()), NONE).await;
    f.answers([ALLOW]);
    let turn = f.begin("first");
    common::until(f.session.thread(), |thread| {
        common::shows(thread, acp::thread::ToolCallStatus::InProgress, "begun")
    })
    .await;
    let copy = f
        .agent
        .fork_session(f.session.id().clone(), f.cwd())
        .await
        .unwrap();
    copy.prompt("second").await.unwrap();
    let asked = heard.last();
    assert!(asked.is_well_formed(), "{:#?}", asked.lines());
    let lines = [
        "user first",
        "assistant Wait. [run]",
        "result Cancelled",
        "user second",
    ];
    assert_eq!(asked.lines(), lines);
    f.cancelled(turn).await;
}
