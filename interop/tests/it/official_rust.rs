//! The official Rust SDK and our library as each other's peers, in separate processes.
//!
//! `official-client` and `official-agent` are built on the official SDK, `our-agent` on our library;
//! `acp` is our command. Two more are the official SDK's own examples.

use crate::common::{
    InteropClient, InteropProject, WORK_OUTLINE, acp_program, assert_in_order, cancel_when,
    current_value, error_code, item_outline, last_item_outline, run_prompt, update_outline,
    wait_for_thread, with_timeout, work_updates,
};
use acp::thread::{ONLY_PLAN_ID, PlanEntryStatus, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{ContentBlock, ImageContent, ResourceLink, SessionConfigOptionCategory, StopReason};
use acp::{Error, Thread, jsonrpc};
use acp_host::Policy;
use serde_json::{Value, json};

const OFFICIAL_AGENT: &str = env!("CARGO_BIN_EXE_official-agent");
const OFFICIAL_YOLO: &str = env!("CARGO_BIN_EXE_official-yolo");
const OFFICIAL_SIMPLE_AGENT: &str = env!("CARGO_BIN_EXE_official-simple-agent");
const OUR_AGENT: &str = env!("CARGO_BIN_EXE_our-agent");

// The official client and an agent on our library.

#[tokio::test]
async fn official_client_completes_a_full_turn_of_our_agent() {
    let project = InteropProject::new();
    let told = project.run_official_client(&["work"], &[OUR_AGENT]).await;
    assert_eq!(told.outline(), WORK_OUTLINE);
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
    let initialized = told.one_of_type("initialized");
    assert_eq!(initialized["protocolVersion"], 1);
    assert_eq!(initialized["agentInfo"]["name"], "our-agent");
    assert_eq!(
        told.tool_call_field("read", "rawOutput"),
        &json!({"second": "two\n"})
    );
    assert_eq!(
        told.tool_call_field("edit", "content"),
        &json!([{
            "type": "diff",
            "path": project.file("note.txt"),
            "oldText": "one\ntwo\n",
            "newText": "ONE\nTWO\n",
        }])
    );
    let printed = told.tool_call_field("run", "rawOutput");
    assert_eq!(
        (&printed["code"], &printed["ended"]),
        (&json!(3), &json!(true))
    );
    // There are two pipes, so output on stderr can come before earlier output on stdout.
    let mut lines: Vec<&str> = printed["output"].as_str().unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ONE", "TWO", "hello"]);
    assert_eq!(
        told.tool_call_field("run", "content"),
        &json!([{"type": "terminal", "terminalId": "terminal-0"}])
    );
    assert_eq!(
        told.tool_call_field("kill", "rawOutput"),
        &json!({"ran": true, "signal": "9"})
    );
}

#[tokio::test]
async fn official_client_can_reject_permission_to_our_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["--reject", "work"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.tool_call_field("edit", "status"), "failed");
    assert_eq!(told.all_of_type("write").len(), 0);
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn official_client_cancels_our_agent_at_every_point() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["--cancel-at", "message", "wait"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("cancelled");

    let told = project
        .run_official_client(
            &["--cancel-at", "permission", "wait-permission"],
            &[OUR_AGENT],
        )
        .await;
    told.expect_stop_reason("cancelled");
    assert!(
        told.outline()
            .contains(&"message \"the question was withdrawn\"".to_owned()),
        "{:?}",
        told.outline()
    );

    let told = project
        .run_official_client(&["--cancel-at", "output", "wait-command"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("cancelled");
    assert!(
        told.outline().contains(&"release terminal-0".to_owned()),
        "{:?}",
        told.outline()
    );
    project.assert_command_ended();
}

#[tokio::test]
async fn extensions_work_both_ways_with_the_official_client() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["--extension", "ask-extension"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(
        told.one_of_type("answer")["answer"],
        "our agent heard who are you"
    );
    assert_eq!(told.one_of_type("asked")["question"], "how are you");
    let heard: Vec<&Value> = told
        .all_of_type("told")
        .into_iter()
        .map(|told| &told["what"])
        .collect();
    assert_eq!(heard, ["our agent was told hello", "a turn runs"]);
    assert!(
        told.outline()
            .contains(&"message \"the official client heard how are you\"".to_owned())
    );
}

#[tokio::test]
async fn official_client_and_our_agent_understand_each_others_errors() {
    let project = InteropProject::new();
    let calls = [
        "--call",
        "session/explode",
        "--call",
        "_nobody/knows",
        "ask-unknown",
    ];
    let told = project.run_official_client(&calls, &[OUR_AGENT]).await;
    told.expect_stop_reason("end_turn");
    assert_eq!(
        told.all_of_type("refused"),
        [&json!({"code": -32601}), &json!({"code": -32601})]
    );
    assert!(
        told.outline()
            .contains(&"message \"error -32601\"".to_owned())
    );

    let told = project
        .run_official_client(&["ask-missing-file"], &[OUR_AGENT])
        .await;
    assert!(
        told.outline()
            .contains(&"message \"error -32002\"".to_owned())
    );

    project
        .run_official_client(&["refuse"], &[OUR_AGENT])
        .await
        .expect_stop_reason("refusal");
    project
        .run_official_client(&["max-tokens"], &[OUR_AGENT])
        .await
        .expect_stop_reason("max_tokens");
    let told = project.run_official_client(&["fail"], &[OUR_AGENT]).await;
    assert_eq!(
        told.expect_error_code(-32050).one_of_type("error")["message"],
        "the model is on holiday"
    );
}

#[tokio::test]
async fn official_client_authenticates_with_our_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["hello"], &[OUR_AGENT, "--auth"])
        .await;
    told.expect_error_code(-32000);
    assert_eq!(
        told.one_of_type("initialized")["authMethods"],
        json!([{"id": "key", "name": "A key"}])
    );
    let told = project
        .run_official_client(&["--authenticate", "key", "hello"], &[OUR_AGENT, "--auth"])
        .await;
    assert_eq!(told.outline(), ["message \"hello\"", "ended end_turn"]);
}

#[tokio::test]
async fn official_client_loads_a_session_of_our_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["--load", "old-1", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(
        told.outline(),
        [
            "user \"what was said\"",
            "thought \"what was thought\"",
            "new call pending",
            "call call completed",
            "message \"what was answered\"",
            "loaded",
            "message \"hello\"",
            "ended end_turn",
        ]
    );
    assert_eq!(told.one_of_type("loaded")["modes"]["currentModeId"], "code");
    project
        .run_official_client(&["--load", "new-1", "hello"], &[OUR_AGENT])
        .await
        .expect_error_code(-32002);
}

#[tokio::test]
async fn official_client_sets_a_mode_of_our_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["--mode", "code", "hello"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("end_turn");
    let changed = told
        .all_of_type("update")
        .into_iter()
        .find(|u| u["sessionUpdate"] == "config_option_update")
        .unwrap();
    assert_eq!(changed["configOptions"][0]["currentValue"], "code");
    project
        .run_official_client(&["--mode", "none", "hello"], &[OUR_AGENT])
        .await
        .expect_error_code(-32602);
}

// The official client and the bundled agent.

#[tokio::test]
async fn official_client_reads_writes_and_edits_with_the_bundled_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(&["/read note.txt"], &[acp_program(), "agent"])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(
        told.outline()[..5],
        [
            "session_info_update",
            "new call_1 pending",
            "call call_1 in_progress",
            "read note.txt",
            "call call_1 completed"
        ]
    );
    assert!(
        told.tool_call_field("call_1", "content")[0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("one\ntwo")
    );

    let told = project
        .run_official_client(&["/edit note.txt\ntwo\n===\n2"], &[acp_program(), "agent"])
        .await;
    told.expect_stop_reason("end_turn");
    let outline = told.outline();
    assert_in_order(
        &outline,
        &[
            "new call_1 pending",
            "permission call_1",
            "call call_1 in_progress",
            "write note.txt",
            "call call_1 completed",
        ],
    );
    let diff = &told.tool_call_field("call_1", "content")[0];
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("one\ntwo\n"), &json!("one\n2\n"))
    );
    assert_eq!(project.read_file("note.txt"), "one\n2\n");

    let told = project
        .run_official_client(&["/write new.txt hello"], &[acp_program(), "agent"])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(project.read_file("new.txt"), "hello");
    let told = project
        .run_official_client(
            &["--reject", "/write other.txt hello"],
            &[acp_program(), "agent"],
        )
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.tool_call_field("call_1", "status"), "failed");
    assert!(!project.file("other.txt").exists());
}

