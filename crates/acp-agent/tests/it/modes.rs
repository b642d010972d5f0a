//! Tests mode changes by the client and by the agent, between turns and during a turn.

use crate::common;
use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, QuestionAnswer, REJECT, call_text,
    load_count, wait_for_thread,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;
use tokio::sync::oneshot;

fn mode_updates(f: &AgentFixture) -> Vec<String> {
    let updates = f.seen.updates.lock().unwrap();
    let modes = updates.iter().filter_map(|update| match update {
        SessionUpdate::CurrentModeUpdate(update) => {
            Some(format!("mode {}", update.current_mode_id))
        }
        SessionUpdate::ConfigOptionUpdate(update) => match &update.config_options[0].kind {
            SessionConfigKind::Select(select) => Some(format!("option {}", select.current_value)),
            _ => None,
        },
        _ => None,
    });
    modes.collect()
}

#[tokio::test]
async fn new_session_starts_in_ask_mode_and_offers_three_modes() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let request = NewSessionRequest::new(f.path(""), Vec::new());
    let answer = f.agent.connection().request(&request).await.unwrap();
    let modes = answer.modes.unwrap();
    assert_eq!(modes.current_mode_id.as_str(), "ask");
    let ids: Vec<&str> = modes
        .available_modes
        .iter()
        .map(|mode| mode.id.as_str())
        .collect();
    assert_eq!(ids, ["ask", "architect", "code"]);
    let [option] = &answer.config_options.unwrap()[..] else {
        panic!()
    };
    assert_eq!(option.id.as_str(), "mode");
    assert_eq!(option.category, Some(SessionConfigOptionCategory::Mode));
}

#[tokio::test]
async fn code_mode_edits_files_and_asks_before_running_commands() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.session.set_mode("code").await.unwrap();
        f.prompt_for_text("/write a.txt one").await;
        f.prompt_for_text("/edit a.txt\none\n===\ntwo").await;
        f.queue_answers([ALLOW]);
        f.prompt_for_text("/run cp a.txt b.txt").await;
        assert_eq!(f.permission_requests().len(), 1);
        assert_eq!(f.read_file("b.txt"), "two");
        assert!(f.session.set_mode("fast").await.is_err());
    }
}

#[tokio::test]
async fn leaving_architect_mode_requires_permission() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.session.set_mode("architect").await.unwrap();
    f.queue_answers([QuestionAnswer::Id("allow_once"), ALLOW]);
    f.prompt_for_text("/write a.txt one").await;
    assert_eq!(f.read_file("a.txt"), "one");
    assert_eq!(f.current_mode(), "ask");
    assert_eq!(mode_updates(&f), ["option ask", "mode ask"]);

    let calls = f.tool_calls();
    let [switch, write] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(
        f.statuses(&switch.id),
        ["pending", "in_progress", "completed"]
    );
    assert_eq!(
        (switch.title.as_str(), &switch.kind),
        ("Ready for implementation", &ToolKind::SwitchMode)
    );
    assert_eq!(write.status, ToolCallStatus::Completed);
    let asked = f.permission_requests();
    let (leave, change) = (&asked[0], &asked[1]);
    assert_eq!(leave.tool_call.id, switch.id);
    assert_eq!(leave.tool_call.title, "Ready for implementation");
    assert_eq!(leave.tool_call.kind, ToolKind::SwitchMode);
    assert_eq!(leave.tool_call.status, ToolCallStatus::Pending);
    assert_eq!(leave.tool_call.content.len(), 1);
    let options: Vec<(&str, &str, &str)> = leave
        .options
        .iter()
        .map(|option| {
            (
                option.option_id.as_str(),
                option.name.as_str(),
                option.kind.as_str(),
            )
        })
        .collect();
    assert_eq!(
        options,
        [
            (
                "allow_always",
                "Yes, and change files without asking",
                "allow_always"
            ),
            (
                "allow_once",
                "Yes, and ask me before each action",
                "allow_once"
            ),
            ("reject_once", "No, stay in architect mode", "reject_once"),
        ]
    );
    assert_eq!(change.tool_call.id, write.id);
}

#[tokio::test]
async fn code_mode_after_architect_mode_asks_only_before_running_commands() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.session.set_mode("architect").await.unwrap();
    f.write_file("Makefile", "test:\n");
    f.queue_answers([QuestionAnswer::Id("allow_always"), ALLOW]);
    let said = f.prompt_for_text("/test").await;
    assert!(said.contains("exited with code 0"), "{said}");
    assert_eq!(
        (f.current_mode().as_str(), f.permission_requests().len()),
        ("code", 2)
    );
}

