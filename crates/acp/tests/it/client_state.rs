//! Tests of a client's session state: when it is created, which calls receive it, and when it is dropped.

use std::sync::{Arc, Mutex};

use acp::agent::default_limits;
use acp::client::{AgentConnection, ClientState, PermissionRequest, ReadTextFile, UpdateContext};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, SessionConfigKind,
    SessionId, StopReason,
};
use acp::{Client, Result, ThreadHandle, Update};
use serde_json::json;

use crate::common::{PIPE_CAPACITY, TestPeer, thread_lines, wait_until_idle, with_timeout};

/// A client that numbers its session states and records their events.
#[derive(Clone, Default)]
struct StateClient {
    events: Arc<Mutex<Vec<String>>>,
    made: Arc<Mutex<usize>>,
}

impl StateClient {
    fn record_event(&self, event: String) {
        self.events.lock().unwrap().push(event);
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

struct NumberedState {
    number: usize,
    editor: StateClient,
}

impl ClientState<StateClient> for NumberedState {
    fn new(client: &StateClient, session: &SessionId, _: &ThreadHandle) -> Self {
        let number = {
            let mut made = client.made.lock().unwrap();
            *made += 1;
            *made
        };
        client.record_event(format!("{number} is {session}"));
        Self {
            number,
            editor: client.clone(),
        }
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let end = stop_reason.map_or("failed", StopReason::as_str);
        self.editor
            .record_event(format!("{} ended: {end}", self.number));
    }
}

impl Drop for NumberedState {
    fn drop(&mut self) {
        self.editor.record_event(format!("{} dropped", self.number));
    }
}

impl Client for StateClient {
    type State = NumberedState;

    async fn update(&self, state: &NumberedState, _: &UpdateContext, update: &Update) {
        let text = update.message_text().unwrap_or("something");
        self.record_event(format!("{} hears {text}", state.number));
    }

    async fn request_permission(
        &self,
        state: &NumberedState,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.record_event(format!("{} is asked", state.number));
        Ok(request.reject())
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<NumberedState>> {
        Some(self)
    }
}

impl ReadTextFile<NumberedState> for StateClient {
    async fn read(
        &self,
        state: &NumberedState,
        _: ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        self.record_event(format!("{} is read", state.number));
        Ok(ReadTextFileResponse::new("text"))
    }
}

async fn start_client() -> (StateClient, AgentConnection, TestPeer) {
    let editor = StateClient::default();
    let capabilities = json!({
        "loadSession": true,
        "sessionCapabilities": {"close": {}, "delete": {}, "archive": {}},
    });
    let (conn, peer) = TestPeer::connect_to_client_with(
        editor.clone(),
        default_limits(),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    (editor, conn, peer)
}

/// Expects and responds to a `method` request.
async fn answer_request(peer: &mut TestPeer, method: &str, result: serde_json::Value) {
    let (id, _) = peer.expect_request(method).await;
    peer.answer(&id, result).await;
}

#[tokio::test(start_paused = true)]
async fn every_call_gets_the_state_of_its_session() {
    let (editor, conn, mut peer) = start_client().await;
    let _one = peer.open_session(&conn, json!({"sessionId": "one"})).await;
    let _two = peer.open_session(&conn, json!({"sessionId": "two"})).await;
    peer.send_text("two", "hello").await;
    peer.send_text("one", "hi").await;
    let read = json!({"sessionId": "two", "path": "/file"});
    peer.send_request(1, "fs/read_text_file", read).await;
    peer.expect_result(1).await;
    let option = json!({"optionId": "no", "name": "No", "kind": "reject_once"});
    let ask = json!({"sessionId": "one", "toolCall": {"toolCallId": "t"}, "options": [option]});
    peer.send_request(2, "session/request_permission", ask)
        .await;
    peer.expect_result(2).await;
    assert_eq!(
        editor.events(),
        [
            "1 is one",
            "2 is two",
            "2 hears hello",
            "1 hears hi",
            "2 is read",
            "1 is asked"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_state_is_dropped_when_its_session_is_closed() {
    let (editor, conn, mut peer) = start_client().await;
    for way in ["close", "delete", "archive"] {
        let session = peer.open_session(&conn, json!({"sessionId": way})).await;
        let number = *editor.made.lock().unwrap();
        editor.events();
        let ending = tokio::spawn({
            let conn = conn.clone();
            async move {
                match way {
                    "close" => session.close().await,
                    "delete" => conn.delete_session(session.id()).await,
                    _ => conn.archive_session(session.id()).await,
                }
            }
        });
        answer_request(&mut peer, &format!("session/{way}"), json!({})).await;
        with_timeout(way, ending).await.unwrap().unwrap();
        assert_eq!(editor.events(), [format!("{number} dropped")], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn states_are_dropped_when_the_connection_ends() {
    let (editor, conn, mut peer) = start_client().await;
    let session = peer.open_session(&conn, json!({"sessionId": "one"})).await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    peer.expect_request("session/prompt").await;
    editor.events();
    drop(peer);
    with_timeout("the turn", turn).await.unwrap().unwrap_err();
    with_timeout("the end", conn.closed()).await;
    // The session and its thread can still be read.
    assert_eq!(thread_lines(session.thread()).len(), 1);
    assert_eq!(editor.events(), ["1 ended: failed", "1 dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_reloaded_session_keeps_its_state_and_thread() {
    let (editor, conn, mut peer) = start_client().await;
    let first = peer.open_session(&conn, json!({"sessionId": "one"})).await;
    peer.send_text("one", "before").await;
    wait_until_idle().await;
    let thread = first.thread();
    let before = thread_lines(thread);
    let load = || {
        tokio::spawn({
            let conn = conn.clone();
            async move { conn.load_session("one", "/work").await }
        })
    };

    let loading = load();
    let (id, _) = peer.expect_request("session/load").await;
    peer.send_text("one", "replayed").await;
    peer.send_error(&id, -32603).await;
    with_timeout("it fails", loading)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        thread_lines(thread),
        before,
        "as if nothing had been replayed"
    );

    let revision = thread.read(acp::Thread::revision);
    let loading = load();
    let (id, _) = peer.expect_request("session/load").await;
    peer.send_text("one", "replayed").await;
    peer.answer(&id, json!({})).await;
    let again = with_timeout("it is loaded", loading)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(thread_lines(again.thread()), ["agent: replayed"]);
    // Handles from before see the change, too, and are notified.
    assert_eq!(thread_lines(thread), ["agent: replayed"]);
    assert!(with_timeout("a change", thread.changed(revision)).await > revision);
    assert_eq!(
        editor.events(),
        [
            "1 is one",
            "1 hears before",
            "1 hears replayed",
            "1 hears replayed"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ends_during_a_failed_load_stays_ended() {
    let (editor, conn, mut peer) = start_client().await;
    let session = peer.open_session(&conn, json!({"sessionId": "one"})).await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    let (prompt, _) = peer.expect_request("session/prompt").await;
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("one", "/work").await }
    });
    let (load, _) = peer.expect_request("session/load").await;
    peer.answer(&prompt, json!({"stopReason": "max_tokens"}))
        .await;
    assert_eq!(
        with_timeout("the turn", turn).await.unwrap().unwrap(),
        StopReason::MaxTokens
    );
    peer.send_error(&load, -32603).await;
    with_timeout("it fails", loading)
        .await
        .unwrap()
        .unwrap_err();
    session.thread().read(|thread| {
        assert!(!thread.is_running());
        assert_eq!(thread.stop_reason(), Some(&StopReason::MaxTokens));
    });
    assert_eq!(editor.events(), ["1 is one", "1 ended: max_tokens"]);
}

/// A client in a reference cycle: it owns the connection, which owns the client.
#[derive(Clone, Default)]
struct CircularClient {
    agent: Arc<Mutex<Option<AgentConnection>>>,
    alive: Arc<()>,
}

impl Client for CircularClient {
    type State = ();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_owns_its_connection_is_freed() {
    let client = CircularClient::default();
    let alive = Arc::downgrade(&client.alive);
    let held = Arc::clone(&client.agent);
    let (conn, peer) = TestPeer::connect_to_client(client).await;
    *held.lock().unwrap() = Some(conn.clone());
    drop(held);
    conn.close();
    with_timeout("the end", conn.closed()).await;
    drop((conn, peer));
    wait_until_idle().await;
    assert!(alive.upgrade().is_none());
}

/// A client that does not finish reading a file until the session is closed.
struct SlowReadClient;

struct SlowReadState(tokio::sync::Semaphore);

impl ClientState<SlowReadClient> for SlowReadState {
    fn new(_: &SlowReadClient, _: &SessionId, _: &ThreadHandle) -> Self {
        Self(tokio::sync::Semaphore::new(0))
    }

    fn closed(&self) {
        self.0.add_permits(1);
    }
}

impl Client for SlowReadClient {
    type State = SlowReadState;

    fn read_text_file(&self) -> Option<&impl ReadTextFile<SlowReadState>> {
        Some(self)
    }
}

impl ReadTextFile<SlowReadState> for SlowReadClient {
    async fn read(
        &self,
        state: &SlowReadState,
        _: ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        let _closed = state.0.acquire().await;
        Ok(ReadTextFileResponse::new("it is closed"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_call_sees_that_its_session_was_closed() {
    let capabilities = json!({"sessionCapabilities": {"close": {}}});
    let (conn, mut peer) = TestPeer::connect_to_client_with(
        SlowReadClient,
        default_limits(),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    let session = peer.open_session(&conn, json!({"sessionId": "one"})).await;
    assert!(session.state::<SlowReadClient>().is_some());
    assert!(session.state::<StateClient>().is_none(), "another client's");
    let read = json!({"sessionId": "one", "path": "/file"});
    peer.send_request(1, "fs/read_text_file", read).await;
    peer.expect_silence().await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    answer_request(&mut peer, "session/close", json!({})).await;
    assert_eq!(peer.expect_result(1).await["content"], "it is closed");
    with_timeout("it is closed", closing)
        .await
        .unwrap()
        .unwrap();
    assert!(session.state::<SlowReadClient>().is_none());
}

#[tokio::test(start_paused = true)]
async fn settings_changed_during_a_failed_load_are_kept() {
    let (_, conn, mut peer) = start_client().await;
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    let session = peer
        .open_session(&conn, json!({"sessionId": "one", "modes": modes}))
        .await;
    peer.send_text("one", "before").await;
    wait_until_idle().await;
    let setting = tokio::spawn({
        let session = session.clone();
        async move { session.set_mode("code").await }
    });
    let (set, _) = peer.expect_request("session/set_mode").await;
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("one", "/work").await }
    });
    let (load, _) = peer.expect_request("session/load").await;
    let error = session.prompt("now").await.unwrap_err();
    assert!(error.to_string().contains("being loaded"), "{error}");
    peer.send_text("one", "replayed").await;
    peer.answer(&set, json!({})).await;
    with_timeout("it is set", setting).await.unwrap().unwrap();
    let seen = session.thread().read(acp::Thread::revision);
    peer.send_error(&load, -32603).await;
    with_timeout("it fails", loading)
        .await
        .unwrap()
        .unwrap_err();
    session.thread().read(|thread| {
        let modes = &thread.config_options()[0].kind;
        assert!(
            matches!(modes, SessionConfigKind::Select(modes) if modes.current_value.as_str() == "code"),
            "{modes:?}"
        );
        // A front end that renders only what is new renders it again.
        assert!(thread.items().iter().all(|item| item.revision > seen));
    });
    assert_eq!(thread_lines(session.thread()), ["agent: before"]);
}