#[tokio::test]
async fn official_client_runs_commands_for_the_bundled_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(
            &["/run echo made > made; echo out; exit 3"],
            &[acp_program(), "agent"],
        )
        .await;
    told.expect_stop_reason("end_turn");
    assert_in_order(
        &told.outline(),
        &[
            "new call_1 pending",
            "permission call_1",
            "call call_1 in_progress",
            "create sh",
            "wait terminal-0",
            "release terminal-0",
            "call call_1 failed",
        ],
    );
    assert_eq!(told.tool_call_field("call_1", "rawOutput")["exitCode"], 3);
    assert_eq!(project.read_file("made"), "made\n");

    project.write_file("Makefile", "test:\n\t@echo testing\n");
    let told = project
        .run_official_client(&["/test"], &[acp_program(), "agent"])
        .await;
    told.expect_stop_reason("end_turn");
    assert_in_order(
        &told.outline(),
        &[
            "plan in_progress pending pending",
            "create sh",
            "plan completed completed completed",
            "ended end_turn",
        ],
    );

    // In this mode, the agent does not ask before it changes a file.
    let told = project
        .run_official_client(
            &["--mode", "code", "/write made again"],
            &[acp_program(), "agent"],
        )
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.all_of_type("permission").len(), 0);
    assert_eq!(project.read_file("made"), "again");
}

