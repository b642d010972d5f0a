//! Tests of the official client with our library's agent and with the bundled agent.

use serde_json::{Value, json};

use crate::common::{WORK_OUTLINE, acp_program, assert_in_order};
use crate::official_typescript::{OUR_AGENT, TypeScriptFixture};

#[tokio::test]
async fn official_client_completes_a_full_turn_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official.run_client(&["work"], &[OUR_AGENT]).await;
    assert_eq!(told.outline(), WORK_OUTLINE);
    assert_eq!(official.project.read_file("note.txt"), "ONE\nTWO\n");
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
            "path": official.project.file("note.txt"),
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
        &json!({"ran": true, "signal": "SIGKILL"})
    );
}

#[tokio::test]
async fn official_client_can_reject_permission_to_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["--reject", "work"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.tool_call_field("edit", "status"), "failed");
    assert_eq!(told.all_of_type("write").len(), 0);
    assert_eq!(official.project.read_file("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn official_client_cancels_our_agent_at_every_point() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let cancel_at = async |what, turn| {
        let told = official
            .run_client(&["--cancel-at", what, turn], &[OUR_AGENT])
            .await;
        told.expect_stop_reason("cancelled");
        told.outline()
    };
    cancel_at("message", "wait").await;
    assert_in_order(
        &cancel_at("permission", "wait-permission").await,
        &["permission ask", "message \"the question was withdrawn\""],
    );
    assert_in_order(
        &cancel_at("output", "wait-command").await,
        &["wait terminal-0", "release terminal-0"],
    );
    official.project.assert_command_ended();
}

#[tokio::test]
async fn extensions_work_both_ways_with_the_official_client() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["--extension", "ask-extension"], &[OUR_AGENT])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(
        told.one_of_type("answer")["answer"],
        "our agent heard who are you"
    );
    assert_eq!(told.one_of_type("asked")["question"], "how are you");
    let heard = told
        .all_of_type("told")
        .into_iter()
        .map(|told| &told["what"]);
    assert_eq!(
        heard.collect::<Vec<&Value>>(),
        ["our agent was told hello", "a turn runs"]
    );
    assert_in_order(
        &told.outline(),
        &["message \"the official client heard how are you\""],
    );
}

#[tokio::test]
async fn official_client_cancels_a_request_to_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["--withdraw", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(told.one_of_type("refused"), &json!({"code": -32800}));
    assert_eq!(
        told.outline(),
        ["refused", "message \"hello\"", "ended end_turn"]
    );
}

#[tokio::test]
async fn official_client_and_our_agent_understand_each_others_errors() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let calls = [
        "--call",
        "session/explode",
        "--call",
        "_nobody/knows",
        "ask-unknown",
    ];
    let told = official.run_client(&calls, &[OUR_AGENT]).await;
    told.expect_stop_reason("end_turn");
    let not_found = json!({"code": -32601});
    assert_eq!(told.all_of_type("refused"), [&not_found, &not_found]);
    assert_in_order(&told.outline(), &["message \"error -32601\""]);

    let told = official
        .run_client(&["ask-missing-file"], &[OUR_AGENT])
        .await;
    assert_in_order(&told.outline(), &["message \"error -32002\""]);

    let told = official.run_client(&["refuse"], &[OUR_AGENT]).await;
    told.expect_stop_reason("refusal");
    let told = official.run_client(&["max-tokens"], &[OUR_AGENT]).await;
    told.expect_stop_reason("max_tokens");
    let told = official.run_client(&["fail"], &[OUR_AGENT]).await;
    assert_eq!(
        told.expect_error_code(-32050).one_of_type("error")["message"],
        "the model is on holiday"
    );
}

#[tokio::test]
async fn official_client_authenticates_with_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let agent = [OUR_AGENT, "--auth"];
    let told = official.run_client(&["hello"], &agent).await;
    told.expect_error_code(-32000);
    let initialized = told.one_of_type("initialized");
    assert_eq!(
        initialized["authMethods"],
        json!([{"id": "key", "name": "A key"}])
    );
    assert_eq!(
        initialized["agentCapabilities"]["auth"],
        json!({"logout": {}})
    );
    let told = official
        .run_client(&["--authenticate", "key", "--logout", "hello"], &agent)
        .await;
    assert_eq!(
        told.outline(),
        ["logged_out", "message \"hello\"", "ended end_turn"]
    );
}

