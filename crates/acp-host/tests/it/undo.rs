//! Tests that changes by sandboxed commands to files that other programs run or trust are undone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{ordinary_user, with_timeout};
use acp_host::{HostTerminals, Sandbox, SandboxError, SandboxRules, SessionTerminals};
use acp_wire::v1::{
    CreateTerminalRequest, ReleaseTerminalRequest, TerminalOutputRequest,
    WaitForTerminalExitRequest,
};

#[test]
fn tests_pass_as_an_ordinary_user() {
    ordinary_user::rerun_as_ordinary_user(module_path!(), &[]);
}

/// A repository with some files that other programs run or trust, and terminals in a sandbox with the repository as its
/// root.
struct UndoFixture {
    terminals: SessionTerminals,
    sandbox: Sandbox,
    root: PathBuf,
    kept: PathBuf,
    outside: PathBuf,
    _directory: tempfile::TempDir,
}

const GIT_ENVIRONMENT: &str = "HOME=/nowhere GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
                    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";

fn run_shell(directory: &Path, line: &str) {
    let line = format!("export {GIT_ENVIRONMENT}; set -e; {line}");
    let ran = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(directory)
        .output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{line}: {ran:?}");
}

impl UndoFixture {
    fn new() -> Option<Self> {
        Self::with_rules(|rules| rules)
    }

    fn with_rules(more: impl Fn(SandboxRules) -> SandboxRules) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let [root, kept, outside] = ["root", "kept", "outside"].map(|name| path.join(name));
        for directory in [&root, &outside] {
            std::fs::create_dir(directory).unwrap();
        }
        run_shell(
            &root,
            "git init -q .; echo one > file; git add file; git commit -qm one; mkdir -p .vscode sub/.claude ordinary;
            echo '{}' > .vscode/tasks.json; echo '{}' > sub/.claude/settings.json; echo x > ordinary/x;
            printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ln -s file .bazelrc",
        );
        let rules = SandboxRules::new().undone_directory(&kept);
        let sandbox = match Sandbox::from_rules(more(rules).for_roots([root.clone()])) {
            Ok(sandbox) => sandbox,
            Err(error @ SandboxError::NotSupported { .. }) => {
                println!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let terminals = HostTerminals::new().sandbox(sandbox.clone());
        let terminals = terminals.session(&root, |_| ());
        Some(Self {
            terminals,
            sandbox,
            root,
            kept,
            outside,
            _directory: directory,
        })
    }

    /// Runs a shell command line until it exits. Returns its exit code, its output and its terminal, which is not yet
    /// released.
    async fn start_command(&self, line: &str) -> (Option<u32>, String, acp_wire::v1::TerminalId) {
        let line = format!(
            "export {GIT_ENVIRONMENT}; OUT={}; {line}",
            self.outside.display()
        );
        let request = CreateTerminalRequest::new("s", "sh").args(["-c".to_owned(), line]);
        let id = self.terminals.create(&request).await.unwrap().terminal_id;
        let exit = WaitForTerminalExitRequest::new("s", &id);
        let exit = with_timeout(self.terminals.wait_for_exit(&exit))
            .await
            .unwrap();
        let output = TerminalOutputRequest::new("s", &id);
        let output = self.terminals.output(&output).await.unwrap().output;
        (exit.exit_code, output, id)
    }

    async fn run_command(&self, line: &str) -> (Option<u32>, String) {
        let (code, output, id) = self.start_command(line).await;
        let release = ReleaseTerminalRequest::new("s", &id);
        with_timeout(self.terminals.release(&release))
            .await
            .unwrap();
        (code, output)
    }

    /// Returns the contents of the root: file contents, modes and link targets.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        use std::os::unix::fs::MetadataExt;
        let mut seen = BTreeMap::new();
        let mut todo = vec![self.root.clone()];
        while let Some(directory) = todo.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let what = if meta.is_dir() {
                    todo.push(path.clone());
                    String::new()
                } else if meta.is_symlink() {
                    path.read_link().unwrap().display().to_string()
                } else {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                };
                seen.insert(path, format!("{:o} {what}", meta.mode()));
            }
        }
        seen
    }
}

