//! The official client with our library's agent and with the bundled agent.

use serde_json::{Value, json};

use crate::common::{WORK, acp, in_order};
use crate::official_typescript::{OUR_AGENT, TypeScriptFixture};

#[tokio::test]
async fn the_official_client_serves_a_whole_turn_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official.client(&["work"], &[OUR_AGENT]).await;
    assert_eq!(told.outline(), WORK);
    assert_eq!(official.project.read("note.txt"), "ONE\nTWO\n");
    let initialized = told.one("initialized");
    assert_eq!(initialized["protocolVersion"], 1);
    assert_eq!(initialized["agentInfo"]["name"], "our-agent");
    assert_eq!(
        told.of_call("read", "rawOutput"),
        &json!({"second": "two\n"})
    );
    assert_eq!(
        told.of_call("edit", "content"),
        &json!([{
            "type": "diff",
            "path": official.project.file("note.txt"),
            "oldText": "one\ntwo\n",
            "newText": "ONE\nTWO\n",
        }])
    );
    let printed = told.of_call("run", "rawOutput");
    assert_eq!(
        (&printed["code"], &printed["ended"]),
        (&json!(3), &json!(true))
    );
    // Two pipes: what went to stderr may come before what went to stdout.
    let mut lines: Vec<&str> = printed["output"].as_str().unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ONE", "TWO", "hello"]);
    assert_eq!(
        told.of_call("run", "content"),
        &json!([{"type": "terminal", "terminalId": "terminal-0"}])
    );
    assert_eq!(
        told.of_call("kill", "rawOutput"),
        &json!({"ran": true, "signal": "SIGKILL"})
    );
}

#[tokio::test]
async fn the_official_client_can_say_no_to_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official.client(&["--reject", "work"], &[OUR_AGENT]).await;
    told.ended("end_turn");
    assert_eq!(told.of_call("edit", "status"), "failed");
    assert_eq!(told.all("write").len(), 0);
    assert_eq!(official.project.read("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn the_official_client_cancels_our_agent_at_every_point() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let cancel_at = async |what, turn| {
        let told = official
            .client(&["--cancel-at", what, turn], &[OUR_AGENT])
            .await;
        told.ended("cancelled");
        told.outline()
    };
    cancel_at("message", "wait").await;
    in_order(
        &cancel_at("permission", "wait-permission").await,
        &["permission ask", "message \"the question was withdrawn\""],
    );
    in_order(
        &cancel_at("output", "wait-command").await,
        &["wait terminal-0", "release terminal-0"],
    );
    official.project.command_has_ended();
}

#[tokio::test]
async fn extensions_go_both_ways_with_the_official_client() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .client(&["--extension", "ask-extension"], &[OUR_AGENT])
        .await;
    told.ended("end_turn");
    assert_eq!(told.one("answer")["answer"], "our agent heard who are you");
    assert_eq!(told.one("asked")["question"], "how are you");
    let heard = told.all("told").into_iter().map(|told| &told["what"]);
    assert_eq!(
        heard.collect::<Vec<&Value>>(),
        ["our agent was told hello", "a turn runs"]
    );
    in_order(
        &told.outline(),
        &["message \"the official client heard how are you\""],
    );
}

#[tokio::test]
async fn the_official_client_takes_a_request_to_our_agent_back() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .client(&["--withdraw", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(told.one("refused"), &json!({"code": -32800}));
    assert_eq!(
        told.outline(),
        ["refused", "message \"hello\"", "ended end_turn"]
    );
}

#[tokio::test]
async fn the_official_client_and_our_agent_refuse_each_other_in_words_both_know() {
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
    let told = official.client(&calls, &[OUR_AGENT]).await;
    told.ended("end_turn");
    let not_found = json!({"code": -32601});
    assert_eq!(told.all("refused"), [&not_found, &not_found]);
    in_order(&told.outline(), &["message \"error -32601\""]);

    let told = official.client(&["ask-missing-file"], &[OUR_AGENT]).await;
    in_order(&told.outline(), &["message \"error -32002\""]);

    let told = official.client(&["refuse"], &[OUR_AGENT]).await;
    told.ended("refusal");
    let told = official.client(&["max-tokens"], &[OUR_AGENT]).await;
    told.ended("max_tokens");
    let told = official.client(&["fail"], &[OUR_AGENT]).await;
    assert_eq!(
        told.failed(-32050).one("error")["message"],
        "the model is on holiday"
    );
}

#[tokio::test]
async fn the_official_client_authenticates_with_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let agent = [OUR_AGENT, "--auth"];
    let told = official.client(&["hello"], &agent).await;
    told.failed(-32000);
    let initialized = told.one("initialized");
    assert_eq!(
        initialized["authMethods"],
        json!([{"id": "key", "name": "A key"}])
    );
    assert_eq!(
        initialized["agentCapabilities"]["auth"],
        json!({"logout": {}})
    );
    let told = official
        .client(&["--authenticate", "key", "--logout", "hello"], &agent)
        .await;
    assert_eq!(
        told.outline(),
        ["logged_out", "message \"hello\"", "ended end_turn"]
    );
}

