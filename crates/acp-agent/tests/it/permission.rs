//! What is allowed, rejected and remembered, and files that change meanwhile.

use crate::common::{
    ALL, ALLOW, ALLOW_ALWAYS, AgentFixture, NONE, QuestionAnswer, REJECT, REJECT_ALWAYS, count,
    diff, texts,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{CodingAgent, ModelConfig};

const REJECTED: [&str; 2] = ["pending", "failed"];

#[tokio::test]
async fn a_rejection_changes_nothing_and_the_turn_goes_on() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("a.txt", "old\n");
        for command in [
            "/write a.txt new",
            "/edit a.txt\nold\n===\nnew",
            "/run echo > b.txt",
        ] {
            f.answers([REJECT]);
            let said = f.says(command).await;
            assert!(said.contains("Permission denied by the user"), "{said}");
            let call = f.call();
            assert_eq!(f.statuses(&call.id), REJECTED, "{command}");
            assert!(texts(&call).contains("Permission denied by the user"));
            assert!(diff(&call).is_none());
        }
        assert_eq!(f.text("a.txt"), "old\n");
        assert!(!f.there("b.txt"));
        assert_eq!((count(&f.seen.writes), count(&f.seen.created)), (0, 0));
    }
}

#[tokio::test]
async fn an_answer_that_was_not_offered_allows_nothing() {
    let f = AgentFixture::offline(ALL).await;
    f.answers([QuestionAnswer::Id("yes")]);
    f.says("/write a.txt new").await;
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    assert!(!f.there("a.txt"));
}

#[tokio::test]
async fn always_is_remembered_for_a_tool() {
    let f = AgentFixture::offline(ALL).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("/write a.txt 1").await;
    f.says("/write b.txt 2").await;
    assert!(f.asked().is_empty());
    assert_eq!(f.text("b.txt"), "2");
    // For this tool, and not for another.
    f.answers([REJECT_ALWAYS]);
    f.says("/edit a.txt\n1\n===\n3").await;
    assert_eq!(f.asked().len(), 1);
    f.says("/edit b.txt\n2\n===\n4").await;
    assert!(f.asked().is_empty());
    assert_eq!((f.text("a.txt"), f.text("b.txt")), ("1".into(), "2".into()));
    // For this session, and not for another.
    let other = f.agent.new_session(f.path("")).await.unwrap();
    f.answers([REJECT]);
    other.prompt("/write a.txt 5").await.unwrap();
    assert_eq!(f.text("a.txt"), "1");
}

#[tokio::test]
async fn always_is_remembered_for_a_command_line() {
    let f = AgentFixture::offline(ALL).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("/run echo 1").await;
    f.says("/run echo 1").await;
    assert!(f.asked().is_empty());
    f.answers([REJECT]);
    f.says("/run echo 1; echo 2").await;
    assert_eq!(f.asked().len(), 1);
}

#[tokio::test]
async fn a_file_that_changes_before_the_answer_is_not_overwritten() {
    for offers in [ALL, NONE] {
        for (command, why) in [
            ("/write a.txt new", "was modified since"),
            (
                "/edit a.txt\nold\n===\nnew",
                "no match for the search text or its first line",
            ),
        ] {
            let f = AgentFixture::offline(offers).await;
            f.put("a.txt", "old\n");
            let path = f.path("a.txt");
            let change = Box::new(move || std::fs::write(path, "other\n").unwrap());
            f.answers([QuestionAnswer::After(
                change,
                PermissionOptionKind::AllowOnce,
            )]);
            let said = f.says(command).await;
            assert!(
                said.contains(why) && said.contains("Nothing was changed"),
                "{said}"
            );
            assert_eq!(f.call().status, ToolCallStatus::Failed);
            assert_eq!(f.text("a.txt"), "other\n");
        }
    }
}

#[tokio::test]
async fn what_changes_elsewhere_in_an_edited_file_stays() {
    let f = AgentFixture::offline(ALL).await;
    f.put("a.txt", "one\ntwo\n");
    let path = f.path("a.txt");
    let change = Box::new(move || std::fs::write(path, "zero\none\ntwo\n").unwrap());
    f.answers([QuestionAnswer::After(
        change,
        PermissionOptionKind::AllowOnce,
    )]);
    f.says("/edit a.txt\ntwo\n===\n2").await;
    assert_eq!(f.text("a.txt"), "zero\none\n2\n");
    assert_eq!(
        diff(&f.call()).unwrap().old_text.as_deref(),
        Some("zero\none\ntwo\n")
    );
    assert_eq!(f.call().locations[0].line, Some(3));
}

