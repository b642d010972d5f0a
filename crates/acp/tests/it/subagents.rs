//! Tests of subagents: sessions that an agent starts for part of its work, and whose questions are asked in the root
//! session.

use std::sync::{Arc, Mutex};

use acp::agent::{Prompt, Turn};
use acp::client::{ClientSession, ClientState, Elicitation, PermissionRequest};
use acp::thread::ItemKind;
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationNoContent, ElicitationScope,
    PermissionOption, PermissionOptionKind, ProtocolVersion, RequestPermissionOutcome, SessionId,
    StopReason, ToolCall, ToolCallUpdate,
};
use acp::{Agent, Client, Error, Options, Result, ThreadHandle, transport};
use serde_json::{Value, json};

use crate::common::{
    PIPE_CAPACITY, PromptAgent, TestPeer, connect_pipes, thread_lines, wait_for_thread,
    wait_until_idle, with_timeout,
};

/// A client that records the session of each form.
#[derive(Clone, Default)]
struct FormClient(Arc<Mutex<Vec<String>>>);

impl Elicitation<()> for FormClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        if let ElicitationScope::Session { session_id, .. } = &request.scope {
            self.0.lock().unwrap().push(session_id.to_string());
        }
        Ok(CreateElicitationResponse::new(ElicitationAction::Decline(
            ElicitationNoContent::default(),
        )))
    }
}

impl Client for FormClient {
    type State = ();

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(self)
    }
}

/// A client that allows everything, and records which sessions asked questions and which were closed.
#[derive(Clone, Default)]
struct SubagentClient {
    asked: Arc<Mutex<Vec<String>>>,
    closed: Arc<Mutex<Vec<String>>>,
    /// Whether the client never responds.
    waits: bool,
}

/// The state of one of this client's sessions.
struct SubagentSession {
    id: SessionId,
    closed: Arc<Mutex<Vec<String>>>,
}

impl ClientState<SubagentClient> for SubagentSession {
    fn new(client: &SubagentClient, session: &SessionId, _: &ThreadHandle) -> Self {
        Self {
            id: session.clone(),
            closed: Arc::clone(&client.closed),
        }
    }
}

impl Drop for SubagentSession {
    fn drop(&mut self) {
        self.closed.lock().unwrap().push(self.id.to_string());
    }
}

impl Client for SubagentClient {
    type State = SubagentSession;

    async fn request_permission(
        &self,
        state: &SubagentSession,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        assert_eq!(state.id, request.session_id);
        let (session, call) = (&request.session_id, &request.tool_call.title);
        let name = request.subagent.as_deref().unwrap_or("nobody");
        let asked = format!("{session} ({name}) in {}: {call}", request.root_session_id);
        self.asked.lock().unwrap().push(asked);
        if self.waits {
            std::future::pending::<()>().await;
        }
        Ok(request.allow())
    }
}

/// Connects a client to a scripted agent of the given version, and opens the session `s`.
async fn open_session(client: impl Client, version: ProtocolVersion) -> (ClientSession, TestPeer) {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let options = Options::new().draft_version_2();
    let connecting = tokio::spawn(acp::testing::start_client(transport, client, options));
    let (id, params) = peer.expect_request("initialize").await;
    let answer = match version {
        ProtocolVersion::V2 => {
            json!({"protocolVersion": 2, "info": {"name": "scripted", "version": "1"},
                   "capabilities": {"session": {}}})
        }
        _ => {
            // In version 1, a client declares what it supports. In version 2, every client supports subagents.
            assert_eq!(params["clientCapabilities"]["subagents"], json!({}));
            json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"close": {}}}})
        }
    };
    peer.answer(&id, answer).await;
    let conn = with_timeout("the client connects", connecting)
        .await
        .unwrap()
        .unwrap();
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    (session, peer)
}

fn subagent_update(id: &str, more: Value) -> Value {
    let mut update = json!({"sessionUpdate": "subagent_update", "sessionId": id});
    let fields = update.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    update
}

fn message_update(id: &str, text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": id,
           "content": {"type": "text", "text": text}})
}

/// Returns a permission request for a session, in the form of the given version.
fn permission_request(session: &str, call: &str, version: ProtocolVersion) -> Value {
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let call = json!({"toolCallId": call, "title": format!("Do {call}")});
    match version {
        ProtocolVersion::V2 => {
            json!({"sessionId": session, "title": "May I?", "options": options,
                   "subject": {"type": "tool_call", "toolCall": call}})
        }
        _ => json!({"sessionId": session, "toolCall": call, "options": options}),
    }
}

