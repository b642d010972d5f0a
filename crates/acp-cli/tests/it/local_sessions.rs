//! Tests of local live sessions: `--session NAME` on one machine, with servers that start by themselves.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{CommandResult, TestProject};

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command line that waits until the file `go` exists.
pub(crate) const WAIT_FOR_GO: &str =
    "/run touch begun; while [ ! -e go ]; do sleep 0.02; done; echo finished";

/// Runs a check until it returns something.
pub(crate) fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::yield_now();
    }
}

pub(crate) fn wait_for_file(file: &Path) {
    wait_for(&file.display().to_string(), || file.exists().then_some(()));
}

/// Returns the status of the session `build`.
pub(crate) fn status(project: &TestProject) -> Value {
    let shown = project
        .run_shell("acp sessions status build --format json")
        .expect_code(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

/// Returns the process id that a command has printed.
fn pid_in(output: &str) -> String {
    let pids = output.lines().filter_map(|line| line.split_once("pid "));
    let mut pids = pids
        .map(|(_, pid)| pid)
        .filter(|pid| pid.parse::<u32>().is_ok());
    pids.next().unwrap_or_else(|| panic!("{output}")).to_owned()
}

/// Returns the names of the files in the directory of the sockets.
fn live_files(project: &TestProject) -> Vec<String> {
    let files = std::fs::read_dir(project.live_directory()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// A program that is killed at the end of the test.
struct RunningProgram(Child);

impl RunningProgram {
    fn start(mut command: Command) -> Self {
        Self(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    /// Reads the output until a line contains some text.
    fn read_until(&mut self, text: &str) -> String {
        let mut read = String::new();
        for line in BufReader::new(self.0.stdout.as_mut().unwrap()).lines() {
            read.push_str(&line.unwrap());
            read.push('\n');
            if read.contains(text) {
                return read;
            }
        }
        panic!("{text} not in {read}");
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn second_run_uses_the_agent_of_the_first() {
    let project = TestProject::new();
    // The shell that the agent starts is the agent's child.
    let agent_pid = || {
        let run = project.run_shell("acp run --session build --allow all '/run echo pid $PPID'");
        pid_in(&run.expect_code(0).stdout)
    };
    assert_eq!(agent_pid(), agent_pid());
    assert_eq!(live_files(&project).len(), 3, "{:?}", live_files(&project));
    // A run without the server has an agent of its own.
    let other = project
        .run_shell("acp run --no-server --allow all '/run echo pid $PPID'")
        .expect_code(0);
    assert_ne!(pid_in(&other.stdout), agent_pid());
    project
        .run_shell("acp sessions stop")
        .expect_code(0)
        .expect_stdout(&["stopped"]);
    project
        .run_shell("acp sessions status build")
        .expect_code(1)
        .expect_stderr("session not live: build");
    // The session goes on with another process.
    let run = project
        .run_shell("acp run --session build '/read notes.txt'")
        .expect_code(0);
    run.expect_stdout(&["second"]);
}

#[test]
fn server_exits_when_it_is_not_used_and_leaves_nothing_behind() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session build --keep 0 /help")
        .expect_code(0);
    wait_for("only the lock is left", || {
        (live_files(&project) == ["lock"]).then_some(())
    });
    let processes = Command::new("pgrep")
        .args(["-f", &project.live_directory().to_string_lossy()])
        .output()
        .unwrap();
    wait_for("the server has exited", || {
        let found = String::from_utf8(processes.stdout.clone()).unwrap();
        let mut running = found
            .lines()
            .filter(|pid| Path::new("/proc").join(pid).exists());
        running.next().is_none().then_some(())
    });
}

#[test]
fn servers_that_exit_while_runs_come_lose_no_run() {
    let project = TestProject::new();
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let project = &project;
            scope.spawn(move || {
                for turn in 0..15 {
                    project
                        .run_shell(&format!(
                            "acp run --session s{worker} --keep 0 --allow all '/run echo turn {turn}'"
                        ))
                        .expect_code(0)
                        .expect_stdout(&[&format!("turn {turn}")]);
                }
            });
        }
    });
}

#[test]
fn run_in_the_background_is_watched_and_goes_on_without_its_terminal() {
    let project = TestProject::new();
    let begun = project.run_shell(&format!(
        "acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'"
    ));
    let begun = begun.expect_code(0);
    assert_eq!(begun.stdout, "");
    begun.expect_stderr("watch with: acp sessions watch build");
    wait_for_file(&project.file("begun"));
    let running = status(&project);
    assert_eq!(running["name"], "build");
    assert!(
        running["turn"]["text"]
            .as_str()
            .unwrap()
            .contains("touch begun"),
        "{running}"
    );
    assert_eq!(running["turn"]["client"], "acp run");
    let mut watching = RunningProgram::start(project.acp_command(&["sessions", "watch", "build"]));
    watching.read_until("touch begun");
    assert!(!project.file("go").exists());
    project.write_file("go", "");
    watching.read_until("finished");
    wait_for("the turn ends", || {
        status(&project)["turn"].is_null().then_some(())
    });
}

#[test]
fn watcher_sees_prompts_questions_and_failed_turns() {
    let project = TestProject::new();
    let line = format!("acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'");
    project.run_shell(&line).expect_code(0);
    let mut command = project.acp_command(&["sessions", "watch", "build"]);
    command.stderr(Stdio::piped());
    let mut watching = RunningProgram(command.stdout(Stdio::piped()).spawn().unwrap());
    watching.read_until("> /run touch begun");
    let mut notes = BufReader::new(watching.0.stderr.take().unwrap()).lines();
    // Nobody can answer this.
    let line = "acp run --session build --no-wait --allow ask '/run touch made'";
    let asking = project.run_shell(line);
    project.write_file("go", "");
    watching.read_until("> /run touch made");
    let note = notes.find(|note| note.as_ref().unwrap().contains("waits for an answer"));
    let note = note.unwrap_or_else(|| panic!("{asking:?}")).unwrap();
    assert_eq!(note, "acp: the agent waits for an answer: Run `touch made`");
}

/// An agent whose turns fail, once the file `go` exists.
const FAILING_AGENT: &str = r#"while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
    case $line in
    *'"initialize"'*) answer='"result":{"protocolVersion":1}' ;;
    *'"session/new"'*) answer='"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        while [ ! -e go ]; do sleep 0.02; done
        answer='"error":{"code":-32603,"message":"model overloaded"}' ;;
    *) answer='"result":{}' ;;
    esac
    [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

#[test]
fn watcher_sees_that_a_turn_failed() {
    let project = TestProject::new();
    project.write_file("agent.sh", FAILING_AGENT);
    project
        .run_shell("acp run --session build --no-wait 'fix it' -- sh agent.sh")
        .expect_code(0);
    let watch = ["sessions", "watch", "build", "--", "sh", "agent.sh"];
    let mut command = project.acp_command(&watch);
    command.stderr(Stdio::piped());
    let mut watching = RunningProgram(command.stdout(Stdio::piped()).spawn().unwrap());
    watching.read_until("> fix it");
    project.write_file("go", "");
    let notes = BufReader::new(watching.0.stderr.take().unwrap()).lines();
    let mut notes = notes.map(|note| note.unwrap());
    let failed = notes.find(|note| note.contains("the turn failed"));
    assert_eq!(
        failed.as_deref(),
        Some("acp: the turn failed: model overloaded")
    );
}

#[test]
fn errors_before_the_prompt_is_accepted_are_those_of_every_run() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session build --no-wait x -- ./does-not-exist")
        .expect_code(3)
        .expect_stderr("does-not-exist");
    project
        .run_shell("acp run --session build --no-wait --attach nothing x")
        .expect_code(2)
        .expect_stderr("nothing");
    project
        .run_shell("acp run --no-wait x")
        .expect_code(2)
        .expect_stderr("--session");
    let agent = "sh -c 'echo no key >&2; exit 7'";
    project
        .run_shell(&format!("acp run --session build x -- {agent}"))
        .expect_code(3)
        .expect_stderr("no key");
}

#[test]
fn prompts_are_queued_shown_moved_and_taken_back() {
    let project = TestProject::new();
    let line = format!("acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'");
    project.run_shell(&line).expect_code(0);
    wait_for_file(&project.file("begun"));
    for (position, text) in ["second", "third", "fourth"].into_iter().enumerate() {
        let line =
            format!("acp run --session build --no-wait --allow all '/run echo {text} >> order'");
        project.run_shell(&line).expect_code(0);
        let queue = status(&project)["queue"].clone();
        assert_eq!(queue.as_array().unwrap().len(), position + 1, "{queue}");
    }
    let queue = status(&project)["queue"].clone();
    let number = |at: usize| queue[at]["prompt"].as_u64().unwrap();
    let shown = project.run_shell("acp sessions queue build").expect_code(0);
    assert!(
        shown.stdout.lines().nth(1).unwrap().contains("echo third"),
        "{shown:?}"
    );
    let moved = project
        .run_shell(&format!("acp sessions queue build --first {}", number(2)))
        .expect_code(0);
    assert!(
        moved.stdout.lines().next().unwrap().contains("echo fourth"),
        "{moved:?}"
    );
    let taken = project
        .run_shell(&format!(
            "acp sessions queue build --take-back {}",
            number(1)
        ))
        .expect_code(0);
    assert!(!taken.stdout.contains("echo third"), "{taken:?}");
    project
        .run_shell(&format!(
            "acp sessions queue build --take-back {}",
            number(1)
        ))
        .expect_code(1)
        .expect_stderr("is not waiting in the queue");
    // This run waits for the others, and shows only its own turn.
    let last = project.shell_command("acp run --session build --allow all '/run echo last'");
    let last = {
        let mut last = last;
        last.stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    wait_for("the last prompt is queued", || {
        let queue = status(&project)["queue"].clone();
        queue.to_string().contains("echo last").then_some(())
    });
    project.write_file("go", "");
    let last = CommandResult::from_output(last.wait_with_output().unwrap()).expect_code(0);
    assert!(last.stdout.starts_with("* Run `echo last`"), "{last:?}");
    assert_eq!(project.read_file("order"), "fourth\nsecond\n");
}

/// Starts a run in the session `build` that waits in the queue.
fn queue_run(project: &TestProject, options: &str, prompt: &str) -> Child {
    let line = format!("exec acp run --session build --allow all {options} '{prompt}'");
    let mut run = project.shell_command(&line);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    wait_for("the prompt is queued", || {
        let queue = status(project)["queue"].to_string();
        queue.contains(prompt).then_some(())
    });
    run
}

#[test]
fn queued_run_shows_nothing_of_the_turn_after_its_own() {
    let project = TestProject::new();
    let line = format!("acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'");
    project.run_shell(&line).expect_code(0);
    wait_for_file(&project.file("begun"));
    let runs = ["own", "other", "last"].map(|name| {
        let output = format!("--format quiet --output {name}.json");
        queue_run(&project, &output, &format!("/run echo {name}"))
    });
    project.write_file("go", "");
    for (run, name) in runs.into_iter().zip(["own", "other", "last"]) {
        let run = CommandResult::from_output(run.wait_with_output().unwrap()).expect_code(0);
        let result: Value =
            serde_json::from_str(&project.read_file(&format!("{name}.json"))).unwrap();
        let calls = result["toolCalls"].as_array().unwrap();
        assert_eq!(calls.len(), 1, "{result:#}");
        assert_eq!(calls[0]["title"], format!("Run `echo {name}`"));
        for other in ["own", "other", "last"]
            .into_iter()
            .filter(|other| *other != name)
        {
            assert!(!run.stdout.contains(&format!("echo {other}")), "{run:?}");
        }
    }
}

#[test]
fn ending_a_queued_run_leaves_the_running_turn_alone() {
    let project = TestProject::new();
    let line = format!("acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'");
    project.run_shell(&line).expect_code(0);
    wait_for_file(&project.file("begun"));
    let run = queue_run(&project, "--output queued.json", "/run touch made");
    let pid = i32::try_from(run.id()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    CommandResult::from_output(run.wait_with_output().unwrap()).expect_code(130);
    let result: Value = serde_json::from_str(&project.read_file("queued.json")).unwrap();
    assert_eq!(result["answer"], "");
    assert_eq!(result["toolCalls"], serde_json::json!([]));
    let running = status(&project);
    assert_eq!(running["queue"], serde_json::json!([]));
    let turn = running["turn"]["text"].as_str().unwrap();
    assert!(turn.contains("touch begun"), "{running}");
    project.write_file("go", "");
    wait_for("the turn ends", || {
        status(&project)["turn"].is_null().then_some(())
    });
    assert!(!project.file("made").exists());
}

#[test]
fn cancel_from_outside_ends_the_turn() {
    let project = TestProject::new();
    let mut run = project.shell_command(&format!(
        "acp run --session build --allow all '{WAIT_FOR_GO}'"
    ));
    let run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_file(&project.file("begun"));
    project
        .run_shell("acp sessions cancel build")
        .expect_code(0)
        .expect_stdout(&["cancelled"]);
    CommandResult::from_output(run.wait_with_output().unwrap()).expect_code(130);
    project
        .run_shell("acp sessions cancel build")
        .expect_code(0)
        .expect_stdout(&["no turn is running"]);
    project
        .run_shell("acp sessions cancel other")
        .expect_code(1)
        .expect_stderr("session not live: other");
}

#[test]
fn policy_of_one_run_does_not_answer_for_the_turn_of_another() {
    let project = TestProject::new();
    // Nobody answers this question.
    project
        .run_shell("acp run --session build --no-wait '/run touch asked'")
        .expect_code(0);
    wait_for("the question waits", || {
        (status(&project)["openQuestions"] == 1).then_some(())
    });
    let mut second =
        project.shell_command("acp run --session build --allow all '/run touch second'");
    let second = second
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the second prompt is queued", || {
        let queue = status(&project)["queue"].clone();
        (queue.as_array().unwrap().len() == 1).then_some(())
    });
    assert_eq!(status(&project)["openQuestions"], 1);
    assert!(!project.file("asked").exists());
    project
        .run_shell("acp sessions cancel build")
        .expect_code(0);
    CommandResult::from_output(second.wait_with_output().unwrap()).expect_code(0);
    assert!(!project.file("asked").exists());
    assert!(project.file("second").exists());
}

#[test]
fn agent_outside_a_sandbox_is_not_used_for_a_run_that_asks_for_one() {
    let project = TestProject::new();
    let line = format!("acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'");
    project.run_shell(&line).expect_code(0);
    wait_for_file(&project.file("begun"));
    project
        .run_shell("acp run --session build --allow none '/run touch outside'")
        .expect_code(2)
        .expect_stderr("with another sandbox or environment");
    project
        .run_shell("acp run --session build --env COLOR=red '/run touch outside'")
        .expect_code(2)
        .expect_stderr("--no-server");
    // Nor by its id, with which another agent would open the session a second time.
    let id = status(&project)["sessionId"].as_str().unwrap().to_owned();
    project
        .run_shell(&format!(
            "acp run --resume {id} --allow none '/run touch outside'"
        ))
        .expect_code(2)
        .expect_stderr("with another sandbox or environment");
    assert!(!project.file("outside").exists());
    project.write_file("go", "");
    wait_for("the turn ends", || {
        status(&project)["turn"].is_null().then_some(())
    });
    // Then the agent is replaced.
    wait_for("the background process has exited", || {
        (status(&project)["clients"].as_array().unwrap().is_empty()).then_some(())
    });
    let red = project
        .run_shell("acp run --session build --env COLOR=red --allow all '/run echo $COLOR'")
        .expect_code(0);
    red.expect_stdout(&["red"]);
}

#[test]
fn agent_that_dies_is_reported_and_started_again() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session build --allow all '/run kill -9 $PPID'")
        .expect_code(3)
        .expect_stderr("the agent exited");
    project
        .run_shell("acp run --session build --allow all '/run echo again'")
        .expect_code(0)
        .expect_stdout(&["again"]);
}

