//! Tests of `acp bridge` with a version 1 agent, and of two chained bridges, run as real processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use serde_json::{Value, json};

/// A version 2 client that has started `acp bridge`.
struct BridgedClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<TimedReader>,
    session: String,
}

impl BridgedClient {
    fn start(project: &TestProject, agent: &[&str]) -> Self {
        let mut child = project
            .acp_command(&["bridge", "--to", "2", "--"])
            .args(agent)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(TimedReader::new(child.stdout.take().unwrap())),
            child,
            session: String::new(),
        }
    }

    /// Starts a client and opens a session with the bundled agent.
    fn start_with_session(project: &TestProject, agent: &[&str]) -> Self {
        let mut client = Self::start(project, agent);
        let info = json!({"name": "test", "version": "1"});
        client.send_request(0, "initialize", json!({"protocolVersion": 2, "info": info}));
        let hello = client.read_until(|m| m["id"] == 0).pop().unwrap();
        assert_eq!(hello["result"]["protocolVersion"], 2);
        assert_eq!(hello["result"]["info"]["name"], "acp-agent");
        client.send_request(1, "session/new", json!({"cwd": project.path()}));
        let opened = client.read_until(|m| m["id"] == 1).pop().unwrap();
        assert_eq!(opened["result"]["configOptions"][0]["configId"], "mode");
        client.session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn send_request(&mut self, id: i64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn send_prompt(&mut self, id: i64, text: &str) {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.send_request(id, "session/prompt", params);
    }

    /// Reads messages up to and including the first one for which `found` returns true.
    fn read_until(&mut self, found: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line);
            let read = read.unwrap_or_else(|e| panic!("{e} after {seen:#?}"));
            assert_ne!(read, 0, "the end before what is looked for: {seen:#?}");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            seen.push(message);
            if found(&seen[seen.len() - 1]) {
                return seen;
            }
        }
    }

    fn finish(mut self) -> CommandResult {
        self.stdin = None;
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let mut ended = CommandResult::from_output(self.child.wait_with_output().unwrap());
        ended.stdout = rest;
        ended
    }
}

fn update_in(message: &Value) -> &Value {
    &message["params"]["update"]
}

fn is_idle(message: &Value) -> bool {
    update_in(message)["state"] == "idle"
}

