//! Tests of terminals with real commands.

use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{is_running, with_timeout};
use acp_host::{HostTerminals, SessionTerminals, TerminalEvent, TerminalEventKind};
use acp_wire::jsonrpc::Error;
use acp_wire::v1::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The terminals of the session `s`, and their events.
struct TerminalsFixture {
    all: HostTerminals,
    terminals: Arc<SessionTerminals>,
    events: UnboundedReceiver<TerminalEvent>,
    cwd: PathBuf,
    _directory: tempfile::TempDir,
}

fn terminals_fixture() -> TerminalsFixture {
    terminals_fixture_with(|terminals| terminals)
}

fn terminals_fixture_with(
    configure: impl FnOnce(HostTerminals) -> HostTerminals,
) -> TerminalsFixture {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().canonicalize().unwrap();
    let (sender, events) = unbounded_channel();
    let all = configure(HostTerminals::new());
    let terminals = all.session(&cwd, move |event| drop(sender.send(event)));
    TerminalsFixture {
        all,
        terminals: Arc::new(terminals),
        events,
        cwd,
        _directory: directory,
    }
}

fn shell_request(script: &str) -> CreateTerminalRequest {
    CreateTerminalRequest::new("s", "sh").args(["-c".to_owned(), script.to_owned()])
}

impl TerminalsFixture {
    /// Returns the terminals of another session.
    fn other_session(&self) -> SessionTerminals {
        self.all.session(&self.cwd, |_| ())
    }

    async fn create(&self, request: &CreateTerminalRequest) -> TerminalId {
        with_timeout(self.terminals.create(request))
            .await
            .unwrap()
            .terminal_id
    }

    async fn create_error(&self, request: &CreateTerminalRequest) -> Error {
        with_timeout(self.terminals.create(request))
            .await
            .unwrap_err()
    }

    async fn output(&self, id: &TerminalId) -> TerminalOutputResponse {
        with_timeout(self.terminals.output(&TerminalOutputRequest::new("s", id)))
            .await
            .unwrap()
    }

    async fn wait_for_exit(&self, id: &TerminalId) -> WaitForTerminalExitResponse {
        with_timeout(
            self.terminals
                .wait_for_exit(&WaitForTerminalExitRequest::new("s", id)),
        )
        .await
        .unwrap()
    }

    async fn kill(&self, id: &TerminalId) {
        with_timeout(self.terminals.kill(&KillTerminalRequest::new("s", id)))
            .await
            .unwrap();
    }

    async fn release(&self, id: &TerminalId) {
        with_timeout(
            self.terminals
                .release(&ReleaseTerminalRequest::new("s", id)),
        )
        .await
        .unwrap();
    }

    /// Runs a command until it exits, and returns its output.
    async fn run(&self, request: &CreateTerminalRequest) -> String {
        let id = self.create(request).await;
        assert_eq!(self.wait_for_exit(&id).await.exit_code, Some(0));
        let output = self.output(&id).await;
        assert!(!output.truncated);
        self.release(&id).await;
        output.output
    }

    async fn next_event(&mut self) -> TerminalEvent {
        with_timeout(self.events.recv()).await.unwrap()
    }

    /// Waits until this many lines have been printed, and returns them as process ids.
    async fn read_pids(&mut self, lines: usize) -> Vec<u32> {
        let mut printed = String::new();
        while printed.lines().count() < lines || !printed.ends_with('\n') {
            if let TerminalEventKind::Output(text) = self.next_event().await.kind {
                printed.push_str(&text);
            }
        }
        let pids: Vec<u32> = printed.lines().map(|line| line.parse().unwrap()).collect();
        assert!(pids.iter().all(|pid| is_running(*pid)), "{pids:?}");
        pids
    }
}

/// A shell line that starts children and grandchildren, prints the ids of all four processes, and waits for them.
const PROCESS_FAMILY_SCRIPT: &str =
    "echo $$; sleep 1000 & echo $!; (sleep 1000 & echo $!; sleep 1000) & echo $!; wait";

