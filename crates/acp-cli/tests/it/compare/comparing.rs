//! Tests of what is shown about the agents, and of what remains when they fail or are interrupted.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use super::{ComparedProject, changed};
use crate::common::CommandResult;
use crate::common::patient::TimedReader;

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