#[tokio::test]
async fn official_client_lists_loads_and_resumes_sessions_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["--list", "--load", "old-1", "hello"], &[OUR_AGENT])
        .await;
    let titles = told
        .all_of_type("listed")
        .into_iter()
        .map(|page| &page["sessions"]);
    assert_eq!(
        titles.collect::<Vec<_>>(),
        [
            &json!([{"sessionId": "old-1", "cwd": "/tmp", "title": "The first"}]),
            &json!([{"sessionId": "old-2", "cwd": "/tmp", "title": "The second"}]),
        ]
    );
    assert_eq!(
        told.outline(),
        [
            "listed",
            "listed",
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

    let told = official
        .run_client(&["--resume", "old-2", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(
        told.outline(),
        ["resumed", "message \"hello\"", "ended end_turn"]
    );
    assert_eq!(
        told.one_of_type("resumed")["modes"]["currentModeId"],
        "code"
    );

    for how in ["--load", "--resume"] {
        let told = official
            .run_client(&[how, "new-1", "hello"], &[OUR_AGENT])
            .await;
        told.expect_error_code(-32002);
    }
}

#[tokio::test]
async fn official_client_closes_and_deletes_a_session_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["--close", "--delete", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(
        told.outline(),
        ["message \"hello\"", "ended end_turn", "closed", "deleted"]
    );
}

#[tokio::test]
async fn official_client_sets_the_mode_of_our_agent_in_both_ways() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    // Setting the mode reports the option, and setting the option reports the mode.
    for (setting, reported) in [
        (["--mode", "code"], "config_option_update"),
        (["--option", "mode=code"], "current_mode_update"),
    ] {
        let args = [&setting[..], &["hello"]].concat();
        let told = official.run_client(&args, &[OUR_AGENT]).await;
        told.expect_stop_reason("end_turn");
        let mut updates = told.all_of_type("update").into_iter();
        let changed = updates
            .find(|update| update["sessionUpdate"] == reported)
            .unwrap();
        match reported {
            "current_mode_update" => assert_eq!(changed["currentModeId"], "code"),
            _ => assert_eq!(changed["configOptions"][0]["currentValue"], "code"),
        }
    }
    for setting in [["--mode", "none"], ["--option", "mode=none"]] {
        let args = [&setting[..], &["hello"]].concat();
        official
            .run_client(&args, &[OUR_AGENT])
            .await
            .expect_error_code(-32602);
    }
}

#[tokio::test]
async fn official_client_reads_writes_and_edits_with_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp_program(), "agent"];
    let told = official.run_client(&["/read note.txt"], &bundled).await;
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

    let edit = "/edit note.txt\ntwo\n===\n2";
    let told = official.run_client(&[edit], &bundled).await;
    told.expect_stop_reason("end_turn");
    assert_in_order(
        &told.outline(),
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
    assert_eq!(official.project.read_file("note.txt"), "one\n2\n");

    let told = official
        .run_client(&["--reject", "/write other.txt hello"], &bundled)
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.tool_call_field("call_1", "status"), "failed");
    assert!(!official.project.file("other.txt").exists());
}

#[tokio::test]
async fn official_client_runs_commands_for_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp_program(), "agent"];
    let run = "/run echo made > made; echo out; exit 3";
    let told = official.run_client(&[run], &bundled).await;
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
    assert_eq!(official.project.read_file("made"), "made\n");

    // In this mode, the agent does not ask before it changes a file.
    let told = official
        .run_client(&["--mode", "code", "/write made again"], &bundled)
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.all_of_type("permission").len(), 0);
    assert_eq!(official.project.read_file("made"), "again");
}

#[tokio::test]
async fn official_client_cancels_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp_program(), "agent"];
    let told = official
        .run_client(&["--cancel-at", "permission", "/write new.txt x"], &bundled)
        .await;
    told.expect_stop_reason("cancelled");
    assert!(!official.project.file("new.txt").exists());

    let run = "/run echo $$ > pid; echo started; exec sleep 600";
    let told = official
        .run_client(&["--cancel-at", "output", run], &bundled)
        .await;
    told.expect_stop_reason("cancelled");
    assert_in_order(&told.outline(), &["create sh", "release terminal-0"]);
    official.project.assert_command_ended();
}