#[test]
fn version_2_client_runs_a_turn_of_a_version_1_agent() {
    let project = TestProject::new();
    project.allow_commands();
    let mut client = BridgedClient::start_with_session(&project, &[ACP, "agent"]);
    client.send_prompt(2, "/edit notes.txt\nsecond\n===\nSECOND");
    let asked = client.read_until(|m| m["method"] == "session/request_permission");
    let states: Vec<&Value> = asked.iter().map(|m| &update_in(m)["state"]).collect();
    let answered = asked
        .iter()
        .position(|m| m["id"] == 2 && m["method"].is_null());
    let running = states.iter().position(|s| *s == "running");
    assert!(answered.is_some() && answered < running, "{asked:#?}");
    assert_eq!(
        update_in(&asked[asked.len() - 2])["state"],
        "requires_action"
    );
    let request = &asked[asked.len() - 1];
    let subject = &request["params"]["subject"];
    assert_eq!(subject["type"], "tool_call");
    let call = subject["toolCall"]["toolCallId"].clone();
    assert!(
        !request["params"]["title"].as_str().unwrap().is_empty(),
        "{request}"
    );
    let allow = request["params"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .find(|option| option["kind"] == "allow_once")
        .unwrap();
    let outcome = json!({"outcome": "selected", "optionId": allow["optionId"]});
    client.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}}));
    let ended = client.read_until(is_idle);
    assert_eq!(update_in(&ended[0])["state"], "running");
    // It comes ahead of the question, and is not told twice.
    let mut diffs = asked
        .iter()
        .chain(&ended)
        .flat_map(|m| {
            update_in(m)["content"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .filter(|content| content["type"] == "diff");
    let diff = diffs.next().unwrap();
    assert_eq!(diffs.next(), None);
    let file = project.file("notes.txt").canonicalize().unwrap();
    assert_eq!(diff["changes"][0]["path"], file.to_str().unwrap());
    let patch = diff["patch"]["text"].as_str().unwrap();
    assert!(patch.contains("-second\n+SECOND\n"), "{patch}");
    let done = ended
        .iter()
        .any(|m| update_in(m)["toolCallId"] == call && update_in(m)["status"] == "completed");
    assert!(done, "{ended:#?}");
    assert_eq!(update_in(&ended[ended.len() - 1])["stopReason"], "end_turn");
    assert_eq!(project.read_file("notes.txt"), "first\nSECOND\nthird\n");

    // The mode is a config option, and a turn that is under way can be cancelled.
    let set =
        json!({"sessionId": client.session, "configId": "mode", "type": "id", "value": "code"});
    client.send_request(3, "session/set_config_option", set);
    let set = client.read_until(|m| m["id"] == 3).pop().unwrap();
    assert_eq!(set["result"]["configOptions"][0]["currentValue"], "code");
    client.send_prompt(4, "/run echo begun; sleep 1000");
    client.send_prompt(5, "/help");
    // In base64: "begun\n".
    client.read_until(|m| update_in(m)["data"] == "YmVndW4K");
    let cancel = json!({"sessionId": client.session});
    client.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": cancel}));
    let ended = client.read_until(is_idle);
    let held = ended.iter().find(|m| m["id"] == 5).unwrap();
    assert_eq!(held["error"]["code"], -32800);
    assert_eq!(
        update_in(&ended[ended.len() - 1])["stopReason"],
        "cancelled"
    );
    client.finish().expect_code(0);
}

#[test]
fn output_over_two_bridges_equals_direct_output() {
    let project = TestProject::new();
    // Files and terminals of the client's are not used over version 2, so no command is run here.
    let shell = r#"{"think": "hm"}, {"say": "Let me see.\n"}, {"plan": [{"content": "Look", "status": "in_progress"}]},
        {"read": {"path": "notes.txt"}}, {"search": {"pattern": "second"}}, {"say": "Done.\n"}"#;
    let script = project.write_turn_script(shell);
    let agent = [ACP, "agent", "--script", &script];
    let plain = [
        &["--allow", "all", "--mode", "code", "go", "--"][..],
        &agent,
    ]
    .concat();
    let plain = project.run(&plain).expect_code(0);
    let bridges = [
        &["--allow", "all", "--mode", "code", "go", "--"][..],
        &[
            ACP, "bridge", "--to", "1", "--", ACP, "bridge", "--to", "2", "--",
        ],
        &agent,
    ]
    .concat();
    let over = project.run(&bridges).expect_code(0);
    assert!(plain.stdout.contains("notes.txt"), "{plain:?}");
    assert_eq!(over.stdout, plain.stdout);
}

#[test]
fn agent_start_failure_is_reported() {
    let project = TestProject::new();
    let ended = |args: &[&str]| {
        CommandResult::from_output(
            project
                .acp_command(&["bridge"])
                .args(args)
                .output()
                .unwrap(),
        )
    };
    ended(&["--to", "2", "--", "no-such-agent"])
        .expect_code(3)
        .expect_stderr("command not found: `no-such-agent`");
    ended(&["--to", "3", "--", ACP, "agent"]).expect_code(2);
    ended(&["--to", "2"]).expect_code(2);
    ended(&["--", ACP, "agent"]).expect_code(2);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    fn shell_command(script: &str) -> [&str; 3] {
        ["sh", "-c", script]
    }

    /// Returns `true` if the process with the id in the file is still running.
    fn is_running(project: &TestProject, file: &str) -> bool {
        let id: i32 = project.read_file(file).trim().parse().unwrap();
        // One that has ended but that nobody has asked after (a zombie) does not run.
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default();
        !state.trim_start().starts_with('Z')
            && test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
    }

    #[test]
    fn agent_crash_is_reported_and_its_requests_get_errors() {
        let project = TestProject::new();
        let agent = "echo starting up; echo broken >&2; read line; exit 7";
        let mut client = BridgedClient::start(&project, &shell_command(agent));
        client.send_request(0, "initialize", json!({"protocolVersion": 2}));
        let answer = client.read_until(|m| m["id"] == 0).pop().unwrap();
        assert_eq!(answer["error"]["code"], -32603);
        let ended = client
            .finish()
            .expect_code(3)
            .expect_stderr("broken")
            .expect_stderr("starting up");
        let ended = ended.expect_stderr("the agent exited:");
        assert!(ended.stderr.contains('7'), "{ended:?}");
    }

    #[test]
    fn agent_that_does_not_exit_is_killed() {
        let project = TestProject::new();
        // It notices neither the end of its input nor the signal, and has a child of that kind.
        let agent = "trap '' TERM; echo $$ > parent; (trap '' TERM; sleep 1000) & echo $! > child; \
                     echo there >&2; while :; do sleep 1000; done";
        let client = BridgedClient::start(&project, &shell_command(agent));
        while !project.file("child").exists() {
            std::thread::yield_now();
        }
        client.finish().expect_code(0).expect_stderr("there");
        for file in ["parent", "child"] {
            assert!(!is_running(&project, file), "{file}");
        }
    }

    #[test]
    fn signal_also_ends_the_agent() {
        let project = TestProject::new();
        let agent = "echo $$ > parent; cat > /dev/null; echo told > told";
        let client = BridgedClient::start(&project, &shell_command(agent));
        while !project.file("parent").exists() {
            std::thread::yield_now();
        }
        let id = i32::try_from(client.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
        let status = {
            let mut client = client;
            client.child.wait().unwrap()
        };
        assert_eq!(status.code(), Some(130));
        // Its input was closed before anything else was done about it.
        assert_eq!(project.read_file("told"), "told\n");
        assert!(!is_running(&project, "parent"));
    }
}
