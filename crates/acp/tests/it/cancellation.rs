//! Tests of cancelling turns and requests, including race conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp::agent::{ExtensionRequest, OpenedSession, Prompt, SessionSetup, TerminalCommand, Turn};
use acp::client::{PermissionRequest, Update, UpdateContext};
use acp::v1::{RequestPermissionOutcome, SessionId, StopReason, ToolCallUpdate};
use acp::{Agent, Client, Connection, Error, Limits, Result};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::common::{
    NoopClient, PIPE_CAPACITY, PromptAgent, TestPeer, connect_pipes, idle_agent, limits_with,
    message_notification, prompt_request, thread_lines, wait_until_idle, with_timeout,
};

/// An agent whose prompts determine whether and how each turn ends.
struct EndingsAgent {
    /// The number of the agent's futures dropped so far.
    gone: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Default for EndingsAgent {
    fn default() -> Self {
        Self {
            gone: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }
}

/// A guard that increments a counter when it is dropped.
struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Agent for EndingsAgent {
    type State = ();

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let _gone = DropCounter(Arc::clone(&self.gone));
        match prompt.text().as_str() {
            "hang" => std::future::pending().await,
            "say and hang" => {
                turn.send_message("said").await?;
                std::future::pending().await
            }
            "talk" => loop {
                turn.send_message("x").await?;
            },
            "say goodbye" => {
                let cancelled = turn.take_cancellation();
                turn.send_message("ready").await?;
                cancelled.cancelled().await;
                turn.send_message("goodbye").await?;
                Ok(StopReason::MaxTokens)
            }
            "fail when cancelled" => {
                let cancelled = turn.take_cancellation();
                turn.send_message("ready").await?;
                cancelled.cancelled().await;
                Err(Error::internal("torn down half-way"))
            }
            "give up" => Err(Error::Cancelled),
            "fail" => Err(Error::internal("no such luck")),
            "panic" => panic!("as it was told to"),
            "gate" => {
                self.gate.acquire().await.unwrap().forget();
                Ok(StopReason::EndTurn)
            }
            "ask" => {
                let outcome = turn
                    .request_permission(ToolCallUpdate::new("c"), Vec::new())
                    .await;
                turn.send_message(format!("{outcome:?}")).await?;
                Ok(StopReason::EndTurn)
            }
            "read" => {
                let text = turn.read_text_file("/file", None, None).await?;
                turn.send_message(text).await?;
                Ok(StopReason::EndTurn)
            }
            "run" => {
                let terminal = turn
                    .create_terminal(TerminalCommand::new("ls", ["-l"]))
                    .await?;
                std::future::pending::<()>().await;
                terminal.release().await?;
                Ok(StopReason::EndTurn)
            }
            _ => Ok(StopReason::EndTurn),
        }
    }

    fn new_session_id(&self) -> SessionId {
        "s".into()
    }

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        setup: SessionSetup,
    ) -> Result<OpenedSession> {
        match setup.cwd.as_str() {
            "/hang" => std::future::pending().await,
            "/fail" => Err(Error::internal("no room")),
            "/panic" => panic!("as it was told to"),
            _ => Ok(OpenedSession::new()),
        }
    }

    async fn extension_request(
        &self,
        _: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        let _gone = DropCounter(Arc::clone(&self.gone));
        match request.method() {
            "_hang" => std::future::pending().await,
            "_panic" => panic!("as it was told to"),
            _ => Err(request.not_found()),
        }
    }
}

/// Runs a turn, and checks that it contains no updates from an earlier turn.
async fn assert_next_turn_is_clean(peer: &mut TestPeer, session: &str) {
    peer.expect_silence().await;
    peer.send_prompt("next", session, "end").await;
    assert_eq!(
        peer.expect_result("next").await,
        json!({"stopReason": "end_turn"})
    );
    peer.check_alive().await;
}

