//! Tests of `acp` in a shell: completion in bash, zsh and fish, manual pages, and running `acp` without a command.
//!
//! The shells are asked as they are: bash and zsh on a terminal on which Tab is pressed, fish with its own command for
//! that. Where one is missing, its tests say so and are skipped.

use std::path::Path;
use std::process::Command;

use crate::common::screen::ChatScreen;
use crate::common::{ACP, CommandResult, TestProject};

/// The environment variable that makes tests fail instead of being skipped if a shell is missing.
const REQUIRE_VARIABLE: &str = "ACP_REQUIRE_SHELLS";

const TAB: &str = "\t";

/// The shell prompt.
const SHELL_PROMPT: &str = "tab$ ";

/// Inputs with exactly one possible completion, each with the line expected after pressing Tab.
const UNIQUE_COMPLETIONS: &[(&str, &str)] = &[
    ("acp tr", "acp trace"),
    ("acp trace sh", "acp trace show"),
    ("acp run --sess", "acp run --session"),
    ("acp run --agent mi", "acp run --agent mine"),
    ("acp run --agent=mi", "acp run --agent=mine"),
    ("acp run --agent zor", "acp run --agent zork"),
    ("acp agents remove z", "acp agents remove zork"),
    ("acp agents update z", "acp agents update zork"),
    ("acp run --session bui", "acp run --session build"),
    ("acp sessions export bui", "acp sessions export build"),
    // Names with spaces are one word, before Tab and after.
    (
        "acp chat --session the",
        r"acp chat --session the\ big\ one",
    ),
    (
        r"acp chat --session the\ b",
        r"acp chat --session the\ big\ one",
    ),
    // Names belong to an agent.
    (
        "acp run --agent mine --session ot",
        "acp run --agent mine --session other",
    ),
    ("acp run --mode arch", "acp run --mode architect"),
    (
        "acp run --agent mine --mode s",
        "acp run --agent mine --mode slow",
    ),
    ("acp run --allow re", "acp run --allow reads"),
    (
        "acp run --sandbox=read-only,",
        "acp run --sandbox=read-only,no-network",
    ),
    ("acp agent login anth", "acp agent login anthropic"),
    ("acp trace lint no", "acp trace lint notes.txt"),
];

/// Returns a project with an agent called `mine` and named sessions of two agents.
fn completion_project() -> TestProject {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        "[agents.mine]\ncommand = [\"no-such-program\"]\nmode = \"slow\"\n",
    );
    project.write_file(
        "registry.json",
        r#"{"version": "1.0.0", "agents": [{"id": "zork", "name": "Zork", "version": "1.0.0",
            "description": "Another agent", "distribution": {"npx": {"package": "zork@1.0.0"}}}]}"#,
    );
    for line in [
        "acp agents install zork --yes --registry registry.json",
        "acp sessions name 1 build",
        "acp sessions name 2 'the big one'",
        "acp sessions name 3 other --agent mine",
    ] {
        project.run_shell(line).expect_code(0);
    }
    project
}

/// Returns `true` if the shell is installed. Otherwise, prints a note.
fn is_shell_available(shell: &str) -> bool {
    let is = Command::new(shell).arg("-c").arg("true").output().is_ok();
    if !is {
        assert!(
            std::env::var_os(REQUIRE_VARIABLE).is_none(),
            "there is no {shell}"
        );
        println!("skipped: there is no {shell} on this machine");
    }
    is
}

/// Returns a `PATH` assignment that lets a shell find the binary.
fn path_with_acp() -> String {
    let binaries = Path::new(ACP).parent().unwrap().to_str().unwrap();
    format!("PATH={binaries}:$PATH")
}

/// Starts a shell on a terminal, and runs a command in it.
fn start_shell(project: &TestProject, shell: &str, first: &str) -> ChatScreen {
    let mut screen = ChatScreen::start(project, 100, 30, &format!("{} {shell}", path_with_acp()));
    // Divided, so that what is typed is not taken for the prompt.
    screen.send_line(&format!("PS1='ta''b$ '; {first}; clear"));
    screen.wait_for_matching_text("a prompt on an empty screen", |text| {
        text.trim() == SHELL_PROMPT.trim()
    });
    screen
}

/// Types the text, presses Tab, waits for the expected line, and starts a new line.
#[track_caller]
fn assert_completes(screen: &mut ChatScreen, typed: &str, line: &str) {
    screen.send_keys(typed);
    screen.wait_for(&format!("{SHELL_PROMPT}{typed}"));
    screen.send_keys(TAB);
    let whole = format!("{SHELL_PROMPT}{line}");
    screen.wait_for_matching_text(&format!("{typed:?} becomes {line:?}"), |text| {
        text.lines().any(|row| row == whole)
    });
    // Ctrl-U removes the line, Ctrl-L what is above it.
    screen.send_keys("\u{15}\u{c}");
    screen.wait_for_matching_text("an empty line", |text| text.trim() == SHELL_PROMPT.trim());
}

#[test]
fn bash_completes_correctly() {
    if !is_shell_available("bash") {
        return;
    }
    let project = completion_project();
    let mut screen = start_shell(
        &project,
        "bash --norc --noprofile -i",
        "source <(acp completions bash)",
    );
    for (typed, line) in UNIQUE_COMPLETIONS {
        assert_completes(&mut screen, typed, line);
    }
    screen.send_keys("acp run --agent ");
    screen.send_keys(&format!("{TAB}{TAB}"));
    screen.wait_for_matching_text("the agents are listed", |text| {
        text.lines()
            .any(|row| row.contains("mine") && row.contains("acp") && !row.contains("run"))
    });
}

