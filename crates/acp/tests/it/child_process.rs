//! Tests of child processes as transports. A process ends with its connection, however the connection ends.
#![cfg(unix)]

use std::io::{BufRead, BufReader, PipeReader, Read};
use std::process::Stdio;
use std::time::Instant;

use acp::client::connect;
use acp::{CloseReason, Driver, Error, Transport};
use rustix::process::{Pid, test_kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::oneshot;

use super::common::{NoopClient, with_timeout};

/// A shell script that responds to `initialize` as a version 1 agent.
const RESPOND_TO_INITIALIZE: &str = r#"read -r line
printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n'
"#;

/// A process started by a test.
struct SpawnedProcess {
    pid: Pid,
    stderr: BufReader<PipeReader>,
}

/// Starts a shell script.
fn start_script(script: &str) -> (Transport, SpawnedProcess) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new("sh");
    let script = format!("echo $$ >&2\n{script}");
    command.args(["-c", &script]).stderr(writer);
    let transport = Transport::spawn(command).unwrap();
    let mut stderr = BufReader::new(reader);
    let mut pid = String::new();
    stderr.read_line(&mut pid).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    (transport, SpawnedProcess { pid, stderr })
}

/// Returns `true` if the process has exited and been reaped.
fn is_process_gone(pid: Pid) -> bool {
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

impl SpawnedProcess {
    fn is_gone(&self) -> bool {
        is_process_gone(self.pid)
    }

    /// Waits until the process has exited and been reaped, and returns everything it wrote to stderr.
    async fn wait_for_exit(self) -> String {
        let Self { pid, mut stderr } = self;
        let (sender, receiver) = oneshot::channel();
        // Blocks until no process has the pipe open. A thread of the runtime would be joined when it is too late.
        std::thread::spawn(move || {
            let mut said = String::new();
            let _ = sender.send(stderr.read_to_string(&mut said).map(|_| said));
        });
        let ended = async {
            let said = receiver.await.unwrap().unwrap();
            while !is_process_gone(pid) {
                tokio::task::yield_now().await;
            }
            said
        };
        with_timeout("the process ends and its status is taken", ended).await
    }
}

/// Drives a connection to its end, and checks that the process has exited by then. Returns the close reason and
/// everything the process wrote to stderr.
async fn run_driver(driver: Driver, seen: SpawnedProcess) -> (CloseReason, String) {
    let reason = with_timeout("the connection ends", driver).await;
    assert!(seen.is_gone());
    (reason, seen.wait_for_exit().await)
}

#[tokio::test]
async fn a_process_has_time_to_save_its_state_after_end_of_input() {
    let (transport, seen) = start_script(&format!(
        "{RESPOND_TO_INITIALIZE}\ncat >&2\nsleep 0.3\necho saved >&2\n"
    ));
    let (handshake, driver) = connect(transport, NoopClient);
    let work = async {
        let agent = handshake.await.unwrap();
        agent.connection().notify_raw("_last", &()).await.unwrap();
    };
    with_timeout("the connection ends", driver.run(work)).await;
    assert!(seen.is_gone());
    let said = seen.wait_for_exit().await;
    assert!(
        said.contains("_last") && said.ends_with("saved\n"),
        "{said}"
    );
}

#[tokio::test]
async fn closed_resolves_after_the_process_has_exited() {
    let (transport, seen) = start_script(&format!("{RESPOND_TO_INITIALIZE}\ncat >&2\nsleep 0.3"));
    let (handshake, driver) = connect(transport, NoopClient);
    tokio::spawn(driver);
    let agent = with_timeout("the client connects", handshake)
        .await
        .unwrap();
    agent.close();
    let reason = with_timeout("the connection ends", agent.closed()).await;
    assert!(matches!(reason, CloseReason::Local), "{reason:?}");
    assert!(seen.is_gone());
}

#[tokio::test]
async fn a_process_that_ignores_end_of_input_is_killed_after_five_seconds() {
    // It also ignores the signals that it can ignore.
    let (transport, seen) = start_script("trap '' HUP INT TERM\nexec sleep 1000");
    let (handshake, driver) = connect(transport, NoopClient);
    drop(handshake);
    let began = Instant::now();
    let (reason, _) = run_driver(driver, seen).await;
    assert!(matches!(reason, CloseReason::Local), "{reason:?}");
    let took = began.elapsed().as_secs_f32();
    assert!((5.0..13.0).contains(&took), "{took} s");
}

#[tokio::test]
async fn a_process_that_prints_a_lot_at_the_end_is_not_killed() {
    let (transport, seen) = start_script(&format!(
        "({RESPOND_TO_INITIALIZE}\ncat >/dev/null\nhead -c 1048576 /dev/zero\n)\necho \"exit status: $?\" >&2\n"
    ));
    let (handshake, driver) = connect(transport, NoopClient);
    let work = async {
        handshake.await.unwrap();
    };
    with_timeout("the connection ends", driver.run(work)).await;
    assert!(seen.is_gone());
    assert_eq!(seen.wait_for_exit().await, "exit status: 0\n");
}

#[tokio::test]
async fn a_process_that_stops_reading_has_time_to_save_its_state() {
    let (transport, seen) = start_script("exec <&-\nsleep 1\necho saved >&2\n");
    let (handshake, driver) = connect(transport, NoopClient);
    let ((_, said), handshake) = tokio::join!(run_driver(driver, seen), handshake);
    assert!(handshake.unwrap_err().is_closed());
    assert_eq!(said, "saved\n");
}

#[tokio::test]
async fn a_process_that_reads_nothing_is_killed() {
    let (transport, seen) = start_script(&format!("{RESPOND_TO_INITIALIZE}\nexec sleep 1000"));
    let (handshake, driver) = connect(transport, NoopClient);
    let work = async {
        let agent = handshake.await.unwrap();
        let much = "x".repeat(4_000_000);
        agent.connection().notify_raw("_much", &much).await.unwrap();
    };
    let began = Instant::now();
    with_timeout("the connection ends", driver.run(work)).await;
    seen.wait_for_exit().await;
    // It has up to five seconds.
    let took = began.elapsed().as_secs_f32();
    assert!(took < 10.0, "{took} s");
}

#[tokio::test]
async fn a_failed_process_is_reported_with_its_status() {
    for (script, status) in [
        ("exit 3", "exit status: 3"),
        ("read -r line; exit 4", "exit status: 4"),
        ("read -r line; kill -KILL $$", "signal: 9 (SIGKILL)"),
        // It stops reading before it stops writing.
        ("exec <&-; printf '\\n'; exit 5", "exit status: 5"),
    ] {
        let (transport, seen) = start_script(script);
        let (handshake, driver) = connect(transport, NoopClient);
        let (reason, handshake) = tokio::join!(run_driver(driver, seen), handshake);
        let told = format!("the process exited ({status})");
        assert_eq!(reason.0.to_string(), told, "{script}");
        let error = handshake.unwrap_err();
        assert!(error.is_transport(), "{script}: {error:?}");
        assert_eq!(error.to_string(), format!("connection closed: {told}"));
    }
}

#[tokio::test]
async fn a_successful_exit_closes_the_connection() {
    let (transport, seen) = start_script(&format!("{RESPOND_TO_INITIALIZE}\nexit 0"));
    let (handshake, driver) = connect(transport, NoopClient);
    let (reason, agent) = tokio::join!(run_driver(driver, seen), handshake);
    assert!(matches!(reason.0, CloseReason::Peer), "{reason:?}");
    let error = agent.unwrap().new_session("/").await.unwrap_err();
    assert!(
        matches!(error, Error::Closed(CloseReason::Peer)),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_process_that_closes_stdout_ends_with_the_connection() {
    let (transport, seen) = start_script("read -r line\nexec >&-\ncat >&2\necho saved >&2\n");
    let (handshake, driver) = connect(transport, NoopClient);
    let (over, handshake) = tokio::join!(run_driver(driver, seen), handshake);
    assert!(matches!(over.0, CloseReason::Peer), "{over:?}");
    assert!(handshake.unwrap_err().is_closed());
    assert_eq!(over.1, "saved\n");
}

#[tokio::test]
async fn dropping_the_transport_or_driver_kills_the_process() {
    // The transport, before it is used.
    let (transport, seen) = start_script("exec sleep 1000");
    drop(transport);
    seen.wait_for_exit().await;
    // The driver, before it is polled.
    let (transport, seen) = start_script("exec sleep 1000");
    drop(connect(transport, NoopClient));
    seen.wait_for_exit().await;
    // The driver, while messages are exchanged.
    let (transport, seen) = start_script(&format!("{RESPOND_TO_INITIALIZE}\nexec sleep 1000"));
    let (handshake, driver) = connect(transport, NoopClient);
    let driving = tokio::spawn(driver);
    let agent = with_timeout("the client connects", handshake)
        .await
        .unwrap();
    driving.abort();
    with_timeout("the connection ends", agent.closed()).await;
    seen.wait_for_exit().await;
    // Both halves of the transport.
    let (transport, seen) = start_script("exec sleep 1000");
    let (reader, writer) = transport.into_split();
    drop(reader);
    assert!(!seen.is_gone());
    drop(writer);
    seen.wait_for_exit().await;
}

#[tokio::test]
async fn closing_the_writing_half_ends_the_process() {
    let (transport, seen) = start_script("cat >&2\necho saved >&2\n");
    let (_reader, mut writer) = transport.into_split();
    writer.write_all(b"hello\n").await.unwrap();
    with_timeout("it ends", writer.shutdown()).await.unwrap();
    assert!(seen.is_gone());
    assert_eq!(seen.wait_for_exit().await, "hello\nsaved\n");
    assert!(writer.write_all(b"more").await.is_err());
    writer.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_error_names_a_program_that_cannot_be_started() {
    let error = Transport::spawn(Command::new("no-such-agent").arg("--acp")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let told = error.to_string();
    assert!(told.starts_with("cannot start `no-such-agent`: "), "{told}");
}

#[tokio::test]
async fn piped_stderr_is_rejected() {
    let mut command = Command::new("sh");
    let error = Transport::spawn(command.stderr(Stdio::piped())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn spawning_without_a_runtime_is_an_error() {
    let error = Transport::spawn(Command::new("sh")).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
