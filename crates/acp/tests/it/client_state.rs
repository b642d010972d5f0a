//! The client's state of a session: when it is created, who gets it, and when it is dropped.

use std::sync::{Arc, Mutex};

use acp::agent::limits;
use acp::client::{AgentConnection, ClientState, PermissionRequest, ReadTextFile, UpdateContext};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, SessionConfigKind,
    SessionId, StopReason,
};
use acp::{Client, Result, ThreadHandle, Update};
use serde_json::json;

use crate::common::{PIPE, TestPeer, settle, shown, soon};

/// A client that numbers the states of its sessions, and records what happens to them.
#[derive(Clone, Default)]
struct StateClient {
    events: Arc<Mutex<Vec<String>>>,
    made: Arc<Mutex<usize>>,
}

impl StateClient {
    fn note(&self, event: String) {
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
        client.note(format!("{number} is {session}"));
        Self {
            number,
            editor: client.clone(),
        }
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let end = stop_reason.map_or("failed", StopReason::as_str);
        self.editor.note(format!("{} ended: {end}", self.number));
    }
}

impl Drop for NumberedState {
    fn drop(&mut self) {
        self.editor.note(format!("{} dropped", self.number));
    }
}

impl Client for StateClient {
    type State = NumberedState;

    async fn update(&self, state: &NumberedState, _: &UpdateContext, update: &Update) {
        let text = update.message_text().unwrap_or("something");
        self.note(format!("{} hears {text}", state.number));
    }

    async fn request_permission(
        &self,
        state: &NumberedState,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.note(format!("{} is asked", state.number));
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
        self.note(format!("{} is read", state.number));
        Ok(ReadTextFileResponse::new("text"))
    }
}

async fn start() -> (StateClient, AgentConnection, TestPeer) {
    let editor = StateClient::default();
    let capabilities = json!({
        "loadSession": true,
        "sessionCapabilities": {"close": {}, "delete": {}, "archive": {}},
    });
    let (conn, peer) = TestPeer::of_client_with(editor.clone(), limits(), PIPE, capabilities).await;
    (editor, conn, peer)
}

/// Responds to the next request, which must have this method.
async fn answer(peer: &mut TestPeer, method: &str, result: serde_json::Value) {
    let (id, _) = peer.request(method).await;
    peer.answer(&id, result).await;
}

#[tokio::test(start_paused = true)]
async fn every_call_gets_the_state_of_its_session() {
    let (editor, conn, mut peer) = start().await;
    let _one = peer.opens(&conn, json!({"sessionId": "one"})).await;
    let _two = peer.opens(&conn, json!({"sessionId": "two"})).await;
    peer.says("two", "hello").await;
    peer.says("one", "hi").await;
    let read = json!({"sessionId": "two", "path": "/file"});
    peer.ask(1, "fs/read_text_file", read).await;
    peer.result(1).await;
    let option = json!({"optionId": "no", "name": "No", "kind": "reject_once"});
    let ask = json!({"sessionId": "one", "toolCall": {"toolCallId": "t"}, "options": [option]});
    peer.ask(2, "session/request_permission", ask).await;
    peer.result(2).await;
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
    let (editor, conn, mut peer) = start().await;
    for way in ["close", "delete", "archive"] {
        let session = peer.opens(&conn, json!({"sessionId": way})).await;
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
        answer(&mut peer, &format!("session/{way}"), json!({})).await;
        soon(way, ending).await.unwrap().unwrap();
        assert_eq!(editor.events(), [format!("{number} dropped")], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn states_are_dropped_when_the_connection_ends() {
    let (editor, conn, mut peer) = start().await;
    let session = peer.opens(&conn, json!({"sessionId": "one"})).await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    peer.request("session/prompt").await;
    editor.events();
    drop(peer);
    soon("the turn", turn).await.unwrap().unwrap_err();
    soon("the end", conn.closed()).await;
    // The session and its thread can still be read.
    assert_eq!(shown(session.thread()).len(), 1);
    assert_eq!(editor.events(), ["1 ended: failed", "1 dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_reloaded_session_keeps_its_state_and_thread() {
    let (editor, conn, mut peer) = start().await;
    let first = peer.opens(&conn, json!({"sessionId": "one"})).await;
    peer.says("one", "before").await;
    settle().await;
    let thread = first.thread();
    let before = shown(thread);
    let load = || {
        tokio::spawn({
            let conn = conn.clone();
            async move { conn.load_session("one", "/work").await }
        })
    };

    let loading = load();
    let (id, _) = peer.request("session/load").await;
    peer.says("one", "replayed").await;
    peer.refuse(&id, -32603).await;
    soon("it fails", loading).await.unwrap().unwrap_err();
    assert_eq!(shown(thread), before, "as if nothing had been replayed");

    let revision = thread.read(acp::Thread::revision);
    let loading = load();
    let (id, _) = peer.request("session/load").await;
    peer.says("one", "replayed").await;
    peer.answer(&id, json!({})).await;
    let again = soon("it is loaded", loading).await.unwrap().unwrap();
    assert_eq!(shown(again.thread()), ["agent: replayed"]);
    // Handles from before see the change, too, and are notified.
    assert_eq!(shown(thread), ["agent: replayed"]);
    assert!(soon("a change", thread.changed(revision)).await > revision);
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
async fn a_turn_that_ends_during_a_failed_load_has_ended() {
    let (editor, conn, mut peer) = start().await;
    let session = peer.opens(&conn, json!({"sessionId": "one"})).await;
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("go").await }
    });
    let (prompt, _) = peer.request("session/prompt").await;
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("one", "/work").await }
    });
    let (load, _) = peer.request("session/load").await;
    peer.answer(&prompt, json!({"stopReason": "max_tokens"}))
        .await;
    assert_eq!(
        soon("the turn", turn).await.unwrap().unwrap(),
        StopReason::MaxTokens
    );
    peer.refuse(&load, -32603).await;
    soon("it fails", loading).await.unwrap().unwrap_err();
    session.thread().read(|thread| {
        assert!(!thread.is_running());
        assert_eq!(thread.stop_reason(), Some(&StopReason::MaxTokens));
    });
    assert_eq!(editor.events(), ["1 is one", "1 ended: max_tokens"]);
}