#[tokio::test]
async fn trusted_files_are_restored_when_a_command_ends() {
    let Some(place) = UndoFixture::new() else {
        return;
    };
    let before = place.snapshot();
    for attack in [
        "echo evil > .git/hooks/pre-commit",
        "echo evil > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
        "chmod -x .git/hooks/pre-commit",
        "rm .git/hooks/pre-commit",
        "echo evil > .git/hooks/post-checkout; chmod 111 .git/hooks",
        "echo evil > .envrc; chmod 311 .",
        "mkdir -p hidden/.vscode; echo evil > hidden/.vscode/tasks.json; chmod 111 hidden/.vscode; chmod 311 hidden",
        "echo evil > sub/.claude/settings.json; chmod 0 sub/.claude; chmod 0 sub",
        "rm -r .git/hooks",
        "mv .git/hooks hooks; rm -r hooks",
        "git config core.fsmonitor ./evil",
        "git remote add evil ext::evil",
        "ln .git/config hard; echo '[core] fsmonitor = evil' >> hard; rm hard",
        "cp .git/config new; mv new .git/config; echo evil >> .git/config",
        "echo evil > .git/config.worktree",
        "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; rmdir .git/info 2>/dev/null; true",
        "mkdir -p .git/modules/a/b/hooks; echo evil > .git/modules/a/b/config",
        "mkdir .acp; echo evil > .acp/config.toml",
        "echo evil > .vscode/tasks.json",
        "echo evil > .vscode/launch.json",
        "rm -r .vscode",
        "rm -r .vscode; ln -s ordinary .vscode",
        "rm -r .vscode; ln -s $OUT .vscode",
        "rm -r .vscode; echo evil > .vscode",
        "rm .bazelrc; echo evil > .bazelrc",
        "echo evil > .mcp.json; echo evil > .envrc; echo evil > my.code-workspace",
        "mkdir -p deep/down/.cursor; echo evil > deep/down/.cursor/mcp.json",
        "rm -r sub; mkdir -p sub/.claude; echo evil > sub/.claude/settings.json; cat sub/.claude/settings.json",
        "echo '{\"a\":1}' > sub/.claude/settings.json; touch -d '2001-01-01' sub/.claude/settings.json",
        "mkdir repository; cd repository; git init -q --bare .; git config core.fsmonitor evil",
        "git init -q inner; git -C inner config core.fsmonitor evil",
        "(setsid sh -c 'echo evil > .envrc' &) ; until test -s .envrc; do :; done",
    ] {
        let (_, output) = place.run_command(attack).await;
        assert!(output.contains("acp reverted "), "{attack}: {output}");
        // An unprotected file stays as the command left it, even if the command made it unreadable.
        run_shell(
            &place.root,
            "chmod 755 . sub; test ! -e hidden || chmod -R u+rwx hidden",
        );
        let after = place.snapshot();
        let evil = |(path, what): &(&PathBuf, &String)| {
            !before.contains_key(*path)
                && what.contains("evil")
                && !path.starts_with(place.root.join("sub"))
        };
        let left: Vec<_> = after.iter().filter(evil).collect();
        assert!(left.is_empty(), "{attack}: {left:?}: {output}");
        for (path, what) in &before {
            assert_eq!(after.get(path), Some(what), "{attack}: {path:?}: {output}");
        }
        assert_eq!(
            std::fs::read_dir(&place.outside).unwrap().count(),
            0,
            "{attack}"
        );
    }
}

#[tokio::test]
async fn undone_changes_are_saved_and_listed() {
    let Some(place) = UndoFixture::new() else {
        return;
    };
    let (code, output) = place
        .run_command("echo mine > .envrc; echo mine > .git/hooks/pre-commit")
        .await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("acp reverted 2 changes"), "{output}");
    assert!(output.contains("/root/.envrc, "), "{output}");
    assert!(
        output.contains(&format!(
            "the changed files are saved in {}",
            place.kept.display()
        )),
        "{output}"
    );
    let time = std::fs::read_dir(&place.kept)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for name in ["undone__.envrc", "undone__.git__hooks__pre-commit"] {
        assert_eq!(std::fs::read_to_string(time.join(name)).unwrap(), "mine\n");
    }
}

