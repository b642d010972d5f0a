//! Tests of an agent built with this library, against a scripted version 2 client.

use std::sync::{Arc, Mutex};

use acp::agent::{
    AuthContext, Authentication, CancelWork, LoadSession, OpenedSession, Prompt, Session,
    SessionSetup, Turn,
};
use acp::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodId, AuthMethodTerminal, AvailableCommand, ContentBlock,
    Diff, ElicitationAction, ElicitationMode, ElicitationSchema, Implementation, Notice,
    NoticeSeverity, PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, PromptCapabilities, RequestPermissionOutcome, SessionConfigId,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelect, SessionConfigSelectOption, StopReason, TerminalExitStatus, TerminalId,
    ToolCall, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind, UnstructuredCommandInput,
    UsageUpdate,
};
use acp::{Agent, Connection, Error, Limits, Options, Result};
use serde_json::{Value, json};

use crate::common::{
    PIPE_CAPACITY, PromptAgent, TestPeer, connect_pipes, idle_agent, wait_until_idle,
};

/// Connects a client, which requests the given version, to an agent.
async fn initialize_agent(
    agent: impl Agent,
    version: u16,
    params: Value,
) -> (Connection, TestPeer, Value) {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let options = Options::from(Limits::default()).draft_version_2();
    let conn = acp::testing::start_agent(transport, agent, options);
    let mut params = params;
    params["protocolVersion"] = version.into();
    peer.send_request("init", "initialize", params).await;
    let answer = peer.expect_result("init").await;
    (conn, peer, answer)
}

/// Connects a version 2 client to an agent, and opens a session.
async fn open_session(agent: impl Agent) -> (Connection, TestPeer, String) {
    let params = json!({"info": {"name": "c", "version": "1"}, "capabilities": {
        "elicitation": {"form": {}}}});
    let (conn, mut peer, answer) = initialize_agent(agent, 2, params).await;
    assert_eq!(answer["protocolVersion"], 2);
    let s = peer.new_session().await;
    (conn, peer, s)
}

/// Returns the next update, without generated ids and the fields that every update has.
async fn next_update(peer: &mut TestPeer) -> Value {
    let mut params = peer.expect_notification("session/update").await;
    let mut update = params["update"].take();
    let object = update.as_object_mut().unwrap();
    if let Some(Value::String(id)) = object.get_mut("messageId") {
        assert!(id.starts_with("msg_"), "{id}");
    }
    update
}

async fn expect_update(peer: &mut TestPeer, expected: Value) {
    let mut got = next_update(peer).await;
    got.as_object_mut().unwrap().remove("messageId");
    assert_eq!(got, expected);
}

/// Expects the start of a turn: the response, the message and the state. Returns the message's id.
async fn begin_turn(peer: &mut TestPeer, id: i64, text: &str) -> String {
    let answer = peer.expect_result(id).await;
    let message = next_update(peer).await;
    assert_eq!(message["sessionUpdate"], "user_message");
    assert_eq!(message["content"], json!([{"type": "text", "text": text}]));
    assert_eq!(message["messageId"], answer["messageId"]);
    expect_update(
        peer,
        json!({"sessionUpdate": "state_update", "state": "running"}),
    )
    .await;
    answer["messageId"].as_str().unwrap().to_owned()
}

fn idle_update(reason: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
}

