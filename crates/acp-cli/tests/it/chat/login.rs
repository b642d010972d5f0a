//! Tests of agents that require a login.

use super::*;

/// Starts a chat with an agent that requires a login and offers the given auth methods.
fn start_logged_out(project: &TestProject, ways: &str, columns: u16, rows: u16) -> ChatScreen {
    write_agents_config(project, &[("vault", &format!("--ways {ways}"))]);
    let mut screen = start_chat_with_args(project, columns, rows, "--agent vault");
    screen.wait_for("vault requires you to log in");
    screen.wait_for("F6: log in");
    screen
}

#[test]
fn typed_prompt_is_sent_after_the_login() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_logged_out(&project, "plain", columns, rows);
        screen.send_line("hello");
        screen.wait_for("↳ hello");
        assert_golden(&mut screen, &project, &format!("login-{columns}x{rows}"));
        screen.send_keys(F6);
        screen.wait_for("you said hello");
        screen.wait_until_gone("requires you to log in");
        screen.wait_for("logged in");
        assert_eq!(project.read_file("signed-in"), "{}");
    }
}

#[test]
fn rejected_prompt_is_sent_again_after_the_login() {
    let project = TestProject::new();
    let mut screen = start_logged_out(&project, "plain", 80, 24);
    screen.send_keys(F6);
    screen.wait_for("· vault");
    screen.send_line("hello");
    screen.wait_for("you said hello");
    screen.wait_until_gone("Esc: cancel");
    // It is forgotten meanwhile.
    std::fs::remove_file(project.file("signed-in")).unwrap();
    screen.send_line("again");
    screen.wait_for("vault requires you to log in");
    screen.wait_for("↳ again");
    screen.send_keys(F6);
    screen.wait_for("you said again");
    screen.wait_until_gone("requires you to log in");
}

#[test]
fn login_program_gets_the_terminal() {
    let project = TestProject::new();
    let mut screen = start_logged_out(&project, "program", 80, 24);
    screen.send_keys(F6);
    screen.wait_for("password for the vault:");
    assert!(
        !screen.text().contains("requires you to log in"),
        "{}",
        screen.text()
    );
    screen.send_line("wrong");
    screen.wait_for("login failed: the agent's login program failed (exit code 7)");
    screen.wait_for("F6: log in");
    screen.send_keys(F6);
    // What was on the terminal before is there again, with the first question.
    screen.wait_for_matching_text("the question once more", |text| {
        text.matches("password for the vault:").count() == 2
    });
    screen.send_line("sesame");
    screen.wait_for("· vault");
    screen.send_line("hello");
    screen.wait_for("you said hello");
}

#[test]
fn user_chooses_among_several_login_methods() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_logged_out(&project, "plain,form,program", columns, rows);
        screen.send_keys(F6);
        screen.wait_for("╭ Log in");
        assert_golden(&mut screen, &project, &format!("logins-{columns}x{rows}"));
        screen.send_keys("form");
        screen.wait_for("› By form");
        screen.send_keys(ENTER);
        // What it asks for belongs to no session, and there is none yet.
        screen.wait_for("vault asks: Who are you?");
        wait_until_question_accepts_keys();
        screen.send_keys("abcd");
        // Where there is no room for all of it, it is read to its end first.
        screen.send_keys("\u{1b}[6~");
        screen.send_keys("\u{1b}[6~");
        screen.wait_for("[ ] bugs");
        screen.send_keys("\u{13}");
        screen.wait_for("· vault");
        assert_eq!(
            project.read_file("signed-in"),
            r#"{"days":30,"key":"abcd"}"#
        );
    }
}

#[test]
fn declined_login_can_be_retried() {
    let project = TestProject::new();
    let mut screen = start_logged_out(&project, "form", 80, 24);
    screen.send_keys(F6);
    screen.wait_for("vault asks: Who are you?");
    wait_until_question_accepts_keys();
    screen.send_keys(SHIFT_TAB);
    screen.send_keys(ENTER);
    screen.wait_for("login failed:");
    screen.wait_for("F6: log in");
    screen.send_keys(F6);
    screen.wait_for("vault asks: Who are you?");
}

#[test]
fn logout_works() {
    let project = TestProject::new();
    let mut screen = start_logged_out(&project, "plain", 80, 24);
    screen.send_keys(F6);
    screen.wait_for("· vault");
    screen.send_keys("\u{10}");
    screen.wait_for("╭ Commands");
    screen.send_keys("log out");
    screen.wait_for("› Log out");
    screen.send_keys(ENTER);
    screen.wait_for("logged out");
    assert!(!project.file("signed-in").exists());
}
