//! Tests of `acp compare`: what agents get, what is shown, and that the user's files stay as they are until the user takes
//! a result over.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::common::patient::TimedReader;
#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, CommandResult, TestProject};

/// An agent that runs the shell commands in its first argument when it gets a prompt, and then ends the turn. Its second
/// argument is the session that it opens. `received` is what it has received last.
const AGENT: &str = r#"
end() { printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$prompt"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
say() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
while read -r received; do
  case $received in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":1,"result":%s}\n' "$2";;
    *'"session/set_config_option"'*)
      model=$(printf '%s' "$received" | sed 's/^.*"value":"\([a-z]*\)".*$/\1/')
      echo '{"jsonrpc":"2.0","id":2,"result":{"configOptions":[]}}';;
    *'"session/prompt"'*)
      prompt=$(printf '%s' "$received" | sed 's/^.*"id":\([0-9]*\),"method".*$/\1/')
      eval "$1"
      end;;
  esac
done
"#;

const SESSION: &str = r#"{"sessionId":"s"}"#;

/// A project in a git repository, with scripted agents.
struct ComparedProject {
    project: TestProject,
    /// Where `acp` puts temporary files.
    temporary: PathBuf,
    /// A directory that agents can write to, and that is not part of the project.
    outside: PathBuf,
}

/// The type, permissions and contents of each file.
type FileStates = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl ComparedProject {
    /// Creates a project with one commit.
    fn new() -> Self {
        let compared = Self::without_repository();
        compared.git(&["init", "--quiet", "--initial-branch=main"]);
        compared.commit();
        compared
    }

    fn without_repository() -> Self {
        let project = TestProject::new();
        let temporary = project.path_outside("temporary");
        let outside = project.path_outside("outside");
        std::fs::write(outside.join("agent.sh"), AGENT).unwrap();
        Self {
            project,
            temporary,
            outside,
        }
    }

    /// Sets which agents there are, and what each does.
    fn agents(&self, agents: &[(&str, &str)]) -> &Self {
        self.agents_with_session(agents, SESSION)
    }

    fn agents_with_session(&self, agents: &[(&str, &str)], session: &str) -> &Self {
        let script = self.outside.join("agent.sh");
        let agents = agents.iter().map(|(name, does)| {
            let does = does.replace("OUTSIDE", self.outside.to_str().unwrap());
            let does = does.replace("PROJECT", self.project.path().to_str().unwrap());
            let command = json!(["sh", script, does, session]);
            format!("[agents.{name}]\ncommand = {command}\n")
        });
        let config: String = agents.collect();
        self.project.write_config("config.toml", &config);
        self
    }

    /// Adds what belongs to this test to a command.
    fn isolate<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("TMPDIR", &self.temporary)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.acp_command(&["compare"]);
        self.isolate(command.args(args));
        command
    }

    /// Runs `acp compare` with the agents `a` and `b`, which may do everything.
    fn compare(&self, args: &[&str]) -> CommandResult {
        let usual = ["--agent", "a", "--agent", "b", "--allow", "all"];
        self.compare_only(&[&usual, args, &["go"]].concat())
    }

    fn compare_only(&self, args: &[&str]) -> CommandResult {
        CommandResult::from_output(self.command(args).output().unwrap())
    }

    /// Runs `acp compare` and returns its JSON.
    fn compare_json(&self, args: &[&str]) -> Value {
        let result = self.compare(&[&["--format", "json"], args].concat());
        let result = result.expect_code(0);
        serde_json::from_str(&result.stdout).unwrap()
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let mut command = self.project.program_command("git");
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let output = self
            .isolate(command.args(identity).args(args))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "A commit"]);
    }

    /// Returns all files of the project, including those in `.git`.
    fn files(&self) -> FileStates {
        read_files(self.project.path())
    }

    /// Asserts that nothing is left in the temporary directory.
    #[track_caller]
    fn expect_clean(&self) {
        let left = std::fs::read_dir(&self.temporary).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
    }
}

fn read_files(root: &Path) -> FileStates {
    let mut files = FileStates::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let contents = if metadata.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                target.into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                directories.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.insert(name, (metadata.mode(), contents));
        }
    }
    files
}

/// Returns the paths of the changed files and how they were changed.
fn changed(agent: &Value) -> Vec<String> {
    let files = agent["files"].as_array().unwrap();
    let shown = files.iter().map(|file| {
        format!(
            "{} {}",
            file["kind"].as_str().unwrap(),
            file["path"].as_str().unwrap()
        )
    });
    shown.collect()
}