#[tokio::test(start_paused = true)]
async fn the_requested_version_is_negotiated_if_supported() {
    for (asked_for, answered) in [(0, 1), (1, 1), (2, 2), (3, 2), (900, 2)] {
        let (_conn, _peer, answer) = initialize_agent(idle_agent(), asked_for, json!({})).await;
        assert_eq!(answer["protocolVersion"], answered, "{asked_for}");
        assert_eq!(answer.get("agentCapabilities").is_some(), answered == 1);
        assert_eq!(answer.get("capabilities").is_some(), answered == 2);
        assert_eq!(answer.get("info").is_some(), answered == 2);
    }
    // Without the option, it is version 1.
    let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
    peer.send_request("init", "initialize", json!({"protocolVersion": 2}))
        .await;
    assert_eq!(peer.expect_result("init").await["protocolVersion"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_reported_between_running_and_idle() {
    let agent = PromptAgent(async |turn: Turn, _| {
        turn.send_thought("Hm").await?;
        turn.send_message("Hel").await?;
        turn.send_message("lo").await?;
        let call = ToolCall::new("c", "Write a").kind(ToolKind::Edit);
        let call = turn.report_tool_call(call).await?;
        call.start().await?;
        let diff = Diff::new("/work/a", "one\ntwo\n").old_text("one\n");
        call.set_content(vec![diff.into()]).await?;
        call.complete().await?;
        turn.send_message("Done").await?;
        turn.report_usage(UsageUpdate::new(1_u64, 2_u64)).await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, s) = open_session(agent).await;
    peer.send_prompt(1, &s, "go").await;
    begin_turn(&mut peer, 1, "go").await;
    let text = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    expect_update(&mut peer, text("agent_thought_chunk", "Hm")).await;
    let (one, two) = (next_update(&mut peer).await, next_update(&mut peer).await);
    assert_eq!(one["messageId"], two["messageId"]);
    let call = |fields: Value| {
        let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
        call.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        call
    };
    expect_update(&mut peer, call(json!({"title": "Write a", "kind": "edit"}))).await;
    expect_update(&mut peer, call(json!({"status": "in_progress"}))).await;
    let patch = "diff --git /work/a /work/a\n--- /work/a\n+++ /work/a\n@@ -1 +1,2 @@\n one\n+two\n";
    expect_update(
        &mut peer,
        call(json!({"content": [{"type": "diff",
        "changes": [{"operation": "modify", "path": "/work/a", "fileType": "text"}],
        "patch": {"format": "git_patch", "text": patch}}]})),
    )
    .await;
    expect_update(&mut peer, call(json!({"status": "completed"}))).await;
    let after = next_update(&mut peer).await;
    assert_ne!(after["messageId"], one["messageId"]);
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
    )
    .await;
    expect_update(&mut peer, idle_update("end_turn")).await;
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn prompts_are_queued_and_cancelled_together() {
    let agent = PromptAgent(async |turn: Turn, prompt: Prompt| {
        if prompt.text() == "wait" {
            turn.cancelled().await;
        }
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, s) = open_session(agent).await;
    for (id, text) in [(1, "wait"), (2, "a"), (3, "b")] {
        peer.send_prompt(id, &s, text).await;
    }
    begin_turn(&mut peer, 1, "wait").await;
    // A single prompt can be cancelled.
    peer.notify("$/cancel_request", json!({"requestId": 2}))
        .await;
    assert_eq!(peer.expect_error(2).await.0, -32800);
    // A prompt that was accepted cannot.
    peer.notify("$/cancel_request", json!({"requestId": 1}))
        .await;
    peer.expect_silence().await;
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let message = peer.next().await;
        seen.push(if message["id"] == 3 {
            assert_eq!(message["error"]["code"], -32800);
            "taken back"
        } else {
            assert_eq!(message["params"]["update"], idle_update("cancelled"));
            "cancelled"
        });
    }
    seen.sort_unstable();
    assert_eq!(seen, ["cancelled", "taken back"]);
    peer.send_prompt(4, &s, "c").await;
    peer.send_prompt(5, &s, "d").await;
    for (id, text) in [(4, "c"), (5, "d")] {
        begin_turn(&mut peer, id, text).await;
        expect_update(&mut peer, idle_update("end_turn")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_prompts_are_rejected_and_later_failures_reported() {
    struct AcceptingAgent;
    impl Agent for AcceptingAgent {
        type State = ();

        async fn new_session(
            &self,
            _: &acp::agent::Session,
            _: acp::agent::SessionSetup,
        ) -> acp::Result<acp::agent::OpenedSession> {
            Ok(acp::agent::OpenedSession::new())
        }

        async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
            Err(Error::internal("the model is gone"))
        }
        fn prompt_capabilities(&self) -> PromptCapabilities {
            PromptCapabilities::new().audio(true)
        }
    }
    let (_conn, mut peer, s) = open_session(AcceptingAgent).await;
    let image = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
    for prompt in [json!([]), image] {
        peer.send_request(
            1,
            "session/prompt",
            json!({"sessionId": s, "prompt": prompt}),
        )
        .await;
        assert_eq!(peer.expect_error(1).await.0, -32602);
    }
    peer.send_request(
        2,
        "session/prompt",
        json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "x"}]}),
    )
    .await;
    let error = peer.next().await["error"].take();
    assert_eq!(
        (&error["code"], &error["data"]["sessionId"]),
        (&json!(-32002), &json!("nobody"))
    );
    peer.send_prompt(3, &s, "go").await;
    begin_turn(&mut peer, 3, "go").await;
    let mut end = idle_update("error");
    end["error"] = json!({"code": -32603, "message": "the model is gone"});
    expect_update(&mut peer, end).await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_reported_and_end_with_a_cancelled_turn() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let call = turn.report_tool_call(ToolCall::new("c", "Write a")).await?;
        let options = vec![PermissionOption::new(
            "y",
            "Yes",
            PermissionOptionKind::AllowOnce,
        )];
        let outcome = turn
            .request_permission(ToolCallUpdate::new(call.id()), options.clone())
            .await?;
        assert!(matches!(outcome, RequestPermissionOutcome::Selected(_)));
        let form = ElicitationMode::Form {
            requested_schema: ElicitationSchema::new(),
        };
        let action = turn.elicit("Who?", form, Some("c".into())).await?;
        assert!(
            matches!(action, ElicitationAction::Decline(_)),
            "{action:?}"
        );
        let url = ElicitationMode::Url {
            elicitation_id: "e".into(),
            url: "https://a".to_owned(),
        };
        let error = turn.elicit("Where?", url, None).await.unwrap_err();
        assert!(error.to_string().contains("elicitation.url"), "{error}");
        assert!(matches!(
            turn.read_text_file("/a", None, None).await,
            Err(Error::Unsupported { .. })
        ));
        let token = turn.take_cancellation();
        let outcome = turn
            .request_permission(ToolCallUpdate::new(call.id()), options)
            .await?;
        assert_eq!(outcome, RequestPermissionOutcome::cancelled());
        assert!(token.is_cancelled());
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, s) = open_session(agent).await;
    peer.send_prompt(1, &s, "go").await;
    begin_turn(&mut peer, 1, "go").await;
    next_update(&mut peer).await;
    let waits = json!({"sessionUpdate": "state_update", "state": "requires_action"});
    let works = json!({"sessionUpdate": "state_update", "state": "running"});
    expect_update(&mut peer, waits.clone()).await;
    let (id, params) = peer.expect_request("session/request_permission").await;
    assert_eq!(params["title"], "Write a");
    assert_eq!(
        params["subject"],
        json!({"type": "tool_call", "toolCall": {"toolCallId": "c"}})
    );
    peer.answer(
        &id,
        json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
    )
    .await;
    expect_update(&mut peer, works.clone()).await;
    expect_update(&mut peer, waits.clone()).await;
    let (id, params) = peer.expect_request("elicitation/create").await;
    assert_eq!(
        (&params["mode"], &params["toolCallId"], &params["sessionId"]),
        (&json!("form"), &json!("c"), &json!(s))
    );
    peer.answer(&id, json!({"action": "decline"})).await;
    expect_update(&mut peer, works).await;
    expect_update(&mut peer, waits).await;
    let (id, _) = peer.expect_request("session/request_permission").await;
    peer.notify("session/cancel", json!({"sessionId": s})).await;
    assert_eq!(
        peer.expect_notification("$/cancel_request").await,
        json!({"requestId": id})
    );
    expect_update(&mut peer, idle_update("cancelled")).await;
    // A response that comes nevertheless is ignored.
    peer.answer(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn updates_are_sent_in_the_form_of_version_2() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let entry =
            |text: &str| PlanEntry::new(text, PlanEntryPriority::High, PlanEntryStatus::Pending);
        turn.set_plan(vec![entry("a")]).await?;
        turn.set_plan_by_id("p2", vec![entry("b")]).await?;
        turn.remove_plan("p2").await?;
        let command =
            AvailableCommand::new("go", "Goes").input(UnstructuredCommandInput::new("where"));
        turn.set_commands(vec![command]).await?;
        turn.set_title("T").await?;
        turn.show_notice(Notice::new(NoticeSeverity::Info, "N"))
            .await?;
        let mut terminal = turn.show_display_terminal("c", "ls", Some("/work")).await?;
        terminal
            .append_output("é".as_bytes().get(..1).unwrap())
            .await?;
        let mut status = TerminalExitStatus::new();
        status.exit_code = Some(0);
        terminal.set_exited(status).await?;
        turn.send_message_content(ContentBlock::text("x")).await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, s) = open_session(agent).await;
    peer.send_prompt(1, &s, "go").await;
    begin_turn(&mut peer, 1, "go").await;
    let plan = |id: &str, text: &str| {
        let entries = json!([{"content": text, "priority": "high", "status": "pending"}]);
        json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": entries}})
    };
    expect_update(&mut peer, plan("plan", "a")).await;
    expect_update(&mut peer, plan("p2", "b")).await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "plan_removed", "planId": "p2"}),
    )
    .await;
    let commands = json!([{"type": "command", "name": "go", "description": "Goes",
                           "input": {"type": "text", "hint": "where"}}]);
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
    )
    .await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "session_info_update", "title": "T"}),
    )
    .await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "notice", "severity": "info", "title": "N"}),
    )
    .await;
    let began = next_update(&mut peer).await;
    let t = began["terminalId"].as_str().unwrap().to_owned();
    assert_eq!(
        began,
        json!({"sessionUpdate": "terminal_update", "terminalId": t, "command": "ls", "cwd": "/work"})
    );
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "terminal_output_chunk", "terminalId": t, "data": "ww=="}),
    )
    .await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "terminal_update", "terminalId": t, "exitStatus": {"exitCode": 0}}),
    )
    .await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}),
    )
    .await;
    expect_update(&mut peer, idle_update("end_turn")).await;
}

