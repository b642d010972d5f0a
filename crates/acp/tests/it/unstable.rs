//! Tests of additions to the stable version 1 schema, such as forks, models and multiple plans, and of undocumented
//! behavior of existing agents.

use acp::agent::{ForkSession, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::client::{Client, Elicitation};
use acp::thread::{ONLY_PLAN_ID, ToolCallStatus};
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationId, ElicitationNoContent,
    ElicitationScope, SessionConfigId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelect,
    SessionConfigSelectOption, SessionId, StopReason,
};
use acp::{Agent, Error, Limits, Result};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, idle_agent, thread_lines, wait_for_thread, with_timeout,
};

fn text_chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// An agent that forks sessions and has a model.
struct ForkingAgent;

fn model_option(current: &str) -> Vec<SessionConfigOption> {
    let values = vec![
        SessionConfigSelectOption::new("a", "A"),
        SessionConfigSelectOption::new("b", "B"),
    ];
    let select = SessionConfigSelect::new(current, values);
    let option = SessionConfigOption::new("m", "Model", select);
    vec![option.category(SessionConfigOptionCategory::Model)]
}

impl Agent for ForkingAgent {
    type State = ();

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new().config_options(model_option("a")))
    }
    async fn set_config_option(
        &self,
        (): &(),
        _: &Session,
        _: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        Ok(model_option(&value.to_string()))
    }
    fn fork_session(&self) -> Option<&impl ForkSession> {
        Some(self)
    }
}

impl ForkSession for ForkingAgent {
    async fn fork(
        &self,
        from: &SessionId,
        session: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession> {
        if from.as_str() != "old" {
            return Err(Error::invalid_params("no such session"));
        }
        assert_ne!(session.id(), from);
        Ok(OpenedSession::new().config_options(model_option("b")))
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_the_capability_forks_sessions() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(ForkingAgent);
    let said = peer.initialize(json!({})).await;
    assert_eq!(
        said["agentCapabilities"]["sessionCapabilities"]["fork"],
        json!({})
    );
    let fork = json!({"sessionId": "old", "cwd": "/work", "mcpServers": []});
    peer.send_request(1, "session/fork", fork).await;
    let copy = peer.expect_result(1).await;
    assert_eq!(copy["configOptions"][0]["currentValue"], "b");
    peer.send_prompt(2, copy["sessionId"].as_str().unwrap(), "go")
        .await;
    peer.expect_result(2).await;
    peer.send_request(
        3,
        "session/fork",
        json!({"sessionId": "gone", "cwd": "/work"}),
    )
    .await;
    assert_eq!(peer.expect_error(3).await.0, -32602);

    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    peer.send_request(1, "session/fork", json!({"sessionId": s, "cwd": "/work"}))
        .await;
    assert_eq!(peer.expect_error(1).await.0, -32601);
}

#[tokio::test(start_paused = true)]
async fn a_client_forks_a_session() {
    let can = json!({"sessionCapabilities": {"fork": {}}});
    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, Limits::default(), PIPE_CAPACITY, can).await;
    let forking = tokio::spawn(async move { conn.fork_session("old", "/work").await });
    let (id, params) = peer.expect_request("session/fork").await;
    assert_eq!(params, json!({"sessionId": "old", "cwd": "/work"}));
    peer.update("new", text_chunk("agent_message_chunk", "ahead"))
        .await;
    peer.answer(&id, json!({"sessionId": "new"})).await;
    let session = with_timeout("it is copied", forking)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(session.id().as_str(), "new");
    assert_eq!(thread_lines(session.thread()), ["agent: ahead"]);

    let (conn, mut peer) = TestPeer::connect_to_client(NoopClient).await;
    let error = conn.fork_session("old", "/work").await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn models_without_an_option_are_shown_as_an_option() {
    let models = json!({"currentModelId": "a", "availableModels": [
        {"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B", "description": "Better"}]});
    let (conn, mut peer) = TestPeer::connect_to_client(NoopClient).await;
    let session = peer
        .open_session(&conn, json!({"sessionId": "s", "models": models}))
        .await;
    let current = || {
        session
            .thread()
            .read(|thread| match &thread.config_options()[0].kind {
                SessionConfigKind::Select(select) => select.current_value.to_string(),
                other => panic!("{other:?}"),
            })
    };
    assert_eq!(current(), "a");
    let error = session.set_config_option("model", "c").await.unwrap_err();
    assert!(error.to_string().contains("a, b"), "{error}");
    let setting = tokio::spawn({
        let session = session.clone();
        async move { session.set_config_option("model", "b").await }
    });
    let (id, params) = peer.expect_request("session/set_model").await;
    assert_eq!(params, json!({"sessionId": "s", "modelId": "b"}));
    peer.answer(&id, json!({})).await;
    with_timeout("it is set", setting).await.unwrap().unwrap();
    assert_eq!(current(), "b");

    // An option of the category model is used instead.
    let option = json!([{"id": "m", "name": "M", "category": "model", "type": "select",
        "currentValue": "x", "options": [{"value": "x", "name": "X"}]}]);
    let both = json!({"sessionId": "t", "models": models, "configOptions": option});
    let session = peer.open_session(&conn, both).await;
    let ids: Vec<String> = session.thread().read(|t| {
        t.config_options()
            .iter()
            .map(|o| o.id.to_string())
            .collect()
    });
    assert_eq!(ids, ["m"]);
}

#[tokio::test(start_paused = true)]
async fn set_model_sets_the_model_option() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(ForkingAgent).await;
    peer.send_request(
        1,
        "session/set_model",
        json!({"sessionId": s, "modelId": "b"}),
    )
    .await;
    let told = peer.expect_notification("session/update").await;
    assert_eq!(told["update"]["sessionUpdate"], "config_option_update");
    assert_eq!(told["update"]["configOptions"][0]["currentValue"], "b");
    assert_eq!(peer.expect_result(1).await, json!({}));
    peer.send_request(
        2,
        "session/set_model",
        json!({"sessionId": s, "modelId": "z"}),
    )
    .await;
    assert_eq!(peer.expect_error(2).await.0, -32602);
}

#[tokio::test(start_paused = true)]
async fn several_version_1_plans_are_distinguished() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let entries = json!([{"content": "x", "priority": "low", "status": "pending"}]);
    peer.update("s", json!({"sessionUpdate": "plan", "entries": entries}))
        .await;
    let plan = json!({"type": "items", "planId": "b", "entries": entries});
    peer.update("s", json!({"sessionUpdate": "plan_update", "plan": plan}))
        .await;
    peer.update("s", json!({"sessionUpdate": "plan_update", "plan": {"type": "file", "planId": "c", "uri": "file:///p"}})).await;
    peer.update("s", json!({"sessionUpdate": "plan_removed", "planId": "b"}))
        .await;
    peer.update("s", text_chunk("agent_message_chunk", "seen"))
        .await;
    wait_for_thread(session.thread(), |thread| !thread.items().is_empty()).await;
    session.thread().read(|thread| {
        let ids: Vec<&str> = thread.plans().iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids, [ONLY_PLAN_ID, "c"]);
        assert_eq!(thread.plans()[0].entries()[0].content, "x");
    });
}

