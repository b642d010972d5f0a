//! Tests of back-pressure. Queues are bounded, and senders wait only if their peer is slow.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp::client::{PermissionRequest, Update, UpdateContext};
use acp::v1::{RequestPermissionOutcome, StopReason};
use acp::{Agent, Client, Error, Limits, Result};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::common::{
    NoopClient, PromptAgent, TestPeer, UpdateClient, limits_with, message_notification,
    prompt_request, wait_until_idle, with_timeout,
};

/// The capacity of the pipes in these tests, in bytes.
const PIPE_CAPACITY: usize = 1024;
/// The outbox limit of the agents in these tests, in bytes.
const OUTBOX_LIMIT_BYTES: usize = 4096;

fn small_limits() -> Limits {
    limits_with(|l| l.outbox = OUTBOX_LIMIT_BYTES)
}

/// Returns an agent that sends `messages` numbered messages per turn, counting them in `sent`.
fn talking_agent(messages: usize, sent: &Arc<AtomicUsize>) -> impl Agent + use<> {
    let sent = Arc::clone(sent);
    PromptAgent(move |turn: acp::agent::Turn, _| {
        let sent = Arc::clone(&sent);
        async move {
            for n in 0..messages {
                turn.send_message(n.to_string()).await?;
                sent.fetch_add(1, Ordering::Relaxed);
            }
            Ok(StopReason::EndTurn)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_a_slow_peer_and_nothing_is_lost() {
    let sent = Arc::default();
    let (_conn, mut peer, s) = TestPeer::open_agent_session_with(
        talking_agent(5_000, &sent),
        small_limits(),
        PIPE_CAPACITY,
    )
    .await;
    peer.send_prompt(1, &s, "talk").await;
    wait_until_idle().await;
    let waiting = sent.load(Ordering::Relaxed);
    // Sent messages are in the pipe, in the writer or in the outbox, and nowhere else.
    let one = message_notification(&s, "1234").to_string().len() + 1;
    let room = PIPE_CAPACITY + 2 * (OUTBOX_LIMIT_BYTES + one);
    assert!(
        waiting > 0 && waiting * (one - 4) <= room,
        "{waiting} messages of about {one} bytes"
    );
    wait_until_idle().await;
    assert_eq!(sent.load(Ordering::Relaxed), waiting);
    for n in 0..5_000 {
        let params = peer.expect_notification("session/update").await;
        assert_eq!(params["update"]["content"]["text"], n.to_string());
    }
    assert_eq!(
        peer.expect_result(1).await,
        json!({"stopReason": "end_turn"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_one_byte_a_second_gets_everything() {
    let sent = Arc::default();
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(talking_agent(3, &sent), small_limits(), 1).await;
    peer.send_prompt(1, &s, "talk").await;
    let mut text = Vec::new();
    while !text.ends_with(b"}}\n") || text.iter().filter(|b| **b == b'\n').count() < 4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        text.push(peer.read_byte().await);
    }
    let lines: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    let expected: Vec<String> = (0..3)
        .map(|n| message_notification(&s, &n.to_string()).to_string())
        .collect();
    let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    for (line, expected) in lines.iter().zip(&expected) {
        let mut line = read(line);
        let update = line.pointer_mut("/params/update").unwrap();
        update.as_object_mut().unwrap().remove("messageId");
        assert_eq!(line, read(expected));
    }
    assert_eq!(read(lines[3])["result"]["stopReason"], "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_arrives_although_the_outbox_is_full() {
    let sent = Arc::default();
    let (_conn, mut peer, s) = TestPeer::open_agent_session_with(
        talking_agent(usize::MAX, &sent),
        small_limits(),
        PIPE_CAPACITY,
    )
    .await;
    peer.send_prompt(1, &s, "talk").await;
    wait_until_idle().await;
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    wait_until_idle().await;
    // The turn has ended before anything else was read, so only what was sent before follows.
    let waiting = sent.load(Ordering::Relaxed);
    let mut seen = 0;
    let answer = loop {
        let next = peer.next().await;
        if next.get("id").is_some() {
            break next;
        }
        seen += 1;
    };
    assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
    assert_eq!(seen, waiting);
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn an_unsent_request_is_not_cancelled() {
    let (session, mut peer) = fill_outbox().await;
    // Waits for capacity, and is dropped before there is any.
    let asking = tokio::spawn({
        let conn = session.agent().connection().clone();
        async move { conn.request_raw("_late", &json!({})).await.map(drop) }
    });
    wait_until_idle().await;
    asking.abort();
    wait_until_idle().await;
    drain(&mut peer).await;
    peer.expect_silence().await;
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_dropped_before_sending_leaves_the_session_usable() {
    let (session, mut peer) = fill_outbox().await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("never sent").await }
    });
    wait_until_idle().await;
    assert!(session.thread().read(acp::Thread::is_running));
    turn.abort();
    wait_until_idle().await;
    assert!(!session.thread().read(acp::Thread::is_running));
    drain(&mut peer).await;
    peer.expect_silence().await;
    let (id, turn) = peer.start_prompt(&session, "sent").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
}

/// Returns a client's session after filling its outbox with `_filler` notifications.
async fn fill_outbox() -> (acp::client::ClientSession, TestPeer) {
    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, small_limits(), PIPE_CAPACITY, json!({}))
            .await;
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    let filling = tokio::spawn(async move {
        let filler = "x".repeat(100);
        while conn
            .connection()
            .notify_raw("_filler", &filler)
            .await
            .is_ok()
        {}
    });
    wait_until_idle().await;
    filling.abort();
    wait_until_idle().await;
    (session, peer)
}

/// Reads all `_filler` notifications.
async fn drain(peer: &mut TestPeer) {
    while let Ok(line) = tokio::time::timeout(Duration::from_millis(1), peer.try_line()).await {
        let line = String::from_utf8(line.unwrap()).unwrap();
        assert!(line.contains("_filler"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_return_blocks_reading() {
    let gate = Arc::new(Semaphore::new(0));
    let client = UpdateClient({
        let gate = Arc::clone(&gate);
        move |_, _| {
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        }
    });
    let limits = limits_with(|l| l.read_ahead = 10_000);
    let (conn, mut peer) =
        TestPeer::connect_to_client_with(client, limits, PIPE_CAPACITY, json!({})).await;
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    let lines: Vec<u8> = (0..2000)
        .flat_map(|n| format!("{}\n", message_notification("s", &n.to_string())).into_bytes())
        .collect();
    let taken = peer.send_until_blocked(&lines).await;
    // What is read ahead, the rest of one read, and what is in the pipe.
    assert!(
        (5_000..10_000 + 2 * PIPE_CAPACITY + 200).contains(&taken),
        "{taken}"
    );
    assert_eq!(peer.send_until_blocked(&lines[taken..]).await, 0);
    gate.add_permits(2000);
    peer.send_bytes(&lines[taken..]).await;
    peer.check_alive().await;
    let text: String = (0..2000).map(|n| n.to_string()).collect();
    assert_eq!(
        common::thread_lines(session.thread()),
        [format!("agent: {text}")]
    );
}

/// An agent that sends as many updates as the prompt asks for, with permission requests in between.
struct FloodAgent;

impl Agent for FloodAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(
        &self,
        (): &(),
        turn: acp::agent::Turn,
        _: acp::agent::Prompt,
    ) -> Result<StopReason> {
        for n in 0..200 {
            for _ in 0..50 {
                turn.send_message("x".repeat(200)).await?;
            }
            let call = acp::v1::ToolCallUpdate::new(format!("call {n}"));
            let outcome = turn.request_permission(call, Vec::new()).await?;
            assert_eq!(
                outcome,
                RequestPermissionOutcome::selected("y".repeat(2000))
            );
        }
        Ok(StopReason::EndTurn)
    }
    async fn extension_request(
        &self,
        _: &acp::Connection,
        request: acp::agent::ExtensionRequest,
    ) -> Result<Box<serde_json::value::RawValue>> {
        Ok(request.into_params().unwrap())
    }
}

struct FloodedClient;

impl Client for FloodedClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {
        tokio::task::yield_now().await;
    }
    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        Ok(RequestPermissionOutcome::selected("y".repeat(2000)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_that_flood_each_other_do_not_deadlock() {
    let (ours, theirs) = acp::transport::memory();
    acp::testing::start_agent(theirs, FloodAgent, small_limits());
    let agent = acp::testing::start_client(ours, FloodedClient, small_limits())
        .await
        .unwrap();
    let mut work = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let session = agent.new_session("/work").await.unwrap();
        work.spawn(
            async move { assert_eq!(session.prompt("go").await.unwrap(), StopReason::EndTurn) },
        );
        let conn = agent.connection().clone();
        work.spawn(async move {
            let much = "z".repeat(3000);
            for _ in 0..300 {
                conn.notify_raw("_much", &much).await.unwrap();
                if conn.request_raw("_echo", &much).await.unwrap().get().len() != 3002 {
                    panic!("not what was sent");
                }
            }
        });
    }
    let all = async {
        while let Some(done) = work.join_next().await {
            done.unwrap()
        }
    };
    // A generous limit for a busy machine. Nothing here takes long.
    tokio::time::timeout(Duration::from_secs(120), all)
        .await
        .expect("both come to their end");
}

#[tokio::test(start_paused = true)]
async fn rejections_for_a_peer_that_never_reads_are_bounded() {
    for line in [
        "not JSON at all, not even nearly",
        r#"["a batch", "of several", "things"]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
        r#"{"id":["that is no id at all"]}"#,
    ] {
        let limits = limits_with(|l| {
            l.outbox = OUTBOX_LIMIT_BYTES;
            l.requests = 16;
        });
        let (conn, mut peer, _) =
            TestPeer::open_agent_session_with(common::idle_agent(), limits, PIPE_CAPACITY).await;
        let flood = format!("{line}\n").repeat(20_000);
        let taken = peer.send_until_blocked(flood.as_bytes()).await;
        // No more requests are read than can get a response: each error is longer than the request.
        let answers = PIPE_CAPACITY + 2 * 5 * OUTBOX_LIMIT_BYTES + 16 * 200;
        assert!(
            taken < answers + 64 * 1024 + PIPE_CAPACITY,
            "{line}: {taken} of {}",
            flood.len()
        );
        assert!(!conn.is_closed());
        // Once the peer reads again, each request gets its error, and the connection works.
        let mut peer = read_responses(peer, &flood.as_bytes()[taken..], 20_000).await;
        peer.check_alive().await;
    }
}

/// Writes the rest of the input while reading the given number of responses.
async fn read_responses(peer: TestPeer, rest: &[u8], answers: usize) -> TestPeer {
    let (mut reading, mut writing) = peer.split();
    let rest = rest.to_vec();
    let write = tokio::spawn(async move {
        writing.send_bytes(rest).await;
        writing
    });
    for _ in 0..answers {
        assert!(reading.next().await["error"]["code"].is_i64());
    }
    reading.join(with_timeout("all is written", write).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_are_rejected() {
    let gate = Arc::new(Semaphore::new(0));
    let agent = PromptAgent({
        let gate = Arc::clone(&gate);
        move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(StopReason::EndTurn)
            }
        }
    });
    let limits = limits_with(|l| l.requests = 3);
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, limits, PIPE_CAPACITY).await;
    for id in 0..4 {
        peer.send(prompt_request(id, &s, "wait")).await;
    }
    let (code, text) = peer.expect_error(3).await;
    assert_eq!(
        (code, text.as_str()),
        (-32603, "too many concurrent requests: the limit is 3")
    );
    gate.add_permits(4);
    for id in 0..3 {
        peer.expect_result(id).await;
    }
    peer.send_prompt(4, &s, "again").await;
    peer.expect_result(4).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_sender_fails_when_the_connection_ends() {
    let (session, peer) = fill_outbox().await;
    let conn = session.agent().connection().clone();
    let sending = tokio::spawn({
        let conn = conn.clone();
        async move { conn.notify_raw("_more", &json!({})).await }
    });
    wait_until_idle().await;
    assert!(!sending.is_finished());
    conn.close();
    let error = with_timeout("the sender is told", sending)
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error}");
    drop(peer);
}

#[tokio::test]
async fn one_busy_session_does_not_starve_another() {
    let sent = Arc::new(AtomicUsize::new(0));
    let (ours, theirs) = acp::transport::memory();
    let busy = PromptAgent({
        let sent = Arc::clone(&sent);
        move |turn: acp::agent::Turn, prompt: acp::agent::Prompt| {
            let sent = Arc::clone(&sent);
            async move {
                if prompt.text() == "short" {
                    turn.send_message("done").await?;
                    return Ok(StopReason::EndTurn);
                }
                loop {
                    turn.send_message("x").await?;
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    acp::testing::start_agent(theirs, busy, Limits::default());
    let agent = acp::testing::start_client(ours, NoopClient, acp::Options::new())
        .await
        .unwrap();
    let (long, short) = (
        agent.new_session("/work").await.unwrap(),
        agent.new_session("/work").await.unwrap(),
    );
    let endless = tokio::spawn({
        let long = long.clone();
        async move { long.prompt("endless").await }
    });
    for _ in 0..10 {
        let stop = with_timeout("the short turn ends", short.prompt("short"))
            .await
            .unwrap();
        assert_eq!(stop, StopReason::EndTurn);
    }
    long.cancel().await.unwrap();
    assert_eq!(
        with_timeout("it is cancelled", endless)
            .await
            .unwrap()
            .unwrap(),
        StopReason::Cancelled
    );
    assert!(sent.load(Ordering::Relaxed) > 0);
}