#[tokio::test]
async fn the_official_client_lists_loads_and_resumes_sessions_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .client(&["--list", "--load", "old-1", "hello"], &[OUR_AGENT])
        .await;
    let titles = told.all("listed").into_iter().map(|page| &page["sessions"]);
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
    assert_eq!(told.one("loaded")["modes"]["currentModeId"], "code");

    let told = official
        .client(&["--resume", "old-2", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(
        told.outline(),
        ["resumed", "message \"hello\"", "ended end_turn"]
    );
    assert_eq!(told.one("resumed")["modes"]["currentModeId"], "code");

    for how in ["--load", "--resume"] {
        let told = official
            .client(&[how, "new-1", "hello"], &[OUR_AGENT])
            .await;
        told.failed(-32002);
    }
}

#[tokio::test]
async fn the_official_client_closes_and_deletes_a_session_of_our_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .client(&["--close", "--delete", "hello"], &[OUR_AGENT])
        .await;
    assert_eq!(
        told.outline(),
        ["message \"hello\"", "ended end_turn", "closed", "deleted"]
    );
}

#[tokio::test]
async fn the_official_client_sets_the_mode_of_our_agent_either_way() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    // Setting one reports the other.
    for (setting, reported) in [
        (["--mode", "code"], "config_option_update"),
        (["--option", "mode=code"], "current_mode_update"),
    ] {
        let args = [&setting[..], &["hello"]].concat();
        let told = official.client(&args, &[OUR_AGENT]).await;
        told.ended("end_turn");
        let mut updates = told.all("update").into_iter();
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
        official.client(&args, &[OUR_AGENT]).await.failed(-32602);
    }
}

#[tokio::test]
async fn the_official_client_reads_writes_and_edits_with_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp(), "agent"];
    let told = official.client(&["/read note.txt"], &bundled).await;
    told.ended("end_turn");
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
    let told = official.client(&[edit], &bundled).await;
    told.ended("end_turn");
    in_order(
        &told.outline(),
        &[
            "new call_1 pending",
            "permission call_1",
            "call call_1 in_progress",
            "write note.txt",
            "call call_1 completed",
        ],
    );
    let diff = &told.of_call("call_1", "content")[0];
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("one\ntwo\n"), &json!("one\n2\n"))
    );
    assert_eq!(official.project.read("note.txt"), "one\n2\n");

    let told = official
        .client(&["--reject", "/write other.txt hello"], &bundled)
        .await;
    told.ended("end_turn");
    assert_eq!(told.of_call("call_1", "status"), "failed");
    assert!(!official.project.file("other.txt").exists());
}

#[tokio::test]
async fn the_official_client_runs_commands_for_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp(), "agent"];
    let run = "/run echo made > made; echo out; exit 3";
    let told = official.client(&[run], &bundled).await;
    told.ended("end_turn");
    in_order(
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
    assert_eq!(told.of_call("call_1", "rawOutput")["exitCode"], 3);
    assert_eq!(official.project.read("made"), "made\n");

    // In this mode it does not ask for a change of a file.
    let told = official
        .client(&["--mode", "code", "/write made again"], &bundled)
        .await;
    told.ended("end_turn");
    assert_eq!(told.all("permission").len(), 0);
    assert_eq!(official.project.read("made"), "again");
}

#[tokio::test]
async fn the_official_client_cancels_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let bundled = [acp(), "agent"];
    let told = official
        .client(&["--cancel-at", "permission", "/write new.txt x"], &bundled)
        .await;
    told.ended("cancelled");
    assert!(!official.project.file("new.txt").exists());

    let run = "/run echo $$ > pid; echo started; exec sleep 600";
    let told = official
        .client(&["--cancel-at", "output", run], &bundled)
        .await;
    told.ended("cancelled");
    in_order(&told.outline(), &["create sh", "release terminal-0"]);
    official.project.command_has_ended();
}
