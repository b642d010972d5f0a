//! Tests of `acp trace FILE -- COMMAND…` between a client and an agent, as real processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use serde_json::{Value, json};

/// A client that has started `acp trace`.
struct TracedClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<TimedReader>,
}

impl TracedClient {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(TimedReader::new(child.stdout.take().unwrap())),
            child,
        }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(bytes.as_ref())
            .unwrap();
    }

    fn expect_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        let expected = bytes.as_ref();
        let mut read = vec![0; expected.len()];
        self.stdout.read_exact(&mut read).unwrap();
        let (read, expected) = (read.escape_ascii(), expected.escape_ascii());
        assert_eq!(read.to_string(), expected.to_string());
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Closes the agent's stdin and waits for `acp trace` to exit.
    fn finish(mut self) -> CommandResult {
        self.stdin = None;
        self.finish_after_agent()
    }

    /// Waits for `acp trace` to exit on its own.
    fn finish_after_agent(mut self) -> CommandResult {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        let mut ended = CommandResult::from_output(self.child.wait_with_output().unwrap());
        ended.stdout = String::from_utf8_lossy(&rest).into_owned();
        ended
    }
}

/// Returns the command that records an agent to the file `trace` in the project.
fn trace_command(project: &TestProject, flags: &[&str], agent: &[&str]) -> Command {
    let mut command = project.acp_command(&["trace"]);
    command.args(flags).args(["trace", "--"]).args(agent);
    command
}

/// Returns all lines of a trace as JSON.
fn read_records(project: &TestProject) -> Vec<Value> {
    let file = project.read_file("trace");
    assert!(file.ends_with('\n'), "{file}");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    file.lines().map(parse).collect()
}

/// Returns the messages and noise recorded from one side.
fn messages_from<'a>(records: &'a [Value], from: &str) -> Vec<&'a Value> {
    let of_side = |record: &&Value| record["from"] == from;
    records.iter().filter(of_side).collect()
}

/// Returns the names of the recorded events, in order.
fn event_names(records: &[Value]) -> Vec<&str> {
    records.iter().filter_map(|r| r["event"].as_str()).collect()
}

fn shell_command(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}

