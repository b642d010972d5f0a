//! Agents that want a login first.

use super::*;

/// A chat with an agent that has these ways to log in.
fn locked_out(project: &TestProject, ways: &str, columns: u16, rows: u16) -> ChatScreen {
    configure(project, &[("vault", &format!("--ways {ways}"))]);
    let mut screen = begin(project, columns, rows, "--agent vault");
    screen.until("vault requires you to log in");
    screen.until("l: log in");
    screen
}

#[test]
fn what_was_written_before_the_login_is_said_after_it() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = locked_out(&project, "plain", columns, rows);
        screen.say("hello");
        screen.until("↳ hello");
        is_golden(&mut screen, &project, &format!("login-{columns}x{rows}"));
        screen.key("l");
        screen.until("you said hello");
        screen.until_gone("requires you to log in");
        screen.until("logged in");
        assert_eq!(project.read("signed-in"), "{}");
    }
}

#[test]
fn a_prompt_that_is_refused_goes_on_after_the_login() {
    let project = TestProject::new();
    let mut screen = locked_out(&project, "plain", 80, 24);
    screen.key("l");
    screen.until("· vault");
    screen.say("hello");
    screen.until("you said hello");
    screen.until_gone("Esc: cancel");
    // It is forgotten meanwhile.
    std::fs::remove_file(project.file("signed-in")).unwrap();
    screen.say("again");
    screen.until("vault requires you to log in");
    screen.until("↳ again");
    screen.key("l");
    screen.until("you said again");
    screen.until_gone("requires you to log in");
}

#[test]
fn a_program_that_asks_has_the_terminal_for_itself() {
    let project = TestProject::new();
    let mut screen = locked_out(&project, "program", 80, 24);
    screen.key("l");
    screen.until("password for the vault:");
    assert!(
        !screen.text().contains("requires you to log in"),
        "{}",
        screen.text()
    );
    screen.say("wrong");
    screen.until("login failed: the agent failed (exit code 7)");
    screen.until("l: log in");
    screen.key("l");
    // What was on the terminal before is there again, with the first question.
    screen.until_it("the question once more", |text| {
        text.matches("password for the vault:").count() == 2
    });
    screen.say("sesame");
    screen.until("· vault");
    screen.say("hello");
    screen.until("you said hello");
}

#[test]
fn of_several_ways_one_is_chosen() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = locked_out(&project, "plain,form,program", columns, rows);
        screen.key("l");
        screen.until("╭ Log in");
        is_golden(&mut screen, &project, &format!("logins-{columns}x{rows}"));
        screen.key("form");
        screen.until("› By form");
        screen.key(ENTER);
        // What it asks for belongs to no session, and there is none yet.
        screen.until("vault asks: Who are you?");
        read_what_is_asked();
        screen.key("abcd");
        // Where there is no room for all of it, it is read to its end first.
        screen.key("\u{1b}[6~");
        screen.key("\u{1b}[6~");
        screen.until("[ ] bugs");
        screen.key("\u{13}");
        screen.until("· vault");
        assert_eq!(project.read("signed-in"), r#"{"days":30,"key":"abcd"}"#);
    }
}

#[test]
fn a_login_that_is_declined_can_be_tried_again() {
    let project = TestProject::new();
    let mut screen = locked_out(&project, "form", 80, 24);
    screen.key("l");
    screen.until("vault asks: Who are you?");
    read_what_is_asked();
    screen.key(SHIFT_TAB);
    screen.key(ENTER);
    screen.until("login failed:");
    screen.until("l: log in");
    screen.key("l");
    screen.until("vault asks: Who are you?");
}

#[test]
fn one_can_log_out() {
    let project = TestProject::new();
    let mut screen = locked_out(&project, "plain", 80, 24);
    screen.key("l");
    screen.until("· vault");
    screen.key("\u{10}");
    screen.until("╭ Commands");
    screen.key("log out");
    screen.until("› Log out");
    screen.key(ENTER);
    screen.until("logged out");
    assert!(!project.file("signed-in").exists());
}