/// Version 1 clients receive the same kinds of updates in version 1 form.
#[tokio::test(start_paused = true)]
async fn updates_are_sent_in_the_form_of_version_1() {
    let agent = || {
        PromptAgent(async |turn: Turn, _| {
            let entry = |text: &str| {
                PlanEntry::new(text, PlanEntryPriority::High, PlanEntryStatus::Pending)
            };
            turn.set_plan_by_id("p1", vec![entry("a")]).await?;
            turn.set_plan_by_id("p2", vec![entry("b")]).await?;
            turn.remove_plan("p1").await?;
            turn.show_notice(Notice::new(NoticeSeverity::Info, "N"))
                .await?;
            if let Ok(mut terminal) = turn.show_display_terminal("c", "ls", Some("/work")).await {
                for byte in "é".as_bytes() {
                    terminal.append_output(&[*byte]).await?;
                }
                terminal.set_exited(TerminalExitStatus::new()).await?;
            }
            let error = turn
                .send_update(acp::v2::SessionUpdate::AgentMessage(acp::v2::Message::new(
                    "m",
                )))
                .await;
            assert!(matches!(error, Err(Error::Unsupported { .. })));
            Ok(StopReason::EndTurn)
        })
    };
    let (_conn, mut peer, _) = initialize_agent(agent(), 1, json!({})).await;
    let s = peer.new_session().await;
    peer.send_prompt(1, &s, "go").await;
    let texts = |update: &Value| {
        let entries = update["entries"].as_array().unwrap().clone();
        let texts: Vec<String> = entries
            .iter()
            .map(|e| e["content"].as_str().unwrap().to_owned())
            .collect();
        texts.join(" ")
    };
    for expected in ["a", "a b", "b"] {
        assert_eq!(texts(&next_update(&mut peer).await), expected);
    }
    assert_eq!(
        peer.expect_result(1).await,
        json!({"stopReason": "end_turn"})
    );

    let can = json!({"clientCapabilities": {"plan": {}, "session": {"notices": {}}, "_meta": {"terminal_output": true}}});
    let (_conn, mut peer, _) = initialize_agent(agent(), 1, can).await;
    let s = peer.new_session().await;
    peer.send_prompt(1, &s, "go").await;
    let mut kinds = Vec::new();
    let mut meta = Vec::new();
    for _ in 0..7 {
        let mut update = next_update(&mut peer).await;
        kinds.push(update["sessionUpdate"].as_str().unwrap().to_owned());
        if update["sessionUpdate"] == "tool_call_update" {
            assert_eq!(update["toolCallId"], "c");
            meta.push(update["_meta"].take());
        }
    }
    assert_eq!(
        kinds[..4],
        ["plan_update", "plan_update", "plan_removed", "notice"]
    );
    assert_eq!(meta[0]["terminal_info"]["cwd"], "/work");
    assert_eq!(meta[1]["terminal_output"]["data"], "é");
    assert!(meta[2]["terminal_exit"].is_object());
    assert_eq!(
        peer.expect_result(1).await,
        json!({"stopReason": "end_turn"})
    );
}