#[test]
fn zsh_completes_correctly() {
    if !is_shell_available("zsh") {
        return;
    }
    let project = completion_project();
    let mut screen = start_shell(
        &project,
        "zsh -f -i",
        "autoload -Uz compinit; compinit -D; source <(acp completions zsh)",
    );
    for (typed, line) in UNIQUE_COMPLETIONS {
        assert_completes(&mut screen, typed, line);
    }
    screen.send_keys("acp run --agent ");
    screen.send_keys(&format!("{TAB}{TAB}"));
    // With what each of them is.
    screen.wait_for("acp   -- the bundled agent");
}

#[test]
fn zsh_completes_at_the_first_tab_with_an_installed_script() {
    if !is_shell_available("zsh") {
        return;
    }
    let project = completion_project();
    project
        .run_shell("mkdir functions; acp completions zsh > functions/_acp")
        .expect_code(0);
    let mut screen = start_shell(
        &project,
        "zsh -f -i",
        "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D",
    );
    assert_completes(&mut screen, "acp run --agent mi", "acp run --agent mine");
}

#[test]
fn fish_completes_correctly() {
    if !is_shell_available("fish") {
        return;
    }
    let project = completion_project();
    let ask = |typed: &str| {
        let asked = format!(
            "acp completions fish | source; complete --do-complete '{}'",
            typed.replace('\\', "\\\\")
        );
        let shell = format!("{} fish --no-config -c \"$0\"", path_with_acp());
        let mut command = project.program_command("sh");
        command.args(["-c", &shell, &asked]);
        CommandResult::from_output(command.output().unwrap())
            .expect_code(0)
            .stdout
    };
    for (typed, line) in UNIQUE_COMPLETIONS {
        let answer = ask(typed);
        let candidates: Vec<&str> = answer
            .lines()
            .map(|line| line.split('\t').next().unwrap())
            .collect();
        let begun = line.rsplit_once([' ', '=']).map_or(*line, |(_, word)| word);
        let meant = match line.contains('\\') {
            true => "the big one",
            false if typed.contains('=') => &line[line.rfind(' ').unwrap() + 1..],
            false => begun,
        };
        assert_eq!(candidates, [meant], "{typed}: {answer}");
    }
    let agents = ask("acp run --agent ");
    assert!(agents.contains("acp\tthe bundled agent\n"), "{agents}");
    assert!(agents.contains("mine\tno-such-program\n"), "{agents}");
}

#[test]
fn unreadable_candidates_are_omitted_without_garbage() {
    let project = completion_project();
    project.write_config("config.toml", "no TOML at all");
    let asked =
        project.run_shell("ACP_COMPLETE=bash _CLAP_COMPLETE_INDEX=3 acp -- acp run --agent ''");
    let asked = asked.expect_code(0);
    assert_eq!((asked.stdout.as_str(), asked.stderr.as_str()), ("", ""));
}

#[test]
fn every_command_has_a_man_page() {
    let project = TestProject::new();
    project.run_shell("mkdir man && acp man man").expect_code(0);
    let page = |name: &str| project.read_file(&format!("man/{name}.1"));
    for name in [
        "acp",
        "acp-run",
        "acp-agent-login",
        "acp-trace-show",
        "acp-completions",
    ] {
        assert!(page(name).contains(".SH NAME"), "{name}");
    }
    for hidden in ["acp-man", "acp-mcp-proxy", "acp-check-relay", "acp-help"] {
        assert!(
            !project.file(&format!("man/{hidden}.1")).exists(),
            "{hidden}"
        );
    }
    // Examples and exit codes stay the lines that they are.
    let run = page("acp-run");
    for part in [
        ".SH EXAMPLES\n.nf\n",
        ".SH \"EXIT CODES\"\n.nf\n",
        "\n.fi\n",
    ] {
        assert!(run.contains(part), "{part}: {run}");
    }
    project
        .run_shell("acp man no/such/directory")
        .expect_code(1)
        .expect_stderr("no/such/directory");
    if Command::new("man").arg("--version").output().is_err() {
        assert!(
            std::env::var_os(REQUIRE_VARIABLE).is_none(),
            "there is no man"
        );
        println!("skipped: there is no man on this machine");
        return;
    }
    let shown = project
        .run_shell("for page in man/*; do man --warnings -E UTF-8 -l \"$page\" > /dev/null || exit 1; done")
        .expect_code(0);
    assert_eq!(shown.stderr, "", "no warnings");
    project
        .run_shell("MANWIDTH=100 man -E UTF-8 -l man/acp-run.1")
        .expect_code(0)
        .expect_stdout(&[
            "acp-run - Run one turn",
            "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
            "EXIT CODES",
            "the agent refused to continue",
            "SEE ALSO",
        ]);
}

#[test]
fn bare_command_starts_the_chat_on_a_terminal() {
    let project = TestProject::new();
    let mut screen = ChatScreen::start(&project, 100, 30, ACP);
    screen.wait_for("? help");
    screen.send_line("/read notes.txt:2-2");
    screen.wait_for("second");
}

#[test]
fn bare_command_without_a_terminal_prints_short_help() {
    let project = TestProject::new();
    for line in ["acp", "acp --log error < /dev/null", "acp | cat; exit 2"] {
        let ended = project.run_shell(line).expect_code(2);
        assert_eq!(ended.stdout, "", "{line}");
        let ended = ended.expect_stderr("Usage: acp [OPTIONS] [COMMAND]");
        assert!(!ended.stderr.contains("Examples:"), "{ended:?}");
    }
}