/// A client that owns the connection that owns the client.
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
    let (conn, peer) = TestPeer::of_client(client).await;
    *held.lock().unwrap() = Some(conn.clone());
    drop(held);
    conn.close();
    soon("the end", conn.closed()).await;
    drop((conn, peer));
    settle().await;
    assert!(alive.upgrade().is_none());
}

/// A client with sessions that read until they are closed.
struct Reader;

struct Reading(tokio::sync::Semaphore);

impl ClientState<Reader> for Reading {
    fn new(_: &Reader, _: &SessionId, _: &ThreadHandle) -> Self {
        Self(tokio::sync::Semaphore::new(0))
    }

    fn closed(&self) {
        self.0.add_permits(1);
    }
}

impl Client for Reader {
    type State = Reading;

    fn read_text_file(&self) -> Option<&impl ReadTextFile<Reading>> {
        Some(self)
    }
}

impl ReadTextFile<Reading> for Reader {
    async fn read(&self, state: &Reading, _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        let _closed = state.0.acquire().await;
        Ok(ReadTextFileResponse::new("it is closed"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_call_sees_that_its_session_was_closed() {
    let capabilities = json!({"sessionCapabilities": {"close": {}}});
    let (conn, mut peer) = TestPeer::of_client_with(Reader, limits(), PIPE, capabilities).await;
    let session = peer.opens(&conn, json!({"sessionId": "one"})).await;
    assert!(session.state::<Reader>().is_some());
    assert!(session.state::<StateClient>().is_none(), "another client's");
    let read = json!({"sessionId": "one", "path": "/file"});
    peer.ask(1, "fs/read_text_file", read).await;
    peer.silence().await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    answer(&mut peer, "session/close", json!({})).await;
    assert_eq!(peer.result(1).await["content"], "it is closed");
    soon("it is closed", closing).await.unwrap().unwrap();
    assert!(session.state::<Reader>().is_none());
}

#[tokio::test(start_paused = true)]
async fn settings_changed_during_a_failed_load_stay() {
    let (_, conn, mut peer) = start().await;
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    let session = peer
        .opens(&conn, json!({"sessionId": "one", "modes": modes}))
        .await;
    peer.says("one", "before").await;
    settle().await;
    let setting = tokio::spawn({
        let session = session.clone();
        async move { session.set_mode("code").await }
    });
    let (set, _) = peer.request("session/set_mode").await;
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("one", "/work").await }
    });
    let (load, _) = peer.request("session/load").await;
    let error = session.prompt("now").await.unwrap_err();
    assert!(error.to_string().contains("being loaded"), "{error}");
    peer.says("one", "replayed").await;
    peer.answer(&set, json!({})).await;
    soon("it is set", setting).await.unwrap().unwrap();
    let seen = session.thread().read(acp::Thread::revision);
    peer.refuse(&load, -32603).await;
    soon("it fails", loading).await.unwrap().unwrap_err();
    session.thread().read(|thread| {
        let modes = &thread.config_options()[0].kind;
        assert!(
            matches!(modes, SessionConfigKind::Select(modes) if modes.current_value.as_str() == "code"),
            "{modes:?}"
        );
        // A front end that renders only what is new renders it again.
        assert!(thread.items().iter().all(|item| item.revision > seen));
    });
    assert_eq!(shown(session.thread()), ["agent: before"]);
}