#[tokio::test]
async fn a_file_that_appears_before_the_answer_is_not_overwritten() {
    let f = AgentFixture::offline(NONE).await;
    let path = f.path("a.txt");
    let appear = Box::new(move || std::fs::write(path, "mine").unwrap());
    f.answers([QuestionAnswer::After(
        appear,
        PermissionOptionKind::AllowOnce,
    )]);
    f.says("/write a.txt yours").await;
    assert_eq!(f.text("a.txt"), "mine");
    f.answers([ALLOW]);
    f.says("/write a.txt yours").await;
    assert_eq!(f.text("a.txt"), "yours");
}

/// The agent remembers by itself: most clients do not, and ask the person whatever they are asked.
#[tokio::test]
async fn always_holds_for_the_session_whatever_the_client_remembers() {
    for (options, offers) in [
        (acp::Options::new(), ALL),
        (acp::Options::new(), NONE),
        (acp::Options::new().draft_version_2(), NONE),
    ] {
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        let agent = agent.keep_sessions(MemoryStore::new());
        let f = AgentFixture::speaking(options, agent, offers).await;
        f.put("a.txt", "0");
        for (first, later) in [
            ("/write a.txt 1".to_owned(), "/write b.txt 2".to_owned()),
            (
                "/edit a.txt\n1\n===\n3".to_owned(),
                "/edit b.txt\n2\n===\n4".to_owned(),
            ),
            ("/run echo 5 >> c".to_owned(), "/run echo 5 >> c".to_owned()),
            ("/write .envrc 6".to_owned(), "/write .envrc 7".to_owned()),
        ] {
            f.answers([ALLOW_ALWAYS]);
            f.says(first.as_str()).await;
            assert_eq!(f.asked().len(), 1, "{first}");
            // A question now would have no answer, and the test would fail.
            f.says(later.as_str()).await;
            assert!(f.asked().is_empty(), "{later}");
            assert_eq!(f.call().status, ToolCallStatus::Completed, "{later}");
        }
        let texts = ["a.txt", "b.txt", "c", ".envrc"].map(|name| f.text(name));
        assert_eq!(texts, ["3", "4", "5\n5\n", "7"]);
    }
}

#[tokio::test]
async fn options_are_called_by_their_kinds() {
    for (mode, command) in [
        ("ask", "/write a.txt new"),
        ("ask", "/run true"),
        ("architect", "/write a.txt new"),
    ] {
        let f = AgentFixture::offline(NONE).await;
        f.session.set_mode(mode).await.unwrap();
        f.answers([REJECT]);
        f.says(command).await;
        for option in &f.asked()[0].options {
            assert_eq!(
                option.option_id.as_str(),
                option.kind.as_str(),
                "{mode} {command}"
            );
        }
    }
}

#[tokio::test]
async fn always_holds_in_the_directories_in_which_it_was_said() {
    let store = tempfile::tempdir().unwrap();
    let agent = || {
        let store = SqliteStore::open(store.path()).unwrap();
        let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
        agent.keep_sessions(store)
    };
    let f = AgentFixture::new(agent(), NONE).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("/write a.txt 1").await;
    let id = f.session.id().clone();
    f.session.close().await.unwrap();

    // Elsewhere it is asked again, and what is said there holds there.
    let g = AgentFixture::new(agent(), NONE).await;
    let elsewhere = g.agent.load_session(id.clone(), g.cwd()).await.unwrap();
    for asked in [1, 0] {
        g.seen.asked.lock().unwrap().clear();
        g.answers((asked == 1).then_some(ALLOW_ALWAYS));
        elsewhere.prompt("/write a.txt 2").await.unwrap();
        assert_eq!(g.asked().len(), asked);
    }
    assert_eq!(g.text("a.txt"), "2");
    elsewhere.close().await.unwrap();

    // With another directory beside it, it is asked; where it was said first, it holds still.
    let setup = acp::client::SessionSetup::new(f.cwd()).additional_directories(vec![g.cwd()]);
    for (setup, asked) in [(setup, 1), (acp::client::SessionSetup::new(f.cwd()), 0)] {
        f.seen.asked.lock().unwrap().clear();
        f.answers((asked == 1).then_some(REJECT));
        let here = f.agent.load_session(id.clone(), setup).await.unwrap();
        here.prompt("/write b.txt 3").await.unwrap();
        assert_eq!(f.asked().len(), asked);
        assert_eq!(f.there("b.txt"), asked == 0);
        here.close().await.unwrap();
    }
}

#[tokio::test]
async fn where_a_client_would_run_something_else_commands_are_the_agent_s_own() {
    let name =
        r#""clientInfo":{"name":"vscode-acp-client","version":"0.1.4"},"clientCapabilities":"#;
    let agent = || CodingAgent::new(&ModelConfig::Offline).unwrap();
    for (name, created) in [(Some(name), 0), (None, 1)] {
        let f = AgentFixture::called(name, acp::Options::new(), agent(), ALL).await;
        f.answers([ALLOW]);
        let said = f.says("/run cd / && pwd").await;
        assert!(said.contains("exited with code 0"), "{said}");
        assert_eq!(count(&f.seen.created), created);
    }
}
