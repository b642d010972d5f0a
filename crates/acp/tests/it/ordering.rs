//! Tests that messages are handled in order, whichever side is slow.

use crate::common;
use std::sync::{Arc, Mutex, OnceLock};

use acp::client::{AgentConnection, ClientSession, PermissionRequest, Update, UpdateContext};
use acp::v1::{RequestPermissionOutcome, StopReason};
use acp::{Client, Error, Result};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, UpdateClient, limits_with, message_notification,
    thread_lines, wait_until_idle, with_timeout,
};

type OrderLog = Arc<Mutex<Vec<String>>>;

fn log_lines(log: &OrderLog) -> Vec<String> {
    log.lock().unwrap().clone()
}

/// A client that records updates, and finishes handling each one only when the test allows it.
#[derive(Clone)]
struct GatedClient {
    log: OrderLog,
    gate: Arc<Semaphore>,
}

impl GatedClient {
    fn new() -> Self {
        Self {
            log: OrderLog::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }
    fn record(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }
}

impl Client for GatedClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        self.record(format!("{} begins", update.message_text().unwrap()));
        self.gate.acquire().await.unwrap().forget();
        self.record(format!("{} ends", update.message_text().unwrap()));
    }
    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.record("permission");
        Ok(RequestPermissionOutcome::selected("yes"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_response_is_handled_after_earlier_slow_updates() {
    let client = GatedClient::new();
    let (session, mut peer) = TestPeer::open_client_session(client.clone()).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    let mut turn = tokio::spawn({
        let client = client.clone();
        async move {
            let stop = turn.await.unwrap().unwrap();
            client.record("answer");
            stop
        }
    });
    for n in 0..3 {
        peer.send_text("s", &n.to_string()).await;
    }
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    wait_until_idle().await;
    assert_eq!(log_lines(&client.log), ["0 begins"]);
    assert!(session.thread().read(acp::Thread::is_running));
    client.gate.add_permits(2);
    wait_until_idle().await;
    assert_eq!(
        log_lines(&client.log),
        ["0 begins", "0 ends", "1 begins", "1 ends", "2 begins"]
    );
    assert!(!turn.is_finished());
    client.gate.add_permits(1);
    assert_eq!(
        with_timeout("the turn ends", &mut turn).await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(log_lines(&client.log)[5..], ["2 ends", "answer"]);
}

#[tokio::test(start_paused = true)]
async fn agent_requests_are_handled_after_earlier_updates() {
    let client = GatedClient::new();
    let (session, mut peer) = TestPeer::open_client_session(client.clone()).await;
    let (_, _turn) = peer.start_prompt(&session, "hi").await;
    peer.send_text("s", "a").await;
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
    peer.send_request(7, "session/request_permission", params)
        .await;
    peer.send_text("s", "b").await;
    peer.expect_silence().await;
    assert_eq!(log_lines(&client.log), ["a begins"]);
    client.gate.add_permits(2);
    assert_eq!(peer.expect_result(7).await["outcome"]["optionId"], "yes");
    wait_until_idle().await;
    let log = log_lines(&client.log);
    let at = |what: &str| log.iter().position(|l| l == what).unwrap();
    assert!(at("a ends") < at("permission"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn updates_before_the_response_that_opens_their_session_are_delivered() {
    let client = GatedClient::new();
    client.gate.add_permits(10);
    let (conn, mut peer) = TestPeer::connect_to_client(client.clone()).await;
    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session("/work").await }
    });
    let (id, _) = peer.expect_request("session/new").await;
    peer.send_text("early", "before ").await;
    peer.answer(&id, json!({"sessionId": "early"})).await;
    peer.send_text("early", "after").await;
    let session = with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
    wait_until_idle().await;
    assert_eq!(thread_lines(session.thread()), ["agent: before after"]);
    assert_eq!(log_lines(&client.log).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn late_updates_do_not_belong_to_the_next_turn() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "one").await;
    peer.send_text("s", "first").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    peer.send_text("s", ", late").await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    common::wait_for_thread(session.thread(), |t| t.revision() >= 4).await;
    // Late chunks do not make it look as if a turn was running.
    assert!(!session.thread().read(acp::Thread::is_running));
    assert_eq!(
        session.thread().read(|t| t.stop_reason().cloned()),
        Some(StopReason::EndTurn)
    );
    let (id, turn) = peer.start_prompt(&session, "two").await;
    peer.send_text("s", "second").await;
    peer.answer(&id, json!({"stopReason": "refusal"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Refusal
    );
    let expected = [
        "user: one",
        "agent: first, late",
        "user: two",
        "agent: second",
    ];
    assert_eq!(thread_lines(session.thread()), expected);
}

/// A slot for the session that a client's handler needs. It is filled once the session is open.
type SessionSlot = Arc<OnceLock<ClientSession>>;

/// Opens a session with modes, so that an update handler can set one.
async fn open_session_with_modes(
    client: impl Client,
    limits: acp::Limits,
    pipe: usize,
) -> (AgentConnection, ClientSession, TestPeer) {
    let (conn, mut peer) = TestPeer::connect_to_client_with(client, limits, pipe, json!({})).await;
    let modes = json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    let session = peer
        .open_session(&conn, json!({"sessionId": "s", "modes": modes}))
        .await;
    (conn, session, peer)
}

/// Returns a client that sets the mode and waits for the response when it receives the text "go".
fn mode_setting_client(
    place: &SessionSlot,
    log: &OrderLog,
    gate: Option<Arc<Semaphore>>,
) -> impl Client + use<> {
    let (place, log) = (Arc::clone(place), Arc::clone(log));
    UpdateClient(move |_, update: Update| {
        let (place, log, gate) = (Arc::clone(&place), Arc::clone(&log), gate.clone());
        async move {
            let text = update.message_text().unwrap_or_default().to_owned();
            if text == "go" {
                if let Some(gate) = gate {
                    gate.acquire().await.unwrap().forget();
                }
                let set = place.get().unwrap().set_mode("code").await;
                log.lock()
                    .unwrap()
                    .push(set.map_or_else(|e| e.to_string(), |()| "set".to_owned()));
            } else {
                log.lock().unwrap().push(text);
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_update_handler_can_await_a_response_behind_many_updates() {
    let (place, log) = (SessionSlot::default(), OrderLog::default());
    let limits = limits_with(|l| l.read_ahead = 2_000);
    let (_conn, session, mut peer) =
        open_session_with_modes(mode_setting_client(&place, &log, None), limits, 500).await;
    place.set(session).unwrap();
    peer.send_text("s", "go").await;
    let (id, _) = peer.expect_request("session/set_mode").await;
    for n in 0..200 {
        peer.send_text("s", &n.to_string()).await;
    }
    peer.answer(&id, json!({})).await;
    peer.send_text("s", "last").await;
    peer.check_alive().await;
    wait_until_idle().await;
    let expected: Vec<String> = std::iter::once("set".to_owned())
        .chain((0..200).map(|n| n.to_string()))
        .chain(["last".to_owned()])
        .collect();
    assert_eq!(log_lines(&log), expected);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_sends_a_request_late_gets_its_response() {
    let (place, log, gate) = (
        SessionSlot::default(),
        OrderLog::default(),
        Arc::new(Semaphore::new(0)),
    );
    let limits = limits_with(|l| l.read_ahead = 2_000);
    let client = mode_setting_client(&place, &log, Some(Arc::clone(&gate)));
    let (_conn, session, mut peer) = open_session_with_modes(client, limits, 500).await;
    place.set(session).unwrap();
    peer.send_text("s", "go").await;
    // No request is pending, so reading stops.
    let behind: Vec<u8> = (0..200)
        .flat_map(|_| format!("{}\n", message_notification("s", "x")).into_bytes())
        .collect();
    let taken = peer.send_until_blocked(&behind).await;
    assert!(taken < behind.len() / 2, "{taken} of {}", behind.len());
    gate.add_permits(1);
    let (id, _) = peer.expect_request("session/set_mode").await;
    peer.send_bytes(&behind[taken..]).await;
    peer.answer(&id, json!({})).await;
    peer.check_alive().await;
    assert_eq!(log_lines(&log).len(), 201);
    assert_eq!(log_lines(&log)[0], "set");
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_backlog_fail_and_no_update_is_lost() {
    let (place, log) = (SessionSlot::default(), OrderLog::default());
    let limits = limits_with(|l| {
        l.read_ahead = 1_000;
        l.backlog = 4_000;
    });
    let (_conn, session, mut peer) =
        open_session_with_modes(mode_setting_client(&place, &log, None), limits, 500).await;
    place.set(session.clone()).unwrap();
    peer.send_text("s", "go").await;
    let (id, _) = peer.expect_request("session/set_mode").await;
    for n in 0..100 {
        peer.send_text("s", &n.to_string()).await;
    }
    // The response that arrives too late is ignored.
    peer.answer(&id, json!({})).await;
    peer.check_alive().await;
    let log = log_lines(&log);
    assert!(
        log[0].starts_with("too many unhandled updates ahead of the response: "),
        "{}",
        log[0]
    );
    assert_eq!(
        log[1..],
        (0..100).map(|n| n.to_string()).collect::<Vec<_>>()
    );
    assert_eq!(session.agent().connection().noise().unmatched_responses, 1);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_tiny_messages_is_bounded() {
    let (place, log) = (SessionSlot::default(), OrderLog::default());
    let limits = limits_with(|l| {
        l.read_ahead = 1_000;
        l.backlog = 100_000;
    });
    let (_conn, session, mut peer) =
        open_session_with_modes(mode_setting_client(&place, &log, None), limits, 500).await;
    place.set(session).unwrap();
    peer.send_text("s", "go").await;
    peer.expect_request("session/set_mode").await;
    // Each message needs more memory than its length.
    let tiny = b"x\n".repeat(20_000);
    peer.send_bytes(&tiny).await;
    peer.check_alive().await;
    assert!(
        log_lines(&log)[0].starts_with("too many unhandled updates ahead of the response: "),
        "{:?}",
        log_lines(&log)
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiting_handler_gets_an_error_when_the_agent_exits() {
    let (place, log) = (SessionSlot::default(), OrderLog::default());
    let (conn, session, mut peer) = open_session_with_modes(
        mode_setting_client(&place, &log, None),
        acp::Limits::default(),
        PIPE_CAPACITY,
    )
    .await;
    place.set(session).unwrap();
    peer.send_text("s", "go").await;
    peer.expect_request("session/set_mode").await;
    peer.send_text("s", "after").await;
    peer.stop_writing();
    with_timeout("the connection ends", conn.closed()).await;
    // What has already arrived is still delivered.
    assert_eq!(
        log_lines(&log),
        ["connection closed: closed by the peer", "after"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_result_queued_behind_a_handler_is_delivered_after_the_agent_exits() {
    let client = GatedClient::new();
    let (session, mut peer) = TestPeer::open_client_session(client.clone()).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    peer.send_text("s", "a").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    peer.stop_writing();
    wait_until_idle().await;
    client.gate.add_permits(1);
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_loses_only_its_update() {
    let client = UpdateClient(async |_, update: Update| {
        assert_ne!(update.message_text(), Some("bad"), "as it is meant to");
    });
    let (session, mut peer) = TestPeer::open_client_session(client).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    for text in ["good ", "bad", " good"] {
        peer.send_text("s", text).await;
    }
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hi", "agent: good bad good"]
    );
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn a_permission_request_adds_an_unknown_tool_call() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (_, _turn) = peer.start_prompt(&session, "hi").await;
    let call = json!({"toolCallId": "a/b", "title": "Write", "status": "pending"});
    let options = json!([{"optionId": "no", "name": "No", "kind": "reject_once"}, {"optionId": "odd", "name": "?"}]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    peer.send_request(1, "session/request_permission", params)
        .await;
    assert_eq!(
        peer.expect_result(1).await,
        json!({"outcome": {"outcome": "selected", "optionId": "no"}})
    );
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hi", "a/b (Write): Pending"]
    );
    // Agents that do this send updates of the call, and never announce it.
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "a/b", "status": "completed"}),
    )
    .await;
    peer.check_alive().await;
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hi", "a/b (Write): Completed"]
    );
}

#[tokio::test(start_paused = true)]
async fn unusual_tool_calls_are_shown() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let call = |id: &str, title: &str, status: &str| json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "status": status});
    // An update of a call that was never announced, with a terminal that was never created.
    let content = json!([{"type": "terminal", "terminalId": "nobody's"}, {"type": "odd"}, 3]);
    peer.update("s", json!({"sessionUpdate": "tool_call_update", "toolCallId": "x", "title": "X", "content": content})).await;
    // Announced twice while it is running, it is one call. Announced again after it has finished, it is another.
    peer.update("s", call("r", "First", "in_progress")).await;
    peer.update("s", call("r", "First, again", "in_progress"))
        .await;
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "completed"}),
    )
    .await;
    peer.update("s", call("r", "Second", "pending")).await;
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "failed"}),
    )
    .await;
    peer.update(
        "s",
        json!({"sessionUpdate": "never_heard_of", "toolCallId": 3}),
    )
    .await;
    peer.send_text("s", "still here").await;
    peer.check_alive().await;
    let shown = thread_lines(session.thread());
    assert_eq!(
        shown[..3],
        [
            "x (X): Pending",
            "r (First, again): Completed",
            "r (Second): Failed"
        ]
    );
    assert!(shown[3].contains("never_heard_of"), "{}", shown[3]);
    assert_eq!(shown[4], "agent: still here");
    session.thread().read(|t| {
        let call = t.tool_call(&"x".into()).unwrap();
        assert!(
            matches!(
                call.content[0],
                acp::thread::ThreadToolCallContent::Terminal(_)
            ),
            "{:?}",
            call.content
        );
    });
}

#[tokio::test(start_paused = true)]
async fn unopened_sessions_do_not_fill_memory() {
    let seen = OrderLog::default();
    let client = UpdateClient({
        let seen = Arc::clone(&seen);
        move |cx: UpdateContext, _| {
            seen.lock().unwrap().push(cx.session_id.to_string());
            std::future::ready(())
        }
    });
    let (session, mut peer) = TestPeer::open_client_session(client).await;
    for n in 0..1000 {
        peer.send_text(&format!("invented {n}"), "x").await;
    }
    peer.send_text("s", "real").await;
    peer.check_alive().await;
    let noise = session.agent().connection().noise();
    let seen = log_lines(&seen);
    assert_eq!(seen.len() as u64, 1001 - noise.unread_notifications);
    assert!((1..=100).contains(&(seen.len() - 1)), "{}", seen.len());
    assert_eq!(thread_lines(session.thread()), ["agent: real"]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_marked_and_complete_when_load_returns() {
    let seen = OrderLog::default();
    let client = UpdateClient({
        let seen = Arc::clone(&seen);
        move |cx: UpdateContext, update: Update| {
            let kind = match &update {
                Update::UserMessageChunk(_) => "user",
                _ => "agent",
            };
            seen.lock()
                .unwrap()
                .push(format!("{kind} {}", cx.is_replay));
            // Slow, so that the response could overtake it.
            tokio::task::yield_now()
        }
    });
    let (conn, mut peer) = TestPeer::connect_to_client_with(
        client,
        limits_with(|_| ()),
        PIPE_CAPACITY,
        json!({"loadSession": true}),
    )
    .await;
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("old", "/work").await }
    });
    let (id, _) = peer.expect_request("session/load").await;
    let said =
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "q"}});
    peer.update("old", said).await;
    peer.send_text("old", "a").await;
    peer.answer(&id, json!(null)).await;
    peer.send_text("old", " live").await;
    let session = with_timeout("the session loads", loading)
        .await
        .unwrap()
        .unwrap();
    wait_until_idle().await;
    assert_eq!(log_lines(&seen), ["user true", "agent true", "agent false"]);
    assert_eq!(thread_lines(session.thread()), ["user: q", "agent: a live"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_load_leaves_the_open_session_unchanged() {
    let (session, mut peer) = TestPeer::open_client_session_with(
        NoopClient,
        limits_with(|_| ()),
        json!({"loadSession": true}),
    )
    .await;
    peer.send_text("s", "before").await;
    peer.check_alive().await;
    for dropped in [false, true] {
        let loading = tokio::spawn({
            let conn = session.agent().clone();
            async move { conn.load_session("s", "/work").await }
        });
        let (id, _) = peer.expect_request("session/load").await;
        if dropped {
            loading.abort();
            assert_eq!(
                peer.expect_notification("$/cancel_request").await,
                json!({"requestId": id})
            );
            peer.send_error(&id, -32800).await;
        } else {
            peer.send_error(&id, -32603).await;
            let error = with_timeout("the load fails", loading)
                .await
                .unwrap()
                .unwrap_err();
            assert!(matches!(error, Error::Rpc(_)), "{error}");
        }
        peer.check_alive().await;
        let (id, turn) = peer.start_prompt(&session, "go on").await;
        peer.send_text("s", "on").await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        with_timeout("the turn ends", turn).await.unwrap().unwrap();
    }
    let expected = [
        "agent: before",
        "user: go on",
        "agent: on",
        "user: go on",
        "agent: on",
    ];
    assert_eq!(thread_lines(session.thread()), expected);
}
