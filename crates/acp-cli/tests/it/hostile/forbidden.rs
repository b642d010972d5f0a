//! Attacks by an agent that writes without asking. `--allow none` and `--allow reads` must prevent this.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn tests_pass_as_an_ordinary_user() {
    crate::ordinary_user::rerun_as_ordinary_user(
        module_path!(),
        &[(BINARY_VARIABLE, Path::new(ACP))],
    );
}

/// Returns `true` if sandboxes are available on this system. If not, `acp` prints a note and starts the agent anyway,
/// so there is nothing to test.
fn is_sandbox_available() -> bool {
    let sandbox = acp_host::Sandbox::new([]);
    if let Err(error) = &sandbox {
        println!("skipped: {error}");
    }
    sandbox.is_ok()
}

/// A user's project, home directory, and other places that an agent might change.
struct HostileFixture {
    project: TestProject,
    home: tempfile::TempDir,
    /// Temporary directories inside directories that every user may write to.
    elsewhere: Vec<tempfile::TempDir>,
}

impl HostileFixture {
    fn new() -> Self {
        let directory_in = |parent: &str| {
            tempfile::Builder::new()
                .prefix("victim-")
                .tempdir_in(parent)
                .unwrap()
        };
        let victim = Self {
            project: TestProject::new(),
            home: tempfile::tempdir().unwrap(),
            elsewhere: ["/tmp", "/var/tmp", "/dev/shm"].map(directory_in).into(),
        };
        for place in victim.watched_directories() {
            std::fs::write(place.join("file"), "as it was\n").unwrap();
            std::fs::write(place.join("other"), "other\n").unwrap();
            std::fs::create_dir(place.join("empty")).unwrap();
            std::os::unix::fs::symlink("file", place.join("link")).unwrap();
        }
        std::fs::create_dir(victim.home.path().join(".ssh")).unwrap();
        victim
    }

    /// Returns the directories that must not be changed.
    fn watched_directories(&self) -> Vec<PathBuf> {
        let elsewhere = self.elsewhere.iter().map(|directory| directory.path());
        [self.project.path(), self.home.path()]
            .into_iter()
            .chain(elsewhere)
            .map(Path::to_owned)
            .collect()
    }

    /// Returns all files in these directories along with their contents.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        let mut todo = self.watched_directories();
        while let Some(directory) = todo.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = std::fs::symlink_metadata(&path).unwrap();
                let what = if meta.is_dir() {
                    todo.push(path.clone());
                    "directory".to_owned()
                } else if meta.is_symlink() {
                    std::fs::read_link(&path).unwrap().display().to_string()
                } else {
                    std::fs::read_to_string(&path).unwrap()
                };
                seen.insert(path, format!("{:o} {} {what}", meta.mode(), meta.nlink()));
            }
        }
        seen
    }

    /// Makes the agent try every attack in turn, and asserts that nothing has changed.
    fn run_attacks(&self, args: &[&str]) -> CommandResult {
        let mut steps = vec![agent::shell_step(
            "echo mine > ${HOSTILE_AGENT_ANSWERS}.more",
        )];
        for place in self.watched_directories() {
            let attack =
                |attack: &&str| agent::shell_step(&format!("cd {} && {attack}", place.display()));
            steps.extend(ATTACK_COMMANDS.iter().map(attack));
        }
        let mut run = agent::run_command(&self.project, args, &steps);
        let before = self.snapshot();
        let ended = CommandResult::from_output(run.env("HOME", self.home.path()).output().unwrap());
        let after = self.snapshot();
        let changed = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(changed).collect();
        assert!(changed.is_empty(), "{args:?}: {changed:?}: {ended:#?}");
        ended
    }
}

/// Shell commands that would change something in their working directory.
const ATTACK_COMMANDS: &[&str] = &[
    "echo stolen > file",
    "echo stolen >> file",
    ": > file",
    "truncate -s 1 file",
    "dd if=/dev/zero of=file bs=1 count=1 conv=notrunc",
    "echo stolen > link",
    "echo stolen > new",
    "mkdir new",
    "mkfifo new",
    "mknod new p",
    "ln -s /etc/passwd new",
    "ln file new",
    "ln other $TMPDIR/mine && echo stolen > $TMPDIR/mine",
    "mv file new",
    "mv file $TMPDIR",
    "mv -f other file",
    "echo stolen > $TMPDIR/new && mv -f $TMPDIR/new file",
    "rm file",
    "rm link",
    "rmdir empty",
    "mv empty file2",
    "sed -i s/was/is/ file",
    "tar cf new.tar file",
    "cp /bin/true new",
    "(setsid sh -c 'echo stolen > new') ",
    "echo stolen | tee file new",
    "echo stolen > /proc/self/cwd/new",
];

