//! `--sandbox`: what is started writes only where it may, or is not started.

#![cfg(unix)]
// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod common;

use std::path::Path;

use common::{ACP, Project};

/// A project, and a directory outside. `None`, and the reason printed, where there are no sandboxes; it is
/// seen that nothing is started then.
fn place() -> Option<(Project, tempfile::TempDir)> {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    let Err(error) = acp_host::Sandbox::new([]) else {
        return Some((project, outside));
    };
    project
        .run(&["--sandbox", "hi", "--", "touch", "started"])
        .code(2)
        .says("a sandbox is not possible here");
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
    let project = Project::new();
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
