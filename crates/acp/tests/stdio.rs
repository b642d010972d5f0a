//! Tests that stdin and stdout are reserved for the protocol, whatever they are connected to.
//!
//! The program starts itself as an agent that prints to stdout. It has no test harness, because that would print, too.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[cfg(unix)]
mod listing;

#[cfg(unix)]
fn main() {
    if listing::list_test("stdio") {
        return;
    }
    let agent = std::env::args().any(|arg| arg == unix::AGENT_FLAG);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        if agent {
            unix::run_agent().await
        } else {
            unix::run_checks().await
        }
    });
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::OwnedFd;
    use std::process::Stdio;
    use std::time::Duration;

    use acp::agent::{Prompt, Turn};
    use acp::client::AgentConnection;
    use acp::v1::StopReason;
    use acp::{Agent, Client, Result, Transport};
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;
    use tokio::process::{Child, Command};

    pub(crate) const AGENT_FLAG: &str = "--as-the-agent";

    /// Prints to stdout directly and from a child process, which also tries to read stdin.
    fn print_stray_text(when: &str) -> usize {
        println!("stray {when}");
        print!("without an end {when}");
        std::io::stdout().flush().unwrap();
        let script = format!("echo; echo child {when}; cat; echo '{{\"id\":0,\"result\":{{}}}}'");
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &script])
                .status()
                .unwrap()
                .success()
        );
        let mut read = String::new();
        std::io::stdin().read_line(&mut read).unwrap()
    }

    struct StrayPrintAgent;

    impl Agent for StrayPrintAgent {
        type State = ();

        async fn new_session(
            &self,
            _: &acp::agent::Session,
            _: acp::agent::SessionSetup,
        ) -> acp::Result<acp::agent::OpenedSession> {
            Ok(acp::agent::OpenedSession::new())
        }

        async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
            let read = tokio::task::block_in_place(|| print_stray_text("in a turn"));
            turn.send_message(format!("{} and {read} bytes", prompt.text()))
                .await?;
            Ok(StopReason::EndTurn)
        }
    }

    pub(crate) async fn run_agent() {
        let transport = acp::transport::stdio().unwrap();
        assert_eq!(print_stray_text("at the start"), 0);
        acp::agent::serve(transport, StrayPrintAgent).await.unwrap();
        print_stray_text("at the end");
    }

    struct StdioClient;

    impl Client for StdioClient {
        type State = ();
    }

    /// Starts the agent with the given stdin and stdout.
    fn start_agent(stdin: Stdio, stdout: Stdio) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg(AGENT_FLAG)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command.spawn().unwrap()
    }

    /// Runs a turn, closes the connection, and waits for the agent to exit.
    async fn check_turn(agent: AgentConnection, child: Child) {
        let session = agent.new_session("/").await.unwrap();
        // More than a pipe can hold, in both directions.
        let long = "0123456789".repeat(50_000);
        assert_eq!(
            session.prompt(long.clone()).await.unwrap(),
            StopReason::EndTurn
        );
        session.thread().read(|thread| {
            let acp::thread::ItemKind::Agent(said) = &thread.items()[1].kind else {
                panic!("{:?}", thread.items()[1])
            };
            assert!(
                said.text() == format!("{long} and 0 bytes"),
                "{} bytes",
                said.text().len()
            );
        });
        let noise = agent.connection().noise();
        assert_eq!(
            (
                noise.lines,
                noise.unmatched_responses,
                noise.unread_notifications
            ),
            (0, 0, 0)
        );
        drop((session, agent));
        expect_success(child).await;
    }

    /// Expects the agent to exit on its own, with its stray output on stderr instead of stdout.
    async fn expect_success(mut child: Child) {
        let mut printed = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut printed)
            .await
            .unwrap();
        assert!(child.wait().await.unwrap().success(), "{printed}");
        for when in ["at the start", "in a turn", "at the end"] {
            for what in [
                format!("stray {when}\nwithout an end {when}"),
                format!("child {when}\n"),
            ] {
                assert!(printed.contains(&what), "{what:?} is not in {printed:?}");
            }
        }
    }

    async fn check_pipes() {
        let mut child = start_agent(Stdio::piped(), Stdio::piped());
        let agent = acp::testing::start_client(
            Transport::child(&mut child).unwrap(),
            StdioClient,
            acp::Options::new(),
        )
        .await
        .unwrap();
        check_turn(agent, child).await;
    }

    fn socket_stdio() -> (UnixStream, Stdio) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (
            UnixStream::from_std(ours).unwrap(),
            OwnedFd::from(theirs).into(),
        )
    }

    /// Tests an agent whose stdin and stdout are two sockets, as in editors built on libuv.
    async fn check_two_sockets() {
        let ((writer, stdin), (reader, stdout)) = (socket_stdio(), socket_stdio());
        let child = start_agent(stdin, stdout);
        check_turn(
            acp::testing::start_client(
                Transport::new(reader, writer),
                StdioClient,
                acp::Options::new(),
            )
            .await
            .unwrap(),
            child,
        )
        .await;
    }

    async fn check_one_socket() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let child = start_agent(
            OwnedFd::from(theirs.try_clone().unwrap()).into(),
            OwnedFd::from(theirs).into(),
        );
        let (reader, writer) = UnixStream::from_std(ours).unwrap().into_split();
        check_turn(
            acp::testing::start_client(
                Transport::new(reader, writer),
                StdioClient,
                acp::Options::new(),
            )
            .await
            .unwrap(),
            child,
        )
        .await;
    }

    /// Tests an agent that reads from one file and writes to another.
    async fn check_files() {
        let file = || -> File {
            let path = std::env::temp_dir().join(format!("acp-stdio-{}", uuid::Uuid::new_v4()));
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
                .unwrap();
            std::fs::remove_file(path).unwrap();
            file
        };
        let (mut input, mut output) = (file(), file());
        let lines = concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":1,"method":"_unknown"}"#,
            "\n",
        );
        input.write_all(lines.as_bytes()).unwrap();
        input.seek(SeekFrom::Start(0)).unwrap();
        let mut child = start_agent(input.into(), output.try_clone().unwrap().into());
        assert!(child.wait().await.unwrap().success());
        output.seek(SeekFrom::Start(0)).unwrap();
        let mut written = String::new();
        output.read_to_string(&mut written).unwrap();
        let mut ids: Vec<i64> = written
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                    .as_i64()
                    .unwrap()
            })
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1], "{written}");
    }

    pub(crate) async fn run_checks() {
        let all = async {
            check_pipes().await;
            check_two_sockets().await;
            check_one_socket().await;
            check_files().await;
        };
        tokio::time::timeout(Duration::from_secs(120), all)
            .await
            .expect("none of it hangs");
        println!("stdin and stdout as pipes, as sockets, as one socket, as files: ok");
    }
}
