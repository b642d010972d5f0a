//! Tests of reopening a session while a turn is running, in version 2.

use std::sync::Arc;

use acp::agent::{
    OpenedSession, Prompt, ResumeSession, Session, SessionSetup, Turn, default_limits,
};
use acp::thread::Activity;
use acp::v1::StopReason;
use acp::{Agent, Client, Options, Result, Thread, v2};
use tokio::sync::Notify;

use crate::common::{wait_for_thread, with_timeout};

/// An agent that works until it is stopped.
struct ReopeningAgent {
    stop: Arc<Notify>,
    resumes: bool,
}

impl Agent for ReopeningAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message("working").await?;
        self.stop.notified().await;
        turn.send_message(", done").await?;
        Ok(StopReason::EndTurn)
    }

    fn resume_session(&self) -> Option<&impl ResumeSession> {
        self.resumes.then_some(self)
    }
}

impl ResumeSession for ReopeningAgent {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }
}

struct ReopeningClient;
impl Client for ReopeningClient {
    type State = ();
}

fn thread_text(thread: &Thread) -> String {
    let item = thread.items().last().map(|item| &item.kind);
    match item {
        Some(acp::thread::ItemKind::Agent(message)) => message.text(),
        other => panic!("{other:?}"),
    }
}

/// Resumes a session during a turn. Returns the activity that the client then sees, the turn's stop reason, and the
/// text in the thread.
async fn resume_during_turn(resumes: bool) -> (Activity, StopReason, String) {
    let stop = Arc::new(Notify::new());
    let worker = ReopeningAgent {
        stop: Arc::clone(&stop),
        resumes,
    };
    let options = || Options::new().limits(default_limits()).draft_version_2();
    let (ours, theirs) = acp::transport::memory();
    let _agent = acp::testing::start_agent(theirs, worker, options());
    let agent = acp::testing::start_client(ours, ReopeningClient, options())
        .await
        .unwrap();
    let session = agent.new_session("/work").await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("work").await }
    });
    wait_for_thread(session.thread(), |thread| {
        thread.items().len() == 2 && thread_text(thread) == "working"
    })
    .await;
    let request = v2::ResumeSessionRequest::new(session.id(), "/work");
    let resumed = agent.connection().request(&request);
    with_timeout("it is resumed", resumed).await.unwrap();
    let activity = session.thread().read(Thread::activity);
    stop.notify_one();
    let ended = with_timeout("the turn ends", turn).await.unwrap().unwrap();
    assert_eq!(session.thread().read(Thread::activity), Activity::Idle);
    (activity, ended, session.thread().read(thread_text))
}

#[tokio::test]
async fn a_turn_continues_if_the_agent_cannot_reopen_sessions() {
    let (activity, ended, said) = resume_during_turn(false).await;
    assert_eq!(activity, Activity::Running);
    assert_eq!(
        (ended, said.as_str()),
        (StopReason::EndTurn, "working, done")
    );
}

#[tokio::test]
async fn a_turn_has_ended_when_its_session_was_reopened() {
    let (activity, ended, said) = resume_during_turn(true).await;
    assert_eq!(activity, Activity::Idle);
    assert_eq!((ended, said.as_str()), (StopReason::Cancelled, "working"));
}
