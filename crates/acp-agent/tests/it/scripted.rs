//! The scripted model, and the loop around any model.

use crate::common::{ALL, ALLOW, AgentFixture, NONE, REJECT, count, diff, texts};
use acp::thread::ItemKind;
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::{CodingAgent, ModelConfig, ScriptedModel};

#[tokio::test]
async fn a_turn_with_every_step() {
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
    for offers in [ALL, NONE] {
        let f = AgentFixture::scripted(script, offers).await;
        f.put("a.txt", "one\n");
        f.answers([ALLOW, ALLOW, ALLOW]);
        assert_eq!(f.says("go").await, "Done.");
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
        assert_eq!(f.call().raw_output.unwrap()["output"], "1\ntwo");
        assert_eq!(f.plans(), [["in_progress", "pending"]]);
        let ids: std::collections::HashSet<_> = f.calls().into_iter().map(|call| call.id).collect();
        assert_eq!(ids.len(), 6);
        assert_eq!(count(&f.seen.created), usize::from(offers.terminal));
    }
}

#[tokio::test]
async fn results_of_all_kinds_let_the_model_go_on() {
    let script = r#"{"turns": [[
        {"call": {"tool": "frob", "arguments": {"x": 1}}},
        {"read": {"paths": "a.txt"}},
        {"read": {"path": "no.txt"}},
        {"write": {"path": "a.txt", "text": "1"}},
        {"say": "Still here."}
    ]]}"#;
    let f = AgentFixture::scripted(script, ALL).await;
    f.answers([REJECT]);
    assert_eq!(f.says("go").await, "Still here.");
    let calls = f.calls();
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
        assert!(texts(call).contains(why), "{}", texts(call));
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
    let f = AgentFixture::scripted(script, NONE).await;
    assert_eq!(f.prompt("1").await.unwrap(), StopReason::MaxTokens);
    assert_eq!(f.prompt("2").await.unwrap(), StopReason::Refusal);
    f.answers([ALLOW]);
    assert_eq!(f.prompt("3").await.unwrap(), StopReason::EndTurn);
    assert_eq!(f.text("a.txt"), "1");
    assert!(
        f.prompt("4")
            .await
            .unwrap_err()
            .to_string()
            .contains("on fire")
    );
    assert_eq!(f.says("5").await, "fine");
    assert!(
        f.prompt("6")
            .await
            .unwrap_err()
            .to_string()
            .contains("no turn for prompt 6 (turns in the script: 5)")
    );
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let steps = [r#"{"list": {}}, {"say": "more"}"#; 10].join(", ");
    let model = ScriptedModel::parse(&format!(r#"{{"turns": [[{steps}]]}}"#)).unwrap();
    let f = AgentFixture::new(CodingAgent::with_model(model).max_requests(3), NONE).await;
    assert_eq!(f.prompt("go").await.unwrap(), StopReason::MaxTurnRequests);
    assert_eq!(f.calls().len(), 3);
}

#[tokio::test]
async fn sessions_play_the_script_each_by_itself() {
    let f = AgentFixture::scripted(r#"{"turns": [[{"say": "1"}], [{"say": "2"}]]}"#, NONE).await;
    assert_eq!(f.says("go").await, "1");
    let other = f.agent.new_session(f.path("")).await.unwrap();
    other.prompt("go").await.unwrap();
    assert_eq!(f.says("go").await, "2");
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
fn scripts_come_from_files() {
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

/// Models write `\n`, whatever is in the file.
#[tokio::test]
async fn line_ends_stay_as_they_are_in_the_file() {
    let script = r#"{"turns": [[
        {"edit": {"path": "a.txt", "search": "two", "replacement": "2\nand a half"}},
        {"write": {"path": "b.txt", "text": "1\n2\n"}},
        {"say": "Done."}
    ]]}"#;
    for offers in [ALL, NONE] {
        let f = AgentFixture::scripted(script, offers).await;
        f.put("a.txt", "one\r\ntwo\r\n");
        f.put("b.txt", "\u{FEFF}one\r\n");
        f.answers([ALLOW, ALLOW]);
        f.says("go").await;
        assert_eq!(f.text("a.txt"), "one\r\n2\r\nand a half\r\n");
        assert_eq!(f.text("b.txt"), "\u{FEFF}1\r\n2\r\n");
        // What the person was shown is what was written.
        let shown: Vec<String> = f
            .calls()
            .iter()
            .filter_map(diff)
            .map(|diff| diff.new_text)
            .collect();
        assert_eq!(shown, [f.text("a.txt"), f.text("b.txt")]);
    }
}