fn cancel_notification(session: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_same_write_as_the_prompt_cancels_the_turn() {
    for text in ["hang", "gate", "end"] {
        let (_conn, mut peer, s) = TestPeer::open_agent_session(EndingsAgent::default()).await;
        peer.send_bytes(format!(
            "{}\n{}\n",
            prompt_request(1, &s, text),
            cancel_notification(&s)
        ))
        .await;
        assert_eq!(
            peer.expect_result(1).await,
            json!({"stopReason": "cancelled"}),
            "{text}"
        );
        assert_next_turn_is_clean(&mut peer, &s).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_all_turns_of_its_session_and_no_others() {
    let ids = AtomicUsize::new(0);
    struct TwoQuestionsAgent(AtomicUsize);
    impl Agent for TwoQuestionsAgent {
        type State = ();

        async fn new_session(
            &self,
            _: &acp::agent::Session,
            _: acp::agent::SessionSetup,
        ) -> acp::Result<acp::agent::OpenedSession> {
            Ok(acp::agent::OpenedSession::new())
        }

        async fn prompt(&self, (): &(), _: Turn, prompt: Prompt) -> Result<StopReason> {
            if prompt.text() == "end" {
                return Ok(StopReason::EndTurn);
            }
            std::future::pending().await
        }
        fn new_session_id(&self) -> SessionId {
            self.0.fetch_add(1, Ordering::SeqCst).to_string().into()
        }
    }
    let (_conn, mut peer, s) = TestPeer::open_agent_session(TwoQuestionsAgent(ids)).await;
    let other = peer.new_session().await;
    assert_eq!((s.as_str(), other.as_str()), ("0", "1"));
    peer.send_prompt(1, &s, "hang").await;
    peer.send_prompt(2, &s, "hang").await;
    peer.send_prompt(3, &other, "hang").await;
    peer.send(cancel_notification(&s)).await;
    let mut ended = [peer.next().await, peer.next().await];
    ended.sort_by_key(|answer| answer["id"].as_i64());
    for (answer, id) in ended.iter().zip([1, 2]) {
        assert_eq!(
            answer,
            &json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "cancelled"}})
        );
    }
    assert_next_turn_is_clean(&mut peer, &s).await;
    peer.send(cancel_notification(&other)).await;
    assert_eq!(peer.expect_result(3).await["stopReason"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_cancel_does_not_cancel_the_next_turn() {
    let agent = EndingsAgent::default();
    let gate = Arc::clone(&agent.gate);
    let (_conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    let (mut ended, mut cancelled) = (0, 0);
    for n in 0..2_000 {
        peer.send_prompt(n, &s, "gate").await;
        // Before or after the cancel, at random.
        let opens = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move {
                for _ in 0..n % 8 {
                    tokio::task::yield_now().await;
                }
                gate.add_permits(1);
            }
        });
        for _ in 0..n / 8 % 8 {
            tokio::task::yield_now().await;
        }
        peer.send(cancel_notification(&s)).await;
        match peer.expect_result(n).await["stopReason"].as_str().unwrap() {
            "end_turn" => ended += 1,
            "cancelled" => cancelled += 1,
            other => panic!("{other}"),
        }
        opens.await.unwrap();
        gate.forget_permits(usize::MAX);
        // The cancel was for that turn, so the next one ends by itself.
        peer.send_prompt("next", &s, "end").await;
        assert_eq!(
            peer.expect_result("next").await["stopReason"],
            "end_turn",
            "in round {n}"
        );
    }
    assert_eq!(ended + cancelled, 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_an_error_and_its_work_is_dropped() {
    let agent = EndingsAgent::default();
    let gone = Arc::clone(&agent.gone);
    let (_conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    for id in [json!(1), json!("one"), json!(null)] {
        peer.send_request(id.clone(), "_hang", json!({})).await;
        peer.expect_silence().await;
        peer.notify("$/cancel_request", json!({"requestId": id}))
            .await;
        assert_eq!(peer.expect_error(id).await.0, -32800);
    }
    assert_eq!(gone.load(Ordering::SeqCst), 3);
    // The ids of another request, of no request, and of one that has its response.
    peer.send_request(7, "_hang", json!({})).await;
    for other in [json!("7"), json!(8), json!(1)] {
        peer.notify("$/cancel_request", json!({"requestId": other}))
            .await;
    }
    peer.expect_silence().await;
    assert_eq!(gone.load(Ordering::SeqCst), 3);
    peer.notify("$/cancel_request", json!({"requestId": 7}))
        .await;
    assert_eq!(peer.expect_error(7).await.0, -32800);
    assert_next_turn_is_clean(&mut peer, &s).await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_can_be_cancelled_as_a_request() {
    let agent = EndingsAgent::default();
    let gone = Arc::clone(&agent.gone);
    let (_conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    for text in ["hang", "say goodbye"] {
        peer.send_prompt(1, &s, text).await;
        if text == "say goodbye" {
            peer.expect(message_notification(&s, "ready")).await;
        }
        wait_until_idle().await;
        peer.notify("$/cancel_request", json!({"requestId": 1}))
            .await;
        if text == "say goodbye" {
            peer.expect(message_notification(&s, "goodbye")).await;
        }
        assert_eq!(peer.expect_error(1).await.0, -32800, "{text}");
        assert_eq!(gone.swap(0, Ordering::SeqCst), 1, "{text}");
        assert_next_turn_is_clean(&mut peer, &s).await;
        gone.store(0, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_takes_over_cancellation_can_send_last_updates() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(EndingsAgent::default()).await;
    peer.send_prompt(1, &s, "say goodbye").await;
    peer.expect(message_notification(&s, "ready")).await;
    peer.send(cancel_notification(&s)).await;
    peer.expect(message_notification(&s, "goodbye")).await;
    // Whatever the agent returns.
    assert_eq!(
        peer.expect_result(1).await,
        json!({"stopReason": "cancelled"})
    );
    assert_next_turn_is_clean(&mut peer, &s).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_after_a_cancel_counts_as_cancelled() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(EndingsAgent::default()).await;
    peer.send_prompt(1, &s, "fail when cancelled").await;
    peer.expect(message_notification(&s, "ready")).await;
    peer.send(cancel_notification(&s)).await;
    assert_eq!(
        peer.expect_result(1).await,
        json!({"stopReason": "cancelled"})
    );
    peer.send_prompt(2, &s, "give up").await;
    assert_eq!(
        peer.expect_result(2).await,
        json!({"stopReason": "cancelled"})
    );
    peer.send_prompt(3, &s, "fail").await;
    assert_eq!(
        peer.expect_error(3).await,
        (-32603, "no such luck".to_owned())
    );
    assert_next_turn_is_clean(&mut peer, &s).await;
}

#[tokio::test(start_paused = true)]
async fn no_update_follows_the_response_of_a_cancelled_turn() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(EndingsAgent::default()).await;
    for round in 0..20 {
        peer.send_prompt(round, &s, "talk").await;
        for _ in 0..round {
            peer.expect(message_notification(&s, "x")).await;
        }
        peer.send(cancel_notification(&s)).await;
        let answer = loop {
            let next = peer.next().await;
            if next.get("id").is_some() {
                break next;
            }
        };
        assert_eq!(answer["result"], json!({"stopReason": "cancelled"}));
        assert_next_turn_is_clean(&mut peer, &s).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_returns_an_internal_error() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(EndingsAgent::default()).await;
    for _ in 0..2 {
        peer.send_prompt(1, &s, "panic").await;
        assert_eq!(peer.expect_error(1).await.0, -32603);
        peer.send_request(2, "_panic", json!({})).await;
        assert_eq!(peer.expect_error(2).await.0, -32603);
    }
    assert_next_turn_is_clean(&mut peer, &s).await;

    struct PanickingAgent;
    impl Agent for PanickingAgent {
        type State = ();

        async fn new_session(
            &self,
            _: &acp::agent::Session,
            _: acp::agent::SessionSetup,
        ) -> acp::Result<acp::agent::OpenedSession> {
            Ok(acp::agent::OpenedSession::new())
        }

        async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
            Ok(StopReason::EndTurn)
        }
        fn new_session_id(&self) -> SessionId {
            panic!("as it is meant to")
        }
        async fn extension_notification(
            &self,
            _: &Connection,
            _: acp::agent::ExtensionNotification,
        ) {
            panic!("as it is meant to")
        }
    }
    let (_conn, mut peer) = TestPeer::connect_to_agent(PanickingAgent);
    peer.initialize(json!({})).await;
    peer.send_request(1, "session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    assert_eq!(peer.expect_error(1).await.0, -32603);
    peer.notify("_anything", json!({})).await;
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_failed_to_open_does_not_exist() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(EndingsAgent::default());
    peer.initialize(json!({})).await;
    for (cwd, code) in [("/hang", -32800), ("/fail", -32603), ("/panic", -32603)] {
        peer.send_request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
            .await;
        wait_until_idle().await;
        peer.notify("$/cancel_request", json!({"requestId": 1}))
            .await;
        assert_eq!(peer.expect_error(1).await.0, code, "{cwd}");
        peer.send_prompt(2, "s", "end").await;
        assert_eq!(peer.expect_error(2).await.0, -32002, "{cwd}");
    }
    // An open session is unchanged, including its turn.
    assert_eq!(peer.new_session().await, "s");
    peer.send_prompt(3, "s", "say and hang").await;
    peer.expect(message_notification("s", "said")).await;
    peer.send_request(1, "session/new", json!({"cwd": "/fail", "mcpServers": []}))
        .await;
    assert_eq!(peer.expect_error(1).await.0, -32603);
    peer.send(cancel_notification("s")).await;
    assert_eq!(peer.expect_result(3).await["stopReason"], "cancelled");
    assert_next_turn_is_clean(&mut peer, "s").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_cancelled_while_its_response_is_queued_gets_a_response() {
    let limits = limits_with(|l| l.outbox = 100);
    let (_conn, mut peer) = TestPeer::connect_to_agent_with(EndingsAgent::default(), limits, 100);
    peer.initialize(json!({})).await;
    assert_eq!(peer.new_session().await, "s");
    peer.send_prompt(1, "s", "talk").await;
    wait_until_idle().await;
    peer.send_request(2, "session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    wait_until_idle().await;
    peer.notify("$/cancel_request", json!({"requestId": 2}))
        .await;
    wait_until_idle().await;
    peer.send(cancel_notification("s")).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let next = peer.next().await;
        if next.get("id").is_some() {
            answers.push(next);
        }
    }
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers[0]["result"]["stopReason"], "cancelled");
    // It was cancelled in time, or was already done: there is one response, and the id is free.
    assert_eq!(answers[1]["id"], 2);
    peer.expect_silence().await;
    peer.send_request(2, "_anything", json!({})).await;
    assert_eq!(peer.expect_error(2).await.0, -32601);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_drops_its_requests() {
    let capabilities = json!({"fs": {"readTextFile": true}, "terminal": true});
    let (_conn, mut peer) = TestPeer::connect_to_agent(EndingsAgent::default());
    peer.initialize(capabilities).await;
    let s = peer.new_session().await;

    // The client may respond to a permission request at any time. The agent learns of the cancellation at once.
    peer.send_prompt(1, &s, "ask").await;
    let (asked, _) = peer.expect_request("session/request_permission").await;
    peer.send(cancel_notification(&s)).await;
    let told = peer.expect_notification("session/update").await;
    assert_eq!(
        told["update"]["content"]["text"],
        "Ok(Cancelled(CancelledPermissionOutcome { meta: None }))"
    );
    assert_eq!(peer.expect_result(1).await["stopReason"], "cancelled");
    peer.answer(&asked, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    assert_next_turn_is_clean(&mut peer, &s).await;

    // A file that is being read is not awaited.
    peer.send_prompt(2, &s, "read").await;
    let (asked, params) = peer.expect_request("fs/read_text_file").await;
    assert_eq!(params, json!({"sessionId": s, "path": "/file"}));
    peer.send(cancel_notification(&s)).await;
    peer.expect(
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked}}),
    )
    .await;
    assert_eq!(peer.expect_result(2).await["stopReason"], "cancelled");
    peer.answer(&asked, json!({"content": "too late"})).await;
    assert_next_turn_is_clean(&mut peer, &s).await;

    // A terminal is released when the turn was dropped,
    peer.send_prompt(3, &s, "run").await;
    let (asked, _) = peer.expect_request("terminal/create").await;
    peer.answer(&asked, json!({"terminalId": "t1"})).await;
    peer.expect_silence().await;
    peer.send(cancel_notification(&s)).await;
    let (released, params) = peer.expect_request("terminal/release").await;
    assert_eq!(params, json!({"sessionId": s, "terminalId": "t1"}));
    assert_eq!(peer.expect_result(3).await["stopReason"], "cancelled");
    peer.answer(&released, json!({})).await;

    // and also if it is created only after that.
    peer.send_prompt(4, &s, "run").await;
    let (asked, _) = peer.expect_request("terminal/create").await;
    peer.send(cancel_notification(&s)).await;
    assert_eq!(peer.expect_result(4).await["stopReason"], "cancelled");
    peer.answer(&asked, json!({"terminalId": "t2"})).await;
    let (released, params) = peer.expect_request("terminal/release").await;
    assert_eq!(params, json!({"sessionId": s, "terminalId": "t2"}));
    peer.answer(&released, json!({})).await;
    assert_next_turn_is_clean(&mut peer, &s).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_cancelled_and_its_late_response_ignored() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let conn = session.agent().connection().clone();
    for late in [
        json!({"result": {}}),
        json!({"error": {"code": -32800, "message": "cancelled"}}),
    ] {
        let asking = tokio::spawn({
            let conn = conn.clone();
            async move { conn.request_raw("_slow", &json!({})).await.map(drop) }
        });
        let (id, _) = peer.expect_request("_slow").await;
        asking.abort();
        assert_eq!(
            peer.expect_notification("$/cancel_request").await,
            json!({"requestId": id})
        );
        let mut answer = late.clone();
        answer["id"] = id;
        peer.send(answer).await;
        peer.check_alive().await;
    }
    assert_eq!(conn.noise().unmatched_responses, 2);
    // A request that has its response is not cancelled.
    let asking = tokio::spawn(async move { conn.request_raw("_quick", &json!({})).await });
    let (id, _) = peer.expect_request("_quick").await;
    peer.answer(&id, json!(1)).await;
    assert_eq!(
        with_timeout("it is answered", asking)
            .await
            .unwrap()
            .unwrap()
            .get(),
        "1"
    );
    peer.expect_silence().await;
}

/// A client that never responds to permission requests, and reports when one is dropped.
#[derive(Clone, Default)]
struct UndecidedClient {
    asked: Arc<Notify>,
    gone: Arc<AtomicUsize>,
}

impl Client for UndecidedClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {}
    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        let _gone = DropCounter(Arc::clone(&self.gone));
        self.asked.notify_one();
        std::future::pending().await
    }
}

fn permission_request(id: i64, call: &str) -> Value {
    let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": call}, "options": options});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
}

fn cancelled_outcome(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "cancelled"}}})
}

#[tokio::test(start_paused = true)]
async fn a_cancelling_client_resolves_current_and_later_permission_requests() {
    let client = UndecidedClient::default();
    let (session, mut peer) = TestPeer::open_client_session(client.clone()).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    let call =
        json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "A", "status": "pending"});
    peer.update("s", call).await;
    peer.send(permission_request(1, "a")).await;
    peer.send(permission_request(2, "b")).await;
    peer.expect_silence().await;
    session.cancel().await.unwrap();
    let mut sent = [peer.next().await, peer.next().await, peer.next().await];
    sent.sort_by_key(|message| message["id"].as_i64());
    assert_eq!(
        sent,
        [
            cancel_notification("s"),
            cancelled_outcome(1),
            cancelled_outcome(2)
        ]
    );
    assert_eq!(client.gone.load(Ordering::SeqCst), 2);
    // The turn has not ended yet.
    peer.send(permission_request(3, "c")).await;
    peer.expect(cancelled_outcome(3)).await;
    assert_eq!(client.gone.load(Ordering::SeqCst), 2);
    assert_eq!(
        thread_lines(session.thread())[1],
        "a (A): Pending, cancelled"
    );
    peer.answer(&id, json!({"stopReason": "cancelled"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Cancelled
    );
    // The next turn asks the user again.
    let (id, turn) = peer.start_prompt(&session, "again").await;
    peer.send(permission_request(4, "d")).await;
    with_timeout("the user is asked", client.asked.notified()).await;
    peer.expect_silence().await;
    // The agent may cancel its question.
    peer.notify("$/cancel_request", json!({"requestId": 4}))
        .await;
    assert_eq!(peer.expect_error(4).await.0, -32800);
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
}

#[tokio::test(start_paused = true)]
async fn cancelling_without_a_turn_sends_nothing() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    session.cancel().await.unwrap();
    peer.expect_silence().await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    with_timeout("the turn ends", turn).await.unwrap().unwrap();
    session.cancel().await.unwrap();
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn late_updates_of_a_cancelled_turn_are_not_part_of_the_next_turn() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "one").await;
    peer.send_text("s", "a").await;
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "C", "status": "in_progress"});
    peer.update("s", call).await;
    peer.check_alive().await;
    session.cancel().await.unwrap();
    peer.expect(cancel_notification("s")).await;
    // Between the cancel and the end, updates are still accepted.
    peer.send_text("s", "b").await;
    peer.answer(&id, json!({"stopReason": "cancelled"})).await;
    peer.send_text("s", "c").await;
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}),
    )
    .await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Cancelled
    );
    peer.check_alive().await;
    let (id, turn) = peer.start_prompt(&session, "two").await;
    // An update of the earlier tool call changes that call.
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Late"}),
    )
    .await;
    peer.send_text("s", "d").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    let expected = [
        "user: one",
        "agent: a",
        "c (Late): Failed, cancelled",
        "agent: bc",
        "user: two",
        "agent: d",
    ];
    assert_eq!(thread_lines(session.thread()), expected);
}

