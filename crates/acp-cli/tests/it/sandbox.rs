//! Tests of `--sandbox`: programs can write only where they are allowed to, or are not started at all.

use crate::common;
use std::path::Path;

use crate::common::{ACP, TestProject};

/// Returns a project and a directory outside of it. If sandboxes are not available, asserts that nothing is started,
/// prints the reason and returns `None`.
fn sandbox_fixture() -> Option<(TestProject, tempfile::TempDir)> {
    let project = TestProject::new();
    let outside = tempfile::tempdir().unwrap();
    let Err(error) = acp_host::Sandbox::new([]) else {
        return Some((project, outside));
    };
    project
        .run(&["--sandbox", "hi", "--", "touch", "started"])
        .expect_code(2)
        .expect_stderr("sandbox not available:");
    assert!(!project.file("started").exists());
    println!("skipped: {error}");
    None
}

fn touch_command(file: &Path) -> String {
    format!("/run touch {}", file.display())
}

#[test]
fn bundled_agent_commands_write_only_where_allowed() {
    let Some((project, outside)) = sandbox_fixture() else {
        return;
    };
    let new = outside.path().join("new");
    for version in ["1", "2"] {
        let args = ["--sandbox", "--allow", "all", "--protocol", version];
        let run = |line: &str| project.run(&[&args[..], &[line]].concat());
        run(&touch_command(&new))
            .expect_code(0)
            .expect_stdout(&["Permission denied", "failed: exit code 1"]);
        assert!(!new.exists());
        let here = format!("here-{version}");
        run(&touch_command(Path::new(&here)))
            .expect_code(0)
            .expect_stdout(&["completed"]);
        assert!(project.file(&here).exists());
        run("/run echo x > $TMPDIR/x && echo wrote it")
            .expect_code(0)
            .expect_stdout(&["| wrote it"]);
    }
    let writable = outside.path().to_str().unwrap();
    let args = ["--sandbox", "--writable", writable, "--allow", "all"];
    project
        .run(&[&args[..], &[&touch_command(&new)]].concat())
        .expect_code(0)
        .expect_stdout(&["completed"]);
    assert!(new.exists());
}

#[test]
fn external_agent_is_confined() {
    let Some((project, outside)) = sandbox_fixture() else {
        return;
    };
    let new = outside.path().join("new");
    let agent = format!(
        "touch {} 2>> said; touch here; exec {ACP} agent",
        new.display()
    );
    let run = |args: &[&str]| {
        let rest = ["/read notes.txt", "--", "sh", "-c", &agent];
        project.run(&[&["--sandbox"], args, &rest].concat())
    };
    run(&[]).expect_code(0).expect_stdout(&["first"]);
    assert!(!new.exists());
    assert!(project.read_file("said").contains("Permission denied"));
    assert!(project.file("here").exists());
    run(&["--writable", outside.path().to_str().unwrap()]).expect_code(0);
    assert!(new.exists());
}

#[test]
fn sandboxed_agent_does_not_use_client_terminals() {
    let Some((project, outside)) = sandbox_fixture() else {
        return;
    };
    let new = outside.path().join("new");
    // This client has terminals, and would let them write anywhere.
    project
        .run(&[
            "--allow",
            "all",
            &touch_command(&new),
            "--",
            ACP,
            "agent",
            "--sandbox",
        ])
        .expect_code(0)
        .expect_stdout(&["Permission denied", "failed: exit code 1"]);
    assert!(!new.exists());
}

#[test]
fn unavailable_writable_directory_is_reported_before_start() {
    let project = TestProject::new();
    project
        .run(&[
            "--sandbox",
            "--writable",
            "/no/such",
            "hi",
            "--",
            "touch",
            "started",
        ])
        .expect_code(2)
        .expect_stderr("--writable /no/such: No such file");
    project
        .run(&["--writable", ".", "hi", "--", "touch", "started"])
        .expect_code(2)
        .expect_stderr("--sandbox");
    assert!(!project.file("started").exists());
}

/// Writes a program with this name, which runs a shell command and then the bundled agent. Returns the program's path.
fn named_agent_config(name: &str, directory: &Path, line: &str) -> String {
    let program = directory.join(name);
    let script = format!("#!/bin/sh\n{line}\nexec {ACP} agent\n");
    // By another process: what is open for writing here cannot be executed.
    let written = std::process::Command::new("sh")
        .args([
            "-c",
            r#"printf %s "$1" > "$2" && chmod +x "$2""#,
            "sh",
            &script,
        ])
        .arg(&program)
        .status();
    assert!(written.unwrap().success());
    program.to_str().unwrap().to_owned()
}