fn exit_code(code: u32) -> TerminalExitStatus {
    let mut status = TerminalExitStatus::new();
    status.exit_code = Some(code);
    status
}

#[tokio::test]
async fn stdout_and_stderr_are_kept_in_order() {
    let host = terminals_fixture();
    let script = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let expected: String = (0..300).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(host.run(&shell_request(script)).await, expected);
}

#[tokio::test]
async fn environment_and_directory_are_set() {
    let host = terminals_fixture();
    assert_eq!(
        host.run(&CreateTerminalRequest::new("s", "pwd")).await,
        format!("{}\n", host.cwd.display())
    );
    std::fs::create_dir(host.cwd.join("sub")).unwrap();
    let sub = host.cwd.join("sub").to_str().unwrap().to_owned();
    assert_eq!(
        host.run(&shell_request("pwd; echo $PWD").cwd(sub.clone()))
            .await,
        format!("{sub}\n{sub}\n")
    );

    let env = [
        EnvVariable::new("ACP_TEST", "a b=c"),
        EnvVariable::new("EMPTY", ""),
    ];
    let script = "echo \"$ACP_TEST\" \"${EMPTY-unset}\" \"${PATH:+inherited}\"; cat";
    assert_eq!(
        host.run(&shell_request(script).env(env)).await,
        "a b=c  inherited\n"
    );

    for cwd in ["sub", "/no/such/directory", "/etc/passwd"] {
        let error = host.create_error(&shell_request("true").cwd(cwd)).await;
        assert_eq!(error.code, Error::INVALID_PARAMS);
        assert!(error.message.contains(cwd), "{error}");
    }
    for name in ["", "A=B"] {
        let error = host
            .create_error(&shell_request("true").env([EnvVariable::new(name, "x")]))
            .await;
        assert_eq!(error.code, Error::INVALID_PARAMS);
    }
    host.create_error(&shell_request("true").env([EnvVariable::new("A", "nul\0")]))
        .await;
}

#[tokio::test]
async fn events_report_the_life_of_a_terminal_in_order() {
    let mut host = terminals_fixture();
    let id = host
        .create(&shell_request(
            "printf 'é\\377'; printf '\\342\\202'; printf '\\254'; exit 3",
        ))
        .await;
    assert_eq!(host.wait_for_exit(&id).await.exit_code, Some(3));
    host.release(&id).await;
    let mut printed = String::new();
    let mut kinds = Vec::new();
    while let Ok(event) = host.events.try_recv() {
        assert_eq!(event.terminal_id, id);
        match event.kind {
            TerminalEventKind::Output(text) => printed.push_str(&text),
            kind => kinds.push(kind),
        }
    }
    assert_eq!(printed, "é\u{FFFD}€");
    let command = "sh -c 'printf '\\''é\\377'\\''; printf '\\''\\342\\202'\\''; printf '\\''\\254'\\''; exit 3'";
    let started = TerminalEventKind::Started {
        command: command.to_owned(),
        cwd: host.cwd.clone(),
    };
    assert_eq!(
        kinds,
        [
            started,
            TerminalEventKind::Exited(exit_code(3)),
            TerminalEventKind::Released
        ]
    );
}

#[tokio::test]
async fn output_is_available_while_the_command_runs() {
    let mut host = terminals_fixture();
    let id = host
        .create(&shell_request("echo hello; exec sleep 1000"))
        .await;
    host.next_event().await;
    assert_eq!(
        host.next_event().await.kind,
        TerminalEventKind::Output("hello\n".to_owned())
    );
    let output = host.output(&id).await;
    assert_eq!(
        (output.output.as_str(), output.truncated, output.exit_status),
        ("hello\n", false, None)
    );
    host.kill(&id).await;
    let output = host.output(&id).await;
    assert_eq!(output.output, "hello\n");
    assert_eq!(output.exit_status.unwrap().signal.unwrap(), "SIGKILL");
}

