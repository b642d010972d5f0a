//! Tests of the end of a connection. All waiting calls fail, and no tasks or objects are left behind.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use acp::agent::{Prompt, Turn};
use acp::client::{Update, UpdateContext};
use acp::v1::StopReason;
use acp::{Agent, Client, CloseReason, Connection, Error, Limits, Result};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, connect_pipes, idle_agent, limits_with,
    message_notification, thread_lines, wait_until_idle, with_timeout,
};

/// An agent that follows the prompt's instructions. The reference count of `kept` shows whether the agent still exists.
struct ClosingAgent {
    gate: Arc<Semaphore>,
    kept: Arc<()>,
}

impl ClosingAgent {
    fn new() -> (Self, Arc<Semaphore>, Arc<()>) {
        let (gate, kept) = (Arc::new(Semaphore::new(0)), Arc::new(()));
        (
            Self {
                gate: Arc::clone(&gate),
                kept: Arc::clone(&kept),
            },
            gate,
            kept,
        )
    }
}

impl Agent for ClosingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let _kept = Arc::clone(&self.kept);
        match prompt.text().as_str() {
            "gate" => {
                self.gate.acquire().await.unwrap().forget();
                turn.send_message("done").await?;
            }
            "talk" => loop {
                turn.send_message("x".repeat(100)).await?;
            },
            "ask" => {
                let call = acp::v1::ToolCallUpdate::new("c");
                let asked = turn.request_permission(call, Vec::new()).await;
                turn.send_message(asked.unwrap_err().to_string()).await?;
            }
            _ => std::future::pending().await,
        }
        Ok(StopReason::EndTurn)
    }
}

fn lingering_limits() -> Limits {
    limits_with(|l| l.linger = Duration::from_secs(2))
}