#[test]
fn traced_turn_is_unchanged_and_fully_recorded() {
    let project = TestProject::new();
    let script = project.write_turn_script(
        r#"{"think": "hm"}, {"say": "Hello."}, {"read": {"path": "notes.txt"}}"#,
    );
    let agent = [ACP, "agent", "--script", &script];
    let run = |before: &[&str]| {
        let args = [&["--allow", "all", "go", "--"], before, &agent].concat();
        project.run(&args).expect_code(0).stdout
    };
    let plain = run(&[]);
    let traced = run(&[ACP, "trace", "trace", "--"]);
    assert_eq!(traced, plain);

    let records = read_records(&project);
    let header = &records[0];
    assert_eq!(header["acp_trace"], 1);
    assert_eq!(header["command"], json!(agent));
    assert_eq!(header["secrets"], "redacted");
    assert!(header["by"].as_str().unwrap().starts_with("acp "));
    let times: Vec<u64> = records[1..]
        .iter()
        .map(|r| r["t"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let client = messages_from(&records, "client");
    let methods: Vec<&str> = client
        .iter()
        .filter_map(|r| r["msg"]["method"].as_str())
        .collect();
    assert_eq!(methods[..2], ["initialize", "session/new"]);
    assert!(methods.contains(&"session/prompt"), "{methods:?}");
    let chunks: Vec<&Value> = messages_from(&records, "agent")
        .into_iter()
        .filter(|r| r["msg"]["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .collect();
    assert_eq!(
        chunks[0]["msg"]["params"]["update"]["content"]["text"],
        "Hello."
    );
    let last = messages_from(&records, "agent").pop().unwrap();
    assert_eq!(last["msg"]["result"]["stopReason"], "end_turn");
    assert_eq!(records[1]["event"], "started");
    assert_eq!(event_names(&records).last(), Some(&"end"));
    let exited = records.iter().find(|r| r["event"] == "exited").unwrap();
    assert_eq!(exited["code"], 0);
}

#[test]
fn every_byte_is_passed_on_at_once() {
    let project = TestProject::new();
    let mut client = TracedClient::start(trace_command(&project, &[], &["cat"]));
    // The second half of the line is not sent until the first has come back.
    for piece in ["{\"jsonrpc\":\"2.0\", ", "\"id\" :1.0,\"method\":\"x\" }\n"] {
        client.send(piece);
        client.expect_bytes(piece);
    }
    let rest: &[u8] = b"\r\n\nno JSON\n{\"a\":\"\xff\"}\n[1,2] \r\nnot ended";
    client.send(rest);
    client.expect_bytes(rest);
    client.finish().expect_code(0);

    let records = read_records(&project);
    for from in ["client", "agent"] {
        let said = messages_from(&records, from);
        assert_eq!(said.len(), 7, "{said:#?}");
        assert_eq!(said[0]["len"], 42);
        assert_eq!(said[0]["msg"]["id"], 1.0);
        assert_eq!(said[1]["noise"], "\r");
        assert_eq!(
            (&said[2]["noise"], &said[2]["len"]),
            (&json!(""), &json!(0))
        );
        assert_eq!(said[3]["noise"], "no JSON");
        assert_eq!(said[4]["noise64"], "eyJhIjoi/yJ9");
        assert_eq!(said[5]["msg"], json!([1, 2]));
        assert_eq!(
            (&said[6]["noise"], &said[6]["open"]),
            (&json!("not ended"), &json!(true))
        );
    }
    // As it was written, and not as anyone else would write it.
    let message = "\"msg\":{\"jsonrpc\":\"2.0\", \"id\" :1.0,\"method\":\"x\" }}\n";
    assert_eq!(project.read_file("trace").matches(message).count(), 2);
    let closed = ["client_closed", "agent_closed", "exited", "end"];
    let mut events = event_names(&records);
    events.retain(|event| closed.contains(event));
    assert_eq!(events.len(), 4, "{events:?}");
}

#[test]
fn secrets_reach_the_agent_but_not_the_trace() {
    let project = TestProject::new();
    let server = json!({"name": "files", "command": "x", "args": ["--token", "hush-1"],
        "env": [{"name": "WHERE", "value": "hush-2"}]});
    let http = json!({"type": "http", "name": "web", "url": "https://me:hush-3@host/",
        "headers": [{"name": "X-Who", "value": "hush-4"}]});
    let params = json!({"cwd": "/", "mcpServers": [server, http], "_meta": {"apiKey": "hush-5"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    let lines = format!("{message}\nmy password: hush-6\n{{\"id\":2,\"n\":1.50}}\n");
    let agent = "echo 'using SOME_API_KEY=hush-7' >&2; exec cat";
    let agent = [&shell_command(agent)[..], &["--api-key", "hush-8"]].concat();
    for (flags, kept) in [(&[][..], false), (&["--force", "--secrets"][..], true)] {
        let mut client = TracedClient::start(trace_command(&project, flags, &agent));
        client.send(&lines);
        client.expect_bytes(&lines);
        client
            .finish()
            .expect_code(0)
            .expect_stderr("SOME_API_KEY=hush-7");
        let file = project.read_file("trace");
        for n in 1..=8 {
            assert_eq!(file.contains(&format!("hush-{n}")), kept, "{n}: {file}");
        }
        let records = read_records(&project);
        let expected = if kept { "kept" } else { "redacted" };
        assert_eq!(records[0]["secrets"], expected);
        assert_eq!(
            messages_from(&records, "client")[0]["redacted"].is_u64(),
            !kept
        );
        assert!(file.contains("\"msg\":{\"id\":2,\"n\":1.50}}"), "{file}");
        assert!(file.contains("WHERE") && file.contains("X-Who"), "{file}");
    }
}

#[test]
fn similar_consecutive_lines_are_recorded_correctly() {
    let project = TestProject::new();
    let mut client = TracedClient::start(trace_command(&project, &[], &["cat"]));
    let begin = r#"{"jsonrpc":"2.0","method":"session/update","params":{"text":"#;
    let mut sent = String::new();
    for n in 0..600 {
        let rest = match n % 6 {
            0 | 1 | 4 => format!("\"{n}\"}}}}"),
            2 => format!("\"{n}\",\"token\":\"hush-{n}\"}}}}"),
            3 => format!("\"{n}\",\"token\":null}}}}"),
            _ => format!("\"{n}\"}}}}}} password=hush-{n}"),
        };
        sent.push_str(&format!("{begin}{rest}\n"));
    }
    // Both where the lines end and within them.
    for piece in sent.as_bytes().chunks(7001) {
        client.send(piece);
        client.expect_bytes(piece);
    }
    client.finish().expect_code(0);
    assert!(!project.read_file("trace").contains("hush-"));
    let records = read_records(&project);
    for from in ["client", "agent"] {
        let said = messages_from(&records, from);
        assert_eq!(said.len(), 600);
        for (n, (record, line)) in said.iter().zip(sent.lines()).enumerate() {
            assert_eq!(record["len"], line.len());
            let text = &record["msg"]["params"]["text"];
            match n % 6 {
                5 => assert!(record["noise"].is_string(), "{record}"),
                kind => {
                    assert_eq!(text, &json!(n.to_string()), "{record}");
                    assert_eq!(record["redacted"].is_u64(), kind == 2, "{record}");
                }
            }
        }
    }
}

#[test]
fn long_message_is_passed_in_full_and_recorded_up_to_a_limit() {
    let project = TestProject::new();
    let mut client = TracedClient::start(trace_command(&project, &[], &["wc", "-c"]));
    let piece = vec![b'x'; 1024 * 1024];
    client.send(b"\"");
    for _ in 0..65 {
        client.send(&piece);
    }
    client.send(b"\"\n{}\n");
    let length = 65 * piece.len() + 2;
    let ended = client.finish().expect_code(0);
    assert_eq!(ended.stdout.trim(), (length + 4).to_string());
    let records = read_records(&project);
    let said = messages_from(&records, "client");
    assert_eq!(said[0]["len"], length);
    let cut = said[0]["cut"].as_str().unwrap();
    assert!(
        cut.len() == 64 * 1024 && cut.starts_with("\"xxx"),
        "{}",
        cut.len()
    );
    assert_eq!(said[1]["msg"], json!({}));
}

#[test]
fn existing_file_is_overwritten_only_on_request() {
    let project = TestProject::new();
    project.write_file("trace", "mine");
    let ended =
        CommandResult::from_output(trace_command(&project, &[], &["cat"]).output().unwrap());
    ended
        .expect_code(2)
        .expect_stderr("trace: file already exists; use --force to overwrite it");
    assert_eq!(project.read_file("trace"), "mine");
    CommandResult::from_output(
        trace_command(&project, &["--force"], &["cat"])
            .output()
            .unwrap(),
    )
    .expect_code(0);
    assert_eq!(read_records(&project)[0]["acp_trace"], 1);
    let nowhere = project
        .acp_command(&["trace", "no/where", "--", "cat"])
        .output();
    CommandResult::from_output(nowhere.unwrap())
        .expect_code(1)
        .expect_stderr("cannot write no/where");
    CommandResult::from_output(project.acp_command(&["trace", "other"]).output().unwrap())
        .expect_code(2);
}

#[test]
fn agent_start_failure_is_reported_and_recorded() {
    let project = TestProject::new();
    let ended = CommandResult::from_output(
        trace_command(&project, &[], &["no-such-agent"])
            .output()
            .unwrap(),
    );
    ended
        .expect_code(3)
        .expect_stderr("command not found: `no-such-agent`");
    let records = read_records(&project);
    assert!(
        records[1]["message"]
            .as_str()
            .unwrap()
            .contains("not found")
    );
    assert_eq!(event_names(&records), ["failed", "end"]);
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    fn send_signal(client: &TracedClient, signal: Signal) {
        let id = i32::try_from(client.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    fn make_fifo(project: &TestProject, name: &str) {
        let made = Command::new("mkfifo").arg(project.file(name)).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn trace_file_is_private_to_its_user() {
        let project = TestProject::new();
        let mode = |name| project.file(name).metadata().unwrap().permissions().mode() & 0o777;
        CommandResult::from_output(trace_command(&project, &[], &["cat"]).output().unwrap())
            .expect_code(0);
        assert_eq!(mode("trace"), 0o600);
        std::fs::set_permissions(project.file("trace"), PermissionsExt::from_mode(0o644)).unwrap();
        CommandResult::from_output(
            trace_command(&project, &["--force"], &["cat"])
                .output()
                .unwrap(),
        )
        .expect_code(0);
        assert_eq!(mode("trace"), 0o600);
    }

    #[test]
    fn messages_are_written_promptly_and_survive_a_kill() {
        let project = TestProject::new();
        let mut client = TracedClient::start(trace_command(
            &project,
            &[],
            &shell_command("echo $$ > pid; exec cat"),
        ));
        client.send("{\"id\":1}\n");
        client.expect_bytes("{\"id\":1}\n");
        // Nothing more is said: it does not wait for more to come.
        let answer = "\"from\":\"agent\",\"len\":8,\"msg\":{\"id\":1}}\n";
        while !project.read_file("trace").ends_with(answer) {
            std::thread::yield_now();
        }
        send_signal(&client, Signal::KILL);
        client.child.wait().unwrap();
        assert!(project.read_file("trace").ends_with(answer));
        // Its input was closed with it.
        let id: i32 = project.read_file("pid").trim().parse().unwrap();
        while test_kill_process(Pid::from_raw(id).unwrap()).is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn agent_crash_is_recorded_with_its_last_output() {
        let project = TestProject::new();
        let agent = "echo '{\"id\":1}'; printf '{\"id\":'; echo dying >&2; kill -9 $$";
        let mut client = TracedClient::start(trace_command(&project, &[], &shell_command(agent)));
        client.expect_bytes("{\"id\":1}\n{\"id\":");
        client
            .finish_after_agent()
            .expect_code(3)
            .expect_stderr("dying")
            .expect_stderr("the agent exited: signal SIGKILL");
        let records = read_records(&project);
        assert_eq!(messages_from(&records, "agent")[1]["noise"], "{\"id\":");
        assert!(
            records.iter().any(|r| r["stderr"] == "dying"),
            "{records:?}"
        );
        let exited = records.iter().find(|r| r["event"] == "exited").unwrap();
        assert_eq!(exited["signal"], "SIGKILL");
        assert!(!event_names(&records).contains(&"killed"));
    }

    #[test]
    fn agent_that_does_not_exit_is_killed_and_the_kill_is_recorded() {
        let project = TestProject::new();
        let agent = "trap '' TERM; echo ready; while :; do sleep 1000; done";
        let mut client = TracedClient::start(trace_command(&project, &[], &shell_command(agent)));
        client.expect_bytes("ready\n");
        client.finish().expect_code(0);
        let records = read_records(&project);
        let events = event_names(&records);
        let killed = events.iter().position(|&event| event == "killed");
        let exited = events.iter().position(|&event| event == "exited");
        assert!(killed.is_some() && killed < exited, "{events:?}");
    }

    #[test]
    fn signal_also_ends_the_agent() {
        let project = TestProject::new();
        let agent = "echo ready; cat > /dev/null; echo told > told";
        let mut client = TracedClient::start(trace_command(&project, &[], &shell_command(agent)));
        client.expect_bytes("ready\n");
        send_signal(&client, Signal::TERM);
        assert_eq!(client.child.wait().unwrap().code(), Some(130));
        // Its input was closed before anything else was done about it.
        assert_eq!(project.read_file("told"), "told\n");
        let records = read_records(&project);
        let interrupted = records.iter().find(|r| r["event"] == "interrupted");
        assert_eq!(interrupted.unwrap()["by"], "SIGTERM");
        assert_eq!(event_names(&records).last(), Some(&"end"));
    }

    #[test]
    fn client_notices_an_agent_that_stops_reading() {
        let project = TestProject::new();
        let agent = "exec 0<&-; echo ready; while [ ! -e go ]; do sleep 0.01; done; echo bye";
        let mut client = TracedClient::start(trace_command(&project, &[], &shell_command(agent)));
        client.expect_bytes("ready\n");
        // As with the agent itself, writing fails; as soon as what was written could not be passed on.
        let mut stdin = client.stdin.take().unwrap();
        while stdin.write_all(b"{}\n").is_ok() {}
        project.write_file("go", "");
        assert_eq!(client.read_line(), "bye\n");
        client.finish_after_agent().expect_code(3);
        let records = read_records(&project);
        assert!(event_names(&records).contains(&"agent_stopped_reading"));
    }

    #[test]
    fn trace_write_error_does_not_end_the_conversation() {
        let project = TestProject::new();
        make_fifo(&project, "trace");
        let mut client = TracedClient::start(trace_command(&project, &["--force"], &["cat"]));
        let mut reader = BufReader::new(File::open(project.file("trace")).unwrap());
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        assert!(header.contains("acp_trace"), "{header}");
        drop(reader);
        for n in 0..100 {
            let line = format!("{{\"id\":{n}}}\n");
            client.send(&line);
            client.expect_bytes(&line);
        }
        let ended = client.finish().expect_code(0);
        let said = "acp: recording stopped: cannot write trace: Broken pipe";
        assert_eq!(ended.stderr.matches("acp: ").count(), 1, "{ended:?}");
        ended
            .expect_stderr(said)
            .expect_stderr("continuing without recording");
    }

    /// Runs `cat` under `acp trace`. Asserts that all input comes back, and that every line is recorded in both
    /// directions.
    fn assert_relays(
        input: OwnedFd,
        output: OwnedFd,
        mut write: impl Write + Send,
        mut read: impl Read,
    ) {
        let project = TestProject::new();
        let mut command = trace_command(&project, &[], &["cat"]);
        command.stdin(input).stdout(output);
        let mut child = command.spawn().unwrap();
        // Its ends of them are its own from here on.
        drop(command);
        // More than all the pipes hold.
        let text = "x".repeat(500);
        let of = |n: usize| {
            format!(
                "{{\"id\":{n},\"text\":\"{text}\"}}\n{}",
                "no JSON\n".repeat(n % 3)
            )
        };
        let sent: String = (0..4000).map(of).collect();
        let bytes = sent.as_bytes();
        let mut come = vec![0; bytes.len()];
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || {
                write.write_all(bytes).unwrap();
                write
            });
            read.read_exact(&mut come).unwrap();
            // Only now: an agent gets little time for what it still has to say.
            drop(writing.join().unwrap());
        });
        assert!(come == bytes);
        assert_eq!(read.read(&mut come).unwrap(), 0);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let records = read_records(&project);
        for from in ["client", "agent"] {
            let said = messages_from(&records, from);
            assert_eq!(said.len(), sent.lines().count());
            let length = |record: &&Value| record["len"].as_u64().unwrap() + 1;
            let length: u64 = said.iter().map(length).sum();
            assert_eq!(length, bytes.len() as u64);
        }
    }

    /// The write half of a socket, which is shut down on drop.
    struct SocketWriter(UnixStream);

    impl Write for SocketWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Drop for SocketWriter {
        fn drop(&mut self) {
            self.0.shutdown(std::net::Shutdown::Write).unwrap();
        }
    }

    #[test]
    fn socket_works_like_pipes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let half = SocketWriter(ours.try_clone().unwrap());
        assert_relays(
            theirs.try_clone().unwrap().into(),
            theirs.into(),
            half,
            ours,
        );
    }

    #[test]
    fn relay_works_with_nonblocking_pipes() {
        let (input, write) = std::io::pipe().unwrap();
        let (read, output) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&input, true).unwrap();
        rustix::io::ioctl_fionbio(&output, true).unwrap();
        assert_relays(input.into(), output.into(), write, read);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn trace_waits_for_a_slow_disk_without_filling_memory() {
        const LINE_COUNT: usize = 48 * 1024;
        let project = TestProject::new();
        make_fifo(&project, "trace");
        let mut client = TracedClient::start(trace_command(&project, &["--force"], &["wc", "-l"]));
        let mut reader = BufReader::new(File::open(project.file("trace")).unwrap());
        let mut stdin = client.stdin.take().unwrap();
        let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(1000));
        let writer = std::thread::spawn(move || {
            for _ in 0..LINE_COUNT {
                stdin.write_all(line.as_bytes()).unwrap();
            }
        });
        let status = format!("/proc/{}/status", client.child.id());
        // Long enough asleep, with bytes to pass on, it waits for the disk.
        let io = format!("/proc/{}/io", client.child.id());
        let mut before = String::new();
        let mut same = 0;
        while same < 20 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let now = std::fs::read_to_string(&io).unwrap();
            same = if now == before { same + 1 } else { 0 };
            before = now;
        }
        assert!(
            !writer.is_finished(),
            "it was all taken, without being written"
        );
        let status = std::fs::read_to_string(status).unwrap();
        let peak = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap();
        let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(peak < 48 * 1024, "{peak} KiB");
        let reading = std::thread::spawn(move || {
            let mut all = String::new();
            reader.read_to_string(&mut all).unwrap();
            all
        });
        writer.join().unwrap();
        assert_eq!(client.read_line().trim(), LINE_COUNT.to_string());
        client.finish().expect_code(0);
        let file = reading.join().unwrap();
        assert_eq!(file.matches("\"from\":\"client\"").count(), LINE_COUNT);
    }
}
