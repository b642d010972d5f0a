//! Tests which actions are allowed, rejected and remembered, and what happens if a file changes before the user
//! answers.

use crate::common::{
    ALL_CAPABILITIES, ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, QuestionAnswer, REJECT,
    REJECT_ALWAYS, call_diff, call_text, load_count,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{CodingAgent, ModelConfig};

const REJECTED_STATUSES: [&str; 2] = ["pending", "failed"];

#[tokio::test]
async fn rejection_changes_nothing_and_the_turn_continues() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("a.txt", "old\n");
        for command in [
            "/write a.txt new",
            "/edit a.txt\nold\n===\nnew",
            "/run echo > b.txt",
        ] {
            f.queue_answers([REJECT]);
            let said = f.prompt_for_text(command).await;
            assert!(said.contains("Permission denied by the user"), "{said}");
            let call = f.last_tool_call();
            assert_eq!(f.statuses(&call.id), REJECTED_STATUSES, "{command}");
            assert!(call_text(&call).contains("Permission denied by the user"));
            assert!(call_diff(&call).is_none());
        }
        assert_eq!(f.read_file("a.txt"), "old\n");
        assert!(!f.file_exists("b.txt"));
        assert_eq!(
            (load_count(&f.seen.writes), load_count(&f.seen.created)),
            (0, 0)
        );
    }
}

#[tokio::test]
async fn answer_with_an_unknown_option_id_allows_nothing() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.queue_answers([QuestionAnswer::Id("yes")]);
    f.prompt_for_text("/write a.txt new").await;
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    assert!(!f.file_exists("a.txt"));
}

#[tokio::test]
async fn always_answer_is_remembered_for_a_tool() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("/write a.txt 1").await;
    f.prompt_for_text("/write b.txt 2").await;
    assert!(f.permission_requests().is_empty());
    assert_eq!(f.read_file("b.txt"), "2");
    // The answer is for this tool, and not for others.
    f.queue_answers([REJECT_ALWAYS]);
    f.prompt_for_text("/edit a.txt\n1\n===\n3").await;
    assert_eq!(f.permission_requests().len(), 1);
    f.prompt_for_text("/edit b.txt\n2\n===\n4").await;
    assert!(f.permission_requests().is_empty());
    assert_eq!(
        (f.read_file("a.txt"), f.read_file("b.txt")),
        ("1".into(), "2".into())
    );
    // The answer is for this session, and not for others.
    let other = f.agent.new_session(f.path("")).await.unwrap();
    f.queue_answers([REJECT]);
    other.prompt("/write a.txt 5").await.unwrap();
    assert_eq!(f.read_file("a.txt"), "1");
}

#[tokio::test]
async fn always_answer_is_remembered_for_a_command_line() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("/run echo 1").await;
    f.prompt_for_text("/run echo 1").await;
    assert!(f.permission_requests().is_empty());
    f.queue_answers([REJECT]);
    f.prompt_for_text("/run echo 1; echo 2").await;
    assert_eq!(f.permission_requests().len(), 1);
}

#[tokio::test]
async fn file_changed_before_the_answer_is_not_overwritten() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        for (command, why) in [
            ("/write a.txt new", "was modified since"),
            (
                "/edit a.txt\nold\n===\nnew",
                "no match for the search text or its first line",
            ),
        ] {
            let f = AgentFixture::start_offline(offers).await;
            f.write_file("a.txt", "old\n");
            let path = f.path("a.txt");
            let change = Box::new(move || std::fs::write(path, "other\n").unwrap());
            f.queue_answers([QuestionAnswer::After(
                change,
                PermissionOptionKind::AllowOnce,
            )]);
            let said = f.prompt_for_text(command).await;
            assert!(
                said.contains(why) && said.contains("Nothing was changed"),
                "{said}"
            );
            assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
            assert_eq!(f.read_file("a.txt"), "other\n");
        }
    }
}

#[tokio::test]
async fn concurrent_change_elsewhere_in_an_edited_file_is_kept() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.write_file("a.txt", "one\ntwo\n");
    let path = f.path("a.txt");
    let change = Box::new(move || std::fs::write(path, "zero\none\ntwo\n").unwrap());
    f.queue_answers([QuestionAnswer::After(
        change,
        PermissionOptionKind::AllowOnce,
    )]);
    f.prompt_for_text("/edit a.txt\ntwo\n===\n2").await;
    assert_eq!(f.read_file("a.txt"), "zero\none\n2\n");
    assert_eq!(
        call_diff(&f.last_tool_call()).unwrap().old_text.as_deref(),
        Some("zero\none\ntwo\n")
    );
    assert_eq!(f.last_tool_call().locations[0].line, Some(3));
}

#[tokio::test]
async fn file_created_before_the_answer_is_not_overwritten() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let path = f.path("a.txt");
    let appear = Box::new(move || std::fs::write(path, "mine").unwrap());
    f.queue_answers([QuestionAnswer::After(
        appear,
        PermissionOptionKind::AllowOnce,
    )]);
    f.prompt_for_text("/write a.txt yours").await;
    assert_eq!(f.read_file("a.txt"), "mine");
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/write a.txt yours").await;
    assert_eq!(f.read_file("a.txt"), "yours");
}