#[tokio::test]
async fn official_client_cancels_the_bundled_agent() {
    let project = InteropProject::new();
    let told = project
        .run_official_client(
            &["--cancel-at", "permission", "/write new.txt x"],
            &[acp_program(), "agent"],
        )
        .await;
    told.expect_stop_reason("cancelled");
    assert!(!project.file("new.txt").exists());

    let run = "/run echo $$ > pid; echo started; exec sleep 600";
    let told = project
        .run_official_client(&["--cancel-at", "output", run], &[acp_program(), "agent"])
        .await;
    told.expect_stop_reason("cancelled");
    assert!(
        told.outline().contains(&"release terminal-0".to_owned()),
        "{:?}",
        told.outline()
    );
    project.assert_command_ended();
}

#[tokio::test]
async fn official_example_client_completes_a_turn_with_the_bundled_agent() {
    let project = InteropProject::new();
    let agent = format!("'{}' agent", acp_program());
    let prompt = "/edit note.txt\ntwo\n===\n2";
    let ended = project
        .run_program(OFFICIAL_YOLO, ["--command", &agent, prompt])
        .await;
    ended
        .expect_code(0)
        .expect_stdout(&[
            "AvailableCommandsUpdate",
            "status: Pending",
            "Diff {",
            "Completed",
            "AgentMessageChunk",
        ])
        .expect_stderr(&["acp-agent", "Auto-approving", "Stop reason: EndTurn"]);
    assert_eq!(project.read_file("note.txt"), "one\n2\n");

    // The client does not offer terminals, so the agent runs the command itself.
    let ended = project
        .run_program(
            OFFICIAL_YOLO,
            ["--command", &agent, "/run echo made > made"],
        )
        .await;
    ended
        .expect_code(0)
        .expect_stderr(&["Stop reason: EndTurn"]);
    assert_eq!(project.read_file("made"), "made\n");
}