/// Returns the number of running tasks, other than the test itself.
fn task_count() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn an_agent_finishes_requests_after_its_client_has_closed() {
    let (agent, gate, kept) = ClosingAgent::new();
    let (conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, lingering_limits(), PIPE_CAPACITY).await;
    peer.send_request(
        "other",
        "session/new",
        json!({"cwd": "/", "mcpServers": []}),
    )
    .await;
    let other = peer.expect_result("other").await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    peer.send_prompt(1, &s, "gate").await;
    peer.send_prompt(2, &other, "hang").await;
    peer.stop_writing();
    peer.expect_silence().await;
    assert!(!conn.is_closed());
    gate.add_permits(1);
    peer.expect(message_notification(&s, "done")).await;
    assert_eq!(peer.expect_result(1).await["stopReason"], "end_turn");
    // Work that does not end in time is dropped.
    let begin = tokio::time::Instant::now();
    peer.expect_end().await;
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Peer
    ));
    assert!(
        (1..=2).contains(&begin.elapsed().as_secs()),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!((task_count(), Arc::strong_count(&kept)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_nothing_left_to_answer_does_not_linger() {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let serving = tokio::spawn(acp::agent::serve(transport, idle_agent()));
    peer.initialize(json!({})).await;
    let begin = tokio::time::Instant::now();
    peer.stop_writing();
    with_timeout("it ends", serving).await.unwrap().unwrap();
    assert!(
        begin.elapsed() < Duration::from_millis(10),
        "{:?}",
        begin.elapsed()
    );
    peer.expect_end().await;
    assert_eq!(task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_lingering_agent_fail_at_once() {
    let (agent, _, _) = ClosingAgent::new();
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, lingering_limits(), PIPE_CAPACITY).await;
    peer.send_prompt(1, &s, "ask").await;
    peer.expect_request("session/request_permission").await;
    peer.stop_writing();
    peer.expect(message_notification(
        &s,
        "connection closed: closed by the peer",
    ))
    .await;
    assert_eq!(peer.expect_result(1).await["stopReason"], "end_turn");
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn pending_requests_fail_when_the_agent_exits() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (_, turn) = peer.start_prompt(&session, "hi").await;
    let conn = session.agent().clone();
    let mut waiting = vec![tokio::spawn(async move { turn.await.unwrap().map(drop) })];
    for _ in 0..3 {
        let conn = conn.clone();
        waiting.push(tokio::spawn(async move {
            conn.new_session("/work").await.map(drop)
        }));
        peer.expect_request("session/new").await;
    }
    peer.stop_writing();
    for waiting in waiting {
        let error = with_timeout("it fails", waiting)
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(error.to_string(), "connection closed: closed by the peer");
    }
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Peer
    ));
    peer.expect_end().await;
    assert!(conn.connection().is_closed());
    assert!(!session.thread().read(acp::Thread::is_running));
    // Later requests fail in the same way.
    for error in [
        conn.new_session("/work").await.unwrap_err(),
        session.prompt("more").await.unwrap_err(),
        conn.connection()
            .notify_raw("_x", &json!({}))
            .await
            .unwrap_err(),
    ] {
        assert!(matches!(error, Error::Closed(CloseReason::Peer)), "{error}");
    }
    assert!(!session.thread().read(acp::Thread::is_running));
    assert_eq!(task_count(), 0);
}

/// A client whose reference count shows whether it still exists.
struct ClosingClient(#[allow(dead_code, reason = "it is held")] Arc<()>);

impl Client for ClosingClient {
    type State = ();
}

#[tokio::test(start_paused = true)]
async fn dropping_the_agent_and_its_sessions_ends_the_connection_on_both_sides() {
    let (agent, _, agent_kept) = ClosingAgent::new();
    let client_kept = Arc::new(());
    let (ours, theirs) = acp::transport::memory();
    let serving = acp::testing::start_agent(theirs, agent, Limits::default());
    let agent = acp::testing::start_client(
        ours,
        ClosingClient(Arc::clone(&client_kept)),
        acp::Options::new(),
    )
    .await
    .unwrap();
    let session = agent.new_session("/work").await.unwrap();
    let turn = tokio::spawn(async move { session.prompt("hang").await });
    drop(agent);
    wait_until_idle().await;
    assert!(!serving.is_closed());
    turn.abort();
    assert!(matches!(
        with_timeout("it ends", serving.closed()).await,
        CloseReason::Peer
    ));
    drop(serving);
    wait_until_idle().await;
    assert_eq!(task_count(), 0);
    assert_eq!(
        (
            Arc::strong_count(&agent_kept),
            Arc::strong_count(&client_kept)
        ),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn closing_writes_sent_messages_and_ends_work() {
    let (agent, _, kept) = ClosingAgent::new();
    let (conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    peer.send_prompt(1, &s, "hang").await;
    peer.expect_silence().await;
    for n in 0..100 {
        conn.notify_raw("_last", &n).await.unwrap();
    }
    conn.close();
    for n in 0..100 {
        assert_eq!(peer.expect_notification("_last").await, n);
    }
    peer.expect_end().await;
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Local
    ));
    let error = conn.notify_raw("_more", &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "connection closed: closed by this side");
    assert_eq!((task_count(), Arc::strong_count(&kept)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_forever_for_a_peer_that_never_reads() {
    let (agent, _, kept) = ClosingAgent::new();
    let (conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    peer.send_prompt(1, &s, "talk").await;
    wait_until_idle().await;
    conn.close();
    let begin = tokio::time::Instant::now();
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Local
    ));
    assert!(
        begin.elapsed() <= Duration::from_secs(3),
        "{:?}",
        begin.elapsed()
    );
    wait_until_idle().await;
    assert_eq!((task_count(), Arc::strong_count(&kept)), (0, 1));
    drop(peer);
}

/// A client whose update handler never returns.
struct StuckClient;

impl Client for StuckClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_returns_does_not_prevent_closing() {
    let (session, mut peer) = TestPeer::open_client_session(StuckClient).await;
    let (_, turn) = peer.start_prompt(&session, "hi").await;
    peer.send_text("s", "x").await;
    wait_until_idle().await;
    session.agent().close();
    assert!(matches!(
        with_timeout("the turn fails", turn).await.unwrap(),
        Err(Error::Closed(CloseReason::Local))
    ));
    with_timeout("it ends", session.agent().closed()).await;
    peer.expect_end().await;
    assert_eq!(task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_error_ends_the_connection_with_the_reason() {
    // An agent whose client has stopped reading, but still writes.
    let (agent, _, kept) = ClosingAgent::new();
    let (conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, lingering_limits(), PIPE_CAPACITY).await;
    peer.stop_reading();
    peer.send_prompt(1, &s, "talk").await;
    let reason = with_timeout("it ends", conn.closed()).await;
    assert!(
        matches!(&reason, CloseReason::Transport(e) if e.kind() == ErrorKind::BrokenPipe),
        "{reason}"
    );
    assert_eq!((task_count(), Arc::strong_count(&kept)), (0, 1));

    // A client whose agent has stopped reading.
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (_, turn) = peer.start_prompt(&session, "hi").await;
    peer.stop_reading();
    let asking = session.agent().connection().request_raw("_x", "anything");
    for error in [
        with_timeout("it fails", asking)
            .await
            .map(drop)
            .unwrap_err(),
        with_timeout("the turn fails", turn)
            .await
            .unwrap()
            .map(drop)
            .unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Closed(CloseReason::Transport(e)) if e.kind() == ErrorKind::BrokenPipe),
            "{error}"
        );
    }

    // Serving has not failed, because the client has exited.
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let serving = tokio::spawn(acp::agent::serve(transport, idle_agent()));
    peer.stop_reading();
    peer.send_request(1, "initialize", json!({"protocolVersion": 1}))
        .await;
    with_timeout("it ends", serving).await.unwrap().unwrap();
}

/// A reader whose reads fail.
struct FailingReader;

impl tokio::io::AsyncRead for FailingReader {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(ErrorKind::ConnectionReset.into()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_error_ends_the_connection_with_the_reason() {
    let transport = acp::Transport::new(FailingReader, tokio::io::sink());
    let error = with_timeout(
        "connecting fails",
        acp::testing::start_client(transport, NoopClient, acp::Options::new()),
    )
    .await
    .unwrap_err();
    assert!(
        matches!(&error, Error::Closed(CloseReason::Transport(e)) if e.kind() == ErrorKind::ConnectionReset),
        "{error}"
    );
    wait_until_idle().await;
    assert_eq!(task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn input_is_read_to_its_end_after_the_agent_has_closed() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    peer.send_text("s", "last words").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    peer.stop_writing();
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hi", "agent: last words"]
    );
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_close_reason_is_kept() {
    let (agent, gate, _) = ClosingAgent::new();
    let (conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, lingering_limits(), PIPE_CAPACITY).await;
    peer.send_prompt(1, &s, "gate").await;
    wait_until_idle().await;
    // The client has exited, so its response cannot be written.
    drop(peer);
    wait_until_idle().await;
    gate.add_permits(1);
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Peer
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_connections_leave_no_tasks_or_references() {
    let kept = Arc::new(());
    for n in 0..200 {
        let agent = ClosingAgent {
            gate: Arc::new(Semaphore::new(1)),
            kept: Arc::clone(&kept),
        };
        let (ours, theirs) = acp::transport::memory();
        let serving: Connection = acp::testing::start_agent(theirs, agent, Limits::default());
        let agent =
            acp::testing::start_client(ours, ClosingClient(Arc::clone(&kept)), acp::Options::new())
                .await
                .unwrap();
        let session = agent.new_session("/work").await.unwrap();
        let turn = tokio::spawn(async move { session.prompt("gate").await.map(drop) });
        match n % 4 {
            0 => drop(turn.await.unwrap()),
            1 => agent.close(),
            2 => serving.close(),
            _ => turn.abort(),
        }
        drop(agent);
        with_timeout("it ends", serving.closed()).await;
    }
    // The other ends of the last connections may still be closing.
    let nothing_left = async {
        while task_count() > 0 || Arc::strong_count(&kept) > 1 {
            tokio::task::yield_now().await;
        }
    };
    with_timeout("nothing is left", nothing_left).await;
}
