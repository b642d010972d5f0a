//! Attacks that use the bundled agent to do what the client's policy forbids, either by itself or through the client.

use super::*;

/// Prompts that make the agent do things a policy may forbid.
const FORBIDDEN_PROMPTS: [&str; 3] = ["/write made\nx", "/run touch made", "/read notes.txt"];

/// Returns `true` if the agent has executed the prompt.
fn was_executed(project: &TestProject, deed: &str, shown: &str) -> bool {
    let made = std::fs::remove_file(project.file("made")).is_ok();
    let read = shown.contains("second");
    match deed.starts_with("/read") {
        true => read,
        false => made,
    }
}

/// Stores a remembered answer that does not apply to the actions under test.
fn write_remembered_answers(project: &TestProject) {
    let mut terminal = CommandTerminal::start(project, &format!("{ACP} run '/run touch other'"));
    terminal.answer("answer [1-4]: ", "2\n");
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("remembered for this project"), "{screen}");
}

#[test]
fn acp_run_policy_binds_every_mode() {
    let project = TestProject::new();
    for remembered in [false, true] {
        if remembered {
            write_remembered_answers(&project);
        }
        for (policy, looks, changes) in [
            (Some("none"), false, false),
            (Some("reads"), true, false),
            (Some("all"), true, true),
            // Without a terminal.
            (None, true, false),
        ] {
            for mode in ["ask", "code", "architect"] {
                for deed in FORBIDDEN_PROMPTS {
                    let mut args = vec!["--mode", mode];
                    args.extend(policy.iter().flat_map(|policy| ["--allow", policy]));
                    args.push(deed);
                    let ended = project.run(&args);
                    let expected = match deed.starts_with("/read") {
                        true => looks,
                        false => changes,
                    };
                    let done = was_executed(&project, deed, &ended.stdout);
                    assert_eq!(
                        done, expected,
                        "{args:?}, remembered: {remembered}\n{}{}",
                        ended.stdout, ended.stderr
                    );
                }
            }
        }
    }
}

/// The outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActionOutcome {
    Refused,
    /// The user is asked once. The action is executed if the user allows it.
    Asked,
    /// The action is executed without asking the user.
    Done,
}

/// Returns the outcome of an action in a chat.
fn action_outcome(project: &TestProject, args: &str, deed: &str) -> (ActionOutcome, String) {
    project.write_file(".deed", deed);
    let line = format!("{ACP} chat {args} \"$(cat .deed)\"");
    let mut screen = ChatScreen::start(project, 100, 30, &line);
    let done = |text: &str| {
        ["Created made", "exited with code 0", "second"]
            .iter()
            .any(|word| text.contains(word))
    };
    let refused = |text: &str| text.contains("ejected") || text.contains("Permission denied");
    let asked = |text: &str| text.contains("enter choose");
    screen.wait_for_matching_text("what becomes of it", |text| {
        done(text) || refused(text) || asked(text)
    });
    let mut fate = ActionOutcome::Done;
    if asked(&screen.text()) {
        fate = ActionOutcome::Asked;
        // A person reads what is asked: keys count once nothing was typed for 300 ms.
        screen.settle();
        screen.send_keys("y");
        screen.wait_until_gone("enter choose");
        screen.wait_for_matching_text("that it is done", |text| done(text) || asked(text));
    }
    let shown = screen.text();
    if !was_executed(project, deed, &shown) {
        assert_eq!(
            fate,
            ActionOutcome::Done,
            "{args} {deed}: allowed, and not done: {shown}"
        );
        fate = ActionOutcome::Refused;
    }
    (fate, shown)
}

#[test]
fn acp_chat_policy_binds_every_mode_without_asking_twice() {
    use ActionOutcome::{Asked, Done, Refused};
    let project = TestProject::new();
    for remembered in [false, true] {
        if remembered {
            write_remembered_answers(&project);
        }
        for (policy, mode, fates) in [
            ("none", "ask", [Refused, Refused, Refused]),
            ("none", "code", [Refused, Refused, Refused]),
            ("reads", "ask", [Refused, Refused, Done]),
            ("reads", "code", [Refused, Refused, Done]),
            ("reads", "architect", [Refused, Refused, Done]),
            ("ask", "ask", [Asked, Asked, Done]),
            ("ask", "code", [Done, Asked, Done]),
            ("all", "ask", [Done, Done, Done]),
            ("all", "code", [Done, Done, Done]),
        ] {
            for (deed, expected) in FORBIDDEN_PROMPTS.into_iter().zip(fates) {
                let args = format!("--allow {policy} --mode {mode}");
                let (fate, shown) = action_outcome(&project, &args, deed);
                assert_eq!(
                    fate, expected,
                    "{args} {deed}, remembered: {remembered}\n{shown}"
                );
            }
        }
    }
}