// Our client and the official agent.

#[tokio::test]
async fn our_client_completes_a_full_turn_of_the_official_agent() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    assert_eq!(agent.info().unwrap().name, "official-agent");
    let session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");

    // Each update arrives once and in order, as from our agent, except for events of the client itself. This agent has
    // modes, but no config option for them.
    let mut expected = work_updates();
    expected.retain(|line| *line != "config_option_update");
    assert_eq!(person.outline(), expected);

    session.thread().read(|thread| {
        let items: Vec<String> = thread.items().iter().map(item_outline).collect();
        assert_eq!(
            items,
            [
                "user work",
                "thought First I look.",
                "agent Reading the note.",
                "call Read note.txt Completed",
                "call Shout Completed",
                "call Count Completed",
                "call Wait Failed",
                "agent  Done.",
            ]
        );
        assert_eq!(thread.plans().len(), 1);
        let plan = &thread.plans()[0];
        assert_eq!(plan.id.as_str(), ONLY_PLAN_ID);
        assert!(
            plan.entries()
                .iter()
                .all(|entry| entry.status == PlanEntryStatus::Completed)
        );

        let read = thread.tool_call(&"read".into()).unwrap();
        assert_eq!(read.raw_output, Some(json!({"second": "two\n"})));
        assert_eq!(read.locations[0].line, Some(1));
        let edit = thread.tool_call(&"edit".into()).unwrap();
        let [ThreadToolCallContent::Diff(diff)] = &edit.content[..] else {
            panic!("{edit:?}")
        };
        let (path, texts) = diff.file_texts().unwrap();
        assert_eq!(path, project.file("note.txt").to_str().unwrap());
        assert_eq!(
            (texts.old.as_deref(), texts.new.as_str()),
            (Some("one\ntwo\n"), "ONE\nTWO\n")
        );

        let run = thread.tool_call(&"run".into()).unwrap();
        let [ThreadToolCallContent::Terminal(terminal)] = &run.content[..] else {
            panic!("{run:?}")
        };
        let terminal = thread.terminal(terminal).unwrap();
        assert_eq!(terminal.output(), "ONE\nTWO\nhello\n");
        assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
        assert!(terminal.is_released);
        let told =
            json!({"code": 3, "output": "ONE\nTWO\nhello\n", "truncated": false, "ended": true});
        assert_eq!(run.raw_output, Some(told));
        let kill = thread.tool_call(&"kill".into()).unwrap();
        assert_eq!(kill.status, ToolCallStatus::Failed);
        assert_eq!(
            kill.raw_output,
            Some(json!({"ran": true, "signal": "SIGKILL", "gone": true}))
        );

        let usage = thread.usage().unwrap();
        assert_eq!(
            (usage.used, usage.size, usage.cost.as_ref().unwrap().amount),
            (1200, 200_000, 0.25)
        );
        assert_eq!(thread.title(), Some("A loud note"));
        assert_eq!(thread.commands()[0].name, "work");
        assert_eq!(
            current_value(thread, &SessionConfigOptionCategory::Mode),
            "code"
        );
        assert_eq!(thread.stop_reason(), Some(&StopReason::EndTurn));
    });
    assert_eq!(agent.connection().noise(), acp::Noise::default());
}

#[tokio::test]
async fn our_client_can_reject_permission_to_the_official_agent() {
    let project = InteropProject::new();
    let mut person = InteropClient::new(&project, Policy::All);
    person.says_no = true;
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
    session.thread().read(|thread| {
        assert_eq!(
            thread.tool_call(&"edit".into()).unwrap().status,
            ToolCallStatus::Failed
        );
        assert_eq!(
            item_outline(thread.items().last().unwrap()),
            "agent  I was not allowed to."
        );
    });
}

