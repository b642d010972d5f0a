//! In-memory tests of turns between an agent and a client that both use this library.

use crate::common;
use std::sync::{Arc, Mutex};

use acp::agent::{Prompt, Turn};
use acp::client::{Client, PermissionRequest, Update, UpdateContext};
use acp::testing::{PromptAgent, connect_with};
use acp::thread::ItemKind;
use acp::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, StopReason, ToolCall,
    ToolKind,
};
use acp::{Agent, Options, Result};

/// An agent that repeats the prompt, after requesting permission if the prompt asks for it.
struct EchoAgent;

impl Agent for EchoAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        if let Some(what) = text.strip_prefix("ask ") {
            let call = turn
                .report_tool_call(ToolCall::new("call_1", what).kind(ToolKind::Edit))
                .await?;
            let yes = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
            let no = PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce);
            let outcome = turn
                .request_permission(call.new_update(), vec![yes, no])
                .await?;
            turn.send_message(format!("{outcome:?}")).await?;
            call.complete().await?;
            return Ok(StopReason::EndTurn);
        }
        if text == "hang" {
            turn.send_message("hanging").await?;
            std::future::pending::<()>().await;
        }
        for word in text.split_inclusive(' ') {
            turn.send_message(word).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// A client that records updates and allows everything.
#[derive(Clone, Default)]
struct TextClient {
    text: Arc<Mutex<String>>,
    hang_permission: bool,
}

impl Client for TextClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        self.text
            .lock()
            .unwrap()
            .push_str(update.message_text().unwrap_or_default());
    }

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        if self.hang_permission {
            std::future::pending::<()>().await;
        }
        Ok(request.allow())
    }
}

async fn start_client(client: TextClient) -> acp::client::AgentConnection {
    let (ours, theirs) = acp::transport::memory();
    acp::testing::start_agent(theirs, EchoAgent, acp::Limits::default());
    acp::testing::start_client(ours, client, acp::Options::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_turn_delivers_all_updates_before_it_ends() {
    let client = TextClient::default();
    let agent = start_client(client.clone()).await;
    let session = agent.new_session("/tmp").await.unwrap();
    assert_eq!(
        session.prompt("one two three").await.unwrap(),
        StopReason::EndTurn
    );
    // All updates were delivered before the response.
    assert_eq!(*client.text.lock().unwrap(), "one two three");
    session.thread().read(|thread| {
        let [user, said] = thread.items() else {
            panic!("{:?}", thread.items())
        };
        assert!(matches!(&user.kind, ItemKind::User(m) if m.text() == "one two three"));
        assert!(matches!(&said.kind, ItemKind::Agent(m) if m.text() == "one two three"));
        assert!(!thread.is_running());
    });
}

#[tokio::test]
async fn a_permission_is_requested_and_granted() {
    let agent = start_client(TextClient::default()).await;
    let session = agent.new_session("/tmp").await.unwrap();
    assert_eq!(
        session.prompt("ask Write it").await.unwrap(),
        StopReason::EndTurn
    );
    session.thread().read(|thread| {
        let call = thread.tool_call(&"call_1".into()).unwrap();
        assert_eq!(
            (call.title.as_str(), &call.status),
            ("Write it", &acp::thread::ToolCallStatus::Completed)
        );
        assert!(
            thread.items().iter().any(
                |item| matches!(&item.kind, ItemKind::Agent(m) if m.text().contains("Selected"))
            )
        );
    });
}

#[tokio::test]
async fn cancel_ends_a_hanging_turn_and_the_next_one_works() {
    let agent = start_client(TextClient::default()).await;
    let session = agent.new_session("/tmp").await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("hang").await }
    });
    common::wait_for_thread(session.thread(), |t| {
        t.items()
            .iter()
            .any(|i| matches!(&i.kind, ItemKind::Agent(m) if m.text() == "hanging"))
    })
    .await;
    session.cancel().await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
    assert_eq!(session.prompt("again").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn cancel_ends_a_pending_permission_request() {
    let agent = start_client(TextClient {
        hang_permission: true,
        ..TextClient::default()
    })
    .await;
    let session = agent.new_session("/tmp").await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("ask Write it").await }
    });
    common::wait_for_thread(session.thread(), |t| {
        t.tool_call(&"call_1".into()).is_some()
    })
    .await;
    session.cancel().await.unwrap();
    assert_eq!(turn.await.unwrap().unwrap(), StopReason::Cancelled);
}

#[tokio::test]
async fn dropping_a_prompt_cancels_it() {
    let agent = start_client(TextClient::default()).await;
    let session = agent.new_session("/tmp").await.unwrap();
    {
        let prompt = session.prompt("hang");
        tokio::pin!(prompt);
        tokio::select! {
            _ = &mut prompt => panic!("it hangs"),
            () = common::wait_for_thread(session.thread(), |t| t.items().len() == 2) => {}
        }
    }
    common::wait_for_thread(session.thread(), |t| !t.is_running()).await;
    session
        .thread()
        .read(|t| assert_eq!(t.stop_reason(), Some(&StopReason::Cancelled)));
}

#[tokio::test]
async fn concurrent_sessions_do_not_mix() {
    let agent = start_client(TextClient::default()).await;
    let mut turns = Vec::new();
    for n in 0..50 {
        let session = agent.new_session("/tmp").await.unwrap();
        turns.push(tokio::spawn(async move {
            let text = format!("{n} ").repeat(100);
            session.prompt(text.clone()).await.unwrap();
            session.thread().read(|thread| {
                assert_eq!(thread.items().len(), 2);
                assert!(matches!(&thread.items()[1].kind, ItemKind::Agent(m) if m.text() == text));
            });
        }));
    }
    for turn in turns {
        turn.await.unwrap();
    }
}

#[tokio::test]
async fn a_turn_fails_with_a_clear_error_when_the_agent_exits() {
    let (ours, theirs) = acp::transport::memory();
    let serving = acp::testing::start_agent(theirs, EchoAgent, acp::Limits::default());
    let agent = acp::testing::start_client(ours, TextClient::default(), acp::Options::new())
        .await
        .unwrap();
    let session = agent.new_session("/tmp").await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("hang").await }
    });
    common::wait_for_thread(session.thread(), |t| t.items().len() == 2).await;
    serving.close();
    let error = turn.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "connection closed: closed by the peer");
    assert!(!session.thread().read(acp::Thread::is_running));
    assert!(agent.new_session("/tmp").await.is_err());
}

#[tokio::test]
async fn custom_data_in_prompts_reaches_the_agent_in_both_versions() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let agent = PromptAgent(async |turn: Turn, prompt: Prompt| {
            turn.send_message(format!("{:?}", prompt.meta)).await?;
            Ok(StopReason::EndTurn)
        });
        let keeper = TextClient::default();
        let (agent, _) = connect_with(agent, keeper.clone(), options).await;
        let session = agent.new_session("/").await.unwrap();
        let mut meta = acp::wire::Meta::new();
        meta.insert("trace".to_owned(), 7.into());
        let prompt = acp::client::PromptContent::from("hi").meta(meta.clone());
        session.prompt(prompt).await.unwrap();
        assert_eq!(*keeper.text.lock().unwrap(), format!("{:?}", Some(meta)));
    }
}
