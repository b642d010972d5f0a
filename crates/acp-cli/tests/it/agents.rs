//! Tests of choosing an agent by name: configured, project and well-known agents.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, CommandResult, TestProject};

/// Runs `acp` in the project, with only the given programs on the `PATH`.
fn run_acp(project: &TestProject, programs: &Path, args: &[&str]) -> CommandResult {
    let mut command = project.acp_command(args);
    command
        .env("PATH", programs)
        .env("WONDER_API_KEY", "hush-1");
    CommandResult::from_output(command.output().unwrap())
}

/// Returns a directory containing a program that writes its environment to the project and then runs the bundled agent.
fn program_directory(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_program(&directory.path().join(name), name);
    directory
}

fn write_program(file: &Path, says: &str) {
    let text = format!("#!/bin/sh\n/usr/bin/env > 'started-{says}'\nexec '{ACP}' agent\n");
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Writes the project's configuration file.
fn write_project_config(project: &TestProject, text: &str) {
    std::fs::create_dir_all(project.file(".acp")).unwrap();
    project.write_file(".acp/config.toml", text);
}

/// Returns the environment that the program was started with, or `None` if it was not started.
fn started_program(project: &TestProject, says: &str) -> Option<String> {
    let file: PathBuf = project.file(&format!("started-{says}"));
    let given = std::fs::read_to_string(&file).ok()?;
    std::fs::remove_file(file).unwrap();
    Some(given)
}

#[test]
fn configured_agent_gets_its_settings() {
    let project = TestProject::new();
    let programs = program_directory("mine");
    project.write_config(
        "config.toml",
        "[agents.me]\ncommand = 'mine'\nenv = { LEVEL = '3' }\npass = ['WONDER_*']\nmode = 'architect'\n",
    );
    let run = |args: &[&str]| {
        let mut all = vec!["run", "--allow", "all", "--agent", "me"];
        all.extend(args);
        run_acp(&project, programs.path(), &all)
    };
    let edit = "/edit notes.txt\nsecond\n===\n2nd";
    run(&[edit])
        .expect_code(0)
        .expect_stdout(&["Ready for implementation"]);
    project.write_file("notes.txt", "first\nsecond\nthird\n");
    let given = started_program(&project, "mine").unwrap();
    assert!(given.contains("LEVEL=3\n"), "{given}");
    assert!(given.contains("WONDER_API_KEY=hush-1\n"), "{given}");
    // What is typed goes before it.
    let ended = run(&["--env", "LEVEL=4", "--mode", "code", edit]).expect_code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\nthird\n");
    assert!(
        started_program(&project, "mine")
            .unwrap()
            .contains("LEVEL=4\n")
    );
}

#[test]
fn typed_options_override_configured_ones() {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        "[agents.acp]\noptions = { mode = 'architect' }\n",
    );
    let edit = "/edit notes.txt\nsecond\n===\n2nd";
    let run = |args: &[&str]| {
        let mut all = vec!["--allow", "all"];
        all.extend(args);
        project.run(&all)
    };
    run(&[edit])
        .expect_code(0)
        .expect_stdout(&["Ready for implementation"]);
    project.write_file("notes.txt", "first\nsecond\nthird\n");
    let ended = run(&["--set", "mode=code", "--session", "it", edit]).expect_code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    // In one that is gone on with it is as it was left.
    let ended = run(&["--session", "it", "/edit notes.txt\nthird\n===\n3rd"]).expect_code(0);
    assert!(!ended.stdout.contains("Ready for"), "{ended:?}");
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\n3rd\n");
    project.write_config("config.toml", "[agents.acp]\nmode = 'dreaming'\n");
    run(&["/help"])
        .expect_code(2)
        .expect_stderr("[agents.acp], mode \"dreaming\"");
}

#[test]
fn default_agent_is_used_and_named_in_the_resume_hint() {
    let project = TestProject::new();
    let programs = program_directory("mine");
    project.write_config(
        "config.toml",
        "default_agent = 'me'\n[agents.me]\ncommand = ['mine']\n",
    );
    let ended = run_acp(&project, programs.path(), &["run", "/read notes.txt:1-1"]).expect_code(0);
    assert!(started_program(&project, "mine").is_some());
    let hint = ended.find_line("continue with: acp run --resume");
    assert!(hint.ends_with("PROMPT --agent me"), "{hint}");
    run_acp(&project, programs.path(), &["sessions"])
        .expect_code(0)
        .expect_stdout(&["/read notes.txt:1-1"]);
    assert!(started_program(&project, "mine").is_some());
    // Another is named.
    run_acp(
        &project,
        programs.path(),
        &["run", "--agent", "acp", "/help"],
    )
    .expect_code(0);
    assert_eq!(started_program(&project, "mine"), None);
}

