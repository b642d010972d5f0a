//! `acp login`, `acp logout`, and what agents ask: with an agent that is this program itself.

#[cfg(target_os = "linux")]
use crate::common;
use crate::common::TestProject;
use crate::common::terminal::CommandTerminal;

/// Each version of the protocol, as options of `acp` and of the agent.
const VERSIONS: [&str; 2] = ["--protocol 1", "--protocol 2"];

#[test]

fn what_to_type_is_said_and_works() {
    for version in VERSIONS {
        for (ways, method) in [("plain", None), ("plain,other", Some("plain"))] {
            let project = TestProject::new();
            let agent = project.agent(&format!("{version} --ways {ways}"));
            let run = format!("acp run {version} hello -- {agent}");
            let refused = project.shell(&run).code(1).says("log in first");
            let login = refused.line(method.unwrap_or("acp login"));
            assert!(login.ends_with("# By plain"), "{login}");
            project.shell(&login).code(0).shows(&[
                "plain: By plain",
                "What plain is",
                "logged in: By plain",
            ]);
            project.shell(&run).code(0).shows(&["you said hello"]);
        }
    }
}

#[test]

fn several_ways_are_listed_and_one_must_be_chosen() {
    let project = TestProject::new();
    let agent = project.agent("--ways plain,other,program");
    let ended = project
        .shell(&format!("acp login -- {agent}"))
        .code(2)
        .shows(&[
            "plain: By plain",
            "What plain is",
            "other: By other",
            "program: Password (in this terminal)",
        ]);
    for way in ["plain", "other", "program"] {
        let command = ended.line(&format!("--method {way}"));
        assert!(command.starts_with("acp login --method"), "{command}");
    }
    project
        .shell(&format!("acp login --method nothing -- {agent}"))
        .code(2)
        .says("`nothing`");
    assert!(!project.file("signed-in").exists());
}

#[test]

fn what_the_agent_does_not_offer_is_wrong_usage() {
    let project = TestProject::new();
    let agent = project.agent("");
    for (command, says) in [
        ("login", "the agent offers no auth methods"),
        ("logout", "auth.logout"),
    ] {
        project
            .shell(&format!("acp {command} -- {agent}"))
            .code(2)
            .says(says);
        project.shell(&format!("acp {command}")).code(2);
        project
            .shell(&format!("acp {command} -- no-such-agent"))
            .code(3)
            .says("command not found: `no-such-agent`");
    }
}

#[test]

fn a_program_needs_a_terminal() {
    let project = TestProject::new();
    let agent = project.agent("--ways program");
    project
        .shell(&format!("acp login -- {agent}"))
        .code(2)
        .shows(&["Password"])
        .says("requires a terminal");
}

#[test]

fn without_a_terminal_nobody_is_asked() {
    let project = TestProject::new();
    for way in ["form", "page"] {
        let agent = project.agent(&format!("--ways {way}"));
        project
            .shell(&format!("acp login -- {agent}"))
            .code(1)
            .says("does not support elicitation");
        assert!(!project.file("heard").exists());
    }
}

#[test]

fn logging_out_is_asked_of_the_agent() {
    for version in VERSIONS {
        let project = TestProject::new();
        project.write("signed-in", "{}");
        let agent = project.agent(&format!("{version} --ways plain"));
        let logout = format!("acp logout {version} -- {agent}");
        project.shell(&logout).code(0).shows(&["logged out"]);
        assert!(!project.file("signed-in").exists());
        project.shell(&logout).code(1);
    }
}

#[cfg(target_os = "linux")]
fn login(project: &TestProject, flags: &str) -> CommandTerminal {
    let line = format!("{} login -- {}", common::ACP, project.agent(flags));
    CommandTerminal::start(project, &line)
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_has_the_terminal_for_itself() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways program");
    terminal.answer("password for the vault: ", "sesame\n");
    let screen = terminal.ends(0);
    assert!(screen.contains("logged in: Password"), "{screen}");
    assert_eq!(project.read("signed-in"), "{}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_fails_is_no_login() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways program");
    terminal.answer("password for the vault: ", "guess\n");
    let screen = terminal.ends(1);
    assert!(screen.contains("login failed:"), "{screen}");
    assert!(screen.contains("exit code 7"), "{screen}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_in_the_program_ends_the_login() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways program");
    terminal.answer("password for the vault: ", "\u{3}");
    let screen = terminal.ends(130);
    assert!(!screen.contains("logged in"), "{screen}");
}

