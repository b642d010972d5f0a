//! Tests of a client built with this library, against a scripted version 2 agent.

use crate::common;
use std::sync::{Arc, Mutex};

use acp::client::{AgentConnection, ClientSession, PermissionRequest};
use acp::thread::{Activity, FileOperation, PlanContent, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{
    AuthMethod, McpServer, McpServerStdio, ProtocolVersion, RequestPermissionOutcome,
    SessionConfigKind, StopReason,
};
use acp::{Client, CloseReason, Error, Options, Result, jsonrpc};
use serde_json::{Value, json};

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, connect_pipes, thread_lines, wait_for_thread,
    wait_until_idle, with_timeout,
};

/// Connects a client to an agent that sends the given response to `initialize`.
async fn connect_client(
    client: impl Client,
    answer: Value,
) -> (Result<AgentConnection>, TestPeer, Value) {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let options = Options::new().draft_version_2();
    let connecting = tokio::spawn(acp::testing::start_client(transport, client, options));
    let (id, params) = peer.expect_request("initialize").await;
    peer.answer(&id, answer).await;
    let conn = with_timeout("the client connects", connecting)
        .await
        .unwrap();
    (conn, peer, params)
}

fn agent_capabilities() -> Value {
    json!({
        "protocolVersion": 2,
        "info": {"name": "scripted", "version": "1"},
        "capabilities": {"session": {"prompt": {"image": {}}, "delete": {}}},
    })
}

/// Connects a client to an agent, and opens the session `s`.
async fn open_session(client: impl Client) -> (ClientSession, TestPeer) {
    let (conn, mut peer, _) = connect_client(client, agent_capabilities()).await;
    let session = peer
        .open_session(&conn.unwrap(), json!({"sessionId": "s"}))
        .await;
    (session, peer)
}

fn state_update(state: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": state})
}

fn idle_update(reason: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
}

fn message_chunk(kind: &str, id: &str, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"sessionUpdate": kind, "messageId": id, "content": content})
}

