//! Tests the scripted model, and the loop that runs any model.

use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, REJECT, call_diff, call_text,
    load_count,
};
use acp::thread::ItemKind;
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::{CodingAgent, ModelConfig, ScriptedModel};

#[tokio::test]
async fn script_can_use_every_step() {
    let script = r#"{"turns": [[
        {"think": ["Let me", " see."]},
        {"say": "Looking."},
        {"plan": [{"content": "Look", "priority": "high", "status": "in_progress"}, {"content": "Do"}]},
        {"list": {}},
        {"read": {"path": "a.txt", "line": 1, "limit": 1}},
        {"search": {"pattern": "one", "glob": "*.txt"}},
        {"say": "Changing."},
        {"write": {"path": "b.txt", "text": "two"}},
        {"edit": {"path": "a.txt", "search": "one", "replacement": "1"}},
        {"run": {"command": "cat a.txt b.txt"}},
        {"say": "Done."}
    ]]}"#;
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_scripted(script, offers).await;
        f.write_file("a.txt", "one\n");
        f.queue_answers([ALLOW, ALLOW, ALLOW]);
        assert_eq!(f.prompt_for_text("go").await, "Done.");
        let shown = f.session.thread().read(|thread| {
            let kinds = thread.items().iter().map(|item| match &item.kind {
                ItemKind::User(_) => "user".to_owned(),
                ItemKind::Agent(message) => message.text(),
                ItemKind::Thought(message) => message.text(),
                ItemKind::ToolCall(call) => call.title.clone(),
                other => panic!("{other:?}"),
            });
            kinds.collect::<Vec<_>>()
        });
        assert_eq!(
            shown,
            [
                "user",
                "Let me see.",
                "Looking.",
                "List `.`",
                "Read `a.txt`, line 1",
                "Search for `one` in `*.txt`",
                "Changing.",
                "Write `b.txt`",
                "Edit `a.txt`",
                "Run `cat a.txt b.txt`",
                "Done.",
            ]
        );
        assert_eq!(f.last_tool_call().raw_output.unwrap()["output"], "1\ntwo");
        assert_eq!(f.plan_updates(), [["in_progress", "pending"]]);
        let ids: std::collections::HashSet<_> =
            f.tool_calls().into_iter().map(|call| call.id).collect();
        assert_eq!(ids.len(), 6);
        assert_eq!(load_count(&f.seen.created), usize::from(offers.terminal));
    }
}

#[tokio::test]
async fn model_continues_after_every_kind_of_result() {
    let script = r#"{"turns": [[
        {"call": {"tool": "frob", "arguments": {"x": 1}}},
        {"read": {"paths": "a.txt"}},
        {"read": {"path": "no.txt"}},
        {"write": {"path": "a.txt", "text": "1"}},
        {"say": "Still here."}
    ]]}"#;
    let f = AgentFixture::start_scripted(script, ALL_CAPABILITIES).await;
    f.queue_answers([REJECT]);
    assert_eq!(f.prompt_for_text("go").await, "Still here.");
    let calls = f.tool_calls();
    assert!(
        calls
            .iter()
            .all(|call| call.status == ToolCallStatus::Failed)
    );
    for (call, why) in calls.iter().zip([
        "Unknown tool `frob`",
        "Invalid arguments for `read`",
        "File not found: `no.txt`",
        "Permission denied by the user",
    ]) {
        assert!(call_text(call).contains(why), "{}", call_text(call));
    }
}

