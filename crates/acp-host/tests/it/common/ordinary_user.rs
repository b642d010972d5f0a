//! Reruns tests as an unprivileged user, because root may do things that other users may not, and vice versa. Other
//! crates' tests also use this file.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user and group id of `nobody`, who owns none of the tests' files.
const NOBODY_UID: u32 = 65534;

/// Returns `true` if this process runs as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a module's tests as an ordinary user, and checks that they all pass. `module` is the module's `module_path!()`.
/// `more` lists programs to copy next to this one, each with the environment variable to set to its new path.
pub(crate) fn rerun_as_ordinary_user(module: &str, more: &[(&str, &Path)]) {
    let (_, module) = module.split_once("::").unwrap();
    if !is_root() {
        println!("skipped: not root; these tests have just been run as an ordinary user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), readable).unwrap();
    // Other users may not be able to access the directory in which the program was built, so it is copied. Another
    // process makes the copy: a program cannot be started while a process has it open for writing, and files open in
    // this process are for a moment also open in the children of its other tests.
    let copy = |program: &Path| -> PathBuf {
        let copy = directory.path().join(program.file_name().unwrap());
        let copied = Command::new("cp").args([program, &copy]).status().unwrap();
        assert!(copied.success());
        copy
    };
    let home = directory.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
    let this = copy(&std::env::current_exe().unwrap());
    let mut command = Command::new(this);
    command.arg(format!("{module}::"));
    for (variable, program) in more {
        command.env(variable, copy(program));
    }
    let ended = command
        // This also makes the standard library drop all other groups.
        .uid(NOBODY_UID)
        .gid(NOBODY_UID)
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
    println!("as user {NOBODY_UID}: {}", result.unwrap_or_default());
}