#[tokio::test(start_paused = true)]
async fn an_echoed_user_message_is_shown_once() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hello").await;
    peer.update("s", text_chunk("user_message_chunk", "hel"))
        .await;
    peer.update("s", text_chunk("user_message_chunk", "lo"))
        .await;
    peer.update("s", text_chunk("agent_message_chunk", "hi"))
        .await;
    // The user has sent this message in the meantime from somewhere else.
    peer.update("s", text_chunk("user_message_chunk", "more"))
        .await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    with_timeout("the turn ends", turn).await.unwrap().unwrap();
    assert_eq!(
        thread_lines(session.thread()),
        ["user: hello", "agent: hi", "user: more"]
    );
    // A message between turns is not taken for an echo either.
    peer.update("s", text_chunk("user_message_chunk", "again"))
        .await;
    wait_for_thread(session.thread(), |t| t.items().len() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn late_updates_do_not_reopen_a_finished_call() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let update = |status: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": "a/b:1", "status": status, "title": status});
    for status in ["in_progress", "completed", "in_progress", "pending"] {
        peer.update("s", update(status)).await;
    }
    peer.update("s", text_chunk("agent_message_chunk", "seen"))
        .await;
    wait_for_thread(session.thread(), |thread| thread.items().len() == 2).await;
    session.thread().read(|thread| {
        let call = thread.tool_call(&"a/b:1".into()).unwrap();
        // Other fields of the update still apply.
        assert_eq!(
            (&call.status, &call.title[..]),
            (&ToolCallStatus::Completed, "pending")
        );
    });
}

/// A client that rejects everything and records updates.
struct RejectingClient(Arc<Mutex<Vec<String>>>);

impl Client for RejectingClient {
    type State = ();

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(self)
    }
    async fn elicitation_completed(&self, id: &ElicitationId) {
        self.0.lock().unwrap().push(format!("completed {id}"));
    }
}

impl Elicitation<()> for RejectingClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new())
    }
    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        let scope = match request.scope {
            ElicitationScope::Session {
                session_id,
                tool_call_id,
            } => {
                format!("session {session_id} {tool_call_id:?}")
            }
            ElicitationScope::Request { request_id } => format!("request {request_id}"),
        };
        self.0
            .lock()
            .unwrap()
            .push(format!("{} {scope}", request.message));
        Ok(CreateElicitationResponse::new(ElicitationAction::Decline(
            ElicitationNoContent::default(),
        )))
    }
}

#[tokio::test(start_paused = true)]
async fn elicitation_works_in_sessions_and_during_requests() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (_session, mut peer) =
        TestPeer::open_client_session(RejectingClient(Arc::clone(&told))).await;
    let schema = json!({"type": "object", "properties": {}});
    for scope in [
        json!({"sessionId": "s", "toolCallId": "c"}),
        json!({"requestId": 5}),
    ] {
        let mut params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
        params
            .as_object_mut()
            .unwrap()
            .extend(scope.as_object().unwrap().clone());
        peer.send_request(1, "elicitation/create", params).await;
        assert_eq!(peer.expect_result(1).await, json!({"action": "decline"}));
    }
    peer.notify("elicitation/complete", json!({"elicitationId": "e"}))
        .await;
    peer.check_alive().await;
    assert_eq!(
        *told.lock().unwrap(),
        [
            r#"Who? session s Some("c")"#,
            "Who? request 5",
            "completed e"
        ]
    );

    let (_session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let params =
        json!({"mode": "form", "message": "Who?", "requestedSchema": schema, "sessionId": "s"});
    peer.send_request(1, "elicitation/create", params).await;
    assert_eq!(peer.expect_error(1).await.0, -32601);
}
