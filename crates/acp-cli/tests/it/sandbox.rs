//! `--sandbox`: what is started writes only where it may, or is not started.

use crate::common;
use std::path::Path;

use crate::common::{ACP, TestProject};

/// A project, and a directory outside. `None`, and the reason printed, where there are no sandboxes; it is
/// seen that nothing is started then.
fn place() -> Option<(TestProject, tempfile::TempDir)> {
    let project = TestProject::new();
    let outside = tempfile::tempdir().unwrap();
    let Err(error) = acp_host::Sandbox::new([]) else {
        return Some((project, outside));
    };
    project
        .run(&["--sandbox", "hi", "--", "touch", "started"])
        .code(2)
        .says("sandbox not available:");
    assert!(!project.file("started").exists());
    println!("skipped: {error}");
    None
}

fn touch(file: &Path) -> String {
    format!("/run touch {}", file.display())
}

#[test]
fn commands_of_the_bundled_agent_write_only_where_they_may() {
    let Some((project, outside)) = place() else {
        return;
    };
    let new = outside.path().join("new");
    for version in ["1", "2"] {
        let args = ["--sandbox", "--allow", "all", "--protocol", version];
        let run = |line: &str| project.run(&[&args[..], &[line]].concat());
        run(&touch(&new))
            .code(0)
            .shows(&["Permission denied", "failed: exit code 1"]);
        assert!(!new.exists());
        let here = format!("here-{version}");
        run(&touch(Path::new(&here))).code(0).shows(&["completed"]);
        assert!(project.file(&here).exists());
        run("/run echo x > $TMPDIR/x && echo wrote it")
            .code(0)
            .shows(&["| wrote it"]);
    }
    let writable = outside.path().to_str().unwrap();
    let args = ["--sandbox", "--writable", writable, "--allow", "all"];
    project
        .run(&[&args[..], &[&touch(&new)]].concat())
        .code(0)
        .shows(&["completed"]);
    assert!(new.exists());
}

#[test]
fn another_agent_is_confined_itself() {
    let Some((project, outside)) = place() else {
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
    run(&[]).code(0).shows(&["first"]);
    assert!(!new.exists());
    assert!(project.read("said").contains("Permission denied"));
    assert!(project.file("here").exists());
    run(&["--writable", outside.path().to_str().unwrap()]).code(0);
    assert!(new.exists());
}

#[test]
fn an_agent_in_a_sandbox_does_not_trust_the_terminals_of_its_client() {
    let Some((project, outside)) = place() else {
        return;
    };
    let new = outside.path().join("new");
    // This client has terminals, and would let them write anywhere.
    project
        .run(&[
            "--allow",
            "all",
            &touch(&new),
            "--",
            ACP,
            "agent",
            "--sandbox",
        ])
        .code(0)
        .shows(&["Permission denied", "failed: exit code 1"]);
    assert!(!new.exists());
}

#[test]
fn what_cannot_be_made_writable_is_said_before_anything_is_started() {
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
        .code(2)
        .says("--writable /no/such: No such file");
    project
        .run(&["--writable", ".", "hi", "--", "touch", "started"])
        .code(2)
        .says("--sandbox");
    assert!(!project.file("started").exists());
}

/// An agent of this name, which runs a line of shell first.
fn agent_called(name: &str, directory: &Path, line: &str) -> String {
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
fn a_well_known_agent_keeps_its_own_where_it_may_only_read() {
    let Some((project, outside)) = place() else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let tries =
        "echo kept > ~/.codex/state; echo no > ~/other; echo no > ~/.config; echo no > here";
    let agent = agent_called("codex-acp", outside.path(), tries);
    for allow in ["none", "reads"] {
        let mut run = project.command(&["--allow", allow, "/help", "--", &agent]);
        let run = run.env("HOME", home.path()).env_remove("CODEX_HOME");
        common::CommandResult::of(run.output().unwrap()).code(0);
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
    let mut run = project.command(&["--allow", "none", "/help", "--", &agent]);
    let run = run.env("HOME", home.path()).env_remove("CODEX_HOME");
    common::CommandResult::of(run.output().unwrap())
        .code(0)
        .says("~/.codex stays read-only");
    assert!(!project.file("state").exists());
}

#[test]
fn an_agent_that_breaks_where_it_may_only_read_is_told_with_what_may_help() {
    let Some((project, _outside)) = place() else {
        return;
    };
    let broken = |args: &[&str]| {
        let all = [args, &["hi", "--", "sh", "-c", "touch here || exit 7"]].concat();
        project.run(&all).code(3)
    };
    broken(&["--allow", "none"])
        .says("exit code 7")
        .says("--writable DIR")
        .says("--sandbox=off");
    assert!(!project.file("here").exists());
    let ended = broken(&["--allow", "reads", "--sandbox=off"]);
    assert!(!ended.stderr.contains("--writable"), "{ended:#?}");
    assert!(project.file("here").exists());
}

#[test]
fn the_bundled_agent_and_its_commands_can_only_read_there_too() {
    let Some((project, _outside)) = place() else {
        return;
    };
    let run = |args: &[&str]| project.run(&[args, &["/run touch here"]].concat());
    run(&["--sandbox=read-only", "--allow", "all"])
        .code(0)
        .shows(&["failed: exit code 1"]);
    assert!(!project.file("here").exists());
    // What a rule of the user's allows runs as the user said.
    run(&["--allow", "reads"]).code(0);
    assert!(!project.file("here").exists());
    project.allow_commands();
    run(&["--allow", "reads"]).code(0);
    assert!(project.file("here").exists());
}

#[test]
fn without_the_network_tcp_reaches_nothing_but_the_ports_given() {
    let Some((project, _outside)) = place() else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let connect = format!("/run bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected");
    let run = |args: &[&str]| project.run(&[&["--allow", "all"], args, &[&connect]].concat());
    run(&["--sandbox"]).code(0).shows(&["| connected"]);
    for mode in ["no-network", "workspace,no-network", "read-only,no-network"] {
        let mode = format!("--sandbox={mode}");
        run(&[&mode])
            .code(0)
            .shows(&["Permission denied", "failed: exit code 1"]);
        run(&[&mode, "--reachable", &format!("localhost:{port}")])
            .code(0)
            .shows(&["| connected"]);
    }
    run(&["--reachable", &port]).code(2).says("--sandbox");
    run(&["--sandbox", "--reachable", &port])
        .code(2)
        .says("no-network");
}

#[test]
fn a_command_of_the_bundled_agent_leaves_no_trap_behind() {
    let Some((project, _outside)) = place() else {
        return;
    };
    project.shell("git init -q .").code(0);
    let trap = "/run echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo good > here";
    project
        .run(&["--sandbox", "--allow", "all", trap])
        .code(0)
        .shows(&["acp reverted 2 changes to files that other programs run or trust"]);
    assert!(!project.file(".git/hooks/pre-commit").exists());
    assert!(!project.file(".envrc").exists());
    assert_eq!(project.read("here"), "good\n");
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
    project.run(&run).code(0).shows(&["acp reverted 2 changes"]);
    assert!(!project.file(".envrc").exists());
    // What the person allows the agent to write is not undone.
    project
        .run(&["--sandbox", "--allow", "all", "/write .envrc ours"])
        .code(0);
    assert_eq!(project.read(".envrc"), "ours");
}