#[tokio::test]
async fn output_limit_truncates_at_a_char_boundary() {
    let host = terminals_fixture();
    for (limit, expected) in [
        (9u64, "🦀€x\n"),
        (8, "€x\n"),
        (5, "€x\n"),
        (4, "x\n"),
        (1, "\n"),
        (0, ""),
    ] {
        let id = host
            .create(&shell_request("echo 'aé🦀€x'").output_byte_limit(limit))
            .await;
        host.wait_for_exit(&id).await;
        let output = host.output(&id).await;
        assert_eq!(
            (output.output.as_str(), output.truncated),
            (expected, true),
            "limit {limit}"
        );
    }
    let id = host
        .create(&shell_request("echo 'aé🦀€x'").output_byte_limit(12u64))
        .await;
    host.wait_for_exit(&id).await;
    assert_eq!(host.output(&id).await.output, "aé🦀€x\n");
    assert!(!host.output(&id).await.truncated);
}

#[tokio::test]
async fn endless_output_is_limited_and_can_be_killed() {
    let mut host = terminals_fixture_with(|terminals| {
        terminals.default_output_limit(1000).max_output_limit(5000)
    });
    let small = host.create(&CreateTerminalRequest::new("s", "yes")).await;
    let large = host
        .create(&CreateTerminalRequest::new("s", "yes").output_byte_limit(u64::MAX))
        .await;
    let mut seen = [0, 0];
    while seen.iter().any(|seen| *seen < 3_000_000) {
        let event = host.next_event().await;
        if let TerminalEventKind::Output(text) = event.kind {
            seen[usize::from(event.terminal_id == large)] += text.len();
        }
    }
    for (id, limit) in [(&small, 1000), (&large, 5000)] {
        let output = host.output(id).await;
        assert_eq!((output.output.len(), output.truncated), (limit, true));
        assert_eq!(output.exit_status, None);
    }
    host.kill(&small).await;
    assert_eq!(host.wait_for_exit(&small).await.signal.unwrap(), "SIGKILL");
    host.release(&large).await;
}

#[tokio::test]
async fn kill_ends_the_process_group_and_keeps_the_terminal() {
    let mut host = terminals_fixture();
    let id = host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    host.kill(&id).await;
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
    for _ in 0..2 {
        let exit = host.wait_for_exit(&id).await;
        assert_eq!(
            (exit.exit_code, exit.signal.as_deref()),
            (None, Some("SIGKILL"))
        );
    }
    assert_eq!(host.output(&id).await.output.lines().count(), 4);
    // Releasing it again changes nothing.
    host.kill(&id).await;
    host.release(&id).await;
}

#[tokio::test]
async fn cancelled_turn_ends_its_commands() {
    let mut host = terminals_fixture();
    let before = host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let server = host.read_pids(4).await;
    host.terminals.end_turn(false);
    let forgotten = host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    host.terminals.end_turn(true);
    assert_eq!(
        host.wait_for_exit(&forgotten).await.signal.as_deref(),
        Some("SIGKILL")
    );
    wait_until_gone(&pids).await;
    // The agent has to release the terminal, and to end commands from earlier turns.
    assert_eq!(host.output(&forgotten).await.output.lines().count(), 4);
    host.release(&forgotten).await;
    assert!(server.iter().all(|pid| is_running(*pid)), "{server:?}");
    // A turn that is cancelled twice.
    host.terminals.end_turn(true);
    assert!(server.iter().all(|pid| is_running(*pid)), "{server:?}");
    host.release(&before).await;
    wait_until_gone(&server).await;
}