#[test]
fn agents_start_from_the_users_files_and_do_not_touch_them() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    project.write_file(".gitignore", "secret\n");
    project.write_file("old.txt", "old\n");
    compared.commit();
    compared.git(&["tag", "v1"]);
    compared.git(&["remote", "add", "origin", "https://example.org/x"]);
    // Stashed, staged, changed, removed, untracked and ignored.
    project.write_file("notes.txt", "stashed\n");
    compared.git(&["stash", "--quiet"]);
    project.write_file("staged.txt", "staged\n");
    compared.git(&["add", "staged.txt"]);
    project.write_file("notes.txt", "changed\n");
    project.write_file("new file", "untracked\n");
    project.write_file("secret", "ignored\n");
    std::fs::remove_file(project.file("old.txt")).unwrap();
    let look = "cat notes.txt staged.txt 'new file' > OUTSIDE/seen; ls -A > OUTSIDE/list; \
        git status --short > OUTSIDE/status; git remote > OUTSIDE/remotes; git log --format=%s v1 > OUTSIDE/log";
    // What would touch the repository if it were the user's.
    let own = "git add -A; git -c user.name=B -c user.email=b commit -q -m mine; git branch other; git tag v2; \
        echo more >> notes.txt; git stash -q; git stash apply -q; git gc -q; rm 'new file'";
    compared.agents(&[("a", look), ("b", own)]);
    let before = compared.files();
    let compared_agents = compared.compare_json(&[])["agents"].take();
    assert_eq!(compared.files(), before);
    compared.expect_clean();

    let seen = |name: &str| std::fs::read_to_string(compared.outside.join(name)).unwrap();
    assert_eq!(seen("seen"), "changed\nstaged\nuntracked\n");
    assert_eq!(
        seen("list"),
        ".git\n.gitignore\nnew file\nnotes.txt\nstaged.txt\n"
    );
    assert_eq!(
        seen("status"),
        " M notes.txt\n D old.txt\nA  staged.txt\n?? \"new file\"\n"
    );
    assert_eq!(seen("remotes"), "");
    assert_eq!(seen("log"), "A commit\nA commit\n");
    assert_eq!(changed(&compared_agents[0]), [""; 0]);
    assert_eq!(
        changed(&compared_agents[1]),
        ["deleted new file", "modified notes.txt"]
    );
}

#[test]
fn table_shows_what_each_agent_did() {
    let compared = ComparedProject::new();
    let reports = r#"{\"sessionUpdate\":\"usage_update\",\"used\":1234,\"size\":5000,\"cost\":{\"amount\":0.5,\"currency\":\"USD\"}}"#;
    let a = format!("echo 4th >> notes.txt; say done; update \"{reports}\"");
    let b = "rm notes.txt; printf 'x\\000' > \"$(printf 'b\\033[31m')\"";
    compared.agents(&[("a", &a), ("b", b)]);
    let result = compared.compare(&["--diff"]).expect_code(0);
    let lines: Vec<&str> = result.stdout.lines().collect();
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        words(0),
        ["agent", "state", "time", "tokens", "cost", "files", "lines"]
    );
    let row = words(1);
    assert_eq!(row[..2], ["a", "ended"]);
    assert_eq!(row[4..], ["1234", "0.50", "USD", "1", "+1", "-0"]);
    assert_eq!(words(2)[4..], ["-", "-", "2", "+0", "-3"]);
    assert!(!result.stdout.contains('\u{1b}'), "{}", result.stdout);
    // The name of the file has lost its control sequence.
    result.expect_stderr("acp: b: ended").expect_stdout(&[
        "\nb: b A (binary)\n",
        "notes.txt: a M +1 -0, b D +0 -3\n",
        "=== a",
        "+4th",
        "=== b",
        "-first",
    ]);

    let json = compared.compare_json(&[]);
    let agent = &json["agents"][0];
    assert_eq!(agent["label"], "a");
    assert_eq!(agent["state"], "ended");
    assert_eq!(agent["answer"], "done");
    assert_eq!(agent["tokens"], 1234);
    assert_eq!(agent["cost"], json!({"amount": 0.5, "currency": "USD"}));
    let file = json!({"path": "notes.txt", "kind": "modified", "added": 1, "removed": 0});
    assert_eq!(agent["files"], json!([file]));
    assert!(agent["durationMs"].is_u64());
    for absent in ["diff", "directory"] {
        assert_eq!(agent.get(absent), None);
    }
    assert_eq!(json["applied"], Value::Null);
}