/// Fills in the form, with some mistakes.
#[cfg(target_os = "linux")]
fn fill_in(terminal: &mut CommandTerminal) {
    terminal.until("Key (4 or more characters): ");
    for part in ["Who are you?", "About you", "As on your card"] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    terminal.answer("Key (4 or more characters): ", "abc\n");
    terminal.answer("Too short", "abcd\n");
    // What is in brackets is what it is if nothing is typed.
    terminal.answer("days (optional, 1 or more) [30]: ", "\n");
    terminal.answer("2) Large - costs more", "3\n");
    terminal.answer("Enter a number from 1 to 2", "2\n");
    terminal.answer("share (optional, y/n): ", "\n");
    terminal.answer("3) bugs", "1,2,3\n");
    terminal.answer("Choose at most 2", "3,1\n");
    terminal.answer("send this? [Y/n]: ", "y\n");
}

const FILLED_IN: &str = r#"{"days":30,"key":"abcd","plan":"l","topics":["bugs","news"]}"#;

#[cfg(target_os = "linux")]
#[test]
fn a_form_is_asked_field_by_field() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways form");
    fill_in(&mut terminal);
    let screen = terminal.ends(0);
    assert!(screen.contains("logged in: By form"), "{screen}");
    assert_eq!(project.read("signed-in"), FILLED_IN);
}

#[cfg(target_os = "linux")]
#[test]
fn a_form_can_be_declined_and_left() {
    for (keys, code, action) in [("\n", 1, "decline"), ("\u{3}", 130, "cancel")] {
        let project = TestProject::new();
        let mut terminal = login(&project, "--ways form");
        terminal.answer("Key (4 or more characters): ", keys);
        let screen = terminal.ends(code);
        assert_eq!(
            project.read("heard"),
            format!(r#"{{"action":"{action}"}}"#),
            "{screen}"
        );
        assert!(!project.file("signed-in").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_web_page_is_shown_and_its_end_told() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways page");
    terminal.until("continue? [Y/n]: ");
    // The whole of it: what would command the terminal is written out.
    for part in [
        "log in on the web",
        "\n  https://example.org/login?code=\\u{1b}[2K42\r\n",
    ] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    terminal.key("\n");
    let screen = terminal.ends(0);
    let told = "the request on the web page is complete";
    assert_eq!(screen.matches(told).count(), 1, "{screen}");
    assert!(screen.contains("logged in"), "{screen}");

    let mut terminal = login(&project, "--ways page");
    terminal.answer("continue? [Y/n]: ", "n\n");
    terminal.ends(1);
    assert_eq!(project.read("heard"), r#"{"action":"decline"}"#);
}

#[cfg(target_os = "linux")]
#[test]
fn a_login_that_hangs_is_ended_by_ctrl_c() {
    let project = TestProject::new();
    let mut terminal = login(&project, "--ways hang");
    terminal.answer("Ctrl-C: cancel", "\u{3}");
    terminal.ends(130);
}

#[cfg(target_os = "linux")]
#[test]
fn a_turn_asks_as_well() {
    for version in VERSIONS {
        let project = TestProject::new();
        let agent = project.agent(version);
        let line = format!("{} run {version} ask -- {agent}", common::ACP);
        let mut terminal = CommandTerminal::start(&project, &line);
        fill_in(&mut terminal);
        let screen = terminal.ends(0);
        let shown = screen.contains(r#"{"action":"accept","content":{"days":30"#);
        assert!(shown, "{screen}");

        // Ctrl-C cancels the turn, and with it the question.
        let mut terminal = CommandTerminal::start(&project, &line);
        terminal.answer("Key (4 or more characters): ", "\u{3}");
        let screen = terminal.ends(130);
        assert!(screen.contains("acp: cancelled"), "{screen}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_typed_into_a_form_is_in_no_log() {
    let project = TestProject::new();
    let agent = project.agent("--ways form");
    let line = format!("{} --log trace login -- {agent}", common::ACP);
    let mut terminal = CommandTerminal::start(&project, &line);
    fill_in(&mut terminal);
    // From here on it is sent; what was typed was on the screen before.
    let screen = terminal.ends(0);
    assert_eq!(project.read("signed-in"), FILLED_IN);
    assert!(!screen.contains("abcd"), "{screen}");
}