/// Returns a subagent's thread items as lines of text.
fn subagent_lines(thread: &ThreadHandle, id: &str) -> Vec<String> {
    let thread = thread.read(|thread| thread.subagent(&id.into()).unwrap().thread.clone());
    thread_lines(&thread)
}

const BOTH_VERSIONS: [ProtocolVersion; 2] = [ProtocolVersion::V1, ProtocolVersion::V2];

#[tokio::test(start_paused = true)]
async fn a_subagents_updates_and_questions_are_shown_below_its_parent() {
    for version in BOTH_VERSIONS {
        let client = SubagentClient::default();
        let (session, mut peer) = open_session(client.clone(), version).await;
        let running = json!({"title": "Look around", "state": {"state": "running"}});
        peer.update("s", subagent_update("c", running)).await;
        peer.update("c", message_update("m", "I look.")).await;
        peer.send_request(
            "p",
            "session/request_permission",
            permission_request("c", "read", version),
        )
        .await;
        let answer = peer.expect_result("p").await;
        assert_eq!(answer["outcome"]["optionId"], "y", "{answer}");
        assert_eq!(
            *client.asked.lock().unwrap(),
            ["c (Look around) in s: Do read"]
        );
        let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "read", "status": "completed"});
        peer.update("c", done).await;
        // A session of its own.
        peer.update("c", subagent_update("d", json!({"title": "Look closer"})))
            .await;
        peer.update("d", message_update("m", "I see.")).await;
        let idle = json!({"state": {"state": "idle", "stopReason": "end_turn"}, "description": "All of it"});
        peer.update("s", subagent_update("c", idle)).await;
        peer.update("s", message_update("m", "It has looked."))
            .await;
        wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;

        session.thread().read(|thread| {
            let ItemKind::Subagent(subagent) = &thread.items()[0].kind else {
                panic!("{:#?}", thread.items());
            };
            assert_eq!(subagent.name(), "Look around");
            assert_eq!(subagent.description.as_deref(), Some("All of it"));
            assert!(!subagent.is_running());
        });
        let child = subagent_lines(session.thread(), "c");
        assert_eq!(
            child[..2],
            ["agent: I look.", "read (Do read): Completed"],
            "{child:#?}"
        );
        let grandchild = session.thread().read(|thread| {
            let child = &thread.subagent(&"c".into()).unwrap().thread;
            child.read(|child| child.subagent(&"d".into()).unwrap().thread.clone())
        });
        assert_eq!(thread_lines(&grandchild), ["agent: I see."]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subagents_form_is_shown_in_its_root_session() {
    let client = FormClient::default();
    let (_session, mut peer) = open_session(client.clone(), ProtocolVersion::V1).await;
    peer.update("s", subagent_update("c", json!({}))).await;
    let form = json!({"sessionId": "c", "mode": "form", "message": "Which?",
                      "requestedSchema": {"type": "object", "properties": {}}});
    peer.send_request("f", "elicitation/create", form).await;
    assert_eq!(peer.expect_result("f").await["action"], "decline");
    assert_eq!(*client.0.lock().unwrap(), ["s"]);
}

#[tokio::test(start_paused = true)]
async fn a_subagents_change_wakes_readers_of_the_parent() {
    let (session, mut peer) = open_session(SubagentClient::default(), ProtocolVersion::V2).await;
    peer.update("s", subagent_update("c", json!({}))).await;
    peer.update("c", subagent_update("d", json!({}))).await;
    wait_for_thread(session.thread(), |thread| thread.subagents().count() == 1).await;
    wait_until_idle().await;
    let before = session.thread().read(acp::Thread::revision);
    peer.update("d", message_update("m", "far below")).await;
    let after = with_timeout("the thread changes", session.thread().changed(before)).await;
    let item = session.thread().read(|thread| thread.items()[0].revision);
    assert_eq!(item, after);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_resolves_its_subagents_questions() {
    for version in BOTH_VERSIONS {
        let client = SubagentClient {
            waits: true,
            ..SubagentClient::default()
        };
        let (session, mut peer) = open_session(client, version).await;
        let (id, _turn) = peer.start_prompt(&session, "go").await;
        if version == ProtocolVersion::V2 {
            peer.answer(&id, json!({"messageId": "u"})).await;
            peer.update(
                "s",
                json!({"sessionUpdate": "state_update", "state": "running"}),
            )
            .await;
        }
        peer.update("s", subagent_update("c", json!({}))).await;
        peer.send_request(
            "p",
            "session/request_permission",
            permission_request("c", "x", version),
        )
        .await;
        wait_until_idle().await;
        session.cancel().await.unwrap();
        assert_eq!(
            peer.expect_notification("session/cancel").await["sessionId"],
            "s"
        );
        let answer = peer.expect_result("p").await;
        assert_eq!(answer["outcome"]["outcome"], "cancelled", "{version}");
    }
}

/// A subagent can continue after its parent's turn was cancelled, and its requests still get responses.
#[tokio::test(start_paused = true)]
async fn a_subagent_that_continues_after_a_cancelled_turn_gets_responses() {
    let client = SubagentClient::default();
    let (session, mut peer) = open_session(client, ProtocolVersion::V1).await;
    let (id, turn) = peer.start_prompt(&session, "go").await;
    peer.update("s", subagent_update("c", json!({}))).await;
    session.cancel().await.unwrap();
    peer.expect_notification("session/cancel").await;
    peer.answer(&id, json!({"stopReason": "cancelled"})).await;
    let ended = with_timeout("the turn ends", turn).await.unwrap().unwrap();
    assert_eq!(ended, StopReason::Cancelled);
    let asks = permission_request("c", "x", ProtocolVersion::V1);
    peer.send_request("p", "session/request_permission", asks)
        .await;
    assert_eq!(peer.expect_result("p").await["outcome"]["optionId"], "y");
}

#[tokio::test(start_paused = true)]
async fn only_announced_subagents_are_accepted_and_their_number_is_limited() {
    let version = ProtocolVersion::V2;
    let client = SubagentClient::default();
    let (session, mut peer) = open_session(client.clone(), version).await;
    // In a session that the client has not opened.
    peer.update("nobody", subagent_update("x", json!({}))).await;
    peer.send_request(
        "x",
        "session/request_permission",
        permission_request("x", "a", version),
    )
    .await;
    peer.expect_error("x").await;
    // A session that is its own ancestor.
    peer.update("s", subagent_update("s", json!({}))).await;
    peer.update("s", subagent_update("c", json!({}))).await;
    peer.update("c", subagent_update("s", json!({}))).await;
    peer.update("c", message_update("m", "still here")).await;
    // More subagents than the limit.
    for n in 0..100 {
        peer.update("s", subagent_update(&format!("c{n}"), json!({})))
            .await;
    }
    peer.send_request(
        "few",
        "session/request_permission",
        permission_request("c10", "a", version),
    )
    .await;
    assert_eq!(peer.expect_result("few").await["outcome"]["optionId"], "y");
    peer.send_request(
        "many",
        "session/request_permission",
        permission_request("c99", "a", version),
    )
    .await;
    peer.expect_error("many").await;
    assert_eq!(*client.asked.lock().unwrap(), ["c10 (c10) in s: Do a"]);
    let below = subagent_lines(session.thread(), "c");
    assert_eq!(below.last().unwrap(), "agent: still here");
}

/// A session that the user opens asks its own questions, even if the agent has previously announced it as a subagent.
#[tokio::test(start_paused = true)]
async fn a_session_that_the_user_opens_is_no_longer_a_subagent() {
    let version = ProtocolVersion::V1;
    let client = SubagentClient::default();
    let (session, mut peer) = open_session(client.clone(), version).await;
    peer.update("s", subagent_update("n", json!({"title": "Mine"})))
        .await;
    let opened = peer
        .open_session(session.agent(), json!({"sessionId": "n"}))
        .await;
    assert_eq!(opened.id().as_str(), "n");
    peer.send_request(
        "p",
        "session/request_permission",
        permission_request("n", "x", version),
    )
    .await;
    peer.expect_result("p").await;
    assert_eq!(*client.asked.lock().unwrap(), ["n (nobody) in n: Do x"]);
}

#[tokio::test(start_paused = true)]
async fn a_subagent_with_the_capability_can_be_cancelled() {
    let (session, mut peer) = open_session(SubagentClient::default(), ProtocolVersion::V2).await;
    peer.update("s", subagent_update("a", json!({}))).await;
    peer.update(
        "s",
        subagent_update("b", json!({"capabilities": {"cancel": {}}})),
    )
    .await;
    wait_for_thread(session.thread(), |thread| thread.subagents().count() == 2).await;
    let refused = session.cancel_subagent("a").await;
    assert!(
        matches!(refused, Err(Error::Unsupported { .. })),
        "{refused:?}"
    );
    session.cancel_subagent("b").await.unwrap();
    assert_eq!(
        peer.expect_notification("session/cancel").await["sessionId"],
        "b"
    );
}

#[tokio::test(start_paused = true)]
async fn subagents_are_closed_with_their_session() {
    let client = SubagentClient::default();
    let (session, mut peer) = open_session(client.clone(), ProtocolVersion::V1).await;
    peer.update("s", subagent_update("c", json!({}))).await;
    peer.update("c", subagent_update("d", json!({}))).await;
    wait_for_thread(session.thread(), |thread| thread.subagents().count() == 1).await;
    wait_until_idle().await;
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    let (id, _) = peer.expect_request("session/close").await;
    peer.answer(&id, json!({})).await;
    with_timeout("the session closes", closing)
        .await
        .unwrap()
        .unwrap();
    let mut closed = client.closed.lock().unwrap().clone();
    closed.sort();
    assert_eq!(closed, ["c", "d", "s"]);
}

#[tokio::test(start_paused = true)]
async fn messages_between_sessions_are_shown() {
    let (session, mut peer) = open_session(SubagentClient::default(), ProtocolVersion::V2).await;
    peer.update("s", subagent_update("c", json!({"title": "Scout"})))
        .await;
    let message = json!({"sessionUpdate": "session_message", "messageId": "m",
                         "senderSessionId": "s", "recipientSessionId": "c"});
    peer.update("s", message).await;
    for text in ["Look ", "around."] {
        let content = json!({"type": "text", "text": text});
        let chunk =
            json!({"sessionUpdate": "session_message_chunk", "messageId": "m", "content": content});
        peer.update("s", chunk).await;
    }
    wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
    wait_until_idle().await;
    session.thread().read(|thread| {
        let ItemKind::SessionMessage(message) = &thread.items()[1].kind else {
            panic!("{:#?}", thread.items());
        };
        assert_eq!(message.recipient, Some("c".into()));
        let text: String = message
            .content
            .iter()
            .filter_map(|block| block.as_text())
            .collect();
        assert_eq!(text, "Look around.");
    });
}

/// Returns an agent that starts a subagent for part of its work.
fn delegating_agent() -> impl Agent {
    PromptAgent(async |turn: Turn, _: Prompt| {
        let scout = turn.start_subagent("scout", "Look around").await?;
        scout.send_message("I look.").await?;
        let call = scout
            .report_tool_call(ToolCall::new("read", "Read it"))
            .await?;
        let yes = PermissionOption::new("y", "Yes", PermissionOptionKind::AllowOnce);
        let asked = ToolCallUpdate::new("read");
        let answer = scout.request_permission(asked, vec![yes]).await?;
        assert!(matches!(answer, RequestPermissionOutcome::Selected(_)));
        call.complete().await?;
        scout.end(StopReason::EndTurn).await?;
        turn.send_message("It has looked.").await?;
        Ok(StopReason::EndTurn)
    })
}

#[tokio::test(start_paused = true)]
async fn agents_can_start_subagents_in_both_versions() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let (ours, theirs) = transport::memory();
        let _conn = acp::testing::start_agent(theirs, delegating_agent(), options.clone());
        let client = SubagentClient::default();
        let conn = acp::testing::start_client(ours, client.clone(), options)
            .await
            .unwrap();
        let session = conn.new_session("/work").await.unwrap();
        let ended = with_timeout("the turn ends", session.prompt("go"))
            .await
            .unwrap();
        assert_eq!(ended, StopReason::EndTurn);
        assert_eq!(
            *client.asked.lock().unwrap(),
            [format!("scout (Look around) in {}: Read it", session.id())]
        );
        assert_eq!(
            subagent_lines(session.thread(), "scout"),
            ["agent: I look.", "read (Read it): Completed"]
        );
        let at_work = session.thread().read(|thread| {
            let scout = thread.subagent(&"scout".into()).unwrap();
            assert_eq!(scout.name(), "Look around");
            scout.is_running() || scout.thread.read(acp::Thread::is_running)
        });
        assert!(!at_work);
    }
}

#[tokio::test(start_paused = true)]
async fn subagents_are_not_reported_to_clients_without_support() {
    let agent = PromptAgent(async |turn: Turn, _: Prompt| {
        let refused = turn.start_subagent("scout", "Look around").await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, session) = TestPeer::open_agent_session(agent).await;
    peer.send_prompt(1, &session, "go").await;
    assert_eq!(peer.expect_result(1).await["stopReason"], "end_turn");
}