#[tokio::test]
async fn our_client_cancels_the_official_agent_at_every_point() {
    let project = InteropProject::new();
    let mut person = InteropClient::new(&project, Policy::All);
    person.never_answers = true;
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = agent.new_session(project.path()).await.unwrap();

    cancel_when(&session, "wait", |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    cancel_when(&session, "wait-permission", |thread| {
        last_item_outline(thread) == "call Ask Pending"
    })
    .await;
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent the question was withdrawn"
    );
    cancel_when(&session, "wait-command", |thread| {
        let call = thread.tool_call(&"run".into());
        let Some(ThreadToolCallContent::Terminal(shown)) =
            call.and_then(|call| call.content.first())
        else {
            return false;
        };
        thread
            .terminal(shown)
            .is_some_and(|terminal| terminal.output() == "started\n")
    })
    .await;
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent the command was ended"
    );
    project.assert_command_ended();

    // Dropping a prompt also cancels it, and the session continues.
    {
        let mut turn = std::pin::pin!(session.prompt("wait"));
        tokio::select! {
            _ = &mut turn => panic!("it waits"),
            () = wait_for_thread(session.thread(), |thread| last_item_outline(thread) == "agent waiting") => {}
        }
    }
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
    assert_eq!(
        session
            .thread()
            .read(|thread| thread.stop_reason().cloned()),
        Some(StopReason::Cancelled)
    );
    assert_eq!(
        run_prompt(&session, "hello").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(session.thread().read(last_item_outline), "agent hello");
}

#[tokio::test]
async fn sessions_of_the_official_agent_run_concurrently() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let first = agent.new_session(project.path()).await.unwrap();
    let second = agent.new_session(project.path()).await.unwrap();
    let waiting = tokio::spawn({
        let first = first.clone();
        async move { first.prompt("wait").await }
    });
    wait_for_thread(first.thread(), |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    assert_eq!(
        run_prompt(&second, "hello").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(second.thread().read(last_item_outline), "agent hello");
    assert!(first.thread().read(Thread::is_running));
    first.cancel().await.unwrap();
    assert_eq!(
        with_timeout("the turn ends", waiting)
            .await
            .unwrap()
            .unwrap(),
        StopReason::Cancelled
    );
    assert_eq!(first.thread().read(|thread| thread.items().len()), 2);
}

#[tokio::test]
async fn extensions_work_both_ways_with_the_official_agent() {
    let project = InteropProject::new();
    let mut person = InteropClient::new(&project, Policy::All);
    let mut told = person.listen();
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let connection = agent.connection();
    connection
        .notify_raw("_interop/told", &json!({"what": "hello"}))
        .await
        .unwrap();
    assert_eq!(
        with_timeout("it is told back", told.recv()).await.unwrap(),
        "the official agent was told hello"
    );
    let answer = connection
        .request_raw("_interop/ask", &json!({"question": "who are you"}))
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(answer.get()).unwrap();
    assert_eq!(
        answer,
        json!({"answer": "the official agent heard who are you"})
    );

    let session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "ask-extension").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(
        with_timeout("it is told", told.recv()).await.unwrap(),
        "a turn runs"
    );
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent our client heard how are you"
    );
}

