//! Tests of elicitation with forms and URLs.

use serde_json::{Value, json};

use super::*;

/// Starts a chat with an agent that asks the user to fill in a form with a field of every type.
fn start_with_form(project: &TestProject, columns: u16, rows: u16) -> ChatScreen {
    write_agents_config(project, &[("helper", "")]);
    let mut screen = start_chat_with_args(project, columns, rows, "--agent helper");
    screen.wait_for("· helper");
    screen.send_line("ask");
    screen.wait_for("helper asks: Who are you?");
    wait_until_question_accepts_keys();
    screen
}

/// Returns the user's response to the elicitation. The agent sends it back as a message.
#[track_caller]
fn read_response(screen: &mut ChatScreen, project: &TestProject, action: &str) -> Value {
    screen.wait_for(&format!("{{\"action\":\"{action}\""));
    screen.wait_until_gone("Esc: cancel");
    read_record(project)
}

#[test]
fn form_is_filled_in_and_sent() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_with_form(&project, columns, rows);
        assert_golden(&mut screen, &project, &format!("form-{columns}x{rows}"));
        screen.send_keys("abc");
        // What is missing is said where it is missing, and nothing is sent.
        screen.send_keys("\u{13}");
        screen.wait_for("✗ ");
        screen.send_keys("d");
        screen.wait_until_gone("✗ ");
        screen.send_keys(TAB);
        screen.send_keys(BACKSPACE);
        screen.send_keys(TAB);
        screen.send_keys(DOWN);
        screen.send_keys(ENTER);
        screen.send_keys("y");
        screen.wait_for("[x] share");
        screen.send_keys(TAB);
        screen.send_keys(" ");
        screen.send_keys(DOWN);
        screen.send_keys(DOWN);
        screen.send_keys(" ");
        assert_golden(
            &mut screen,
            &project,
            &format!("form-filled-{columns}x{rows}"),
        );
        screen.send_keys("\u{13}");
        let expected = json!({"action": "accept", "content":
            {"key": "abcd", "days": 3, "plan": "l", "share": true, "topics": ["news", "bugs"]}});
        assert_eq!(read_response(&mut screen, &project, "accept"), expected);
    }
}

#[test]
fn form_is_declined_and_cancelled_with_its_buttons() {
    // The last two buttons, which Shift-Tab comes to from above all.
    for (steps, action) in [(2, "decline"), (1, "cancel")] {
        let project = TestProject::new();
        let mut screen = start_with_form(&project, 80, 24);
        for _ in 0..steps {
            screen.send_keys(SHIFT_TAB);
        }
        let button = format!("›[ {}{} ]‹", action[..1].to_uppercase(), &action[1..]);
        screen.wait_for(&button);
        screen.send_keys(ENTER);
        assert_eq!(
            read_response(&mut screen, &project, action),
            json!({"action": action})
        );
    }
}

#[test]
fn escape_closes_a_form_and_cancels_the_turn() {
    let project = TestProject::new();
    let mut screen = start_with_form(&project, 80, 24);
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Who are you?");
    assert_eq!(
        read_response(&mut screen, &project, "cancel"),
        json!({"action": "cancel"})
    );
    screen.wait_for("Type a prompt");
}

/// Returns a URL that is too long for one line.
fn long_url() -> String {
    format!(
        "https://login.example.org/device?code=ABCD-1234&state={}end",
        "x".repeat(120)
    )
}

/// Starts a chat with an agent that asks the user to open a URL. `xdg-open` is a link to `sh`, so no browser opens.
fn start_with_url(project: &TestProject, url: &str, columns: u16, rows: u16) -> ChatScreen {
    let programs = project.file(".bin");
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    std::os::unix::fs::symlink("/bin/sh", &opener).unwrap();
    // A shell by that name is given the address as the name of a script.
    write_agents_config(project, &[("player", "--player")]);
    let line = format!(
        "PATH={}:$PATH ENV= {ACP} chat --agent player",
        programs.display()
    );
    let mut screen = ChatScreen::start(project, columns, rows, &line);
    screen.wait_for("· Player");
    play_steps(
        project,
        &mut screen,
        &json!([{"visit": url}, message_step("Thank you.")]),
    );
    screen.wait_for("Please confirm the device.");
    wait_until_question_accepts_keys();
    screen
}

#[test]
fn full_url_is_shown_without_opening_it() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_with_url(&project, &long_url(), columns, rows);
        assert_golden(&mut screen, &project, &format!("address-{columns}x{rows}"));
        let shown: String = screen
            .text()
            .lines()
            .filter(|line| line.starts_with('│'))
            .flat_map(|line| line.trim_matches(['│', ' ']).chars())
            .collect();
        assert!(shown.contains(&long_url()), "{shown}");
        assert!(find_cell(&screen, "login.example.org").bold());
        // Enter is no answer.
        screen.send_keys(ENTER);
        screen.send_keys("y");
        screen.wait_for("Thank you.");
        assert_eq!(read_record(&project), json!({"action": "accept"}));
        assert!(!screen.text().contains("Cannot open it"));
    }
}

#[test]
fn url_is_opened_only_with_its_key() {
    let project = TestProject::new();
    let mut screen = start_with_url(&project, &long_url(), 80, 40);
    screen.send_keys("o");
    // The program for it here fails, which is told: so it was called.
    screen.wait_for("Cannot open the URL: xdg-open failed (exit status: ");
    screen.send_keys("n");
    screen.wait_for("Thank you.");
    assert_eq!(read_record(&project), json!({"action": "decline"}));
}

#[test]
fn deceptive_url_gets_a_warning() {
    let project = TestProject::new();
    let url = "http://bank.example@evil.example/login";
    let mut screen = start_with_url(&project, url, 80, 40);
    screen.wait_for("! The part before the @ is not the site name. The site is evil.example.");
    screen.wait_for("not encrypted");
    assert_color(&screen, "! The part before", ThemeRole::Warn);
    screen.send_keys(ESCAPE);
    wait_for_record(&project, &json!({"action": "cancel"}));
}
