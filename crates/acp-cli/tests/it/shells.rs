//! `acp` in a shell: what Tab completes in bash, zsh and fish, the manual pages, and `acp` without a command.
//!
//! The shells are asked as they are: bash and zsh on a terminal on which Tab is pressed, fish with its own command for
//! that. Where one is missing, its tests say so and are skipped.

use std::path::Path;
use std::process::Command;

use crate::common::screen::ChatScreen;
use crate::common::{ACP, CommandResult, TestProject};

/// With this set, a test that would be skipped fails instead.
const REQUIRED: &str = "ACP_REQUIRE_SHELLS";

const TAB: &str = "\t";

/// The prompt of the shells.
const PROMPT: &str = "tab$ ";

/// What is typed before Tab, and the line after it: no more than one thing can be meant.
const ONE_IS_MEANT: &[(&str, &str)] = &[
    ("acp tr", "acp trace"),
    ("acp trace sh", "acp trace show"),
    ("acp run --sess", "acp run --session"),
    ("acp run --agent mi", "acp run --agent mine"),
    ("acp run --agent=mi", "acp run --agent=mine"),
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

/// A project with an agent called `mine`, and names of sessions of both agents.
fn project() -> TestProject {
    let project = TestProject::new();
    project.configure(
        "config.toml",
        "[agents.mine]\ncommand = [\"no-such-program\"]\nmode = \"slow\"\n",
    );
    for line in [
        "acp sessions name 1 build",
        "acp sessions name 2 'the big one'",
        "acp sessions name 3 other --agent mine",
    ] {
        project.shell(line).code(0);
    }
    project
}

/// Whether the shell is there.
fn is_there(shell: &str) -> bool {
    let is = Command::new(shell).arg("-c").arg("true").output().is_ok();
    if !is {
        assert!(std::env::var_os(REQUIRED).is_none(), "there is no {shell}");
        println!("skipped: there is no {shell} on this machine");
    }
    is
}

/// Sets `PATH` so that a shell finds the binary.
fn with_acp() -> String {
    let binaries = Path::new(ACP).parent().unwrap().to_str().unwrap();
    format!("PATH={binaries}:$PATH")
}

/// Starts a shell on a terminal and has it do this first.
fn start(project: &TestProject, shell: &str, first: &str) -> ChatScreen {
    let mut screen = ChatScreen::start(project, 100, 30, &format!("{} {shell}", with_acp()));
    // Divided, so that what is typed is not taken for the prompt.
    screen.say(&format!("PS1='ta''b$ '; {first}; clear"));
    screen.until_it("a prompt on an empty screen", |text| {
        text.trim() == PROMPT.trim()
    });
    screen
}

/// Types, presses Tab, and waits for the line to be so; then begins a new one.
#[track_caller]
fn completes(screen: &mut ChatScreen, typed: &str, line: &str) {
    screen.key(typed);
    screen.until(&format!("{PROMPT}{typed}"));
    screen.key(TAB);
    let whole = format!("{PROMPT}{line}");
    screen.until_it(&format!("{typed:?} becomes {line:?}"), |text| {
        text.lines().any(|row| row == whole)
    });
    // Ctrl-U removes the line, Ctrl-L what is above it.
    screen.key("\u{15}\u{c}");
    screen.until_it("an empty line", |text| text.trim() == PROMPT.trim());
}

#[test]
fn bash_completes_what_is_meant() {
    if !is_there("bash") {
        return;
    }
    let project = project();
    let mut screen = start(
        &project,
        "bash --norc --noprofile -i",
        "source <(acp completions bash)",
    );
    for (typed, line) in ONE_IS_MEANT {
        completes(&mut screen, typed, line);
    }
    screen.key("acp run --agent ");
    screen.key(&format!("{TAB}{TAB}"));
    screen.until_it("the agents are listed", |text| {
        text.lines()
            .any(|row| row.contains("mine") && row.contains("acp") && !row.contains("run"))
    });
}

#[test]
fn zsh_completes_what_is_meant() {
    if !is_there("zsh") {
        return;
    }
    let project = project();
    let mut screen = start(
        &project,
        "zsh -f -i",
        "autoload -Uz compinit; compinit -D; source <(acp completions zsh)",
    );
    for (typed, line) in ONE_IS_MEANT {
        completes(&mut screen, typed, line);
    }
    screen.key("acp run --agent ");
    screen.key(&format!("{TAB}{TAB}"));
    // With what each of them is.
    screen.until("acp   -- the bundled agent");
}

#[test]
fn zsh_completes_at_the_first_tab_where_a_package_has_put_the_script() {
    if !is_there("zsh") {
        return;
    }
    let project = project();
    project
        .shell("mkdir functions; acp completions zsh > functions/_acp")
        .code(0);
    let mut screen = start(
        &project,
        "zsh -f -i",
        "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D",
    );
    completes(&mut screen, "acp run --agent mi", "acp run --agent mine");
}

#[test]
fn fish_completes_what_is_meant() {
    if !is_there("fish") {
        return;
    }
    let project = project();
    let ask = |typed: &str| {
        let asked = format!(
            "acp completions fish | source; complete --do-complete '{}'",
            typed.replace('\\', "\\\\")
        );
        let shell = format!("{} fish --no-config -c \"$0\"", with_acp());
        let mut command = project.program("sh");
        command.args(["-c", &shell, &asked]);
        CommandResult::of(command.output().unwrap()).code(0).stdout
    };
    for (typed, line) in ONE_IS_MEANT {
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
fn what_cannot_be_read_is_not_offered_and_garbles_nothing() {
    let project = project();
    project.configure("config.toml", "no TOML at all");
    let asked = project.shell("ACP_COMPLETE=bash _CLAP_COMPLETE_INDEX=3 acp -- acp run --agent ''");
    let asked = asked.code(0);
    assert_eq!((asked.stdout.as_str(), asked.stderr.as_str()), ("", ""));
}

#[test]
fn every_command_has_a_manual_page() {
    let project = TestProject::new();
    project.shell("mkdir man && acp man man").code(0);
    let page = |name: &str| project.read(&format!("man/{name}.1"));
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
        .shell("acp man no/such/directory")
        .code(1)
        .says("no/such/directory");
    if Command::new("man").arg("--version").output().is_err() {
        assert!(std::env::var_os(REQUIRED).is_none(), "there is no man");
        println!("skipped: there is no man on this machine");
        return;
    }
    let shown = project
        .shell("for page in man/*; do man --warnings -E UTF-8 -l \"$page\" > /dev/null || exit 1; done")
        .code(0);
    assert_eq!(shown.stderr, "", "no warnings");
    project
        .shell("MANWIDTH=100 man -E UTF-8 -l man/acp-run.1")
        .code(0)
        .shows(&[
            "acp-run - Run one turn",
            "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
            "EXIT CODES",
            "the agent refused",
            "SEE ALSO",
        ]);
}

#[test]
fn without_a_command_a_terminal_gets_the_chat() {
    let project = TestProject::new();
    let mut screen = ChatScreen::start(&project, 100, 30, ACP);
    screen.until("? help");
    screen.say("/read notes.txt:2-2");
    screen.until("second");
}

#[test]
fn without_a_command_and_a_terminal_the_short_help_is_printed() {
    let project = TestProject::new();
    for line in ["acp", "acp --log error < /dev/null", "acp | cat; exit 2"] {
        let ended = project.shell(line).code(2);
        assert_eq!(ended.stdout, "", "{line}");
        let ended = ended.says("Usage: acp [OPTIONS] [COMMAND]");
        assert!(!ended.stderr.contains("Examples:"), "{ended:?}");
    }
}
