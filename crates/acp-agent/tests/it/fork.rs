//! Tests `session/fork`, which opens a session that starts as a copy of another one.

use crate::common;
use crate::common::hears::RequestRecorder;
use crate::common::{ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, mode_of_thread};
use acp::Options;
use acp::v1::ListSessionsRequest;
use acp_agent::store::{MemoryStore, PostgresStore, SessionStore, SqliteStore};
use acp_postgres::TestPostgres;

const SCRIPT: &str = r#"{"turns": [
    [{"write": {"path": "a.txt", "text": "1"}}, {"say": "one"}],
    [{"write": {"path": "a.txt", "text": "2"}}, {"say": "two"}],
    [{"say": "three"}]
]}"#;

#[tokio::test]
async fn forked_session_continues_independently() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sessions = tempfile::tempdir().unwrap();
        check_fork(SqliteStore::open(sessions.path()).unwrap(), options.clone()).await;
        check_fork(MemoryStore::new(), options.clone()).await;
        if let Some(postgres) = TestPostgres::shared() {
            let store = PostgresStore::new(&postgres.new_database(), None).unwrap();
            check_fork(store, options).await;
        }
    }
}

async fn check_fork(store: impl SessionStore, options: Options) {
    let heard = RequestRecorder::default();
    let f = AgentFixture::start_with_options(
        options,
        heard.scripted_agent(SCRIPT).keep_sessions(store),
        NO_CAPABILITIES,
    )
    .await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("first").await;
    f.session.set_config_option("mode", "code").await.unwrap();
    let id = f.session.id().clone();
    let copy = f.agent.fork_session(id.clone(), f.cwd()).await.unwrap();
    assert_ne!(copy.id(), f.session.id());
    copy.thread()
        .read(|thread| assert_eq!(mode_of_thread(thread), "code"));

    // The model's conversation, the "always" answers and the number of the prompt are the same.
    copy.prompt("second").await.unwrap();
    let lines = heard.all_requests()[2].message_lines();
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
    assert_eq!(f.read_file("a.txt"), "2");
    // The original session does not change.
    f.session.set_config_option("mode", "ask").await.unwrap();
    f.prompt_for_text("another").await;
    let lines = heard.last_request().message_lines();
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
    assert!(heard.last_request().is_well_formed());
}

#[tokio::test]
async fn fork_of_an_unknown_session_fails() {
    let f = AgentFixture::new(
        RequestRecorder::default()
            .scripted_agent(SCRIPT)
            .keep_sessions(MemoryStore::new()),
        NO_CAPABILITIES,
    )
    .await;
    let error = f.agent.fork_session("nothing", f.cwd()).await.unwrap_err();
    let code = error.peer_error().unwrap().code;
    assert_eq!(code, acp::jsonrpc::Error::RESOURCE_NOT_FOUND, "{error}");
    // An agent that does not store sessions cannot fork them.
    let f = AgentFixture::new(
        RequestRecorder::default().scripted_agent(SCRIPT),
        NO_CAPABILITIES,
    )
    .await;
    assert!(f.agent.capabilities().session_capabilities.fork.is_none());
    let id = f.session.id().clone();
    f.agent.fork_session(id, f.cwd()).await.unwrap_err();
}

#[tokio::test]
async fn running_session_can_be_forked() {
    let script = r#"{"turns": [
        [{"say": "Wait."}, {"run": {"command": "echo begun; sleep 1000"}}],
        [{"say": "Here."}]
    ]}"#;
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(
        heard
            .scripted_agent(script)
            .keep_sessions(MemoryStore::new()),
        NO_CAPABILITIES,
    )
    .await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt("first");
    common::wait_for_thread(f.session.thread(), |thread| {
        common::has_call_showing(thread, acp::thread::ToolCallStatus::InProgress, "begun")
    })
    .await;
    let copy = f
        .agent
        .fork_session(f.session.id().clone(), f.cwd())
        .await
        .unwrap();
    copy.prompt("second").await.unwrap();
    let asked = heard.last_request();
    assert!(asked.is_well_formed(), "{:#?}", asked.message_lines());
    let lines = [
        "user first",
        "assistant Wait. [run]",
        "result Cancelled",
        "user second",
    ];
    assert_eq!(asked.message_lines(), lines);
    f.cancel_turn(turn).await;
}