#[tokio::test]
async fn our_client_and_the_official_agent_understand_each_others_errors() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    for method in ["session/explode", "_nobody/knows"] {
        let error = agent
            .connection()
            .request_raw(method, &json!({}))
            .await
            .unwrap_err();
        assert_eq!(
            error_code(&error),
            jsonrpc::Error::METHOD_NOT_FOUND,
            "{error}"
        );
    }
    let session = agent.new_session(project.path()).await.unwrap();
    run_prompt(&session, "ask-unknown").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent error -32601"
    );
    run_prompt(&session, "ask-missing-file").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent error -32002"
    );

    assert_eq!(
        run_prompt(&session, "refuse").await.unwrap(),
        StopReason::Refusal
    );
    assert_eq!(
        run_prompt(&session, "max-tokens").await.unwrap(),
        StopReason::MaxTokens
    );
    let error = run_prompt(&session, "fail").await.unwrap_err();
    let Error::Rpc(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (i64::from(error.code), error.message.as_str()),
        (-32050, "the model is on holiday")
    );
    let data: Value = serde_json::to_value(&error.data).unwrap();
    assert_eq!(data, json!({"until": "Monday"}));
    assert_eq!(
        run_prompt(&session, "hello").await.unwrap(),
        StopReason::EndTurn
    );
}

#[tokio::test]
async fn official_agent_gets_only_supported_content() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = agent.new_session(project.path()).await.unwrap();
    let link =
        ContentBlock::ResourceLink(Box::new(ResourceLink::new("note.txt", "file:///note.txt")));
    let content = vec![ContentBlock::text("content"), link];
    assert_eq!(session.prompt(content).await.unwrap(), StopReason::EndTurn);
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent text resource_link "
    );
    let image = ContentBlock::Image(Box::new(ImageContent::new("aGk=", "image/png")));
    let error = session.prompt(vec![image]).await.unwrap_err();
    assert!(
        matches!(error, Error::Unsupported { peer: "agent", .. }),
        "{error}"
    );
}

#[tokio::test]
async fn our_client_sets_modes_and_options_of_the_official_agent() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = agent.new_session(project.path()).await.unwrap();
    let shown = |category| {
        session
            .thread()
            .read(|thread| current_value(thread, category))
    };
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "small");
    session.set_config_option("model", "large").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "large");
    assert!(session.set_config_option("model", "huge").await.is_err());
    // The agent has modes in addition to config options.
    session.set_mode("code").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Mode), "code");
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "large");
}

#[tokio::test]
async fn our_client_loads_a_session_of_the_official_agent_in_another_process() {
    let project = InteropProject::new();
    let store = project.file("store.json");
    let with_store = [OFFICIAL_AGENT, "--store", store.to_str().unwrap()];
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &with_store).await;
    let session = agent.new_session(project.path()).await.unwrap();
    run_prompt(&session, "work").await.unwrap();
    let id = session.id().clone();
    let before: Vec<String> = session
        .thread()
        .read(|thread| thread.items().iter().map(item_outline).collect());
    assert_eq!(before.len(), 8);
    drop((session, agent));

    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &with_store).await;
    let error = agent
        .load_session("nothing", project.path())
        .await
        .unwrap_err();
    assert_eq!(
        error_code(&error),
        jsonrpc::Error::RESOURCE_NOT_FOUND,
        "{error}"
    );
    let session = agent.load_session(id, project.path()).await.unwrap();
    // The thread is complete as soon as the session is loaded, and all updates are part of the replay.
    let after: Vec<String> = session
        .thread()
        .read(|thread| thread.items().iter().map(item_outline).collect());
    assert_eq!(after, before);
    assert_eq!(
        session
            .thread()
            .read(|thread| thread.title().map(str::to_owned))
            .as_deref(),
        Some("A loud note")
    );
    assert!(
        person
            .seen
            .lock()
            .unwrap()
            .iter()
            .all(|(_, replay)| *replay)
    );
    run_prompt(&session, "hello").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent hello");
}

#[tokio::test]
async fn our_client_authenticates_with_the_official_agent() {
    let project = InteropProject::new();
    let person = InteropClient::new(&project, Policy::All);
    let (agent, _process) = person.start(&project, &[OFFICIAL_AGENT, "--auth"]).await;
    assert_eq!(agent.auth_methods()[0].id_and_name().unwrap().1, "A key");
    let error = agent.new_session(project.path()).await.unwrap_err();
    assert!(error.is_auth_required(), "{error}");
    assert!(agent.authenticate("nothing").await.is_err());
    agent.authenticate("key").await.unwrap();
    let session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "hello").await.unwrap(),
        StopReason::EndTurn
    );
}

