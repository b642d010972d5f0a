//! The same tests once more, as a user with no rights of their own: root may do much that is refused to
//! others, and the other way round. The tests of other crates use this file, too.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user and the group `nobody`, or whoever it is: nobody owns anything here.
const NOBODY: u32 = 65534;

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs the tests of a module, which is named by its `module_path!()`, as an ordinary user, with `more` programs beside
/// this one, whose names are given in the environment as the variables say. All must succeed.
pub(crate) fn runs_the_tests_of(module: &str, more: &[(&str, &Path)]) {
    let (_, module) = module.split_once("::").unwrap();
    if !is_root() {
        println!("skipped: not root; these tests have just been run as an ordinary user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), readable).unwrap();
    // The directory in which it was built may be closed to others. Copied by another process: a program
    // cannot be started while someone has it open for writing, and what this process has open, its other
    // tests' children have, too, for a moment.
    let copy = |program: &Path| -> PathBuf {
        let copy = directory.path().join(program.file_name().unwrap());
        let copied = Command::new("cp").args([program, &copy]).status().unwrap();
        assert!(copied.success());
        copy
    };
    let home = directory.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let this = copy(&std::env::current_exe().unwrap());
    let mut command = Command::new(this);
    command.arg(format!("{module}::"));
    for (variable, program) in more {
        command.env(variable, copy(program));
    }
    let ended = command
        // The standard library drops all other groups with that.
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&ended.stdout);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success()
            && stdout.contains("test result: ok")
            && !stdout.contains(" 0 passed"),
        "as an ordinary user: {}\n{stdout}\n{stderr}",
        ended.status
    );
    let result = stdout.lines().find(|line| line.starts_with("test result"));
    println!("as user {NOBODY}: {}", result.unwrap_or_default());
}