#[test]
fn all_kinds_of_changes_can_be_taken_over() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir_all(project.file("kept/deep")).unwrap();
    for name in [
        "kept/deep/gone",
        "tool",
        "becomes-link",
        "becomes-directory",
    ] {
        project.write_file(name, "text\n");
    }
    project.write_file("binary", "\0old");
    symlink("tool", project.file("link")).unwrap();
    compared.commit();
    // Staged, and also changed since.
    project.write_file("notes.txt", "staged\n");
    compared.git(&["add", "notes.txt"]);
    project.write_file("notes.txt", "staged\nand more\n");
    let index = std::fs::read(project.file(".git/index")).unwrap();
    let does = "rm -r kept; chmod +x tool; printf 'new\\000\\001' > binary; ln -sf notes.txt link; \
        rm becomes-link; ln -s tool becomes-link; rm becomes-directory; mkdir becomes-directory; \
        echo x > becomes-directory/x; mkdir -p new/dir; printf 'no newline' > new/dir/file; \
        echo 3rd >> notes.txt; printf 'a\\r\\nb\\r\\n' > crlf";
    compared.agents(&[("a", does), ("b", "echo other > notes.txt")]);
    let before = compared.files();
    compared
        .compare(&["--apply", "a"])
        .expect_code(0)
        .expect_stderr("took over the changes of a");
    compared.expect_clean();
    let mut expected = before;
    let regular = expected[Path::new("tool")].0;
    let link = expected[Path::new("link")].0;
    let directory = expected[Path::new("kept")].0;
    expected.retain(|path, _| !path.starts_with("kept"));
    let files: [(&str, u32, &[u8]); 11] = [
        ("tool", regular | 0o111, b"text\n"),
        ("binary", regular, b"new\0\x01"),
        ("link", link, b"notes.txt"),
        ("becomes-link", link, b"tool"),
        ("becomes-directory", directory, b""),
        ("becomes-directory/x", regular, b"x\n"),
        ("new", directory, b""),
        ("new/dir", directory, b""),
        ("new/dir/file", regular, b"no newline"),
        ("notes.txt", regular, b"staged\nand more\n3rd\n"),
        ("crlf", regular, b"a\r\nb\r\n"),
    ];
    for (name, mode, contents) in files {
        expected.insert(name.into(), (mode, contents.to_owned()));
    }
    assert_eq!(compared.files(), expected);
    assert_eq!(std::fs::read(project.file(".git/index")).unwrap(), index);
}

#[test]
fn changes_through_links_are_not_taken_over() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir(project.file("sub")).unwrap();
    project.write_file("sub/file", "text\n");
    project.write_file(".gitignore", "out\n");
    compared.commit();
    // The link is the change, not what is behind it.
    let does = "rm -r sub; ln -s OUTSIDE sub; echo changed > sub/file";
    compared.agents(&[("a", does), ("b", "true")]);
    let json = compared.compare_json(&["--apply", "a"]);
    assert_eq!(
        changed(&json["agents"][0]),
        ["added sub", "deleted sub/file"]
    );
    let target = std::fs::read_link(project.file("sub")).unwrap();
    assert_eq!(target, compared.outside);
    // A link that only the user has.
    symlink(&compared.outside, project.file("out")).unwrap();
    let does = "rm .gitignore; mkdir out; echo made > out/made";
    compared.agents(&[("a", does), ("b", "true")]);
    compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr("affected file 'out/made' is beyond a symbolic link");
    assert!(!compared.outside.join("made").exists());
    assert!(project.file(".gitignore").exists());
}

#[test]
fn nothing_is_taken_over_if_the_user_has_changed_a_file() {
    let compared = ComparedProject::new();
    compared.project.write_file("other.txt", "other\n");
    compared.commit();
    // The agent plays the user.
    let a = "echo mine >> other.txt; echo mine >> notes.txt; echo of the user >> PROJECT/notes.txt";
    compared.agents(&[("a", a), ("b", "rm other.txt")]);
    let result = compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr(
            "the changes of a were not taken over: changed since the comparison began: notes.txt;",
        );
    assert_eq!(compared.project.read_file("other.txt"), "other\n");
    let notes = "first\nsecond\nthird\nof the user\n";
    assert_eq!(compared.project.read_file("notes.txt"), notes);
    let line = result.find_line("the changes are in ");
    let patch = line.split("the changes are in ").nth(1).unwrap();
    let text = std::fs::read_to_string(patch).unwrap();
    assert!(
        text.contains("diff --git a/other.txt b/other.txt"),
        "{text}"
    );
    assert!(text.contains("+mine"), "{text}");
    std::fs::remove_file(patch).unwrap();
    compared.expect_clean();

    // A new file that is in the way, and that git ignores. Nothing is applied, not even the other change.
    compared.project.write_file(".gitignore", "made\n");
    compared.project.write_file("made", "of the user\n");
    compared.agents(&[("a", "rm .gitignore; echo theirs > made"), ("b", "true")]);
    compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr("made: already exists in working directory");
    assert_eq!(compared.project.read_file("made"), "of the user\n");
    assert_eq!(compared.project.read_file(".gitignore"), "made\n");

    // Other files do not matter.
    let a = "echo mine >> other.txt; echo again >> PROJECT/notes.txt";
    compared.agents(&[("a", a), ("b", "true")]);
    compared.compare(&["--apply", "a"]).expect_code(0);
    assert_eq!(compared.project.read_file("other.txt"), "other\nmine\n");
}