#[tokio::test]
async fn release_ends_the_command_and_removes_the_terminal() {
    let mut host = terminals_fixture();
    let id = host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    let waiting = tokio::spawn({
        let (terminals, request) = (
            host.terminals.clone(),
            WaitForTerminalExitRequest::new("s", &id),
        );
        async move { terminals.wait_for_exit(&request).await }
    });
    // The waiter has started once everything that can run has run.
    tokio::task::yield_now().await;
    host.release(&id).await;
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
    assert_eq!(
        with_timeout(waiting)
            .await
            .unwrap()
            .unwrap()
            .signal
            .unwrap(),
        "SIGKILL"
    );

    let terminals = &host.terminals;
    let errors = [
        terminals
            .output(&TerminalOutputRequest::new("s", &id))
            .await
            .unwrap_err(),
        terminals
            .wait_for_exit(&WaitForTerminalExitRequest::new("s", &id))
            .await
            .unwrap_err(),
        terminals
            .kill(&KillTerminalRequest::new("s", &id))
            .await
            .unwrap_err(),
        terminals
            .release(&ReleaseTerminalRequest::new("s", &id))
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code, Error::RESOURCE_NOT_FOUND);
        assert!(error.message.contains(id.as_str()), "{error}");
    }
}

#[tokio::test]
async fn background_processes_do_not_delay_exit_and_end_on_release() {
    let mut host = terminals_fixture();
    let id = host
        .create(&shell_request("sleep 1000 & echo $!; exit 4"))
        .await;
    let pids = host.read_pids(1).await;
    assert_eq!(host.wait_for_exit(&id).await.exit_code, Some(4));
    assert_eq!(host.output(&id).await.exit_status, Some(exit_code(4)));
    assert!(is_running(pids[0]));
    host.release(&id).await;
    assert!(!is_running(pids[0]));

    // Their output still arrives.
    let fifo = host.cwd.join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let id = host
        .create(&shell_request(
            "(read line <fifo; echo got $line) & echo before",
        ))
        .await;
    assert_eq!(host.wait_for_exit(&id).await.exit_code, Some(0));
    assert_eq!(host.output(&id).await.output, "before\n");
    tokio::task::spawn_blocking(|| std::fs::write(fifo, "it\n"))
        .await
        .unwrap()
        .unwrap();
    while host.next_event().await.kind != TerminalEventKind::Output("got it\n".to_owned()) {}
    assert_eq!(host.output(&id).await.output, "before\ngot it\n");
}

#[tokio::test]
async fn output_is_complete_at_exit() {
    let host = terminals_fixture();
    for _ in 0..30 {
        let id = host
            .create(&shell_request(
                "head -c 60000 /dev/zero | tr '\\0' x; sleep 1000 & exit 0",
            ))
            .await;
        host.wait_for_exit(&id).await;
        let output = host.output(&id).await;
        assert_eq!(
            (output.output.len(), output.exit_status),
            (60000, Some(exit_code(0)))
        );
        host.release(&id).await;
    }
}

#[tokio::test]
async fn exit_signals_are_reported_by_name() {
    let host = terminals_fixture();
    // Not HUP or INT: if the tests run in the background, both are ignored, and children inherit that.
    for name in ["KILL", "TERM", "SEGV", "USR1"] {
        let id = host
            .create(&shell_request(&format!("ulimit -c 0; kill -{name} $$")))
            .await;
        let exit = host.wait_for_exit(&id).await;
        assert_eq!(
            (exit.exit_code, exit.signal),
            (None, Some(format!("SIG{name}")))
        );
    }
}