// `acp run` and the official agent.

#[tokio::test]
async fn acp_run_shows_a_full_turn_of_the_official_agent() {
    let project = InteropProject::new();
    let ended = project
        .run_program(
            acp_program(),
            ["run", "--allow", "all", "work", "--", OFFICIAL_AGENT],
        )
        .await
        .expect_code(0);
    ended.expect_stdout(&[
        "First I look.",
        "Reading the note.",
        "Look",
        "Read note.txt (read)",
        "completed",
        "Shout (edit)",
        "-two",
        "+TWO",
        "completed",
        "Count (execute)",
        "| hello",
        "exit code 3",
        "Wait (execute)",
        "failed",
        "Done.",
    ]);
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_prints_the_messages_of_the_official_agent() {
    let project = InteropProject::new();
    let arguments = [
        "run",
        "--allow",
        "all",
        "--format",
        "json",
        "work",
        "--",
        OFFICIAL_AGENT,
    ];
    let messages = project
        .run_program(acp_program(), arguments)
        .await
        .expect_code(0)
        .json_lines();
    let updates = messages
        .iter()
        .filter(|message| message["method"] == "session/update");
    let outline: Vec<String> = updates
        .filter_map(|message| update_outline(&message["params"]["update"]))
        .collect();
    assert_eq!(outline[..4], WORK_OUTLINE[..4]);
    for method in [
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    ] {
        assert!(
            messages.iter().any(|message| message["method"] == method),
            "no {method}"
        );
    }
    assert_eq!(
        messages.last().unwrap()["result"],
        json!({"stopReason": "end_turn"})
    );
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_exit_code_reflects_the_official_agents_stop_reason() {
    let project = InteropProject::new();
    let run = async |arguments: &[&str], agent: &[&str]| {
        let arguments = ["run"].iter().chain(arguments).chain(&["--"]).chain(agent);
        project.run_program(acp_program(), arguments).await
    };
    run(&["hello"], &[OFFICIAL_AGENT, "--auth"])
        .await
        .expect_code(1)
        .expect_stderr(&["Authentication required", "acp login ", "# A key"]);
    run(&["fail"], &[OFFICIAL_AGENT])
        .await
        .expect_code(1)
        .expect_stderr(&["agent error: the model is on holiday"]);
    run(&["refuse"], &[OFFICIAL_AGENT])
        .await
        .expect_code(4)
        .expect_stderr(&["refused"]);
    run(&["max-tokens"], &[OFFICIAL_AGENT]).await.expect_code(5);
    let ended = run(&["--format", "quiet", "hello"], &[OFFICIAL_AGENT])
        .await
        .expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("hello\n", "")
    );
    // The example of the official SDK supports only `initialize`.
    run(&["hello"], &[OFFICIAL_SIMPLE_AGENT])
        .await
        .expect_code(1)
        .expect_stderr(&["agent error: Method not found: session/new"]);
    // Changes are not allowed, and nothing was changed.
    run(&["--allow", "reads", "work"], &[OFFICIAL_AGENT])
        .await
        .expect_code(8)
        .expect_stdout(&["I was not allowed to."]);
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn ctrl_c_cancels_a_turn_of_the_official_agent() {
    let project = InteropProject::new();
    let (last, code) = project
        .run_interrupted("wait-command", &[OFFICIAL_AGENT], "terminal/wait_for_exit")
        .await;
    assert_eq!(last["result"], json!({"stopReason": "cancelled"}));
    assert_eq!(code, Some(130));
    // The command may not have written its process id. If it has, the process has exited.
    if project.file("pid").exists() && !project.read_file("pid").is_empty() {
        project.assert_command_ended();
    }
}