#[tokio::test]
async fn stop_reasons_and_errors_reach_the_client() {
    let script = r#"{"turns": [
        [{"say": "a"}, {"stop": "max_tokens"}],
        [{"stop": "refusal"}],
        [{"write": {"path": "a.txt", "text": "1"}}, {"stop": "end_turn"}],
        [{"error": "the model is on fire"}],
        [{"say": "fine"}]
    ]}"#;
    let f = AgentFixture::start_scripted(script, NO_CAPABILITIES).await;
    assert_eq!(f.prompt("1").await.unwrap(), StopReason::MaxTokens);
    assert_eq!(f.prompt("2").await.unwrap(), StopReason::Refusal);
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt("3").await.unwrap(), StopReason::EndTurn);
    assert_eq!(f.read_file("a.txt"), "1");
    assert!(
        f.prompt("4")
            .await
            .unwrap_err()
            .to_string()
            .contains("on fire")
    );
    assert_eq!(f.prompt_for_text("5").await, "fine");
    assert!(
        f.prompt("6")
            .await
            .unwrap_err()
            .to_string()
            .contains("no turn for prompt 6 (turns in the script: 5)")
    );
}

#[tokio::test]
async fn endless_model_is_stopped_at_the_request_limit() {
    let steps = [r#"{"list": {}}, {"say": "more"}"#; 10].join(", ");
    let model = ScriptedModel::parse(&format!(r#"{{"turns": [[{steps}]]}}"#)).unwrap();
    let f = AgentFixture::new(
        CodingAgent::with_model(model).max_requests(3),
        NO_CAPABILITIES,
    )
    .await;
    assert_eq!(f.prompt("go").await.unwrap(), StopReason::MaxTurnRequests);
    assert_eq!(f.tool_calls().len(), 3);
}

#[tokio::test]
async fn each_session_plays_the_script_from_the_start() {
    let f = AgentFixture::start_scripted(
        r#"{"turns": [[{"say": "1"}], [{"say": "2"}]]}"#,
        NO_CAPABILITIES,
    )
    .await;
    assert_eq!(f.prompt_for_text("go").await, "1");
    let other = f.agent.new_session(f.path("")).await.unwrap();
    other.prompt("go").await.unwrap();
    assert_eq!(f.prompt_for_text("go").await, "2");
    assert_eq!(other.prompt("go").await.unwrap(), StopReason::EndTurn);
    f.agent
        .capabilities()
        .session_capabilities
        .close
        .as_ref()
        .unwrap();
    other.close().await.unwrap();
}

#[test]
fn script_is_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.json");
    let error = CodingAgent::new(&ModelConfig::Scripted(path.clone())).unwrap_err();
    assert!(error.to_string().contains("script.json"), "{error}");
    std::fs::write(&path, r#"{"turns": [[{"dance": true}]]}"#).unwrap();
    let error = CodingAgent::new(&ModelConfig::Scripted(path.clone())).unwrap_err();
    assert!(
        error.to_string().contains("dance") && error.to_string().contains("line 1"),
        "{error}"
    );
    std::fs::write(&path, r#"{"turns": []}"#).unwrap();
    assert!(CodingAgent::new(&ModelConfig::Scripted(path)).is_ok());
}

/// Models write `\n`, regardless of the file's line endings.
#[tokio::test]
async fn line_endings_of_edited_files_are_preserved() {
    let script = r#"{"turns": [[
        {"edit": {"path": "a.txt", "search": "two", "replacement": "2\nand a half"}},
        {"write": {"path": "b.txt", "text": "1\n2\n"}},
        {"say": "Done."}
    ]]}"#;
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_scripted(script, offers).await;
        f.write_file("a.txt", "one\r\ntwo\r\n");
        f.write_file("b.txt", "\u{FEFF}one\r\n");
        f.queue_answers([ALLOW, ALLOW]);
        f.prompt_for_text("go").await;
        assert_eq!(f.read_file("a.txt"), "one\r\n2\r\nand a half\r\n");
        assert_eq!(f.read_file("b.txt"), "\u{FEFF}1\r\n2\r\n");
        // The text that was written is the text that the user was shown.
        let shown: Vec<String> = f
            .tool_calls()
            .iter()
            .filter_map(call_diff)
            .map(|diff| diff.new_text)
            .collect();
        assert_eq!(shown, [f.read_file("a.txt"), f.read_file("b.txt")]);
    }
}