#[tokio::test]
async fn rejected_switch_from_architect_mode_changes_nothing() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.session.set_mode("architect").await.unwrap();
    f.write_file("a.txt", "old");
    for command in [
        "/write a.txt new",
        "/edit a.txt\nold\n===\nnew",
        "/run rm a.txt",
    ] {
        f.queue_answers([REJECT]);
        let said = f.prompt_for_text(command).await;
        assert!(said.contains("stays in architect mode"), "{said}");
        let calls = f.tool_calls();
        for call in &calls[calls.len() - 2..] {
            assert_eq!(f.statuses(&call.id), ["pending", "failed"]);
            assert!(call_text(call).contains("stays in architect mode"));
        }
    }
    assert_eq!(
        (f.read_file("a.txt").as_str(), f.current_mode().as_str()),
        ("old", "architect")
    );
    assert_eq!(
        (load_count(&f.seen.writes), load_count(&f.seen.created)),
        (0, 0)
    );
    // Architect mode allows reading.
    assert!(f.prompt_for_text("/read a.txt").await.contains("old"));
    assert!(f.permission_requests().is_empty());
}

#[tokio::test]
async fn mode_set_during_a_turn_applies_from_the_next_tool_call() {
    let script = r#"{"turns": [[
        {"write": {"path": "a.txt", "text": "1"}},
        {"write": {"path": "b.txt", "text": "2"}}
    ]]}"#;
    for (mode, questions) in [("code", 1), ("ask", 2), ("architect", 2)] {
        let f = AgentFixture::start_scripted(script, ALL_CAPABILITIES).await;
        let (say, said) = oneshot::channel();
        let first = QuestionAnswer::When(said, PermissionOptionKind::AllowOnce);
        let then = (questions > 1).then(|| match mode {
            "architect" => QuestionAnswer::Id("reject_once"),
            _ => ALLOW,
        });
        f.queue_answers([first].into_iter().chain(then));
        let turn = f.start_prompt("go");
        wait_for_thread(f.session.thread(), |_| !f.permission_requests().is_empty()).await;
        f.session.set_mode(mode).await.unwrap();
        say.send(()).unwrap();
        assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
        // The open request was answered in the old mode. Further calls are decided in the new mode.
        assert_eq!(f.read_file("a.txt"), "1");
        assert_eq!(f.file_exists("b.txt"), mode != "architect");
        assert_eq!(f.permission_requests().len(), questions, "{mode}");
    }
}

#[tokio::test]
async fn set_mode_and_config_option_are_equivalent() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let request = SetSessionModeRequest::new(f.session.id(), "code");
    f.agent.connection().request(&request).await.unwrap();
    wait_for_thread(f.session.thread(), |thread| {
        common::mode_of_thread(thread) == "code"
    })
    .await;
    f.prompt_for_text("/write a.txt one").await;
    assert_eq!(f.read_file("a.txt"), "one");
}

#[tokio::test]
async fn model_can_switch_the_mode() {
    let script = r#"{"turns": [
        [{"switch_mode": {"mode": "architect"}}, {"switch_mode": {"mode": "code", "plan": "1. Do it"}},
         {"write": {"path": "a.txt", "text": "1"}}],
        [{"switch_mode": {"mode": "fast"}}],
        [{"switch_mode": {"mode": "ask"}}, {"switch_mode": {"mode": "code"}}]
    ]}"#;
    let f = AgentFixture::start_scripted(script, NO_CAPABILITIES).await;
    f.queue_answers([QuestionAnswer::Id("allow_always")]);
    f.prompt_for_text("go").await;
    assert_eq!(
        mode_updates(&f),
        [
            "option architect",
            "mode architect",
            "option code",
            "mode code"
        ]
    );
    assert_eq!(f.read_file("a.txt"), "1");
    assert!(call_text(&f.tool_calls()[1]).contains("1. Do it"));
    f.prompt_for_text("go").await;
    assert!(call_text(&f.last_tool_call()).contains("unknown mode `fast`"));
    // Code mode allows more than ask mode, so permission is requested.
    f.queue_answers([QuestionAnswer::Id("reject_once")]);
    f.prompt_for_text("go").await;
    assert_eq!(
        (f.current_mode().as_str(), f.last_tool_call().status),
        ("ask", ToolCallStatus::Failed)
    );
}
