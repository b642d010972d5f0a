//! Tests `session/fork`, which opens a session that starts as a copy of another one.

use crate::common;
use crate::common::hears::RequestRecorder;
use crate::common::{ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, mode_of_thread};
use acp::Options;
use acp::thread::ItemKind;
use acp::v1::{ListSessionsRequest, MessageId};
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

const THREE_TURNS: &str = r#"{"turns": [
    [{"say": "one"}, {"list": {"path": "."}}],
    [{"say": "two"}],
    [{"say": "three"}],
    [{"say": "four"}]
]}"#;

/// Returns the ids of the agent's messages.
fn agent_messages(thread: &acp::Thread) -> Vec<MessageId> {
    let messages = thread.items().iter().filter_map(|item| match &item.kind {
        ItemKind::Agent(message) => message.id.clone(),
        _ => None,
    });
    messages.collect()
}

#[tokio::test]
async fn a_fork_ends_at_a_message() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sessions = tempfile::tempdir().unwrap();
        check_fork_at_message(SqliteStore::open(sessions.path()).unwrap(), options.clone()).await;
        check_fork_at_message(MemoryStore::new(), options.clone()).await;
        if let Some(postgres) = TestPostgres::shared() {
            let store = PostgresStore::new(&postgres.new_database(), None).unwrap();
            check_fork_at_message(store, options).await;
        }
    }
}

async fn check_fork_at_message(store: impl SessionStore, options: Options) {
    let heard = RequestRecorder::default();
    let f = AgentFixture::start_with_options(
        options,
        heard.scripted_agent(THREE_TURNS).keep_sessions(store),
        NO_CAPABILITIES,
    )
    .await;
    assert!(f.agent.supports_fork_at_message());
    for prompt in ["first", "second", "third"] {
        f.prompt_for_text(prompt).await;
    }
    let id = f.session.id().clone();
    let messages = f.session.thread().read(agent_messages);
    assert_eq!(messages.len(), 3);
    let fork = |last: &MessageId| {
        let last = last.clone();
        f.agent.fork_session_at(id.clone(), last, f.cwd())
    };

    // The turns after the message are as if they had never been, also for the model.
    let copy = fork(&messages[0]).await.unwrap();
    copy.prompt("instead").await.unwrap();
    let request = heard.last_request();
    assert!(request.is_well_formed());
    let lines = request.message_lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    // What the agent did after its last message belongs to the turn.
    assert_eq!(
        (&*lines[0], &*lines[1]),
        ("user first", "assistant one [list]")
    );
    assert!(lines[2].starts_with("result of "), "{lines:?}");
    assert_eq!(lines[3], "user instead");
    // And when the session is loaded again.
    let again = f
        .agent
        .load_session(copy.id().clone(), f.cwd())
        .await
        .unwrap();
    let shown = again.thread().read(|thread| {
        let users = thread.items().iter().filter_map(|item| match &item.kind {
            ItemKind::User(message) => Some(message.text()),
            _ => None,
        });
        users.collect::<Vec<_>>()
    });
    assert_eq!(shown, ["first", "instead"]);
    // The message has the same id there, so that the copy can be copied in turn.
    assert_eq!(again.thread().read(agent_messages)[0], messages[0]);
    f.agent
        .fork_session_at(copy.id().clone(), &messages[0], f.cwd())
        .await
        .unwrap();

    // The original session does not change, and ends with its last message.
    let whole = fork(&messages[2]).await.unwrap();
    let error = fork(&MessageId::from("unknown")).await.unwrap_err();
    let error = error.peer_error().unwrap();
    assert_eq!(error.code, acp::jsonrpc::Error::INVALID_PARAMS);
    assert_eq!(
        error.message,
        format!("session {id} has no message unknown")
    );
    whole.prompt("fourth").await.unwrap();
    let lines = heard.last_request().message_lines();
    let prompts: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("user "))
        .collect();
    assert_eq!(
        prompts,
        ["user first", "user second", "user third", "user fourth"]
    );
}

#[tokio::test]
async fn a_fork_before_a_compaction_has_the_whole_conversation() {
    let script = r#"{"turns": [
        [{"say": "one"}],
        [{"say": "two"}],
        [{"say": "three"}]
    ], "summary": [{"say": "They count."}]}"#;
    let heard = RequestRecorder::default();
    let agent = heard
        .scripted_agent(script)
        .keep_sessions(MemoryStore::new());
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    f.prompt_for_text("first").await;
    f.prompt_for_text("second").await;
    let messages = f.session.thread().read(agent_messages);
    f.prompt("/compact").await.unwrap();
    let copy = f
        .agent
        .fork_session_at(f.session.id().clone(), &messages[1], f.cwd())
        .await
        .unwrap();
    copy.prompt("third").await.unwrap();
    let lines = [
        "user first",
        "assistant one []",
        "user second",
        "assistant two []",
        "user third",
    ];
    assert_eq!(heard.last_request().message_lines(), lines);
}