#[tokio::test]
async fn command_with_spaces_is_run_by_the_shell() {
    let host = terminals_fixture();
    for (line, expected) in [
        ("echo a b | tr a-z A-Z && echo $((1 + 1))", "A B\n2\n"),
        ("printf '%s\\n' 'x  y'", "x  y\n"),
        ("echo<\t/dev/null", "\n"),
    ] {
        assert_eq!(
            host.run(&CreateTerminalRequest::new("s", line)).await,
            expected
        );
    }
    // A program with exactly this name takes precedence.
    let program = host.cwd.join("my tool");
    std::fs::write(&program, "#!/bin/sh\necho \"tool: $0\"\n").unwrap();
    make_executable(&program);
    let program = program.to_str().unwrap();
    assert_eq!(
        host.run(&CreateTerminalRequest::new("s", program)).await,
        format!("tool: {program}\n")
    );
    let path = [EnvVariable::new(
        "PATH",
        format!("{}:/usr/bin:/bin", host.cwd.display()),
    )];
    let output = host
        .run(&CreateTerminalRequest::new("s", "my tool").env(path))
        .await;
    assert!(output.starts_with("tool: "), "{output}");
    // A shell never interprets arguments.
    let args = ["$HOME; a'b".to_owned(), String::new(), "*".to_owned()];
    let request = CreateTerminalRequest::new("s", "printf")
        .args([vec!["[%s]".to_owned()], args.to_vec()].concat());
    assert_eq!(host.run(&request).await, "[$HOME; a'b][][*]");
}

