//! What agents ask beside permissions: forms and addresses. Elicitation.

use serde_json::{Value, json};

use super::*;

/// A chat with the agent that asks with a field of every sort.
fn asked(project: &TestProject, columns: u16, rows: u16) -> ChatScreen {
    configure(project, &[("helper", "")]);
    let mut screen = begin(project, columns, rows, "--agent helper");
    screen.until("· helper");
    screen.say("ask");
    screen.until("helper asks: Who are you?");
    read_what_is_asked();
    screen
}

/// What the agent has got, which it says as its answer.
#[track_caller]
fn got(screen: &mut ChatScreen, project: &TestProject, action: &str) -> Value {
    screen.until(&format!("{{\"action\":\"{action}\""));
    screen.until_gone("Esc: cancel");
    heard(project)
}

#[test]
fn a_form_is_filled_in_and_sent() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = asked(&project, columns, rows);
        is_golden(&mut screen, &project, &format!("form-{columns}x{rows}"));
        screen.key("abc");
        // What is missing is said where it is missing, and nothing is sent.
        screen.key("\u{13}");
        screen.until("✗ ");
        screen.key("d");
        screen.until_gone("✗ ");
        screen.key(TAB);
        screen.key(BACKSPACE);
        screen.key(TAB);
        screen.key(DOWN);
        screen.key(ENTER);
        screen.key("y");
        screen.until("[x] share");
        screen.key(TAB);
        screen.key(" ");
        screen.key(DOWN);
        screen.key(DOWN);
        screen.key(" ");
        is_golden(
            &mut screen,
            &project,
            &format!("form-filled-{columns}x{rows}"),
        );
        screen.key("\u{13}");
        let expected = json!({"action": "accept", "content":
            {"key": "abcd", "days": 3, "plan": "l", "share": true, "topics": ["news", "bugs"]}});
        assert_eq!(got(&mut screen, &project, "accept"), expected);
    }
}

#[test]
fn a_form_is_declined_and_left_by_its_buttons() {
    // The last two buttons, which Shift-Tab comes to from above all.
    for (steps, action) in [(2, "decline"), (1, "cancel")] {
        let project = TestProject::new();
        let mut screen = asked(&project, 80, 24);
        for _ in 0..steps {
            screen.key(SHIFT_TAB);
        }
        let button = format!("›[ {}{} ]‹", action[..1].to_uppercase(), &action[1..]);
        screen.until(&button);
        screen.key(ENTER);
        assert_eq!(
            got(&mut screen, &project, action),
            json!({"action": action})
        );
    }
}

#[test]
fn escape_leaves_a_form_and_cancels_the_turn() {
    let project = TestProject::new();
    let mut screen = asked(&project, 80, 24);
    screen.key(ESCAPE);
    screen.until_gone("Who are you?");
    assert_eq!(
        got(&mut screen, &project, "cancel"),
        json!({"action": "cancel"})
    );
    screen.until("Type a prompt");
}

/// An address with more to it than fits on a line.
fn address() -> String {
    format!(
        "https://login.example.org/device?code=ABCD-1234&state={}end",
        "x".repeat(120)
    )
}

/// A chat where an address is asked to be gone to, with a program that opens addresses which writes down what it got.
fn sent_to_a_page(project: &TestProject, url: &str, columns: u16, rows: u16) -> ChatScreen {
    let programs = project.file(".bin");
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    std::os::unix::fs::symlink("/bin/sh", &opener).unwrap();
    // A shell by that name is given the address as the name of a script.
    configure(project, &[("player", "--player")]);
    let line = format!(
        "PATH={}:$PATH ENV= {ACP} chat --agent player",
        programs.display()
    );
    let mut screen = ChatScreen::start(project, columns, rows, &line);
    screen.until("· Player");
    play(
        project,
        &mut screen,
        &json!([{"visit": url}, says("Thank you.")]),
    );
    screen.until("Please confirm the device.");
    read_what_is_asked();
    screen
}

#[test]
fn the_whole_of_an_address_is_shown_and_nothing_opened() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = sent_to_a_page(&project, &address(), columns, rows);
        is_golden(&mut screen, &project, &format!("address-{columns}x{rows}"));
        let shown: String = screen
            .text()
            .lines()
            .filter(|line| line.starts_with('│'))
            .flat_map(|line| line.trim_matches(['│', ' ']).chars())
            .collect();
        assert!(shown.contains(&address()), "{shown}");
        assert!(cell(&screen, "login.example.org").bold());
        // Enter is no answer.
        screen.key(ENTER);
        screen.key("y");
        screen.until("Thank you.");
        assert_eq!(heard(&project), json!({"action": "accept"}));
        assert!(!screen.text().contains("Cannot open it"));
    }
}

#[test]
fn an_address_is_opened_by_the_key_for_it_alone() {
    let project = TestProject::new();
    let mut screen = sent_to_a_page(&project, &address(), 80, 40);
    screen.key("o");
    // The program for it here fails, which is told: so it was called.
    screen.until("Cannot open it: xdg-open failed (exit status: ");
    screen.key("n");
    screen.until("Thank you.");
    assert_eq!(heard(&project), json!({"action": "decline"}));
}

#[test]
fn an_address_that_deceives_is_warned_of() {
    let project = TestProject::new();
    let url = "http://bank.example@evil.example/login";
    let mut screen = sent_to_a_page(&project, url, 80, 40);
    screen.until("! The part before the @ is not the site name. The site is evil.example.");
    screen.until("not encrypted");
    assert_eq!(
        cell(&screen, "! The part before").fgcolor(),
        vt100::Color::Idx(3)
    );
    screen.key(ESCAPE);
    until_heard(&project, &json!({"action": "cancel"}));
}