/// Most clients don't remember "always" answers and would ask the user each time, so the agent remembers them itself.
#[tokio::test]
async fn always_answer_lasts_for_the_session_regardless_of_the_client() {
    for (options, offers) in [
        (acp::Options::new(), ALL_CAPABILITIES),
        (acp::Options::new(), NO_CAPABILITIES),
        (acp::Options::new().draft_version_2(), NO_CAPABILITIES),
    ] {
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        let agent = agent.keep_sessions(MemoryStore::new());
        let f = AgentFixture::start_with_options(options, agent, offers).await;
        f.write_file("a.txt", "0");
        for (first, later) in [
            ("/write a.txt 1".to_owned(), "/write b.txt 2".to_owned()),
            (
                "/edit a.txt\n1\n===\n3".to_owned(),
                "/edit b.txt\n2\n===\n4".to_owned(),
            ),
            ("/run echo 5 >> c".to_owned(), "/run echo 5 >> c".to_owned()),
            ("/write .envrc 6".to_owned(), "/write .envrc 7".to_owned()),
        ] {
            f.queue_answers([ALLOW_ALWAYS]);
            f.prompt_for_text(first.as_str()).await;
            assert_eq!(f.permission_requests().len(), 1, "{first}");
            // A permission request here would not be answered, and the test would fail.
            f.prompt_for_text(later.as_str()).await;
            assert!(f.permission_requests().is_empty(), "{later}");
            assert_eq!(
                f.last_tool_call().status,
                ToolCallStatus::Completed,
                "{later}"
            );
        }
        let texts = ["a.txt", "b.txt", "c", ".envrc"].map(|name| f.read_file(name));
        assert_eq!(texts, ["3", "4", "5\n5\n", "7"]);
    }
}

#[tokio::test]
async fn option_ids_equal_their_kinds() {
    for (mode, command) in [
        ("ask", "/write a.txt new"),
        ("ask", "/run true"),
        ("architect", "/write a.txt new"),
    ] {
        let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
        f.session.set_mode(mode).await.unwrap();
        f.queue_answers([REJECT]);
        f.prompt_for_text(command).await;
        for option in &f.permission_requests()[0].options {
            assert_eq!(
                option.option_id.as_str(),
                option.kind.as_str(),
                "{mode} {command}"
            );
        }
    }
}

#[tokio::test]
async fn always_answer_applies_only_to_its_directories() {
    let store = tempfile::tempdir().unwrap();
    let agent = || {
        let store = SqliteStore::open(store.path()).unwrap();
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        agent.keep_sessions(store)
    };
    let f = AgentFixture::new(agent(), NO_CAPABILITIES).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("/write a.txt 1").await;
    let id = f.session.id().clone();
    f.session.close().await.unwrap();

    // In another directory, permission is requested again, and the answer applies there.
    let g = AgentFixture::new(agent(), NO_CAPABILITIES).await;
    let elsewhere = g.agent.load_session(id.clone(), g.cwd()).await.unwrap();
    for asked in [1, 0] {
        g.seen.asked.lock().unwrap().clear();
        g.queue_answers((asked == 1).then_some(ALLOW_ALWAYS));
        elsewhere.prompt("/write a.txt 2").await.unwrap();
        assert_eq!(g.permission_requests().len(), asked);
    }
    assert_eq!(g.read_file("a.txt"), "2");
    elsewhere.close().await.unwrap();

    // With an additional directory, permission is requested. In the original directories, the first answer still
    // applies.
    let setup = acp::client::SessionSetup::new(f.cwd()).additional_directories([g.cwd()]);
    for (setup, asked) in [(setup, 1), (acp::client::SessionSetup::new(f.cwd()), 0)] {
        f.seen.asked.lock().unwrap().clear();
        f.queue_answers((asked == 1).then_some(REJECT));
        let here = f.agent.load_session(id.clone(), setup).await.unwrap();
        here.prompt("/write b.txt 3").await.unwrap();
        assert_eq!(f.permission_requests().len(), asked);
        assert_eq!(f.file_exists("b.txt"), asked == 0);
        here.close().await.unwrap();
    }
}

#[tokio::test]
async fn commands_run_locally_if_the_client_would_alter_them() {
    let name =
        r#""clientInfo":{"name":"vscode-acp-client","version":"0.1.4"},"clientCapabilities":"#;
    let agent = || CodingAgent::new(&ModelConfig::Offline).unwrap();
    for (name, created) in [(Some(name), 0), (None, 1)] {
        let f = AgentFixture::start_with_client_name(
            name,
            acp::Options::new(),
            agent(),
            ALL_CAPABILITIES,
        )
        .await;
        f.queue_answers([ALLOW]);
        let said = f.prompt_for_text("/run cd / && pwd").await;
        assert!(said.contains("exited with code 0"), "{said}");
        assert_eq!(load_count(&f.seen.created), created);
    }
}