#[test]
fn agent_that_fails_does_not_stop_the_others() {
    let compared = ComparedProject::new();
    compared.agents(&[
        ("a", "echo partly > made; exit 7"),
        ("b", "echo done > made"),
    ]);
    let before = compared.files();
    let result = compared.compare(&["--format", "json", "--apply", "a"]);
    let result = result
        .expect_code(1)
        .expect_stderr("the changes of a were not taken over: its turn has not ended well (failed); the changes are in ");
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    let agents = &json["agents"];
    assert_eq!(agents[0]["state"], "failed");
    assert_eq!(agents[0]["exitCode"], 3);
    let error = agents[0]["error"].as_str().unwrap();
    assert!(error.contains("the agent exited: exit code 7"), "{error}");
    assert_eq!(changed(&agents[0]), ["added made"]);
    assert_eq!(agents[1]["state"], "ended");
    assert_eq!(compared.files(), before);
    std::fs::remove_file(json["patch"].as_str().unwrap()).unwrap();

    compared.compare(&[]).expect_code(0).expect_stdout(&[
        "\na      failed",
        "\nb      ended",
        "a: the agent exited",
    ]);
    compared.agents(&[("a", "exit 7"), ("b", "exit 7")]);
    compared
        .compare(&[])
        .expect_code(3)
        .expect_stderr("no agent has finished its turn");
    let is_cancelled = r#"read -r cancel; end() { :; }
        printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}\n' "$prompt""#;
    compared.agents(&[("a", "exit 7"), ("b", is_cancelled)]);
    compared
        .compare(&["--timeout", "1"])
        .expect_code(1)
        .expect_stdout(&["b      timed out"]);
    compared.expect_clean();
}

#[test]
fn denied_actions_are_shown() {
    let compared = ComparedProject::new();
    let bundled = ["--agent", "acp", "--agent", "acp", "/run touch made"];
    compared
        .compare_only(&bundled)
        .expect_code(8)
        .expect_stdout(&[
            "acp    denied (1)",
            "acp-2  denied (1)",
            "acp: denied: Run `touch made` (by --allow reads)",
        ])
        .expect_stderr("some actions were denied, because agents cannot ask here; see --allow");
    compared
        .compare_only(&[&["--allow", "ask"], &bundled[..]].concat())
        .expect_code(2)
        .expect_stderr("--allow ask");
    compared
        .compare_only(&[&["--allow", "all", "--apply", "acp"], &bundled[..]].concat())
        .expect_code(0);
    assert!(compared.project.file("made").exists());
}

#[test]
fn tests_run_in_each_copy() {
    let compared = ComparedProject::new();
    compared.agents(&[("a", "echo good > state"), ("b", "echo bad > state")]);
    let test = "echo made > by-the-test; echo key $SOME_API_KEY.; echo state: >&2; cat state; grep -q good state";
    let mut command = compared.command(&["--agent", "a", "--agent", "b", "--allow", "all"]);
    command.args(["--test", test, "--format", "json", "go"]);
    command.env("SOME_API_KEY", "secret");
    let result = CommandResult::from_output(command.output().unwrap()).expect_code(0);
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    for (agent, code, state) in [(0, 0, "good"), (1, 1, "bad")] {
        let agent = &json["agents"][agent];
        assert_eq!(agent["test"]["exitCode"], code);
        assert_eq!(
            agent["test"]["output"],
            format!("key .\nstate:\n{state}\n"),
            "no secrets, and both streams in order"
        );
        assert_eq!(changed(agent), ["added state"]);
    }
    compared
        .compare(&["--test", test])
        .expect_code(0)
        .expect_stdout(&[
            "tests",
            "passed",
            "failed (1)",
            "b: tests: failed (1)",
            "| bad",
        ]);
    // With a time limit. What the tests have started ends, too.
    let pid = compared.outside.join("pid");
    let test = format!("sleep 1000 & echo $! > {}; wait", pid.display());
    let json = compared.compare_json(&["--jobs", "1", "--test", &test, "--test-timeout", "1"]);
    assert_eq!(json["agents"][0]["test"]["isTimeout"], true);
    assert_eq!(json["agents"][0]["test"]["exitCode"], Value::Null);
    assert!(!is_running(&pid));
    compared.expect_clean();
}

/// Returns `true` if the process whose id is in the file is running.
fn is_running(file: &Path) -> bool {
    let id: i32 = std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // One that has ended but that nobody has asked after (a zombie) does not run.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    let is_zombie = state.trim_start().starts_with('Z');
    !is_zombie && test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
}