fn whole_message(kind: &str, id: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": id, "content": content})
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

type TurnHandle = tokio::task::JoinHandle<Result<StopReason>>;

async fn wait_for_turn(turn: TurnHandle) -> Result<StopReason> {
    with_timeout("the turn ends", turn).await.unwrap()
}

/// Starts a turn: the client sends a prompt, and the agent sends its response and first updates.
async fn begin_turn(session: &ClientSession, peer: &mut TestPeer) -> TurnHandle {
    let (id, turn) = peer.start_prompt(session, "hello").await;
    peer.answer(&id, json!({"messageId": "u1"})).await;
    peer.update(
        "s",
        whole_message("user_message", "u1", json!([text_block("hello")])),
    )
    .await;
    peer.update("s", state_update("running")).await;
    turn
}

#[tokio::test(start_paused = true)]
async fn initialize_works_with_agents_of_both_versions() {
    let answer = json!({
        "protocolVersion": 2,
        "info": {"name": "scripted", "version": "1", "title": "Scripted"},
        "capabilities": {"session": {
            "prompt": {"image": {}}, "mcp": {"http": {}}, "additionalDirectories": {},
        }},
        "authMethods": [
            {"type": "agent", "methodId": "key", "name": "Key"},
            {"type": "terminal", "methodId": "tty", "name": "Terminal", "args": ["login"],
             "env": [{"name": "A", "value": "b"}]},
            {"type": "_card", "methodId": "card", "name": "Card"},
        ],
    });
    let (conn, _peer, asked) = connect_client(NoopClient, answer).await;
    let conn = conn.unwrap();
    assert_eq!(asked["protocolVersion"], 2);
    assert!(asked["info"]["name"].is_string() && asked["capabilities"].is_object());
    assert!(asked["clientCapabilities"].is_object());

    assert_eq!(conn.version(), ProtocolVersion::V2);
    assert_eq!(conn.info().unwrap().title.as_deref(), Some("Scripted"));
    let can = conn.capabilities();
    assert!(can.load_session && can.prompt_capabilities.image && can.mcp_capabilities.http);
    assert!(!can.prompt_capabilities.audio && !can.mcp_capabilities.sse);
    let sessions = &can.session_capabilities;
    assert!(sessions.list.is_some() && sessions.resume.is_some() && sessions.close.is_some());
    assert!(sessions.additional_directories.is_some() && sessions.delete.is_none());
    assert!(can.auth.logout.is_some());
    let methods: Vec<String> = conn
        .auth_methods()
        .iter()
        .map(|m| m.id_and_name().unwrap().1)
        .collect();
    assert_eq!(methods, ["Key", "Terminal", "Card"]);
    let AuthMethod::Terminal(terminal) = &conn.auth_methods()[1] else {
        panic!("{:?}", conn.auth_methods())
    };
    assert_eq!(
        (&terminal.args[..], &terminal.env["A"][..]),
        (&["login".to_owned()][..], "b")
    );
}

#[tokio::test(start_paused = true)]
async fn the_form_of_the_response_determines_the_version() {
    let v1 = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    let (conn, mut peer, _) = connect_client(NoopClient, v1).await;
    let conn = conn.unwrap();
    assert_eq!(conn.version(), ProtocolVersion::V1);
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::EndTurn);

    // Some version 1 agents repeat any version number that is requested.
    let echo = json!({"protocolVersion": 2, "agentCapabilities": {}, "authMethods": []});
    let (conn, _peer, _) = connect_client(NoopClient, echo).await;
    assert_eq!(conn.unwrap().version(), ProtocolVersion::V1);

    for theirs in [0, 3, 999] {
        let (conn, _peer, _) = connect_client(NoopClient, json!({"protocolVersion": theirs})).await;
        let error = conn.unwrap_err();
        assert!(
            matches!(error, Error::Version { theirs: t, ours: 2 } if t == theirs),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_error_differs_from_other_errors() {
    for (data, expected) in [
        (
            json!({"requested": 1, "supported": [2, 3]}),
            "the agent speaks version 3",
        ),
        (Value::Null, "Unsupported protocol version"),
    ] {
        let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
        let connecting = tokio::spawn(acp::testing::start_client(
            transport,
            NoopClient,
            acp::Options::new(),
        ));
        let (id, _) = peer.expect_request("initialize").await;
        let error =
            json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
        peer.send(json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await;
        let error = with_timeout("the client gives up", connecting)
            .await
            .unwrap();
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn version_2_is_used_only_if_enabled() {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let connecting = tokio::spawn(acp::testing::start_client(
        transport,
        NoopClient,
        acp::Options::new(),
    ));
    let (id, params) = peer.expect_request("initialize").await;
    assert_eq!(params["protocolVersion"], 1);
    assert_eq!(params.get("capabilities"), None);
    peer.answer(&id, agent_capabilities()).await;
    let error = with_timeout("the client gives up", connecting)
        .await
        .unwrap();
    assert!(matches!(error, Err(Error::Version { theirs: 2, ours: 1 })));
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_when_the_agent_is_idle_and_all_updates_are_delivered() {
    let (session, mut peer) = open_session(NoopClient).await;
    let turn = begin_turn(&session, &mut peer).await;
    let s = "s";
    peer.update(s, message_chunk("agent_thought_chunk", "t1", "Let me "))
        .await;
    peer.update(s, message_chunk("agent_message_chunk", "m1", "Hel"))
        .await;
    // By their ids, wherever they are.
    peer.update(s, message_chunk("agent_thought_chunk", "t1", "see."))
        .await;
    peer.update(s, message_chunk("agent_message_chunk", "m1", "lo"))
        .await;
    peer.update(
        s,
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "kind": "read"}),
    )
    .await;
    peer.update(
        s,
        json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
               "content": {"type": "content", "content": text_block("one")}}),
    )
    .await;
    peer.update(
        s,
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
    )
    .await;
    peer.update(
        s,
        whole_message("agent_message", "m1", json!([text_block("Hello, you")])),
    )
    .await;
    wait_for_thread(session.thread(), |thread| {
        thread
            .items()
            .iter()
            .any(|i| matches!(&i.kind, acp::thread::ItemKind::Agent(m) if m.text() == "Hello, you"))
    })
    .await;
    wait_until_idle().await;
    assert!(!turn.is_finished());
    peer.update(s, idle_update("end_turn")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::EndTurn);
    assert_eq!(
        thread_lines(session.thread()),
        [
            "user: hello",
            "thought: Let me see.",
            "agent: Hello, you",
            "c (Look): Completed"
        ]
    );
    session.thread().read(|thread| {
        let call = thread.tool_call(&"c".into()).unwrap();
        assert_eq!(call.content.len(), 1);
        assert!(!thread.is_running());
        assert_eq!(thread.stop_reason(), Some(&StopReason::EndTurn));
    });
}

#[tokio::test(start_paused = true)]
async fn an_earlier_idle_state_does_not_end_the_turn() {
    let (session, mut peer) = open_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    // Work of the agent's own ends, and the prompt still waits.
    peer.update("s", idle_update("end_turn")).await;
    peer.update("s", state_update("idle")).await;
    peer.answer(&id, json!({"messageId": "u1"})).await;
    peer.update("s", state_update("idle")).await;
    wait_until_idle().await;
    assert!(!turn.is_finished());
    peer.update("s", state_update("running")).await;
    peer.update("s", state_update("requires_action")).await;
    // An unknown state is not idle.
    peer.update("s", state_update("_dreaming")).await;
    wait_until_idle().await;
    assert_eq!(
        session.thread().read(acp::Thread::activity),
        Activity::Unknown
    );
    assert!(!turn.is_finished());
    peer.update("s", idle_update("max_tokens")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::MaxTokens);
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_end_before_the_response() {
    let (session, mut peer) = open_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    peer.update("s", state_update("running")).await;
    peer.update("s", message_chunk("agent_message_chunk", "m", "done"))
        .await;
    peer.update("s", idle_update("refusal")).await;
    wait_until_idle().await;
    assert!(!turn.is_finished());
    peer.answer(&id, json!({})).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::Refusal);

    let (id, turn) = peer.start_prompt(&session, "hello").await;
    peer.answer(&id, json!({"messageId": "u2"})).await;
    peer.update("s", idle_update("end_turn")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn the_users_message_is_shown_once() {
    let told: [fn(&str) -> Vec<Value>; 3] = [
        |id| {
            vec![whole_message(
                "user_message",
                id,
                json!([text_block("hello")]),
            )]
        },
        |id| {
            vec![
                message_chunk("user_message_chunk", id, "hel"),
                message_chunk("user_message_chunk", id, "lo"),
            ]
        },
        |_| vec![],
    ];
    for told in told {
        for answer_first in [true, false] {
            let (session, mut peer) = open_session(NoopClient).await;
            let (id, turn) = peer.start_prompt(&session, "hello").await;
            if answer_first {
                peer.answer(&id, json!({"messageId": "u1"})).await;
            }
            for update in told("u1") {
                peer.update("s", update).await;
            }
            if !answer_first {
                peer.answer(&id, json!({"messageId": "u1"})).await;
            }
            peer.update("s", state_update("running")).await;
            // Another client sends a message in the same session.
            peer.update(
                "s",
                whole_message("user_message", "u2", json!([text_block("other")])),
            )
            .await;
            peer.update("s", idle_update("end_turn")).await;
            wait_for_turn(turn).await.unwrap();
            assert_eq!(
                thread_lines(session.thread()),
                ["user: hello", "user: other"]
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_fail_before_and_after_it_is_accepted() {
    let (session, mut peer) = open_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    peer.send_error(&id, -32602).await;
    assert!(matches!(wait_for_turn(turn).await, Err(Error::Rpc(e)) if e.code == -32602));

    let turn = begin_turn(&session, &mut peer).await;
    let error = json!({"code": -32603, "message": "the model is gone"});
    peer.update(
        "s",
        json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error}),
    )
    .await;
    let error = wait_for_turn(turn).await.unwrap_err();
    assert!(error.to_string().contains("the model is gone"), "{error}");
    assert!(!session.thread().read(acp::Thread::is_running));

    // Another turn can follow, which ends with the connection.
    let turn = begin_turn(&session, &mut peer).await;
    drop(peer);
    let error = wait_for_turn(turn).await.unwrap_err();
    assert!(matches!(error, Error::Closed(CloseReason::Peer)), "{error}");
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
}

/// A client that never answers questions.
struct SilentClient;

impl Client for SilentClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        _: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_resolves_questions_and_the_agent_ends_the_turn() {
    let (session, mut peer) = open_session(SilentClient).await;
    let turn = begin_turn(&session, &mut peer).await;
    let call = json!({"toolCallId": "c", "title": "Write"});
    peer.send_request(
        7,
        "session/request_permission",
        json!({"sessionId": "s", "title": "May I?", "subject": {"type": "tool_call", "toolCall": call},
               "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}),
    )
    .await;
    wait_for_thread(session.thread(), |t| t.tool_call(&"c".into()).is_some()).await;
    session.cancel().await.unwrap();
    assert_eq!(
        peer.expect_notification("session/cancel").await,
        json!({"sessionId": "s"})
    );
    assert_eq!(
        peer.expect_result(7).await,
        json!({"outcome": {"outcome": "cancelled"}})
    );
    // Late updates belong to this turn, and do not end it.
    peer.update("s", message_chunk("agent_message_chunk", "m", "late"))
        .await;
    wait_until_idle().await;
    assert!(!turn.is_finished());
    peer.update("s", idle_update("cancelled")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::Cancelled);

    // A cancelled prompt in the agent's queue gets an error response, which is not a failure.
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    session.cancel().await.unwrap();
    peer.expect_notification("session/cancel").await;
    peer.send_error(&id, jsonrpc::Error::REQUEST_CANCELLED)
        .await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::Cancelled);
    let turn = begin_turn(&session, &mut peer).await;
    peer.update("s", idle_update("end_turn")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn an_existing_session_is_replayed_on_request() {
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let client = common::UpdateClient({
        let seen = Arc::clone(&seen);
        move |cx: acp::client::UpdateContext, _| {
            seen.lock().unwrap().push(cx.is_replay);
            std::future::ready(())
        }
    });
    let (conn, mut peer, _) = connect_client(client, agent_capabilities()).await;
    let conn = conn.unwrap();
    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("old", "/work").await }
    });
    let (id, params) = peer.expect_request("session/resume").await;
    assert_eq!(
        params,
        json!({"sessionId": "old", "cwd": "/work", "replayFrom": {"type": "start"}})
    );
    peer.update(
        "old",
        whole_message("user_message", "u", json!([text_block("hi")])),
    )
    .await;
    peer.update(
        "old",
        whole_message("agent_message", "a", json!([text_block("ho")])),
    )
    .await;
    peer.update("old", state_update("idle")).await;
    peer.answer(
        &id,
        json!({"availableCommands": [{"type": "command", "name": "go", "description": "Goes"}]}),
    )
    .await;
    let session = with_timeout("it is loaded", loading)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(thread_lines(session.thread()), ["user: hi", "agent: ho"]);
    assert_eq!(
        session.thread().read(|t| t.commands()[0].name.clone()),
        "go"
    );
    assert_eq!(*seen.lock().unwrap(), [true, true, true]);

    let (id, turn) = peer.start_prompt(&session, "more").await;
    peer.answer(&id, json!({"messageId": "u2"})).await;
    peer.update("old", state_update("running")).await;
    peer.update("old", message_chunk("agent_message_chunk", "a2", "yes"))
        .await;
    peer.update("old", idle_update("end_turn")).await;
    wait_for_turn(turn).await.unwrap();
    assert!(!seen.lock().unwrap()[3..].contains(&true));
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hi", "agent: ho", "user: more", "agent: yes"]
    );

    let resuming = tokio::spawn(async move { conn.resume_session("other", "/work").await });
    let (id, params) = peer.expect_request("session/resume").await;
    assert_eq!(params, json!({"sessionId": "other", "cwd": "/work"}));
    peer.answer(&id, json!({})).await;
    with_timeout("it is resumed", resuming)
        .await
        .unwrap()
        .unwrap();
}

/// A client that allows everything and records the permission requests.
struct AllowAllClient(Arc<Mutex<Vec<PermissionRequest>>>);

impl Client for AllowAllClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        let yes = request.allow();
        self.0.lock().unwrap().push(request);
        Ok(yes)
    }
}

#[tokio::test(start_paused = true)]
async fn permission_requests_of_every_subject_are_handled() {
    let asked: Arc<Mutex<Vec<PermissionRequest>>> = Arc::default();
    let (session, mut peer) = open_session(AllowAllClient(Arc::clone(&asked))).await;
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let subjects = [
        json!({"type": "tool_call", "toolCall": {"toolCallId": "c", "title": "Write a.txt", "kind": "edit",
            "content": [{"type": "diff", "changes": [{"operation": "move", "oldPath": "/a", "path": "/b"}],
                         "patch": {"format": "git_patch", "text": "diff --git /a /b"}}]}}),
        json!({"type": "command", "command": "rm -r /", "cwd": "/", "toolCallId": "c"}),
        json!({"type": "command", "command": "ls", "cwd": "/work"}),
        json!({"type": "_pay", "amount": 5}),
        Value::Null,
    ];
    for (n, subject) in subjects.iter().enumerate() {
        peer.send_request(
            n,
            "session/request_permission",
            json!({"sessionId": "s", "title": "May I?", "description": "Because.",
                   "subject": subject, "options": options}),
        )
        .await;
        let outcome = peer.expect_result(n).await;
        assert_eq!(outcome["outcome"]["optionId"], "y", "{subject}");
    }
    let asked = asked.lock().unwrap();
    assert!(
        asked
            .iter()
            .all(|r| r.title == "May I?" && r.description.as_deref() == Some("Because."))
    );
    let [call, command, other_command, unknown, none] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(call.kind(), &acp::v1::ToolKind::Edit);
    let ThreadToolCallContent::Diff(diff) = &call.tool_call.content[0] else {
        panic!("{call:?}")
    };
    assert_eq!(diff.changes[0].operation, FileOperation::Move);
    assert_eq!(diff.changes[0].old_path.as_deref(), Some("/a"));
    assert_eq!(diff.patch.as_ref().unwrap().text, "diff --git /a /b");
    assert_eq!(command.command.as_ref().unwrap().command, "rm -r /");
    assert_eq!(command.tool_call.title, "Write a.txt");
    assert_eq!(other_command.kind(), &acp::v1::ToolKind::Execute);
    assert!(unknown.command.is_none() && none.command.is_none());
    // The title of the question is not that of the tool call, and a question without a subject is in no thread.
    assert_eq!(thread_lines(session.thread()), ["c (Write a.txt): Pending"]);
}

#[tokio::test(start_paused = true)]
async fn display_terminal_output_can_be_split_anywhere() {
    use base64::Engine as _;
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let (session, mut peer) = open_session(NoopClient).await;
    peer.update(
        "s",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
               "content": [{"type": "terminal", "terminalId": "t"}]}),
    )
    .await;
    let bytes = "né😀\n".as_bytes();
    for piece in bytes.chunks(2) {
        peer.update(
            "s",
            json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": base64(piece)}),
        )
        .await;
    }
    peer.update(
        "s",
        json!({"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls", "cwd": "/work",
               "exitStatus": {"exitCode": 2}}),
    )
    .await;
    wait_for_thread(session.thread(), |thread| {
        let terminal = thread.terminal(&"t".into());
        terminal.is_some_and(|t| t.exit_status.is_some())
    })
    .await;
    session.thread().read(|thread| {
        let terminal = thread.terminal(&"t".into()).unwrap();
        assert_eq!(terminal.output(), "né😀\n");
        assert_eq!(terminal.command.as_deref(), Some("ls"));
    });
    peer.update(
        "s",
        json!({"sessionUpdate": "terminal_update", "terminalId": "t", "cwd": null,
               "output": {"data": base64(b"anew")}}),
    )
    .await;
    wait_for_thread(session.thread(), |thread| {
        thread.terminal(&"t".into()).unwrap().output() == "anew"
    })
    .await;
    session.thread().read(|thread| {
        let terminal = thread.terminal(&"t".into()).unwrap();
        assert_eq!(
            (terminal.command.as_deref(), &terminal.cwd),
            (Some("ls"), &None)
        );
    });
}

#[tokio::test(start_paused = true)]
async fn plans_have_ids_and_unknown_types_are_preserved() {
    let (session, mut peer) = open_session(NoopClient).await;
    let plans = [
        json!({"type": "items", "planId": "a", "entries": [
            {"content": "x", "priority": "high", "status": "cancelled"}]}),
        // One page of the draft calls this field `id`.
        json!({"type": "items", "id": "b", "entries": []}),
        json!({"type": "_tree", "planId": "c", "root": {"n": 12_345_678_901_234_567_890_u64}}),
        json!({"type": "markdown", "planId": "d", "content": "# Plan"}),
        json!({"type": "items", "planId": "a", "entries": [
            {"content": "y", "priority": "_odd", "status": "pending"}]}),
    ];
    for plan in plans {
        peer.update("s", json!({"sessionUpdate": "plan_update", "plan": plan}))
            .await;
    }
    peer.update("s", json!({"sessionUpdate": "plan_removed", "planId": "d"}))
        .await;
    peer.update("s", message_chunk("agent_message_chunk", "m", "seen"))
        .await;
    wait_for_thread(session.thread(), |thread| !thread.items().is_empty()).await;
    session.thread().read(|thread| {
        let ids: Vec<&str> = thread.plans().iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(thread.plans()[0].entries()[0].content, "y");
        assert_eq!(thread.plans()[0].entries()[0].priority.as_str(), "_odd");
        let PlanContent::Unknown(plan) = &thread.plans()[2].content else {
            panic!("{:?}", thread.plans()[2])
        };
        assert_eq!(
            plan.get("root").unwrap().get(),
            r#"{"n":12345678901234567890}"#
        );
    });
}

#[tokio::test(start_paused = true)]
async fn an_invalid_item_is_skipped_and_null_clears_a_field() {
    let (session, mut peer) = open_session(NoopClient).await;
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
        for (key, value) in fields.as_object().unwrap() {
            update[key] = value.clone();
        }
        update
    };
    peer.update(
        "s",
        call(json!({"title": "T", "kind": "_odd", "status": "paused", "rawInput": {"a": 1},
            "locations": [{"path": "/a"}, {"line": 1}, 7],
            "content": [{"type": "terminal"}, {"type": "terminal", "terminalId": "nobody's"}, {"type": "_x", "y": 1}, 5]})),
    )
    .await;
    wait_for_thread(session.thread(), |t| t.tool_call(&"c".into()).is_some()).await;
    session.thread().read(|thread| {
        let call = thread.tool_call(&"c".into()).unwrap();
        assert_eq!(
            (call.locations.len(), call.content.len()),
            (1, 2),
            "{call:?}"
        );
        assert_eq!(call.status, ToolCallStatus::Paused);
        assert_eq!(call.kind.as_str(), "_odd");
    });
    peer.update(
        "s",
        call(json!({"title": null, "kind": null, "status": 5, "rawInput": null, "content": null})),
    )
    .await;
    peer.update("s", json!({"sessionUpdate": "_new_kind", "x": 1}))
        .await;
    wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
    session.thread().read(|thread| {
        let call = thread.tool_call(&"c".into()).unwrap();
        assert_eq!((&call.title[..], call.kind.as_str()), ("", "other"));
        assert_eq!(call.status, ToolCallStatus::Paused);
        assert!(call.content.is_empty() && call.raw_input.is_none());
        assert_eq!(call.locations.len(), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn version_1_methods_are_rejected_in_version_2() {
    let (conn, mut peer, _) = connect_client(NoopClient, agent_capabilities()).await;
    let conn = conn.unwrap();
    for method in ["fs/read_text_file", "terminal/create"] {
        peer.send_request(1, method, json!({"sessionId": "s", "path": "/a"}))
            .await;
        assert_eq!(peer.expect_error(1).await.0, -32601);
    }
    let server = McpServerStdio::new("files", "/bin/files", vec![], vec![]);
    let setup = acp::client::SessionSetup::new("/work").mcp_servers(vec![McpServer::Stdio(server)]);
    let error = conn.new_session(setup).await.unwrap_err();
    assert!(error.to_string().contains("session.mcp.stdio"), "{error}");
    let error = conn.authenticate("key").await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(matches!(
        conn.logout().await,
        Err(Error::Unsupported { .. })
    ));
    peer.expect_silence().await;

    let nothing =
        json!({"protocolVersion": 2, "info": {"name": "n", "version": "1"}, "capabilities": {}});
    let (conn, mut peer, _) = connect_client(NoopClient, nothing).await;
    let conn = conn.unwrap();
    let error = conn.new_session("/work").await.unwrap_err();
    assert!(error.to_string().contains("session"), "{error}");
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn authentication_and_options_use_version_2_names() {
    let answer = json!({
        "protocolVersion": 2, "info": {"name": "n", "version": "1"}, "capabilities": {"session": {}},
        "authMethods": [{"type": "agent", "methodId": "key", "name": "Key"},
                        {"type": "terminal", "methodId": "tty", "name": "Terminal"}],
    });
    let (conn, mut peer, _) = connect_client(NoopClient, answer).await;
    let conn = conn.unwrap();
    assert!(matches!(
        conn.authenticate("tty").await,
        Err(Error::InvalidRequest(_))
    ));
    let login = tokio::spawn({
        let conn = conn.clone();
        async move { conn.authenticate("key").await }
    });
    let (id, params) = peer.expect_request("auth/login").await;
    assert_eq!(params, json!({"methodId": "key"}));
    peer.answer(&id, json!({})).await;
    with_timeout("it is in", login).await.unwrap().unwrap();
    let logout = tokio::spawn({
        let conn = conn.clone();
        async move { conn.logout().await }
    });
    let (id, _) = peer.expect_request("auth/logout").await;
    peer.answer(&id, Value::Null).await;
    with_timeout("it is out", logout).await.unwrap().unwrap();

    let option = |value: &str| {
        json!([{"configId": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": value, "options": [{"groupId": "g", "name": "G", "options": [
                {"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}]},
           {"configId": "web", "name": "Web", "type": "boolean", "currentValue": false}])
    };
    let session = peer
        .open_session(
            &conn,
            json!({"sessionId": "s", "configOptions": option("a")}),
        )
        .await;
    let error = session.set_config_option("model", "c").await.unwrap_err();
    assert!(error.to_string().contains("a, b"), "{error}");
    for (id, value, sent) in [
        ("model", "b", json!({"type": "id", "value": "b"})),
        ("web", "true", json!({"type": "boolean", "value": true})),
    ] {
        let setting = tokio::spawn({
            let session = session.clone();
            async move { session.set_config_option(id, value).await }
        });
        let (request, mut params) = peer.expect_request("session/set_config_option").await;
        let params = params.as_object_mut().unwrap();
        params.remove("sessionId");
        params.remove("configId");
        assert_eq!(*params, *sent.as_object().unwrap());
        peer.answer(&request, json!({"configOptions": option("b")}))
            .await;
        with_timeout("it is set", setting).await.unwrap().unwrap();
    }
    session.thread().read(|thread| {
        let SessionConfigKind::Select(select) = &thread.config_options()[0].kind else {
            panic!("{:?}", thread.config_options())
        };
        assert_eq!(select.current_value.as_str(), "b");
    });
}

#[tokio::test(start_paused = true)]
async fn state_usage_and_background_work_are_kept_up_to_date() {
    let (session, mut peer) = open_session(NoopClient).await;
    peer.update("s", json!({"sessionUpdate": "usage_update", "used": 1, "size": 10, "cost": {"amount": 0.5, "currency": "EUR"}})).await;
    peer.update(
        "s",
        json!({"sessionUpdate": "usage_update", "used": 2, "size": 10}),
    )
    .await;
    peer.update("s", json!({"sessionUpdate": "state_update", "state": "running", "background": [{"type": "terminal", "terminalId": "t"}, {"type": "_x"}]})).await;
    peer.update("s", json!({"sessionUpdate": "session_info_update", "title": "T", "updatedAt": "2026-01-01T00:00:00Z"})).await;
    peer.update(
        "s",
        json!({"sessionUpdate": "session_info_update", "updatedAt": null}),
    )
    .await;
    peer.update(
        "s",
        json!({"sessionUpdate": "notice", "severity": "warning", "title": "Slow"}),
    )
    .await;
    wait_for_thread(session.thread(), |thread| !thread.items().is_empty()).await;
    session.thread().read(|thread| {
        let usage = thread.usage().unwrap();
        assert_eq!((usage.used, usage.cost.as_ref().unwrap().amount), (2, 0.5));
        assert_eq!(thread.background().unwrap().len(), 2);
        // No turn of this client is running, but the agent is working.
        assert!(thread.is_running());
        assert_eq!((thread.title(), thread.updated_at()), (Some("T"), None));
    });
    peer.update(
        "s",
        json!({"sessionUpdate": "usage_update", "used": 3, "size": 10, "cost": null}),
    )
    .await;
    peer.update(
        "s",
        json!({"sessionUpdate": "state_update", "state": "idle", "background": []}),
    )
    .await;
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
    session.thread().read(|thread| {
        assert!(thread.usage().unwrap().cost.is_none());
        assert!(thread.background().unwrap().is_empty());
    });
}

#[tokio::test(start_paused = true)]
async fn single_tool_calls_and_terminals_can_be_cancelled() {
    let (session, mut peer) = open_session(NoopClient).await;
    let can = json!({"cancel": {}});
    for (id, capabilities) in [("a", Value::Null), ("b", can.clone())] {
        peer.update("s", json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "capabilities": capabilities})).await;
        peer.update("s", json!({"sessionUpdate": "terminal_update", "terminalId": id, "capabilities": capabilities})).await;
    }
    wait_for_thread(session.thread(), |t| t.terminal(&"b".into()).is_some()).await;
    for id in ["a", "nobody's"] {
        let error = session.cancel_tool_call(id).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let error = session.cancel_terminal(id).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
    peer.expect_silence().await;
    let cancelling = tokio::spawn(async move {
        session.cancel_tool_call("b").await?;
        session.cancel_terminal("b").await
    });
    let (id, params) = peer.expect_request("tool_call/cancel").await;
    assert_eq!(params, json!({"sessionId": "s", "toolCallId": "b"}));
    peer.answer(&id, json!({})).await;
    let (id, params) = peer.expect_request("terminal/cancel").await;
    assert_eq!(params, json!({"sessionId": "s", "terminalId": "b"}));
    peer.send_error(&id, -32602).await;
    let error = with_timeout("it is answered", cancelling)
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::Rpc(e) if e.code == -32602));
}

/// Work that the agent starts on its own can be cancelled like a turn, and can request permission.
#[tokio::test(start_paused = true)]
async fn work_started_by_the_agent_can_ask_and_be_cancelled() {
    let asked: Arc<Mutex<Vec<PermissionRequest>>> = Arc::default();
    let (session, mut peer) = open_session(AllowAllClient(Arc::clone(&asked))).await;
    let turn = begin_turn(&session, &mut peer).await;
    session.cancel().await.unwrap();
    peer.expect_notification("session/cancel").await;
    peer.update("s", idle_update("cancelled")).await;
    assert_eq!(wait_for_turn(turn).await.unwrap(), StopReason::Cancelled);

    peer.update("s", state_update("running")).await;
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let request = json!({"sessionId": "s", "title": "May I?", "options": options});
    peer.send_request(7, "session/request_permission", request)
        .await;
    assert_eq!(peer.expect_result(7).await["outcome"]["optionId"], "y");
    session.cancel().await.unwrap();
    peer.expect_notification("session/cancel").await;
    peer.update("s", idle_update("cancelled")).await;
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
    session.cancel().await.unwrap();
    peer.expect_silence().await;
}
