//! Tests of `acp login`, `acp logout` and elicitation. This test program also acts as the agent.

#[cfg(target_os = "linux")]
use crate::common;
use crate::common::TestProject;
use crate::common::terminal::CommandTerminal;

/// The arguments that select each protocol version, both in `acp` and in the agent.
const PROTOCOL_ARGS: [&str; 2] = ["--protocol 1", "--protocol 2"];

#[test]

fn printed_login_command_works() {
    for version in PROTOCOL_ARGS {
        for (ways, method) in [("plain", None), ("plain,other", Some("plain"))] {
            let project = TestProject::new();
            let agent = project.test_agent_command(&format!("{version} --ways {ways}"));
            let run = format!("acp run {version} hello -- {agent}");
            let refused = project
                .run_shell(&run)
                .expect_code(1)
                .expect_stderr("log in first");
            let login = refused.find_line(method.unwrap_or("acp login"));
            assert!(login.ends_with("# By plain"), "{login}");
            project.run_shell(&login).expect_code(0).expect_stdout(&[
                "plain: By plain",
                "What plain is",
                "logged in: By plain",
            ]);
            project
                .run_shell(&run)
                .expect_code(0)
                .expect_stdout(&["you said hello"]);
        }
    }
}

#[test]

fn login_methods_are_listed_and_one_must_be_chosen() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--ways plain,other,program");
    let ended = project
        .run_shell(&format!("acp login -- {agent}"))
        .expect_code(2)
        .expect_stdout(&[
            "plain: By plain",
            "What plain is",
            "other: By other",
            "program: Password (in this terminal)",
        ]);
    for way in ["plain", "other", "program"] {
        let command = ended.find_line(&format!("--method {way}"));
        assert!(command.starts_with("acp login --method"), "{command}");
    }
    project
        .run_shell(&format!("acp login --method nothing -- {agent}"))
        .expect_code(2)
        .expect_stderr("`nothing`");
    assert!(!project.file("signed-in").exists());
}

#[test]

fn unsupported_login_method_is_a_usage_error() {
    let project = TestProject::new();
    let agent = project.test_agent_command("");
    for (command, says) in [
        ("login", "the agent offers no auth methods"),
        ("logout", "auth.logout"),
    ] {
        project
            .run_shell(&format!("acp {command} -- {agent}"))
            .expect_code(2)
            .expect_stderr(says);
        project.run_shell(&format!("acp {command}")).expect_code(2);
        project
            .run_shell(&format!("acp {command} -- no-such-agent"))
            .expect_code(3)
            .expect_stderr("command not found: `no-such-agent`");
    }
}

#[test]

fn login_program_requires_a_terminal() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--ways program");
    project
        .run_shell(&format!("acp login -- {agent}"))
        .expect_code(2)
        .expect_stdout(&["Password"])
        .expect_stderr("requires a terminal");
}

#[test]

fn login_without_a_terminal_asks_nothing() {
    let project = TestProject::new();
    for way in ["form", "page"] {
        let agent = project.test_agent_command(&format!("--ways {way}"));
        project
            .run_shell(&format!("acp login -- {agent}"))
            .expect_code(1)
            .expect_stderr("does not support elicitation");
        assert!(!project.file("heard").exists());
    }
}

#[test]

fn logout_is_sent_to_the_agent() {
    for version in PROTOCOL_ARGS {
        let project = TestProject::new();
        project.write_file("signed-in", "{}");
        let agent = project.test_agent_command(&format!("{version} --ways plain"));
        let logout = format!("acp logout {version} -- {agent}");
        project
            .run_shell(&logout)
            .expect_code(0)
            .expect_stdout(&["logged out"]);
        assert!(!project.file("signed-in").exists());
        project.run_shell(&logout).expect_code(1);
    }
}

#[cfg(target_os = "linux")]
fn start_login(project: &TestProject, flags: &str) -> CommandTerminal {
    let line = format!(
        "{} login -- {}",
        common::ACP,
        project.test_agent_command(flags)
    );
    CommandTerminal::start(project, &line)
}

#[cfg(target_os = "linux")]
#[test]
fn login_program_gets_the_terminal() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways program");
    terminal.answer("password for the vault: ", "sesame\n");
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("logged in: Password"), "{screen}");
    assert_eq!(project.read_file("signed-in"), "{}");
}