#[test]
fn well_known_agent_keeps_its_state_in_read_only_mode() {
    let Some((project, outside)) = sandbox_fixture() else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let tries =
        "echo kept > ~/.codex/state; echo no > ~/other; echo no > ~/.config; echo no > here";
    let agent = named_agent_config("codex-acp", outside.path(), tries);
    for allow in ["none", "reads"] {
        let mut run = project.agent_command(&["--allow", allow, "/help", "--", &agent]);
        let run = run.env("HOME", home.path()).env_remove("CODEX_HOME");
        common::CommandResult::from_output(run.output().unwrap()).expect_code(0);
        let kept = home.path().join(".codex/state");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept\n");
        std::fs::remove_file(kept).unwrap();
        let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(!project.file("here").exists());
    }
    // One whose directory is a way into the project does not get it, and the person is told.
    std::fs::remove_dir_all(home.path().join(".codex")).unwrap();
    std::os::unix::fs::symlink(project.path(), home.path().join(".codex")).unwrap();
    let mut run = project.agent_command(&["--allow", "none", "/help", "--", &agent]);
    let run = run.env("HOME", home.path()).env_remove("CODEX_HOME");
    common::CommandResult::from_output(run.output().unwrap())
        .expect_code(0)
        .expect_stderr("~/.codex stays read-only");
    assert!(!project.file("state").exists());
}

#[test]
fn read_only_agent_failure_comes_with_a_hint() {
    let Some((project, _outside)) = sandbox_fixture() else {
        return;
    };
    let broken = |args: &[&str]| {
        let all = [args, &["hi", "--", "sh", "-c", "touch here || exit 7"]].concat();
        project.run(&all).expect_code(3)
    };
    broken(&["--allow", "none"])
        .expect_stderr("exit code 7")
        .expect_stderr("--writable DIR")
        .expect_stderr("--sandbox=off");
    assert!(!project.file("here").exists());
    let ended = broken(&["--allow", "reads", "--sandbox=off"]);
    assert!(!ended.stderr.contains("--writable"), "{ended:#?}");
    assert!(project.file("here").exists());
}

#[test]
fn bundled_agent_and_its_commands_are_read_only_too() {
    let Some((project, _outside)) = sandbox_fixture() else {
        return;
    };
    let run = |args: &[&str]| project.run(&[args, &["/run touch here"]].concat());
    run(&["--sandbox=read-only", "--allow", "all"])
        .expect_code(0)
        .expect_stdout(&["failed: exit code 1"]);
    assert!(!project.file("here").exists());
    // What a rule of the user's allows runs as the user said.
    run(&["--allow", "reads"]).expect_code(8);
    assert!(!project.file("here").exists());
    project.allow_commands();
    run(&["--allow", "reads"]).expect_code(0);
    assert!(project.file("here").exists());
}

#[test]
fn blocked_network_allows_only_the_given_ports() {
    let Some((project, _outside)) = sandbox_fixture() else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let connect = format!("/run bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected");
    let run = |args: &[&str]| project.run(&[&["--allow", "all"], args, &[&connect]].concat());
    run(&["--sandbox"])
        .expect_code(0)
        .expect_stdout(&["| connected"]);
    for mode in ["no-network", "workspace,no-network", "read-only,no-network"] {
        let mode = format!("--sandbox={mode}");
        run(&[&mode])
            .expect_code(0)
            .expect_stdout(&["Permission denied", "failed: exit code 1"]);
        run(&[&mode, "--reachable", &format!("localhost:{port}")])
            .expect_code(0)
            .expect_stdout(&["| connected"]);
    }
    run(&["--reachable", &port])
        .expect_code(2)
        .expect_stderr("--sandbox");
    run(&["--sandbox", "--reachable", &port])
        .expect_code(2)
        .expect_stderr("no-network");
}

#[test]
fn bundled_agent_command_cannot_leave_trusted_files_changed() {
    let Some((project, _outside)) = sandbox_fixture() else {
        return;
    };
    project.run_shell("git init -q .").expect_code(0);
    let trap = "/run echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo good > here";
    project
        .run(&["--sandbox", "--allow", "all", trap])
        .expect_code(0)
        .expect_stdout(&["acp reverted 2 changes to files that other programs run or trust"]);
    assert!(!project.file(".git/hooks/pre-commit").exists());
    assert!(!project.file(".envrc").exists());
    assert_eq!(project.read_file("here"), "good\n");
    // Through the client's terminal, for another agent.
    let agent = format!("exec {ACP} agent");
    let run = [
        "--sandbox",
        "--allow",
        "all",
        trap,
        "--",
        "sh",
        "-c",
        &agent,
    ];
    project
        .run(&run)
        .expect_code(0)
        .expect_stdout(&["acp reverted 2 changes"]);
    assert!(!project.file(".envrc").exists());
    // What the person allows the agent to write is not undone.
    project
        .run(&["--sandbox", "--allow", "all", "/write .envrc ours"])
        .expect_code(0);
    assert_eq!(project.read_file(".envrc"), "ours");
}