/// An agent that replays sessions and has a mode.
struct ReplayingAgent {
    seen: Arc<Mutex<Vec<String>>>,
}

fn mode_options(current: &str) -> Vec<SessionConfigOption> {
    let values = vec![
        SessionConfigSelectOption::new("ask", "Ask"),
        SessionConfigSelectOption::new("code", "Code"),
    ];
    let select = SessionConfigSelect::new(current, values);
    vec![SessionConfigOption::new("how", "How", select).category(SessionConfigOptionCategory::Mode)]
}

impl Agent for ReplayingAgent {
    type State = ();

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("replays", "2"))
    }
    async fn new_session(&self, _: &Session, setup: SessionSetup) -> Result<OpenedSession> {
        let names: Vec<&str> = setup.mcp_servers.iter().filter_map(|s| s.name()).collect();
        self.seen
            .lock()
            .unwrap()
            .push(format!("new {} {names:?}", setup.cwd));
        Ok(OpenedSession::new().config_options(mode_options("ask")))
    }
    async fn set_config_option(
        &self,
        (): &(),
        _: &Session,
        _: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        Ok(mode_options(&value.to_string()))
    }
    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }
}

impl LoadSession for ReplayingAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        session
            .replay_user_message(ContentBlock::text("hi"))
            .await?;
        session.send_message("ho").await?;
        Ok(OpenedSession::new().config_options(mode_options("code")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_is_replayed_on_request_and_its_state_reported() {
    let (_conn, mut peer, _) = initialize_agent(
        ReplayingAgent {
            seen: Arc::default(),
        },
        2,
        json!({}),
    )
    .await;
    let option = |current: &str| {
        json!([{"configId": "how", "name": "How", "category": "mode", "type": "select", "currentValue": current,
                "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]}])
    };
    let idle = json!({"sessionUpdate": "state_update", "state": "idle"});
    let params = json!({"sessionId": "old", "cwd": "/work", "replayFrom": {"type": "start"}});
    peer.send_request(1, "session/resume", params).await;
    let user = next_update(&mut peer).await;
    assert_eq!(
        (&user["sessionUpdate"], &user["content"]["text"]),
        (&json!("user_message_chunk"), &json!("hi"))
    );
    let agent = next_update(&mut peer).await;
    assert_eq!(
        (&agent["sessionUpdate"], &agent["content"]["text"]),
        (&json!("agent_message_chunk"), &json!("ho"))
    );
    assert_ne!(user["messageId"], agent["messageId"]);
    expect_update(&mut peer, idle.clone()).await;
    assert_eq!(
        peer.expect_result(1).await,
        json!({"configOptions": option("code")})
    );

    // Without a replay, it is opened and nothing is sent.
    peer.send_request(
        2,
        "session/resume",
        json!({"sessionId": "old", "cwd": "/work"}),
    )
    .await;
    expect_update(&mut peer, idle).await;
    assert_eq!(
        peer.expect_result(2).await,
        json!({"configOptions": option("code")})
    );

    // The mode is an option, and is set like one.
    let params = json!({"sessionId": "old", "configId": "how", "type": "id", "value": "ask"});
    peer.send_request(3, "session/set_config_option", params)
        .await;
    assert_eq!(
        peer.expect_result(3).await,
        json!({"configOptions": option("ask")})
    );
    let params = json!({"sessionId": "old", "configId": "how", "type": "_tree", "value": {}});
    peer.send_request(4, "session/set_config_option", params)
        .await;
    assert_eq!(peer.expect_error(4).await.0, -32602);
    let params = json!({"sessionId": "old", "cwd": "/work", "replayFrom": {"type": "_there"}});
    peer.send_request(5, "session/resume", params).await;
    assert_eq!(peer.expect_error(5).await.0, -32602);
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn every_agent_can_list_resume_and_close_sessions() {
    let (_conn, mut peer, _) = initialize_agent(idle_agent(), 2, json!({})).await;
    let s = peer.new_session().await;
    peer.send_request(1, "session/list", json!({"cwd": "/elsewhere"}))
        .await;
    assert_eq!(peer.expect_result(1).await, json!({"sessions": []}));
    peer.send_request(2, "session/list", json!({})).await;
    assert_eq!(
        peer.expect_result(2).await,
        json!({"sessions": [{"sessionId": s, "cwd": "/work"}]})
    );
    peer.send_request(3, "session/resume", json!({"sessionId": s, "cwd": "/work"}))
        .await;
    expect_update(
        &mut peer,
        json!({"sessionUpdate": "state_update", "state": "idle"}),
    )
    .await;
    peer.expect_result(3).await;
    let replay = json!({"sessionId": s, "cwd": "/work", "replayFrom": {"type": "start"}});
    peer.send_request(4, "session/resume", replay).await;
    assert_eq!(peer.expect_error(4).await.0, -32602);
    peer.send_request(
        5,
        "session/resume",
        json!({"sessionId": "gone", "cwd": "/work"}),
    )
    .await;
    assert_eq!(peer.expect_error(5).await.0, -32002);
    for id in [6, 7] {
        peer.send_request(id, "session/close", json!({"sessionId": s}))
            .await;
        assert_eq!(peer.expect_result(id).await, json!({}));
    }
    peer.send_request(8, "session/delete", json!({"sessionId": s}))
        .await;
    assert_eq!(peer.expect_error(8).await.0, -32601);
    for method in [
        "session/load",
        "session/set_mode",
        "session/set_model",
        "authenticate",
        "logout",
    ] {
        peer.send_request(
            9,
            method,
            json!({"sessionId": s, "cwd": "/", "modeId": "m", "modelId": "m", "methodId": "m"}),
        )
        .await;
        assert_eq!(peer.expect_error(9).await.0, -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_mcp_servers_are_rejected() {
    struct NoStdioAgent;
    impl Agent for NoStdioAgent {
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
        fn supports_mcp_stdio(&self) -> bool {
            false
        }
    }
    let stdio = json!({"type": "stdio", "name": "files", "command": "/bin/files"});
    let http = json!({"type": "http", "name": "web", "url": "https://a"});
    let setup = |server: &Value| json!({"cwd": "/work", "mcpServers": [server]});
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (_conn, mut peer, answer) = initialize_agent(
        ReplayingAgent {
            seen: Arc::clone(&seen),
        },
        2,
        json!({}),
    )
    .await;
    assert_eq!(
        answer["capabilities"]["session"]["mcp"],
        json!({"stdio": {}})
    );
    assert_eq!(answer["info"], json!({"name": "replays", "version": "2"}));
    peer.send_request(1, "session/new", setup(&stdio)).await;
    peer.expect_result(1).await;
    assert_eq!(*seen.lock().unwrap(), [r#"new /work ["files"]"#]);
    peer.send_request(2, "session/new", setup(&http)).await;
    let (code, text) = peer.expect_error(2).await;
    assert_eq!(code, -32602);
    assert!(text.contains("web") && text.contains("http"), "{text}");

    let (_conn, mut peer, answer) = initialize_agent(NoStdioAgent, 2, json!({})).await;
    assert_eq!(answer["capabilities"]["session"], json!({}));
    peer.send_request(1, "session/new", setup(&stdio)).await;
    assert_eq!(peer.expect_error(1).await.0, -32602);
}

/// An agent that asks for a key during login.
struct LoginAgent(Mutex<bool>);

impl Agent for LoginAgent {
    type State = ();

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        if *self.0.lock().unwrap() {
            return Err(acp::jsonrpc::Error::auth_required().into());
        }
        Ok(OpenedSession::new())
    }
    fn authentication(&self) -> Option<&impl Authentication> {
        Some(self)
    }
}

impl Authentication for LoginAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![
            AuthMethod::Agent(AuthMethodAgent::new("key", "Key")),
            AuthMethod::Terminal(AuthMethodTerminal::new("tty", "Terminal")),
        ]
    }
    async fn authenticate(&self, cx: &AuthContext, _: &AuthMethodId) -> Result<()> {
        let form = ElicitationMode::Form {
            requested_schema: ElicitationSchema::new(),
        };
        if let ElicitationAction::Accept(_) = cx.elicit("The key?", form).await? {
            *self.0.lock().unwrap() = false;
            cx.complete_elicitation("e").await?;
            return Ok(());
        }
        Err(Error::invalid_params("no key"))
    }
    async fn logout(&self) -> Result<()> {
        *self.0.lock().unwrap() = true;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn login_can_request_input() {
    for (version, login, logout) in [
        (2, "auth/login", "auth/logout"),
        (1, "authenticate", "logout"),
    ] {
        let params = json!({
            "capabilities": {"elicitation": {"form": {}}},
            "clientCapabilities": {"elicitation": {"form": {}}},
        });
        let (_conn, mut peer, answer) =
            initialize_agent(LoginAgent(Mutex::new(true)), version, params).await;
        let methods = answer["authMethods"].as_array().unwrap();
        // There was no terminal.
        assert_eq!(methods.len(), 1, "{answer}");
        assert_eq!(methods[0].get("methodId").is_some(), version == 2);
        peer.send_request(1, "session/new", json!({"cwd": "/work", "mcpServers": []}))
            .await;
        assert_eq!(peer.expect_error(1).await.0, -32000);
        peer.send_request(2, login, json!({"methodId": "tty"}))
            .await;
        assert_eq!(peer.expect_error(2).await.0, -32602);
        peer.send_request(3, login, json!({"methodId": "nothing"}))
            .await;
        assert_eq!(peer.expect_error(3).await.0, -32602);
        peer.send_request("in", login, json!({"methodId": "key"}))
            .await;
        let (id, params) = peer.expect_request("elicitation/create").await;
        assert_eq!(
            (&params["requestId"], params.get("sessionId")),
            (&json!("in"), None)
        );
        peer.answer(&id, json!({"action": "accept", "content": {}}))
            .await;
        assert_eq!(
            peer.expect_notification("elicitation/complete").await,
            json!({"elicitationId": "e"})
        );
        assert_eq!(peer.expect_result("in").await, json!({}));
        peer.new_session().await;
        peer.send_request(4, logout, json!({})).await;
        if version == 2 {
            assert_eq!(peer.expect_result(4).await, json!({}));
        } else {
            // It did not declare the capability.
            assert_eq!(peer.expect_error(4).await.0, -32601);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn running_and_queued_turns_end_when_the_client_exits() {
    let dropped = Arc::new(());
    let agent = PromptAgent({
        let dropped = Arc::clone(&dropped);
        move |turn: Turn, _| {
            let dropped = Arc::clone(&dropped);
            async move {
                turn.send_message("working").await?;
                std::future::pending::<()>().await;
                drop(dropped);
                Ok(StopReason::EndTurn)
            }
        }
    });
    let (conn, mut peer, s) = open_session(agent).await;
    peer.send_prompt(1, &s, "a").await;
    peer.send_prompt(2, &s, "b").await;
    begin_turn(&mut peer, 1, "a").await;
    next_update(&mut peer).await;
    assert!(Arc::strong_count(&dropped) > 2);
    drop(peer);
    conn.closed().await;
    wait_until_idle().await;
    assert_eq!(Arc::strong_count(&dropped), 1);
}

#[tokio::test(start_paused = true)]
async fn version_2_statuses_are_sent_to_version_2_clients() {
    let agent = || {
        PromptAgent(async |turn: Turn, _| {
            let call = turn.report_tool_call(ToolCall::new("c", "Work")).await?;
            call.send_update(
                call.new_update()
                    .status(ToolCallStatus::Unknown("cancelled".to_owned())),
            )
            .await?;
            Ok(StopReason::EndTurn)
        })
    };
    let (_conn, mut peer, s) = open_session(agent()).await;
    peer.send_prompt(1, &s, "go").await;
    begin_turn(&mut peer, 1, "go").await;
    next_update(&mut peer).await;
    assert_eq!(next_update(&mut peer).await["status"], "cancelled");
}

/// An agent with one tool call, which can be cancelled.
struct ToolCallCancelAgent(Mutex<Vec<String>>);

impl Agent for ToolCallCancelAgent {
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
    fn cancel_work(&self) -> Option<&impl CancelWork> {
        Some(self)
    }
}

impl CancelWork for ToolCallCancelAgent {
    async fn cancel_tool_call(&self, (): &(), session: &Session, id: &ToolCallId) -> Result<()> {
        if id.as_str() != "c" {
            return Err(Error::invalid_params("no such call"));
        }
        self.0
            .lock()
            .unwrap()
            .push(format!("{} {id}", session.cwd()));
        Ok(())
    }
    async fn cancel_terminal(&self, (): &(), _: &Session, id: &TerminalId) -> Result<()> {
        self.0.lock().unwrap().push(id.to_string());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_can_cancel_single_tool_calls_and_terminals() {
    let (_conn, mut peer, s) = open_session(ToolCallCancelAgent(Mutex::default())).await;
    let call = |id: &str| json!({"sessionId": s, "toolCallId": id});
    peer.send_request(1, "tool_call/cancel", call("c")).await;
    assert_eq!(peer.expect_result(1).await, json!({}));
    peer.send_request(2, "tool_call/cancel", call("gone")).await;
    assert_eq!(peer.expect_error(2).await.0, -32602);
    peer.send_request(
        3,
        "terminal/cancel",
        json!({"sessionId": s, "terminalId": "t"}),
    )
    .await;
    assert_eq!(peer.expect_result(3).await, json!({}));

    let (_conn, mut peer, s) = open_session(idle_agent()).await;
    peer.send_request(
        1,
        "tool_call/cancel",
        json!({"sessionId": s, "toolCallId": "c"}),
    )
    .await;
    assert_eq!(peer.expect_error(1).await.0, -32602);
    peer.send_request(
        2,
        "terminal/cancel",
        json!({"sessionId": s, "terminalId": "t"}),
    )
    .await;
    assert_eq!(peer.expect_error(2).await.0, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_agent_leaves_no_request_pending() {
    let agent = PromptAgent(async |turn: Turn, prompt: Prompt| {
        turn.send_message("begun").await?;
        assert_ne!(prompt.text(), "panic", "as asked");
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, s) = open_session(agent).await;
    peer.send_prompt(1, &s, "panic").await;
    peer.send_prompt(2, &s, "go").await;
    begin_turn(&mut peer, 1, "panic").await;
    next_update(&mut peer).await;
    let end = next_update(&mut peer).await;
    assert_eq!(
        (&end["state"], &end["stopReason"]),
        (&json!("idle"), &json!("error"))
    );
    begin_turn(&mut peer, 2, "go").await;
    next_update(&mut peer).await;
    expect_update(&mut peer, idle_update("end_turn")).await;
}