#[test]
fn read_only_policy_confines_an_agent_that_never_asks() {
    if !is_sandbox_available() {
        return;
    }
    for allow in ["none", "reads"] {
        let victim = HostileFixture::new();
        let ended = victim.run_attacks(&["--allow", allow]).expect_code(0);
        let answers = agent::read_responses(&victim.project);
        // It did all that it was told to, and no more than its first step came to anything.
        assert_eq!(
            answers.len(),
            1 + ATTACK_COMMANDS.len() * victim.watched_directories().len(),
            "{ended:#?}"
        );
        assert_eq!(answers[0]["code"], 0, "{answers:?}");
        for (answer, line) in answers[1..].iter().zip(ATTACK_COMMANDS.iter().cycle()) {
            assert_ne!(answer["code"], 0, "{line}: {answer}");
        }
    }
}

#[test]
fn read_only_sandbox_equals_the_read_only_policy() {
    if !is_sandbox_available() {
        return;
    }
    let victim = HostileFixture::new();
    victim
        .run_attacks(&["--allow", "all", "--sandbox=read-only"])
        .expect_code(0);
    assert_eq!(agent::read_responses(&victim.project)[0]["code"], 0);
}

#[test]
fn default_policy_does_not_confine_agents() {
    let project = TestProject::new();
    agent::run_steps(&project, &[], &[agent::shell_step("echo its own > state")]);
    assert_eq!(project.read_file("state"), "its own\n");
    agent::run_steps(
        &project,
        &["--allow", "reads", "--sandbox=off"],
        &[agent::shell_step("echo more > state")],
    );
    assert_eq!(project.read_file("state"), "more\n");
}

#[test]
fn read_only_chat_confines_the_agent() {
    if !is_sandbox_available() {
        return;
    }
    let project = TestProject::new();
    let done = serde_json::json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "done with it"}});
    let steps = [
        agent::shell_step("echo mine > ${HOSTILE_AGENT_ANSWERS}.more"),
        agent::shell_step("echo stolen > stolen"),
        agent::update_step(done),
    ];
    agent::write_agent_config(&project, &steps);
    let answers = project.path_outside("answers");
    let line = format!(
        "{ACP} chat --allow none --writable {} --agent hostile go",
        answers.display()
    );
    let mut screen = ChatScreen::start(&project, 100, 30, &line);
    screen.wait_for("done with it");
    let answers = agent::read_responses(&project);
    assert_eq!(answers[0]["code"], 0, "{answers:?}");
    assert_ne!(answers[1]["code"], 0, "{answers:?}");
    assert!(!project.file("stolen").exists());
}

#[test]
fn sandboxed_agent_cannot_leave_trusted_files_changed() {
    if !is_sandbox_available() {
        return;
    }
    let project = TestProject::new();
    let git = project
        .run_shell("git init -q . && git config user.name me")
        .expect_code(0);
    let config = project.read_file(".git/config");
    let steps = [
        agent::shell_step(
            "git config core.fsmonitor 'touch stolen'; echo evil > .git/hooks/pre-commit",
        ),
        agent::shell_step("mkdir .vscode && echo evil > .vscode/tasks.json && echo hers > file"),
    ];
    let ended = agent::run_steps(&project, &["--sandbox", "--allow", "all"], &steps).expect_code(0);
    let answers = agent::read_responses(&project);
    assert!(
        answers.iter().all(|answer| answer["code"] == 0),
        "{answers:?} {git:?}"
    );
    assert_eq!(project.read_file(".git/config"), config);
    assert!(!project.file(".git/hooks/pre-commit").exists());
    assert!(!project.file(".vscode").exists());
    assert_eq!(project.read_file("file"), "hers\n");
    project.run_shell("git status").expect_code(0);
    assert!(!project.file("stolen").exists());
    // The person is told, and can look at it.
    let line = ended.find_line("acp reverted 3 changes");
    let kept = line.rsplit("saved in ").next().unwrap();
    let kept = std::fs::read_to_string(Path::new(kept).join("undone__.git__hooks__pre-commit"));
    assert_eq!(kept.unwrap(), "evil\n");
}

#[test]
fn chat_reverts_trusted_files_when_the_turn_ends() {
    if !is_sandbox_available() {
        return;
    }
    let project = TestProject::new();
    agent::write_agent_config(&project, &[agent::shell_step("echo evil > .envrc")]);
    let answers = project.path_outside("answers");
    let line = format!(
        "{ACP} chat --sandbox --writable {} --agent hostile go",
        answers.display()
    );
    let mut screen = ChatScreen::start(&project, 160, 30, &line);
    screen.wait_for("acp reverted a change");
    assert_eq!(agent::read_responses(&project)[0]["code"], 0);
    assert!(!project.file(".envrc").exists());
}