#[tokio::test(start_paused = true)]
async fn the_next_prompt_can_start_after_a_dropped_one() {
    for answer in [
        json!({"result": {"stopReason": "cancelled"}}),
        json!({"error": {"code": -32603, "message": "aborted"}}),
        json!({"error": {"code": -32800, "message": "cancelled"}}),
        json!({"result": null}),
    ] {
        let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
        let (id, turn) = peer.start_prompt(&session, "one").await;
        turn.abort();
        peer.expect(cancel_notification("s")).await;
        peer.expect_silence().await;
        // Until then, it is running.
        assert!(session.thread().read(acp::Thread::is_running));
        let error = session.prompt("too early").await.unwrap_err();
        assert!(
            error.to_string().contains("a turn is already running"),
            "{error}"
        );
        let mut message = answer.clone();
        message["id"] = id;
        peer.send(message).await;
        peer.check_alive().await;
        assert!(!session.thread().read(acp::Thread::is_running), "{answer}");
        let (id, turn) = peer.start_prompt(&session, "two").await;
        peer.answer(&id, json!({"stopReason": "end_turn"})).await;
        assert_eq!(
            with_timeout("the turn ends", turn).await.unwrap().unwrap(),
            StopReason::EndTurn
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_on_a_closed_connection_fails_the_turn() {
    let (session, mut peer) = TestPeer::open_client_session(UndecidedClient::default()).await;
    let (_, turn) = peer.start_prompt(&session, "hi").await;
    peer.send(permission_request(1, "a")).await;
    peer.expect_silence().await;
    drop(peer);
    // Before or after the end is noticed.
    let _ = session.cancel().await;
    let error = with_timeout("the turn fails", turn)
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error}");
    with_timeout("it ends", session.agent().closed()).await;
    assert!(matches!(
        session.cancel().await,
        Ok(()) | Err(Error::Closed(_))
    ));
    assert!(matches!(
        session.prompt("more").await.unwrap_err(),
        Error::Closed(_)
    ));
    assert!(!session.thread().read(acp::Thread::is_running));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handshake_closes_the_connection() {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let connecting = tokio::spawn(acp::testing::start_client(
        transport,
        NoopClient,
        Limits::default(),
    ));
    peer.expect_request("initialize").await;
    connecting.abort();
    peer.expect_notification("$/cancel_request").await;
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_turn_ignores_a_cancel() {
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session(PromptAgent(async |_, _| Ok(StopReason::EndTurn))).await;
    peer.send(cancel_notification(&s)).await;
    peer.send(cancel_notification("nobody's")).await;
    assert_next_turn_is_clean(&mut peer, &s).await;
    let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
    peer.send(cancel_notification("before the beginning")).await;
    peer.initialize(json!({})).await;
}