#[test]
fn judge_scores_the_results() {
    let compared = ComparedProject::new();
    compared.agents(&[("a", "say one; echo 4th >> notes.txt"), ("b", "say two")]);
    let got = compared.outside.join("got");
    let judge = format!(
        "cat > {}; echo '{{\"scores\": {{\"a\": 2.5, \"b\": 1}}, \"reason\": \"because\\u001b[2J\"}}'",
        got.display()
    );
    compared
        .compare(&["--judge", &judge])
        .expect_code(0)
        .expect_stdout(&["score", "2.5", "1\n", "judge: because\n"]);
    let got: Value = serde_json::from_slice(&std::fs::read(got).unwrap()).unwrap();
    assert_eq!(got["prompt"], "go");
    assert_eq!(got["results"][0]["label"], "a");
    assert_eq!(got["results"][0]["answer"], "one");
    let diff = got["results"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("\n+4th\n"), "{diff}");
    assert_eq!(got["results"][1]["diff"], "");
    assert_eq!(got["results"][1]["test"], Value::Null);

    for (judge, error) in [
        ("echo good", "the answer is not {\"scores\""),
        ("echo why >&2; exit 3", "exit code 3\n  why"),
        ("echo '{\"scores\": {\"c\": 1}}'", "there is no agent c"),
        ("head -c 2000000 /dev/zero", "the answer is too long"),
    ] {
        compared
            .compare(&["--judge", judge])
            .expect_code(0)
            .expect_stdout(&["a      ended", "b      ended", "the judge failed: ", error]);
    }
}

#[test]
fn agents_run_at_the_same_time_but_not_too_many() {
    let compared = ComparedProject::new();
    for name in ["one", "two"] {
        let made = Command::new("mkfifo")
            .arg(compared.outside.join(name))
            .status();
        assert!(made.unwrap().success());
    }
    // Each waits for the other.
    compared.agents(&[
        ("a", "echo > OUTSIDE/one; read x < OUTSIDE/two"),
        ("b", "read x < OUTSIDE/one; echo > OUTSIDE/two"),
    ]);
    compared.compare(&[]).expect_code(0);
    let alone = "mkdir OUTSIDE/lock || exit 1; git status > OUTSIDE/out; rmdir OUTSIDE/lock";
    compared.agents(&[("a", alone), ("b", alone)]);
    let json = compared.compare_json(&["--jobs", "1"]);
    for agent in 0..2 {
        assert_eq!(json["agents"][agent]["state"], "ended");
    }
}

#[test]
fn interrupted_comparison_leaves_nothing_behind() {
    let compared = ComparedProject::new();
    let fifo = compared.outside.join("started");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let hangs = "echo partly > made; sleep 1000 & echo $! > OUTSIDE/pid; echo started > OUTSIDE/started; wait";
    compared.agents(&[("a", "echo whole > made"), ("b", hangs)]);
    let before = compared.files();
    let usual = [
        "--agent", "a", "--agent", "b", "--allow", "all", "--jobs", "1", "go",
    ];
    let mut command = compared.command(&usual);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = BufReader::new(TimedReader::new(FifoReader::new(fifo)));
    let mut line = String::new();
    started.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let result = CommandResult::from_output(child.wait_with_output().unwrap());
    // What is known by then is shown.
    result
        .expect_code(130)
        .expect_stdout(&["a      ended", "b      cancelled"]);
    assert!(!is_running(&compared.outside.join("pid")));
    assert_eq!(compared.files(), before);
    compared.expect_clean();
}

/// Reads a FIFO. Opening it waits for a writer, so it is opened by the first read.
struct FifoReader {
    path: PathBuf,
    open: Option<std::fs::File>,
}

impl FifoReader {
    fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }
}

impl Read for FifoReader {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.open.is_none() {
            self.open = Some(std::fs::File::open(&self.path)?);
        }
        self.open.as_mut().unwrap().read(buf)
    }
}

