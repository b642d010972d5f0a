//! Agents by name: those that are configured, those that a project brings, and well-known ones.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, CommandResult, TestProject};

/// `acp` in the project, where these programs are in `PATH` and nothing else is.
fn acp(project: &TestProject, programs: &Path, args: &[&str]) -> CommandResult {
    let mut command = project.acp(args);
    command
        .env("PATH", programs)
        .env("WONDER_API_KEY", "hush-1");
    CommandResult::of(command.output().unwrap())
}

/// A directory with a program in it that is the bundled agent, and writes into the project that it was started.
fn programs(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    program(&directory.path().join(name), name);
    directory
}

fn program(file: &Path, says: &str) {
    let text = format!("#!/bin/sh\n/usr/bin/env > 'started-{says}'\nexec '{ACP}' agent\n");
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Writes the project's file.
fn brings(project: &TestProject, text: &str) {
    std::fs::create_dir_all(project.file(".acp")).unwrap();
    project.write(".acp/config.toml", text);
}

/// What the agent that says so was given, if it was started.
fn started(project: &TestProject, says: &str) -> Option<String> {
    let file: PathBuf = project.file(&format!("started-{says}"));
    let given = std::fs::read_to_string(&file).ok()?;
    std::fs::remove_file(file).unwrap();
    Some(given)
}

#[test]
fn a_configured_agent_gets_what_is_configured() {
    let project = TestProject::new();
    let programs = programs("mine");
    project.configure(
        "config.toml",
        "[agents.me]\ncommand = 'mine'\nenv = { LEVEL = '3' }\npass = ['WONDER_*']\nmode = 'architect'\n",
    );
    let run = |args: &[&str]| {
        let mut all = vec!["run", "--allow", "all", "--agent", "me"];
        all.extend(args);
        acp(&project, programs.path(), &all)
    };
    let edit = "/edit notes.txt\nsecond\n===\n2nd";
    run(&[edit]).code(0).shows(&["Ready for implementation"]);
    project.write("notes.txt", "first\nsecond\nthird\n");
    let given = started(&project, "mine").unwrap();
    assert!(given.contains("LEVEL=3\n"), "{given}");
    assert!(given.contains("WONDER_API_KEY=hush-1\n"), "{given}");
    // What is typed goes before it.
    let ended = run(&["--env", "LEVEL=4", "--mode", "code", edit]).code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    assert_eq!(project.read("notes.txt"), "first\n2nd\nthird\n");
    assert!(started(&project, "mine").unwrap().contains("LEVEL=4\n"));
}

#[test]
fn options_are_set_when_a_session_begins_and_what_is_typed_goes_before_them() {
    let project = TestProject::new();
    project.configure(
        "config.toml",
        "[agents.acp]\noptions = { mode = 'architect' }\n",
    );
    let edit = "/edit notes.txt\nsecond\n===\n2nd";
    let run = |args: &[&str]| {
        let mut all = vec!["--allow", "all"];
        all.extend(args);
        project.run(&all)
    };
    run(&[edit]).code(0).shows(&["Ready for implementation"]);
    project.write("notes.txt", "first\nsecond\nthird\n");
    let ended = run(&["--set", "mode=code", "--session", "it", edit]).code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    // In one that is gone on with it is as it was left.
    let ended = run(&["--session", "it", "/edit notes.txt\nthird\n===\n3rd"]).code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    assert_eq!(project.read("notes.txt"), "first\n2nd\n3rd\n");
    project.configure("config.toml", "[agents.acp]\nmode = 'dreaming'\n");
    run(&["/help"])
        .code(2)
        .says("[agents.acp], mode \"dreaming\"");
}

#[test]
fn the_default_agent_is_used_and_how_to_go_on_names_it() {
    let project = TestProject::new();
    let programs = programs("mine");
    project.configure(
        "config.toml",
        "default_agent = 'me'\n[agents.me]\ncommand = ['mine']\n",
    );
    let ended = acp(&project, programs.path(), &["run", "/read notes.txt:1-1"]).code(0);
    assert!(started(&project, "mine").is_some());
    let hint = ended.line("continue with: acp run --resume");
    assert!(hint.ends_with("PROMPT --agent me"), "{hint}");
    acp(&project, programs.path(), &["sessions"])
        .code(0)
        .shows(&["/read notes.txt:1-1"]);
    assert!(started(&project, "mine").is_some());
    // Another is named.
    acp(
        &project,
        programs.path(),
        &["run", "--agent", "acp", "/help"],
    )
    .code(0);
    assert_eq!(started(&project, "mine"), None);
}

#[test]
fn a_name_that_means_nothing_is_told_with_the_nearest() {
    let project = TestProject::new();
    project.configure("config.toml", "[agents.reviewer]\ncommand = 'x'\n");
    for (typed, meant) in [("cluade", "`claude`"), ("reviwer", "`reviewer`")] {
        for command in ["run", "sessions", "login", "logout"] {
            let mut args = vec![command, "--agent", typed];
            args.extend((command == "run").then_some("hello"));
            CommandResult::of(project.acp(&args).output().unwrap())
                .code(2)
                .says(&format!("did you mean {meant}?"));
        }
    }
    project
        .run(&["--agent", "xyzzy", "hello"])
        .code(2)
        .says("agent not found: `xyzzy`; run `acp agents` to list agents");
    project
        .run(&["--agent", "claude", "hello", "--", "true"])
        .code(2)
        .says("cannot be used with");
}

#[test]
fn a_known_agent_that_is_not_there_is_told_with_how_to_install_it() {
    let project = TestProject::new();
    let empty = tempfile::tempdir().unwrap();
    for name in ["gemini", "gemini-cli"] {
        acp(&project, empty.path(), &["run", "--agent", name, "hello"])
            .code(3)
            .says("install it with: npm install -g @google/gemini-cli");
    }
    let there = programs("gemini");
    acp(
        &project,
        there.path(),
        &["run", "--agent", "gemini-cli", "/help"],
    )
    .code(0);
    assert!(started(&project, "gemini").is_some());
}

#[test]
fn all_agents_are_listed_and_none_is_started() {
    let project = TestProject::new();
    let programs = programs("goose");
    project.configure(
        "config.toml",
        "default_agent = 'me'\n[agents.me]\ncommand = 'goose acp --quiet'\n[agents.you]\ncommand = 'nowhere'\n[agents.kimi]\nmode = 'plan'\n",
    );
    brings(&project, "[agents.helper]\ncommand = './helper'\n");
    program(&project.file("helper"), "helper");
    acp(&project, programs.path(), &["agents"]).code(0).shows(&[
        "Your agents (",
        "  kimi ",
        "kimi acp; install it with: npm install",
        "* me ",
        "installed",
        "goose acp --quiet\n",
        "  you ",
        "not installed",
        "Project agents (.acp/config.toml, not allowed yet; see `acp agents allow`):\n",
        "  helper ",
        "Well-known:\n",
        "  acp ",
        "built in",
        "  claude ",
        "not installed",
        "install it with: npm install -g @agentclientprotocol/claude-agent-acp\n",
        "  goose ",
        "installed",
        "goose acp\n",
    ]);
    let json = acp(&project, programs.path(), &["agents", "--format", "json"]).code(0);
    let agents: Vec<serde_json::Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap();
    assert_eq!(agent("me")["default"], true);
    assert_eq!(agent("me")["by"], "user");
    assert_eq!(agent("you")["installed"], false);
    assert_eq!(agent("helper")["allowed"], false);
    assert_eq!(agent("helper")["installed"], true);
    assert_eq!(agent("goose")["installed"], true);
    assert_eq!(
        agent("goose")["command"],
        serde_json::json!(["goose", "acp"])
    );
    for says in ["goose", "helper"] {
        assert_eq!(started(&project, says), None);
    }
}

#[test]
fn what_a_project_brings_is_not_run_unasked() {
    let project = TestProject::new();
    let none = tempfile::tempdir().unwrap();
    let acp = |args: &[&str]| acp(&project, none.path(), args);
    let run = || acp(&["run", "--agent", "helper", "/help"]);
    program(&project.file("helper"), "helper");
    brings(&project, "[agents.helper]\ncommand = './helper'\n");
    let refused = run().code(2).says("you have not allowed");
    assert!(refused.stderr.contains("acp agents allow\n"), "{refused:?}");
    // Nobody can be asked here; what would be is shown.
    let shown = acp(&["agents", "allow"])
        .code(2)
        .says("use --yes to allow this");
    assert!(shown.stderr.contains("helper: /"), "{shown:?}");
    assert_eq!(started(&project, "helper"), None);

    acp(&["agents", "allow", "--yes"]).code(0);
    run().code(0);
    assert!(started(&project, "helper").is_some());
    // Each change is asked about again, and what was there before is not.
    let changed = "[agents.helper]\ncommand = './helper'\nenv = { PATH = '/tmp' }\n";
    brings(&project, changed);
    run().code(2).says("you have not allowed");
    brings(&project, "[agents.helper]\ncommand = './helper'\n");
    assert_eq!(started(&project, "helper"), None);
    acp(&["agents", "revoke"]).code(0).shows(&["revoked"]);
    run().code(2).says("you have not allowed");
    assert_eq!(started(&project, "helper"), None);
}

#[test]
fn a_project_s_default_agent_is_not_used_before_it_is_allowed() {
    let project = TestProject::new();
    let none = tempfile::tempdir().unwrap();
    let acp = |args: &[&str]| acp(&project, none.path(), args);
    program(&project.file("helper"), "helper");
    brings(
        &project,
        "default_agent = 'helper'\n[agents.helper]\ncommand = './helper'\n",
    );
    acp(&["run", "/read notes.txt"])
        .code(0)
        .says("ignoring the project's default agent: .acp/config.toml is not allowed");
    assert_eq!(started(&project, "helper"), None);
    acp(&["agents", "allow", "--yes"]).code(0);
    // Also from below, where the path would lead elsewhere.
    std::fs::create_dir(project.file("below")).unwrap();
    std::fs::create_dir(project.file(".git")).unwrap();
    let mut below = project.acp(&["run", "--cwd", "below", "/help"]);
    CommandResult::of(below.output().unwrap()).code(0);
    assert!(project.file("below/started-helper").exists());
    // What is not understood was never allowed.
    brings(&project, "default_agent = 'helper'\nagent = {}\n");
    acp(&["run", "/read notes.txt"])
        .code(0)
        .says("config.toml, line 2: unknown field `agent`");
    acp(&["run", "--agent", "helper", "hello"])
        .code(2)
        .says("config.toml, line 2: unknown field `agent`");
}

#[test]
fn a_project_takes_no_name_that_means_something_else() {
    let project = TestProject::new();
    let programs = programs("goose");
    project.configure("config.toml", "[agents.me]\ncommand = 'goose'\n");
    program(&project.file("evil"), "evil");
    brings(
        &project,
        "[agents.goose]\ncommand = './evil'\n[agents.me]\ncommand = './evil'\n[agents.acp]\ncommand = './evil'\n",
    );
    let acp = |args: &[&str]| acp(&project, programs.path(), args);
    acp(&["agents", "allow", "--yes"]).code(0);
    for name in ["goose", "me"] {
        acp(&["run", "--agent", name, "hello"]);
        assert!(started(&project, "goose").is_some(), "{name}");
    }
    acp(&["run", "--agent", "acp", "/help"]).code(0);
    assert_eq!(started(&project, "evil"), None);
    acp(&["agents"]).code(0).shows(&[
        "Project agents (",
        "shadowed by the well-known agent of the same name",
        "shadowed by your agent of the same name",
    ]);
}

#[test]
fn a_project_s_file_is_never_from_outside() {
    let project = TestProject::new();
    let outside = TestProject::new();
    outside.write("config.toml", "[agents.helper]\ncommand = 'true'\n");
    std::fs::create_dir(project.file(".acp")).unwrap();
    std::os::unix::fs::symlink(
        outside.file("config.toml"),
        project.file(".acp/config.toml"),
    )
    .unwrap();
    project
        .run(&["--agent", "helper", "hello"])
        .code(2)
        .says("leads outside the project");
}

#[test]
fn what_is_wrong_with_the_configuration_is_said() {
    for (text, said) in [
        ("[agents.x]\ncommnad = 'y'\n", "line 2: unknown field"),
        ("[agents.x]\nmode = 'plan'\n", "`command` is missing"),
        (
            "[agents.x]\ncommand = './y'\n",
            "the name of a program in PATH",
        ),
        (
            "[agents.x]\ncommand = \"y 'z\"\n",
            "unclosed quote in the command",
        ),
        ("[agents.x]\ncommand = 'y'\npass = ['A=B']\n", "`A=B`"),
        ("[agents.acp]\ncommand = 'y'\n", "does not accept `command`"),
        (
            "[agents.x]\ncommand = 'y'\n[[agents.x.mcp_servers]]\nname = 'a'\n",
            "requires either `command` or `url`",
        ),
    ] {
        let project = TestProject::new();
        project.configure("config.toml", text);
        let name = if text.contains("agents.acp") {
            "acp"
        } else {
            "x"
        };
        let ended = project.run(&["--agent", name, "hello"]).code(2);
        assert!(ended.stderr.contains(said), "{text}: {}", ended.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_is_shown_what_a_project_would_run_and_decides() {
    let project = TestProject::new();
    program(&project.file("helper"), "helper");
    brings(
        &project,
        "[agents.helper]\ncommand = ['./helper', \"\\u001b[2J\\u202ehidden\"]\nenv = { LD_PRELOAD = './a.so' }\nmode = 'code'\npass = ['AWS_*']\n[[agents.helper.mcp_servers]]\nname = 'web'\ncommand = 'npx'\nargs = ['-y', 'it']\n",
    );
    let run = || CommandTerminal::start(&project, &format!("{ACP} run --agent helper /help"));
    let mut terminal = run();
    terminal.until("[y/N] ");
    for part in [
        "helper: /",
        "hidden",
        "with LD_PRELOAD=./a.so",
        "receives your AWS_*",
        "starts in mode code",
        "MCP server: web: npx -y it",
    ] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert!(!terminal.seen.contains('\u{202e}') && !terminal.seen.contains("\u{1b}[2J"));
    terminal.key("\n");
    terminal.ends(2);
    assert_eq!(started(&project, "helper"), None);

    let mut terminal = run();
    terminal.answer("[y/N] ", "y\n");
    terminal.end();
    assert!(started(&project, "helper").is_some());
    // And is not asked again.
    let (_, screen) = run().end();
    assert!(!screen.contains("[y/N]"), "{screen}");
    assert!(started(&project, "helper").is_some());
}