#[cfg(target_os = "linux")]
#[test]
fn failed_login_program_fails_the_login() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways program");
    terminal.answer("password for the vault: ", "guess\n");
    let screen = terminal.expect_exit(1);
    assert!(screen.contains("login failed:"), "{screen}");
    assert!(screen.contains("exit code 7"), "{screen}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_in_the_login_program_ends_the_login() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways program");
    terminal.answer("password for the vault: ", "\u{3}");
    let screen = terminal.expect_exit(130);
    assert!(!screen.contains("logged in"), "{screen}");
}

/// Fills in the form, making some mistakes on the way.
#[cfg(target_os = "linux")]
fn fill_in_form(terminal: &mut CommandTerminal) {
    terminal.wait_for("Key (4 or more characters): ");
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

const FILLED_IN_FORM: &str = r#"{"days":30,"key":"abcd","plan":"l","topics":["bugs","news"]}"#;

#[cfg(target_os = "linux")]
#[test]
fn form_is_asked_field_by_field() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways form");
    fill_in_form(&mut terminal);
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("logged in: By form"), "{screen}");
    assert_eq!(project.read_file("signed-in"), FILLED_IN_FORM);
}

#[cfg(target_os = "linux")]
#[test]
fn form_can_be_declined_and_cancelled() {
    for (keys, code, action) in [("\n", 1, "decline"), ("\u{3}", 130, "cancel")] {
        let project = TestProject::new();
        let mut terminal = start_login(&project, "--ways form");
        terminal.answer("Key (4 or more characters): ", keys);
        let screen = terminal.expect_exit(code);
        assert_eq!(
            project.read_file("heard"),
            format!(r#"{{"action":"{action}"}}"#),
            "{screen}"
        );
        assert!(!project.file("signed-in").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn url_elicitation_is_shown_and_its_completion_reported() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways page");
    terminal.wait_for("continue? [Y/n]: ");
    // The whole of it: what would command the terminal is written out.
    for part in [
        "log in on the web",
        "\n  https://example.org/login?code=\\u{1b}[2K42\r\n",
    ] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    terminal.send_keys("\n");
    let screen = terminal.expect_exit(0);
    let told = "the request on the web page was completed";
    assert_eq!(screen.matches(told).count(), 1, "{screen}");
    assert!(screen.contains("logged in"), "{screen}");

    let mut terminal = start_login(&project, "--ways page");
    terminal.answer("continue? [Y/n]: ", "n\n");
    terminal.expect_exit(1);
    assert_eq!(project.read_file("heard"), r#"{"action":"decline"}"#);
}

#[cfg(target_os = "linux")]
#[test]
fn hanging_login_is_ended_by_ctrl_c() {
    let project = TestProject::new();
    let mut terminal = start_login(&project, "--ways hang");
    terminal.answer("Ctrl-C: cancel", "\u{3}");
    terminal.expect_exit(130);
}

#[cfg(target_os = "linux")]
#[test]
fn login_form_is_asked_during_a_turn() {
    for version in PROTOCOL_ARGS {
        let project = TestProject::new();
        let agent = project.test_agent_command(version);
        let line = format!("{} run {version} ask -- {agent}", common::ACP);
        let mut terminal = CommandTerminal::start(&project, &line);
        fill_in_form(&mut terminal);
        let screen = terminal.expect_exit(0);
        let shown = screen.contains(r#"{"action":"accept","content":{"days":30"#);
        assert!(shown, "{screen}");

        // Ctrl-C cancels the turn, and with it the question.
        let mut terminal = CommandTerminal::start(&project, &line);
        terminal.answer("Key (4 or more characters): ", "\u{3}");
        let screen = terminal.expect_exit(130);
        assert!(screen.contains("acp: cancelled"), "{screen}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn form_input_is_not_logged() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--ways form");
    let line = format!("{} --log trace login -- {agent}", common::ACP);
    let mut terminal = CommandTerminal::start(&project, &line);
    fill_in_form(&mut terminal);
    // From here on it is sent; what was typed was on the screen before.
    let screen = terminal.expect_exit(0);
    assert_eq!(project.read_file("signed-in"), FILLED_IN_FORM);
    assert!(!screen.contains("abcd"), "{screen}");
}