#[test]
fn killed_comparison_leaves_the_repository_as_it_was() {
    let compared = ComparedProject::new();
    let fifo = compared.outside.join("started");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let hangs = "git stash -q; echo started > OUTSIDE/started; read -r more";
    compared.agents(&[("a", hangs)]);
    let before = compared.files();
    let mut child = compared
        .command(&["--agent", "a", "--allow", "all", "go"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut started = BufReader::new(TimedReader::new(FifoReader::new(fifo)));
    started.read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(compared.files(), before);
    let worktrees = compared.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
}

#[test]
fn what_an_agent_configures_in_git_does_not_run() {
    let compared = ComparedProject::new();
    let program = compared.outside.join("program");
    std::fs::write(&program, "#!/bin/sh\ntouch \"$0.ran\"\ncat\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let commit = compared.git(&["rev-parse", "HEAD"]);
    let module = format!("160000,{},module", commit.trim());
    compared.git(&["update-index", "--add", "--cacheinfo", &module]);
    std::fs::create_dir(compared.project.file("module")).unwrap();
    // In the copy, in a nested repository, in a submodule, and in a .git that leads elsewhere.
    let configure = "for key in core.fsmonitor diff.external filter.x.clean filter.x.smudge diff.x.textconv core.pager; do \
        git config $key OUTSIDE/program; done; git config core.hooksPath OUTSIDE/hooks";
    // `git status` and `git add` of the copy would run the filter of the submodule.
    let does = format!(
        "git init -q sub; cd sub; echo x > x; git add x; git -c user.name=B -c user.email=b commit -q -m x; \
        {configure}; echo y > x; cd ..; \
        git init -q module; cd module; git fetch -q .. HEAD; git checkout -q FETCH_HEAD; \
        {configure}; echo '* filter=x' > .gitattributes; tr a-y b-z < notes.txt > OUTSIDE/out; \
        cat OUTSIDE/out > notes.txt; cd ..; \
        git -c core.fsmonitor=false -c core.hooksPath=/dev/null status < /dev/null > OUTSIDE/out 2>&1; \
        test -e OUTSIDE/program.ran && say armed; \
        {configure}; echo '* filter=x diff=x' > .gitattributes; \
        mkdir -p OUTSIDE/hooks; for hook in post-index-change post-checkout reference-transaction; do \
        cp OUTSIDE/program OUTSIDE/hooks/$hook; done; \
        rm -f OUTSIDE/program.ran OUTSIDE/hooks/*.ran; mv .git OUTSIDE/git; echo \"gitdir: OUTSIDE/git\" > .git; \
        echo 4th >> notes.txt"
    );
    compared.agents(&[("a", &does), ("b", "true")]);
    let json = compared.compare_json(&["--diff", "--apply", "a"]);
    assert_eq!(json["agents"][0]["answer"], "armed");
    let left = std::fs::read_dir(&compared.outside).unwrap();
    let hooks = std::fs::read_dir(compared.outside.join("hooks")).unwrap();
    let names = left.chain(hooks).map(|entry| entry.unwrap().file_name());
    let ran: Vec<_> = names
        .filter(|name| name.to_string_lossy().ends_with(".ran"))
        .collect();
    assert!(ran.is_empty(), "{ran:?}");
    assert_eq!(
        changed(&json["agents"][0]),
        ["added .gitattributes", "modified notes.txt"]
    );
    assert_eq!(json["applied"], "a");
    assert!(!compared.project.file("sub").exists());
}

#[test]
fn repository_without_commits_can_be_compared() {
    let compared = ComparedProject::without_repository();
    compared.git(&["init", "--quiet", "--initial-branch=main"]);
    compared.agents(&[
        (
            "a",
            "echo 4th >> notes.txt; git status --short > OUTSIDE/status",
        ),
        ("b", "true"),
    ]);
    let before = compared.files();
    compared.compare(&[]).expect_code(0);
    assert_eq!(compared.files(), before);
    let status = std::fs::read_to_string(compared.outside.join("status")).unwrap();
    assert_eq!(status, "?? notes.txt\n");
    compared.compare(&["--apply", "a"]).expect_code(0);
    let notes = "first\nsecond\nthird\n4th\n";
    assert_eq!(compared.project.read_file("notes.txt"), notes);
}

#[test]
fn repository_with_conflicts_can_be_compared() {
    let compared = ComparedProject::new();
    compared.git(&["switch", "--quiet", "--create", "other"]);
    compared.project.write_file("notes.txt", "theirs\n");
    compared.commit();
    compared.git(&["switch", "--quiet", "main"]);
    compared.project.write_file("notes.txt", "ours\n");
    compared.commit();
    let mut merge = compared.project.program_command("git");
    let merge = merge.args(["-c", "user.name=A", "-c", "user.email=a", "merge", "other"]);
    assert!(!compared.isolate(merge).output().unwrap().status.success());
    assert!(compared.project.read_file("notes.txt").contains("=====\n"));
    compared.agents(&[
        (
            "a",
            "grep -v '[<=>]' notes.txt > resolved; mv resolved notes.txt",
        ),
        ("b", "true"),
    ]);
    let index = std::fs::read(compared.project.file(".git/index")).unwrap();
    compared.compare(&["--apply", "a"]).expect_code(0);
    assert_eq!(compared.project.read_file("notes.txt"), "ours\ntheirs\n");
    assert_eq!(
        std::fs::read(compared.project.file(".git/index")).unwrap(),
        index
    );
}

#[test]
fn worktree_subdirectory_and_unusual_index_are_respected() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir_all(project.file("sub/dir")).unwrap();
    project.write_file("sub/dir/file", "text\n");
    project.write_file("sparse", "text\n");
    project.write_file("assumed", "text\n");
    compared.commit();
    compared.git(&["update-index", "--split-index"]);
    compared.git(&["update-index", "--skip-worktree", "sparse"]);
    compared.git(&["update-index", "--assume-unchanged", "assumed"]);
    std::fs::remove_file(project.file("sparse")).unwrap();
    project.write_file("assumed", "changed\n");
    let does = "pwd > OUTSIDE/pwd; ls .. ../.. > OUTSIDE/list; cat ../../assumed >> file; echo more >> ../../assumed";
    compared.agents(&[("a", does), ("b", "true")]);
    let before = compared.files();
    let json = compared.compare_json(&["--cwd", "sub/dir"]);
    assert_eq!(compared.files(), before);
    assert_eq!(
        changed(&json["agents"][0]),
        ["modified assumed", "modified sub/dir/file"]
    );
    let pwd = std::fs::read_to_string(compared.outside.join("pwd")).unwrap();
    assert!(pwd.ends_with("/sub/dir\n"), "{pwd}");
    let list = std::fs::read_to_string(compared.outside.join("list")).unwrap();
    assert!(
        list.contains("assumed") && !list.contains("sparse"),
        "{list}"
    );

    // Variables of a hook, from which a user may have started the command, do not lead elsewhere.
    let other = compared.outside.join("other");
    let mut command = compared.command(&[
        "--agent", "a", "--allow", "all", "--apply", "a", "--cwd", "sub/dir", "go",
    ]);
    command.env("GIT_DIR", &other).env("GIT_INDEX_FILE", &other);
    CommandResult::from_output(command.output().unwrap()).expect_code(0);
    assert_eq!(project.read_file("assumed"), "changed\nmore\n");
    assert_eq!(project.read_file("sub/dir/file"), "text\nchanged\n");
}

#[test]
fn rules_apply_in_the_copies() {
    let compared = ComparedProject::new();
    let rules = "[[rule]]\ndecision = \"deny\"\ncommand = \"touch *\"\n";
    for directory in [".acp", "sub", "sub/.acp"] {
        std::fs::create_dir(compared.project.file(directory)).unwrap();
    }
    compared.project.write_file(".gitignore", ".acp\n");
    compared.commit();
    let run = || {
        let args = [
            "--agent", "acp", "--allow", "all", "--cwd", "sub", "--format", "json",
        ];
        let result = compared.compare_only(&[&args[..], &["/run touch made"]].concat());
        let json: Value = serde_json::from_str(&result.stdout).unwrap();
        json["agents"][0]["files"].clone()
    };
    assert_eq!(run().as_array().unwrap().len(), 1);
    for file in [".acp/permissions.toml", "sub/.acp/permissions.toml"] {
        compared.project.write_file(file, rules);
        assert_eq!(run(), json!([]), "{file}");
        std::fs::remove_file(compared.project.file(file)).unwrap();
    }
}

#[test]
fn agents_and_tests_are_confined_to_their_copies() {
    if let Err(error) = acp_host::Sandbox::new([]) {
        println!("skipped: {error}");
        return;
    }
    let compared = ComparedProject::new();
    let a = "echo 4th >> notes.txt; git add -A; git -c user.name=B -c user.email=b commit -q -m mine && say committed; \
        touch OUTSIDE/made PROJECT/made";
    compared.agents(&[("a", a), ("b", "true")]);
    let test = format!("touch here && ! touch {}/made", compared.outside.display());
    let json = compared.compare_json(&["--sandbox", "--test", &test]);
    assert_eq!(json["agents"][0]["answer"], "committed");
    assert_eq!(changed(&json["agents"][0]), ["modified notes.txt"]);
    assert_eq!(json["agents"][0]["test"]["exitCode"], 0);
    assert!(!compared.outside.join("made").exists());
    assert!(!compared.project.file("made").exists());
    // Only reading, for an agent that does not ask.
    let json = compared.compare_json(&["--sandbox=read-only"]);
    assert_eq!(changed(&json["agents"][0]), [""; 0]);
}

#[test]
fn mistakes_are_reported_before_anything_starts() {
    let compared = ComparedProject::without_repository();
    compared.agents(&[("a", "touch OUTSIDE/ran"), ("b", "touch OUTSIDE/ran")]);
    compared
        .compare(&[])
        .expect_code(2)
        .expect_stderr("not a git repository: ");
    compared.git(&["init", "--quiet", "--bare", "bare"]);
    compared
        .compare(&["--cwd", "bare"])
        .expect_code(2)
        .expect_stderr("a repository without files: ");
    compared.git(&["init", "--quiet"]);
    for (args, error) in [
        (
            &["--apply", "c"][..],
            "--apply c: not one of the agents: a, b",
        ),
        (&["--agent", "missing"], "missing"),
        (&["--cwd", "missing"], "--cwd missing"),
        (
            &["--writable", "."],
            "--writable and --reachable require --sandbox",
        ),
        (&["--timeout", "0"], "--timeout"),
    ] {
        compared.compare(args).expect_code(2).expect_stderr(error);
    }
    compared
        .compare_only(&["--agent", "a"])
        .expect_code(2)
        .expect_stderr("no prompt given");
    compared
        .compare_only(&["go"])
        .expect_code(2)
        .expect_stderr("--agent");
    assert!(!compared.outside.join("ran").exists());
    compared.expect_clean();
}

#[test]
fn same_agent_can_be_compared_with_two_models() {
    let compared = ComparedProject::new();
    let values = json!([{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]);
    let option = json!({
        "id": "llm", "name": "LLM", "category": "model", "type": "select",
        "currentValue": "large", "options": values,
    });
    let session = json!({"sessionId": "s", "configOptions": [option]});
    compared.agents_with_session(&[("a", "say \"model $model\"")], &session.to_string());
    let args = ["--agent", "a", "--agent", "a", "--format", "json", "go"];
    let models = ["--model", "large", "--model", "a-2=small"];
    let result = compared.compare_only(&[&args[..], &models].concat());
    let result = result.expect_code(0);
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    for (number, label, model) in [(0, "a", "large"), (1, "a-2", "small")] {
        let agent = &json["agents"][number];
        assert_eq!(agent["label"], label);
        assert_eq!(agent["answer"], format!("model {model}"));
    }
    let result = compared.compare_only(&[&args[..], &["--model", "a-2=huge"]].concat());
    let result = result.expect_code(0);
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(json["agents"][0]["state"], "ended");
    assert_eq!(json["agents"][1]["exitCode"], 2);
}

#[test]
fn copies_can_be_kept() {
    let compared = ComparedProject::new();
    compared.agents(&[("a", "echo 4th >> notes.txt"), ("b", "true")]);
    let json = compared.compare_json(&["--keep"]);
    let directory = PathBuf::from(json["agents"][0]["directory"].as_str().unwrap());
    let notes = std::fs::read_to_string(directory.join("notes.txt")).unwrap();
    assert_eq!(notes, "first\nsecond\nthird\n4th\n");
    let private = std::fs::metadata(directory.ancestors().nth(2).unwrap()).unwrap();
    assert_eq!(private.mode() & 0o777, 0o700);
}

#[cfg(target_os = "linux")]
fn start_on_terminal(compared: &ComparedProject) -> CommandTerminal {
    let temporary = compared.temporary.display();
    CommandTerminal::start(
        &compared.project,
        &format!(
            "TMPDIR={temporary} GIT_CONFIG_GLOBAL=/dev/null {ACP} compare --agent a --agent b --allow all go"
        ),
    )
}

#[test]
#[cfg(target_os = "linux")]
fn user_chooses_on_a_terminal_what_is_taken_over() {
    let compared = ComparedProject::new();
    let b = "echo 4th >> notes.txt; printf 'hidden \\033[8mtext\\n' > new";
    compared.agents(&[("a", "true"), ("b", b)]);
    let mut terminal = start_on_terminal(&compared);
    terminal.wait_for("number [1-1], or Enter for none: ");
    assert!(
        terminal.seen.contains("1) b (ended, 2 files)"),
        "{}",
        terminal.seen
    );
    terminal.send_keys("2\n");
    terminal.send_keys("1\n");
    terminal.wait_for("apply these changes to your files? [y/N] ");
    for part in ["M +1 -0 notes.txt", "| +4th", r"| +hidden \u{1b}[8mtext"] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert!(!compared.project.file("new").exists());
    terminal.send_keys("y\n");
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("took over the changes of b"), "{screen}");
    assert!(compared.project.file("new").exists());
    compared.expect_clean();
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_taken_over_without_a_clear_answer() {
    let compared = ComparedProject::new();
    compared.agents(&[("a", "echo 4th >> notes.txt"), ("b", "true")]);
    let before = compared.files();
    for (first, second, code) in [
        ("\n", None, 0),
        ("1\n", Some("\n"), 0),
        ("1\n", Some("what\n"), 0),
        ("\u{3}", None, 130),
        ("1\n", Some("\u{3}"), 130),
    ] {
        let mut terminal = start_on_terminal(&compared);
        terminal.wait_for("or Enter for none: ");
        terminal.send_keys(first);
        if let Some(second) = second {
            terminal.wait_for("[y/N] ");
            terminal.send_keys(second);
        }
        terminal.expect_exit(code);
        assert_eq!(compared.files(), before);
        compared.expect_clean();
    }
}