#[tokio::test]
async fn ordinary_git_changes_are_kept() {
    let Some(place) = UndoFixture::new() else {
        return;
    };
    std::fs::remove_file(place.root.join(".git/hooks/pre-commit")).unwrap();
    for line in [
        "echo two >> file; git commit -qam two",
        "git checkout -q -b other; git branch third; git tag first",
        "echo three >> file; git stash -q; git stash pop -q; git commit -qam three",
        "git checkout -q master 2>/dev/null || git checkout -q main; git merge -q other; git gc -q",
        "git fetch -q . other:fourth; git worktree list; git log --oneline | wc -l",
        "echo more >> ordinary/x; mkdir -p node_modules/a; echo x > node_modules/a/.mcp.json",
    ] {
        let (code, output) = place.run_command(line).await;
        assert_eq!(code, Some(0), "{line}: {output}");
        assert!(!output.contains("acp reverted"), "{line}: {output}");
    }
    run_shell(
        &place.root,
        "test $(git rev-list --count HEAD) = 3; git rev-parse fourth; git fsck",
    );
}

#[tokio::test]
async fn allowed_change_is_not_undone() {
    // Allowed by the user, with `--writable`.
    let place = UndoFixture::with_rules(|rules| rules);
    let Some(place) = place else { return };
    let hooks = place.root.join(".git/hooks");
    let rules = SandboxRules::new()
        .writable([hooks.clone()])
        .for_roots([place.root.clone()]);
    let terminals = HostTerminals::new().sandbox(Sandbox::from_rules(rules).unwrap());
    let terminals = terminals.session(&place.root, |_| ());
    let place = UndoFixture { terminals, ..place };
    let (_, output) = place
        .run_command("echo new > .git/hooks/pre-commit; echo evil > .envrc")
        .await;
    assert!(
        output.contains("acp reverted a change") && output.contains(".envrc"),
        "{output}"
    );
    assert_eq!(
        std::fs::read_to_string(hooks.join("pre-commit")).unwrap(),
        "new\n"
    );
    // Allowed by an answer, while a command is running.
    let host = HostTerminals::new().sandbox(place.sandbox.clone());
    let terminals = host.session(&place.root, |_| ());
    let place = UndoFixture { terminals, ..place };
    let request = CreateTerminalRequest::new("s", "sh").args(vec![
        "-c".to_owned(),
        "until test -e go; do sleep 0.01; done; echo evil > .mcp.json".to_owned(),
    ]);
    let id = place.terminals.create(&request).await.unwrap().terminal_id;
    let tasks = place.root.join(".vscode/tasks.json");
    std::fs::write(&tasks, "allowed\n").unwrap();
    host.accept_change(tasks.clone()).await;
    std::fs::write(place.root.join("go"), "").unwrap();
    let exit = WaitForTerminalExitRequest::new("s", &id);
    with_timeout(place.terminals.wait_for_exit(&exit))
        .await
        .unwrap();
    assert!(!place.root.join(".mcp.json").exists());
    assert_eq!(std::fs::read_to_string(&tasks).unwrap(), "allowed\n");
}

#[tokio::test]
async fn background_changes_are_undone_when_the_process_ends() {
    let Some(place) = UndoFixture::new() else {
        return;
    };
    let line = "(until test -e go; do sleep 0.01; done; echo evil > .envrc; touch went; sleep 1000) >/dev/null 2>&1 &";
    let (_, output, id) = place.start_command(line).await;
    assert!(!output.contains("acp reverted"), "{output}");
    std::fs::write(place.root.join("go"), "").unwrap();
    let went = async {
        while !place.root.join("went").exists() {
            tokio::task::yield_now().await;
        }
    };
    with_timeout(went).await;
    assert!(place.root.join(".envrc").exists());
    let release = ReleaseTerminalRequest::new("s", &id);
    with_timeout(place.terminals.release(&release))
        .await
        .unwrap();
    assert!(!place.root.join(".envrc").exists());
}

#[tokio::test]
async fn changes_between_commands_are_reported_and_kept() {
    let Some(place) = UndoFixture::new() else {
        return;
    };
    let (_, output) = place.run_command("echo evil > .envrc").await;
    assert!(output.contains("acp reverted a change"), "{output}");
    assert!(!output.contains("they were not reverted"), "{output}");
    run_shell(&place.root, "git config user.email me@here");
    let (_, output) = place.run_command("true").await;
    let told = "by you or by a process it left running; they were not reverted: ";
    assert!(
        output.contains(told) && output.contains("/root/.git/config"),
        "{output}"
    );
    assert!(!output.contains("acp reverted"), "{output}");
    let (_, output) = place.run_command("git config user.email").await;
    assert_eq!(output, "me@here\n");
}