fn make_executable(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn error_names_the_command_that_cannot_run() {
    let host = terminals_fixture();
    std::fs::write(host.cwd.join("data"), "no program").unwrap();
    std::fs::create_dir(host.cwd.join("dir")).unwrap();
    let data = host.cwd.join("data").to_str().unwrap().to_owned();
    let with_args = CreateTerminalRequest::new("s", "no such tool").args(["x".to_owned()]);
    for (request, message) in [
        (
            CreateTerminalRequest::new("s", "no-such-tool"),
            "command not found: no-such-tool",
        ),
        (with_args, "command not found: no such tool"),
        (
            CreateTerminalRequest::new("s", "./no-such-tool"),
            "command not found: ./no-such-tool",
        ),
        (
            CreateTerminalRequest::new("s", "./dir"),
            "command not found: ./dir",
        ),
        (CreateTerminalRequest::new("s", ""), "command not found: "),
        (
            CreateTerminalRequest::new("s", data.as_str()),
            "not an executable file: ",
        ),
    ] {
        let error = host.create_error(&request).await;
        assert_eq!(error.code, Error::INVALID_PARAMS, "{error}");
        assert!(error.message.starts_with(message), "{error}");
    }
    host.create_error(&CreateTerminalRequest::new("s", "nul\0byte"))
        .await;
    assert_eq!(host.all.close_all().await, ());
}

#[tokio::test]
async fn terminals_of_sessions_are_separate() {
    let mut host = terminals_fixture();
    let other = host.other_session();
    let id = host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    let error = other
        .output(&TerminalOutputRequest::new("t", &id))
        .await
        .unwrap_err();
    assert_eq!(error.code, Error::RESOURCE_NOT_FOUND);
    with_timeout(other.close()).await;
    assert!(pids.iter().all(|pid| is_running(*pid)));

    with_timeout(host.terminals.close()).await;
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
    let error = host.create_error(&shell_request("true")).await;
    assert_eq!(
        (error.code, &*error.message),
        (Error::INVALID_PARAMS, "session closed: s")
    );
    let mut last = host.next_event().await;
    while let Ok(event) = host.events.try_recv() {
        last = event;
    }
    assert_eq!(last.kind, TerminalEventKind::Released);
    with_timeout(host.terminals.close()).await;
}

#[tokio::test]
async fn close_all_waits_for_every_process() {
    let mut host = terminals_fixture();
    host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    // Nothing has waited for the end of the session.
    drop(host.terminals);
    with_timeout(host.all.close_all()).await;
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
}

#[tokio::test]
async fn terminals_per_session_are_limited() {
    let host = terminals_fixture_with(|terminals| terminals.max_per_session(2));
    let first = host.create(&shell_request("true")).await;
    let second = host.create(&shell_request("true")).await;
    assert_ne!(first, second);
    let error = host.create_error(&shell_request("true")).await;
    assert!(
        error
            .message
            .contains("too many terminals in this session (limit: 2)"),
        "{error}"
    );
    host.release(&first).await;
    let third = host.create(&shell_request("true")).await;
    assert_ne!(first, third);
}

#[tokio::test]
async fn total_terminals_are_limited() {
    let host = terminals_fixture_with(|terminals| terminals.max_terminals(2));
    let other = host.other_session();
    let of_t = CreateTerminalRequest::new("t", "true");
    let first = host.create(&shell_request("exec sleep 1000")).await;
    other.create(&of_t).await.unwrap();
    let error = other.create(&of_t).await.unwrap_err();
    assert!(
        error
            .message
            .contains("too many terminals: 2 open across all sessions"),
        "{error}"
    );
    assert!(error.message.contains("release some"), "{error}");
    // A terminal that could not be started does not count.
    host.release(&first).await;
    host.create_error(&CreateTerminalRequest::new("s", "no-such-program"))
        .await;
    other.create(&of_t).await.unwrap();
}

#[tokio::test]
async fn total_output_is_limited() {
    let host = terminals_fixture_with(|terminals| terminals.max_total_output(3000));
    let other = host.other_session();
    let keeping = |session: &str, bytes: u64| {
        CreateTerminalRequest::new(session, "true").output_byte_limit(bytes)
    };
    let first = host.create(&keeping("s", 2000)).await;
    let error = other.create(&keeping("t", 2000)).await.unwrap_err();
    assert!(
        error
            .message
            .contains("2000 of 3000 bytes reserved across all sessions"),
        "{error}"
    );
    assert!(error.message.contains("outputByteLimit"), "{error}");
    other.create(&keeping("t", 1000)).await.unwrap();
    host.release(&first).await;
    other.create(&keeping("t", 2000)).await.unwrap();
    // Closing a session releases the terminals that count.
    with_timeout(other.close()).await;
    host.create(&keeping("s", 3000)).await;
}

/// Waits until none of these processes is running. Polls, because a process is notified only of its own children's
/// exit.
async fn wait_until_gone(pids: &[u32]) {
    with_timeout(async {
        while pids.iter().any(|pid| is_running(*pid)) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn drop_ends_all_processes() {
    let mut host = terminals_fixture();
    host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
    let pids = host.read_pids(4).await;
    drop(host.terminals);
    wait_until_gone(&pids).await;
    // The events end too, so no task is left.
    while with_timeout(host.events.recv()).await.is_some() {}
}

#[test]
fn runtime_shutdown_ends_all_processes() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let mut host = terminals_fixture();
    let pids = first.block_on(async {
        host.create(&shell_request(PROCESS_FAMILY_SCRIPT)).await;
        host.read_pids(4).await
    });
    drop(first);
    drop(host.terminals);
    runtime().block_on(wait_until_gone(&pids));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminal_operations_can_run_concurrently() {
    let host = terminals_fixture();
    for round in 0..40 {
        let id = host
            .create(&shell_request("sleep 1000 & echo $!; exec yes"))
            .await;
        let all = async |what: usize| {
            let terminals = &host.terminals;
            for _ in 0..3 {
                let error = match what {
                    0 => terminals
                        .output(&TerminalOutputRequest::new("s", &id))
                        .await
                        .map(drop),
                    1 => terminals
                        .wait_for_exit(&WaitForTerminalExitRequest::new("s", &id))
                        .await
                        .map(drop),
                    2 => terminals
                        .kill(&KillTerminalRequest::new("s", &id))
                        .await
                        .map(drop),
                    _ if round % 3 == 0 => terminals
                        .release(&ReleaseTerminalRequest::new("s", &id))
                        .await
                        .map(drop),
                    _ => Ok(()),
                };
                // The only possible error is that the terminal has been released.
                if let Err(error) = error {
                    assert_eq!(error.code, Error::RESOURCE_NOT_FOUND, "{error}");
                }
            }
        };
        with_timeout(async { tokio::join!(all(0), all(1), all(1), all(2), all(3)) }).await;
    }
    with_timeout(host.terminals.close()).await;
}