#[test]
fn other_users_cannot_connect_and_a_foreign_file_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let project = TestProject::new();
    project
        .run_shell("acp run --session build /help")
        .expect_code(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&project.live_directory()), 0o700);
    let socket = live_files(&project)
        .into_iter()
        .find(|name| name.contains(".sock"))
        .unwrap();
    assert_eq!(mode(&project.live_directory().join(socket)), 0o600);
    project.run_shell("acp sessions stop").expect_code(0);
    // Others could replace the sockets in such a directory. Without one, the run has its own agent.
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(project.live_directory(), open).unwrap();
    project
        .run_shell("acp run --session build /help")
        .expect_code(0);
    assert!(
        !live_files(&project)
            .iter()
            .any(|name| name.contains(".sock"))
    );
    project.write_file("file", "precious");
    project
        .run_shell("acp serve --listen unix:file")
        .expect_code(1)
        .expect_stderr("not a socket");
    assert_eq!(project.read_file("file"), "precious");
}

#[test]
fn server_on_a_socket_of_the_user_s_choice() {
    let project = TestProject::new();
    let mut server = project.acp_command(&["serve", "--live", "--listen", "unix:agent.sock"]);
    let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "acp: serving unix:agent.sock\n");
    project
        .run_shell("acp run --url unix:agent.sock --allow all '/run echo over a socket'")
        .expect_code(0)
        .expect_stdout(&["over a socket"]);
    // A second server cannot take it.
    project
        .run_shell("acp serve --listen unix:agent.sock")
        .expect_code(1)
        .expect_stderr("unix:agent.sock");
    Command::new("kill")
        .arg(server.id().to_string())
        .status()
        .unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(server.wait().unwrap().success(), "{rest}");
    assert!(!project.file("agent.sock").exists());
    project
        .run_shell("acp serve --listen unix:agent.sock --tls-self-signed")
        .expect_code(2)
        .expect_stderr("does not apply to a Unix-domain socket");
}
