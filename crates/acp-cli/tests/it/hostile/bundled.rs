//! Getting the bundled agent to do by itself, or to do through the client, what its client's policy forbids.

use super::*;

/// What it can be told to do, and how it shows.
const DEEDS: [&str; 3] = ["/write made\nx", "/run touch made", "/read notes.txt"];

/// Whether the agent has done it.
fn is_done(project: &TestProject, deed: &str, shown: &str) -> bool {
    let made = std::fs::remove_file(project.file("made")).is_ok();
    let read = shown.contains("second");
    match deed.starts_with("/read") {
        true => read,
        false => made,
    }
}

/// Has something remembered that has nothing to do with the rest.
fn remember(project: &TestProject) {
    let mut terminal = CommandTerminal::start(project, &format!("{ACP} run '/run touch other'"));
    terminal.answer("answer [1-4]: ", "2\n");
    let screen = terminal.ends(0);
    assert!(screen.contains("remembered for this project"), "{screen}");
}

#[test]
fn the_policy_of_acp_run_binds_it_in_every_mode() {
    let project = TestProject::new();
    for remembered in [false, true] {
        if remembered {
            remember(&project);
        }
        for (policy, looks, changes) in [
            (Some("none"), false, false),
            (Some("reads"), true, false),
            (Some("all"), true, true),
            // Without a terminal.
            (None, true, false),
        ] {
            for mode in ["ask", "code", "architect"] {
                for deed in DEEDS {
                    let mut args = vec!["--mode", mode];
                    args.extend(policy.iter().flat_map(|policy| ["--allow", policy]));
                    args.push(deed);
                    let ended = project.run(&args);
                    let expected = match deed.starts_with("/read") {
                        true => looks,
                        false => changes,
                    };
                    let done = is_done(&project, deed, &ended.stdout);
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

/// What becomes of a deed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActionOutcome {
    Refused,
    /// The person is asked, once, and it is done when they say yes.
    Asked,
    /// It is done without a question.
    Done,
}

/// What becomes of it in a chat.
fn fate(project: &TestProject, args: &str, deed: &str) -> (ActionOutcome, String) {
    project.write(".deed", deed);
    let line = format!("{ACP} chat {args} \"$(cat .deed)\"");
    let mut screen = ChatScreen::start(project, 100, 30, &line);
    let done = |text: &str| {
        ["Created made", "exited with code 0", "second"]
            .iter()
            .any(|word| text.contains(word))
    };
    let refused = |text: &str| text.contains("ejected") || text.contains("Permission denied");
    let asked = |text: &str| text.contains("enter choose");
    screen.until_it("what becomes of it", |text| {
        done(text) || refused(text) || asked(text)
    });
    let mut fate = ActionOutcome::Done;
    if asked(&screen.text()) {
        fate = ActionOutcome::Asked;
        // A person reads what is asked: keys count once nothing was typed for 300 ms.
        screen.settle();
        screen.key("y");
        screen.until_gone("enter choose");
        screen.until_it("that it is done", |text| done(text) || asked(text));
    }
    let shown = screen.text();
    if !is_done(project, deed, &shown) {
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
fn the_policy_of_acp_chat_binds_it_in_every_mode_and_nothing_is_asked_twice() {
    use ActionOutcome::{Asked, Done, Refused};
    let project = TestProject::new();
    for remembered in [false, true] {
        if remembered {
            remember(&project);
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
            for (deed, expected) in DEEDS.into_iter().zip(fates) {
                let args = format!("--allow {policy} --mode {mode}");
                let (fate, shown) = fate(&project, &args, deed);
                assert_eq!(
                    fate, expected,
                    "{args} {deed}, remembered: {remembered}\n{shown}"
                );
            }
        }
    }
}