#[test]
fn unknown_name_is_reported_with_the_nearest_one() {
    let project = TestProject::new();
    project.write_config("config.toml", "[agents.reviewer]\ncommand = 'x'\n");
    for (typed, meant) in [("cluade", "`claude`"), ("reviwer", "`reviewer`")] {
        for command in ["run", "sessions", "login", "logout"] {
            let mut args = vec![command, "--agent", typed];
            args.extend((command == "run").then_some("hello"));
            CommandResult::from_output(project.acp_command(&args).output().unwrap())
                .expect_code(2)
                .expect_stderr(&format!("did you mean {meant}?"));
        }
    }
    project
        .run(&["--agent", "xyzzy", "hello"])
        .expect_code(2)
        .expect_stderr("agent not found: `xyzzy`; run `acp agents` to list agents");
    project
        .run(&["--agent", "claude", "hello", "--", "true"])
        .expect_code(2)
        .expect_stderr("cannot be used with");
}

#[test]
fn missing_well_known_agent_is_reported_with_install_instructions() {
    let project = TestProject::new();
    let empty = tempfile::tempdir().unwrap();
    for name in ["gemini", "gemini-cli"] {
        run_acp(&project, empty.path(), &["run", "--agent", name, "hello"])
            .expect_code(3)
            .expect_stderr("install it with: npm install -g @google/gemini-cli");
    }
    let there = program_directory("gemini");
    run_acp(
        &project,
        there.path(),
        &["run", "--agent", "gemini-cli", "/help"],
    )
    .expect_code(0);
    assert!(started_program(&project, "gemini").is_some());
}

