//! Tests `session/set_title`, which lets a user rename a session.

use acp::jsonrpc;
use acp::v1::ListSessionsRequest;
use acp::{Error, Options};
use acp_agent::store::{MemoryStore, SessionStore, SqliteStore};
use acp_agent::{CodingAgent, ScriptedModel};

use crate::common::{AgentFixture, NO_CAPABILITIES};

const SCRIPT: &str = r#"{"turns": [[{"say": "one"}], [{"say": "two"}]]}"#;

#[tokio::test]
async fn title_chosen_by_the_user_is_kept() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sessions = tempfile::tempdir().unwrap();
        check_title(SqliteStore::open(sessions.path()).unwrap(), options.clone()).await;
        check_title(MemoryStore::new(), options).await;
    }
}

async fn check_title(store: impl SessionStore, options: Options) {
    let agent = CodingAgent::with_model(ScriptedModel::parse(SCRIPT).unwrap()).keep_sessions(store);
    let f = AgentFixture::start_with_options(options, agent, NO_CAPABILITIES).await;
    let id = f.session.id().clone();
    let listed = async || {
        let request = ListSessionsRequest::new().cwd(f.cwd());
        let page = f.agent.list_sessions(&request).await.unwrap();
        page.sessions[0].title.clone()
    };

    // The title is set before the first prompt, so the prompt does not become the title.
    let title = f
        .agent
        .set_session_title(&id, "  My \u{1b}own\n name ")
        .await;
    assert_eq!(title.unwrap(), "My own name");
    let shown = || f.session.thread().read(|t| t.title().map(str::to_owned));
    assert_eq!(shown().as_deref(), Some("My own name"));
    f.prompt_for_text("first").await;
    assert_eq!(listed().await.as_deref(), Some("My own name"));

    // Closed sessions can be renamed too.
    f.session.close().await.unwrap();
    let title = f.agent.set_session_title(&id, "Another").await.unwrap();
    assert_eq!(title, "Another");
    assert_eq!(listed().await.as_deref(), Some("Another"));
    let again = f.agent.load_session(id.clone(), f.cwd()).await.unwrap();
    again.prompt("second").await.unwrap();
    assert_eq!(listed().await.as_deref(), Some("Another"));

    for (id, title, code) in [
        (id, " \u{200b} ", jsonrpc::Error::INVALID_PARAMS),
        ("none".into(), "x", jsonrpc::Error::RESOURCE_NOT_FOUND),
    ] {
        match f.agent.set_session_title(&id, title).await {
            Err(Error::Rpc(error)) => assert_eq!(error.code, code, "{error}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(listed().await.as_deref(), Some("Another"));
}
