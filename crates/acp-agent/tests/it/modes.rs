//! Modes, changed by the client and by the agent, between turns and during one.

use crate::common;
use crate::common::{ALL, ALLOW, AgentFixture, NONE, QuestionAnswer, REJECT, count, texts, until};
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
async fn a_session_begins_in_ask_mode_and_offers_three() {
    let f = AgentFixture::offline(NONE).await;
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
async fn code_mode_changes_files_and_asks_for_commands() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.session.set_mode("code").await.unwrap();
        f.says("/write a.txt one").await;
        f.says("/edit a.txt\none\n===\ntwo").await;
        f.answers([ALLOW]);
        f.says("/run cp a.txt b.txt").await;
        assert_eq!(f.asked().len(), 1);
        assert_eq!(f.text("b.txt"), "two");
        assert!(f.session.set_mode("fast").await.is_err());
    }
}

#[tokio::test]
async fn architect_mode_asks_to_be_left() {
    let f = AgentFixture::offline(ALL).await;
    f.session.set_mode("architect").await.unwrap();
    f.answers([QuestionAnswer::Id("allow_once"), ALLOW]);
    f.says("/write a.txt one").await;
    assert_eq!(f.text("a.txt"), "one");
    assert_eq!(f.mode(), "ask");
    assert_eq!(mode_updates(&f), ["option ask", "mode ask"]);

    let calls = f.calls();
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
    let asked = f.asked();
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
                "Yes, and manually accept actions",
                "allow_once"
            ),
            ("reject_once", "No, stay in architect mode", "reject_once"),
        ]
    );
    assert_eq!(change.tool_call.id, write.id);
}

#[tokio::test]
async fn architect_mode_left_for_code_asks_for_commands_only() {
    let f = AgentFixture::offline(NONE).await;
    f.session.set_mode("architect").await.unwrap();
    f.put("Makefile", "test:\n");
    f.answers([QuestionAnswer::Id("allow_always"), ALLOW]);
    let said = f.says("/test").await;
    assert!(said.contains("exited with code 0"), "{said}");
    assert_eq!((f.mode().as_str(), f.asked().len()), ("code", 2));
}

#[tokio::test]
async fn architect_mode_that_is_not_left_changes_nothing() {
    let f = AgentFixture::offline(ALL).await;
    f.session.set_mode("architect").await.unwrap();
    f.put("a.txt", "old");
    for command in [
        "/write a.txt new",
        "/edit a.txt\nold\n===\nnew",
        "/run rm a.txt",
    ] {
        f.answers([REJECT]);
        let said = f.says(command).await;
        assert!(said.contains("stays in architect mode"), "{said}");
        let calls = f.calls();
        for call in &calls[calls.len() - 2..] {
            assert_eq!(f.statuses(&call.id), ["pending", "failed"]);
            assert!(texts(call).contains("stays in architect mode"));
        }
    }
    assert_eq!(
        (f.text("a.txt").as_str(), f.mode().as_str()),
        ("old", "architect")
    );
    assert_eq!((count(&f.seen.writes), count(&f.seen.created)), (0, 0));
    // Reading is what it is for.
    assert!(f.says("/read a.txt").await.contains("old"));
    assert!(f.asked().is_empty());
}

#[tokio::test]
async fn a_mode_set_during_a_turn_counts_from_the_next_tool_call_on() {
    let script = r#"{"turns": [[
        {"write": {"path": "a.txt", "text": "1"}},
        {"write": {"path": "b.txt", "text": "2"}}
    ]]}"#;
    for (mode, questions) in [("code", 1), ("ask", 2), ("architect", 2)] {
        let f = AgentFixture::scripted(script, ALL).await;
        let (say, said) = oneshot::channel();
        let first = QuestionAnswer::When(said, PermissionOptionKind::AllowOnce);
        let then = (questions > 1).then(|| match mode {
            "architect" => QuestionAnswer::Id("reject_once"),
            _ => ALLOW,
        });
        f.answers([first].into_iter().chain(then));
        let turn = f.begin("go");
        until(f.session.thread(), |_| !f.asked().is_empty()).await;
        f.session.set_mode(mode).await.unwrap();
        say.send(()).unwrap();
        assert_eq!(turn.await.unwrap().unwrap(), StopReason::EndTurn);
        // The question that was open has been answered; what comes after it goes by the new mode.
        assert_eq!(f.text("a.txt"), "1");
        assert_eq!(f.there("b.txt"), mode != "architect");
        assert_eq!(f.asked().len(), questions, "{mode}");
    }
}

#[tokio::test]
async fn clients_that_know_only_modes_set_the_same() {
    let f = AgentFixture::offline(NONE).await;
    let request = SetSessionModeRequest::new(f.session.id(), "code");
    f.agent.connection().request(&request).await.unwrap();
    until(f.session.thread(), |thread| common::mode(thread) == "code").await;
    f.says("/write a.txt one").await;
    assert_eq!(f.text("a.txt"), "one");
}

#[tokio::test]
async fn a_model_can_switch_the_mode() {
    let script = r#"{"turns": [
        [{"switch_mode": {"mode": "architect"}}, {"switch_mode": {"mode": "code", "plan": "1. Do it"}},
         {"write": {"path": "a.txt", "text": "1"}}],
        [{"switch_mode": {"mode": "fast"}}],
        [{"switch_mode": {"mode": "ask"}}, {"switch_mode": {"mode": "code"}}]
    ]}"#;
    let f = AgentFixture::scripted(script, NONE).await;
    f.answers([QuestionAnswer::Id("allow_always")]);
    f.says("go").await;
    assert_eq!(
        mode_updates(&f),
        [
            "option architect",
            "mode architect",
            "option code",
            "mode code"
        ]
    );
    assert_eq!(f.text("a.txt"), "1");
    assert!(texts(&f.calls()[1]).contains("1. Do it"));
    f.says("go").await;
    assert!(texts(&f.call()).contains("unknown mode `fast`"));
    // More is allowed in code mode than in ask mode, so that is a question.
    f.answers([QuestionAnswer::Id("reject_once")]);
    f.says("go").await;
    assert_eq!(
        (f.mode().as_str(), f.call().status),
        ("ask", ToolCallStatus::Failed)
    );
}