#[test]
fn all_agents_are_listed_without_starting_any() {
    let project = TestProject::new();
    let programs = program_directory("goose");
    project.write_config(
        "config.toml",
        "default_agent = 'me'\n[agents.me]\ncommand = 'goose acp --quiet'\n[agents.you]\ncommand = 'nowhere'\n[agents.kimi]\nmode = 'plan'\n",
    );
    write_project_config(&project, "[agents.helper]\ncommand = './helper'\n");
    write_program(&project.file("helper"), "helper");
    run_acp(&project, programs.path(), &["agents"])
        .expect_code(0)
        .expect_stdout(&[
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
    let json = run_acp(&project, programs.path(), &["agents", "--format", "json"]).expect_code(0);
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
        assert_eq!(started_program(&project, says), None);
    }
}

#[test]
fn project_agent_is_not_run_before_it_is_allowed() {
    let project = TestProject::new();
    let none = tempfile::tempdir().unwrap();
    let acp = |args: &[&str]| run_acp(&project, none.path(), args);
    let run = || acp(&["run", "--agent", "helper", "/help"]);
    write_program(&project.file("helper"), "helper");
    write_project_config(&project, "[agents.helper]\ncommand = './helper'\n");
    let refused = run().expect_code(2).expect_stderr("you have not allowed");
    assert!(refused.stderr.contains("acp agents allow\n"), "{refused:?}");
    // Nobody can be asked here; what would be is shown.
    let shown = acp(&["agents", "allow"])
        .expect_code(2)
        .expect_stderr("use --yes to allow these agents");
    assert!(shown.stderr.contains("helper: /"), "{shown:?}");
    assert_eq!(started_program(&project, "helper"), None);

    acp(&["agents", "allow", "--yes"]).expect_code(0);
    run().expect_code(0);
    assert!(started_program(&project, "helper").is_some());
    // Each change is asked about again, and what was there before is not.
    let changed = "[agents.helper]\ncommand = './helper'\nenv = { PATH = '/tmp' }\n";
    write_project_config(&project, changed);
    run().expect_code(2).expect_stderr("you have not allowed");
    write_project_config(&project, "[agents.helper]\ncommand = './helper'\n");
    assert_eq!(started_program(&project, "helper"), None);
    acp(&["agents", "revoke"])
        .expect_code(0)
        .expect_stdout(&["revoked"]);
    run().expect_code(2).expect_stderr("you have not allowed");
    assert_eq!(started_program(&project, "helper"), None);
}

#[test]
fn default_agent_of_a_project_is_not_used_before_it_is_allowed() {
    let project = TestProject::new();
    let none = tempfile::tempdir().unwrap();
    let acp = |args: &[&str]| run_acp(&project, none.path(), args);
    write_program(&project.file("helper"), "helper");
    write_project_config(
        &project,
        "default_agent = 'helper'\n[agents.helper]\ncommand = './helper'\n",
    );
    acp(&["run", "/read notes.txt"])
        .expect_code(0)
        .expect_stderr(
            "ignoring the project's default agent: you have not allowed .acp/config.toml",
        );
    assert_eq!(started_program(&project, "helper"), None);
    acp(&["agents", "allow", "--yes"]).expect_code(0);
    // Also from below, where the path would lead elsewhere.
    std::fs::create_dir(project.file("below")).unwrap();
    std::fs::create_dir(project.file(".git")).unwrap();
    let mut below = project.acp_command(&["run", "--cwd", "below", "/help"]);
    CommandResult::from_output(below.output().unwrap()).expect_code(0);
    assert!(project.file("below/started-helper").exists());
    // What is not understood was never allowed.
    write_project_config(&project, "default_agent = 'helper'\nagent = {}\n");
    acp(&["run", "/read notes.txt"])
        .expect_code(0)
        .expect_stderr("config.toml, line 2: unknown field `agent`");
    acp(&["run", "--agent", "helper", "hello"])
        .expect_code(2)
        .expect_stderr("config.toml, line 2: unknown field `agent`");
}

#[test]
fn project_agent_cannot_shadow_another() {
    let project = TestProject::new();
    let programs = program_directory("goose");
    project.write_config("config.toml", "[agents.me]\ncommand = 'goose'\n");
    write_program(&project.file("evil"), "evil");
    write_project_config(
        &project,
        "[agents.goose]\ncommand = './evil'\n[agents.me]\ncommand = './evil'\n[agents.acp]\ncommand = './evil'\n",
    );
    let acp = |args: &[&str]| run_acp(&project, programs.path(), args);
    acp(&["agents", "allow", "--yes"]).expect_code(0);
    for name in ["goose", "me"] {
        acp(&["run", "--agent", name, "hello"]);
        assert!(started_program(&project, "goose").is_some(), "{name}");
    }
    acp(&["run", "--agent", "acp", "/help"]).expect_code(0);
    assert_eq!(started_program(&project, "evil"), None);
    acp(&["agents"]).expect_code(0).expect_stdout(&[
        "Project agents (",
        "shadowed by the well-known agent of the same name",
        "shadowed by your agent of the same name",
    ]);
}

#[test]
fn project_config_is_not_read_through_a_symlink() {
    let project = TestProject::new();
    let outside = TestProject::new();
    outside.write_file("config.toml", "[agents.helper]\ncommand = 'true'\n");
    std::fs::create_dir(project.file(".acp")).unwrap();
    std::os::unix::fs::symlink(
        outside.file("config.toml"),
        project.file(".acp/config.toml"),
    )
    .unwrap();
    project
        .run(&["--agent", "helper", "hello"])
        .expect_code(2)
        .expect_stderr("leads outside the project");
}

#[test]
fn configuration_errors_are_reported() {
    for (text, said) in [
        ("[agents.x]\ncommnad = 'y'\n", "line 2: unknown field"),
        (
            "[agents.x]\nmode = 'plan'\n",
            "`command` or `url` is required",
        ),
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
        project.write_config("config.toml", text);
        let name = if text.contains("agents.acp") {
            "acp"
        } else {
            "x"
        };
        let ended = project.run(&["--agent", name, "hello"]).expect_code(2);
        assert!(ended.stderr.contains(said), "{text}: {}", ended.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn user_is_shown_project_commands_and_decides() {
    let project = TestProject::new();
    write_program(&project.file("helper"), "helper");
    write_project_config(
        &project,
        "[agents.helper]\ncommand = ['./helper', \"\\u001b[2J\\u202ehidden\"]\nenv = { LD_PRELOAD = './a.so' }\nmode = 'code'\npass = ['AWS_*']\n[[agents.helper.mcp_servers]]\nname = 'web'\ncommand = 'npx'\nargs = ['-y', 'it']\n",
    );
    let run = || CommandTerminal::start(&project, &format!("{ACP} run --agent helper /help"));
    let mut terminal = run();
    terminal.wait_for("[y/N] ");
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
    terminal.send_keys("\n");
    terminal.expect_exit(2);
    assert_eq!(started_program(&project, "helper"), None);

    let mut terminal = run();
    terminal.answer("[y/N] ", "y\n");
    terminal.wait_for_exit();
    assert!(started_program(&project, "helper").is_some());
    // And is not asked again.
    let (_, screen) = run().wait_for_exit();
    assert!(!screen.contains("[y/N]"), "{screen}");
    assert!(started_program(&project, "helper").is_some());
}
