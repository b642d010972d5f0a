//! Tests of `acp agent` when started the way an editor starts it.

use crate::common;
use std::io::Write;
use std::process::Stdio;

use crate::common::TestProject;
use serde_json::{Value, json};

/// Sends these lines to the agent and returns its messages.
fn send_lines(project: &TestProject, args: &[&str], lines: &[Value]) -> Vec<Value> {
    let mut child = project
        .acp_command(&["agent"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    // The end of the input is the end of the agent; what was asked before is answered still.
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn initialize_request() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
}

fn new_session_request(project: &TestProject) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": project.path(), "mcpServers": []}})
}

#[test]
fn agent_announces_its_info_commands_and_modes() {
    let project = TestProject::new();
    let said = send_lines(
        &project,
        &[],
        &[initialize_request(), new_session_request(&project)],
    );
    let hello = &said[0]["result"];
    assert_eq!(hello["protocolVersion"], 1);
    assert_eq!(hello["agentInfo"]["name"], "acp-agent");
    assert_eq!(
        hello["agentCapabilities"]["promptCapabilities"]["embeddedContext"],
        true
    );
    let opened = said.iter().find(|m| m["id"] == 1).unwrap();
    assert_eq!(opened["result"]["modes"]["currentModeId"], "ask");
    assert_eq!(opened["result"]["configOptions"][0]["category"], "mode");
    let commands = said
        .iter()
        .find(|m| m["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let commands = commands.unwrap()["params"]["update"]["availableCommands"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = commands.iter().filter_map(|c| c["name"].as_str()).collect();
    for name in [
        "help", "list", "read", "search", "write", "edit", "run", "test", "plan",
    ] {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
}

#[test]
fn agent_speaks_the_requested_version() {
    let project = TestProject::new();
    let asks = |version: u16| {
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "info": {"name": "c", "version": "1"}, "capabilities": {}}})
    };
    let flags: [&[&str]; 2] = [&[], &["--protocol", "1"]];
    for (flags, asked, spoken) in [
        (flags[0], 1, 1),
        (flags[0], 2, 2),
        (flags[0], 3, 2),
        (flags[1], 2, 1),
    ] {
        let said = send_lines(&project, flags, &[asks(asked)]);
        assert_eq!(said[0]["result"]["protocolVersion"], spoken, "{flags:?}");
    }
}

#[test]
fn stdout_has_only_protocol_messages() {
    let project = TestProject::new();
    project.allow_commands();
    // In mode code, without a client's terminals, the agent runs the command itself.
    let script = project.write_turn_script(
        r#"{"run": {"command": "echo to stdout; echo to stderr >&2"}}, {"say": "done"}"#,
    );
    let prompt = |session: &str| {
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt",
               "params": {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}})
    };
    // The session's id is the agent's to choose, so this talk has two halves.
    let mut child = project
        .acp_command(&["agent", "--script", &script, "--log", "trace"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut next = || -> Value { serde_json::from_str(&stdout.next().unwrap().unwrap()).unwrap() };
    writeln!(
        stdin,
        "{}\n{}",
        initialize_request(),
        new_session_request(&project)
    )
    .unwrap();
    let session = loop {
        let message = next();
        if message["id"] == 1 {
            break message["result"]["sessionId"].as_str().unwrap().to_owned();
        }
    };
    let mode = json!({"jsonrpc": "2.0", "id": 2, "method": "session/set_mode", "params": {"sessionId": session, "modeId": "code"}});
    writeln!(stdin, "{mode}\n{}", prompt(&session)).unwrap();
    let mut said = Vec::new();
    loop {
        let message = next();
        said.push(message.clone());
        if message["id"] == 3 {
            assert_eq!(message["result"]["stopReason"], "end_turn");
            break;
        }
    }
    let all = serde_json::to_string(&said).unwrap();
    assert!(
        all.contains("to stdout") && all.contains("to stderr"),
        "{all}"
    );
    drop(stdin);
    assert!(stdout.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn invalid_input_gets_an_error_response() {
    let project = TestProject::new();
    let mut child = project
        .acp_command(&["agent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"garbage\n\n\r\n{\"a\":\"\xff\"}\n[1]\n")
        .unwrap();
    writeln!(
        stdin,
        "{}",
        json!({"jsonrpc": "2.0", "id": "x", "method": "no/such"})
    )
    .unwrap();
    writeln!(
        stdin,
        "{}\n{}",
        initialize_request(),
        new_session_request(&project)
    )
    .unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let codes: Vec<i64> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes, [-32700, -32700, -32600, -32601]);
    assert!(output.status.success());
}

/// An MCP server that never responds and never exits.
#[cfg(unix)]
const SILENT_SERVER: &str = r#"
[[mcp_servers]]
name = "silent"
command = "sh"
args = ["-c", "echo $$ > server.pid; echo \"$GIVEN\" > server.env; while true; do sleep 1000; done"]
env = { GIVEN = "given" }
"#;

/// Starts the agent with [`SILENT_SERVER`] configured, waits until the server is running, and returns its process id.
#[cfg(unix)]
fn start_editor_with_server(
    project: &TestProject,
) -> (common::editor::ScriptedEditor, rustix::process::Pid) {
    project.write_config("config.toml", SILENT_SERVER);
    let mut editor = common::editor::ScriptedEditor::start(project.acp_command(&["agent"]), 1);
    editor.new_session(project.path());
    wait_until("the server runs", || {
        std::fs::read_to_string(project.file("server.env")).is_ok_and(|env| env == "given\n")
    });
    let id = project.read_file("server.pid").trim().parse().unwrap();
    (editor, rustix::process::Pid::from_raw(id).unwrap())
}

/// Polls until the condition is true, for events that cannot be waited for directly.
#[cfg(unix)]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        let waited = began.elapsed();
        assert!(
            waited < std::time::Duration::from_secs(30),
            "not so: {what}"
        );
        std::thread::yield_now();
    }
}

#[cfg(unix)]
fn has_exited(id: rustix::process::Pid) -> bool {
    rustix::process::test_kill_process(id).is_err()
        || std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).is_ok_and(
            |stat| {
                stat.rsplit(") ")
                    .next()
                    .is_some_and(|state| state.starts_with('Z'))
            },
        )
}

#[cfg(unix)]
#[test]
fn user_mcp_servers_start_with_a_session_and_end_with_the_agent() {
    let project = TestProject::new();
    let (editor, server) = start_editor_with_server(&project);
    editor.close();
    wait_until("the server has ended", || has_exited(server));
}

#[cfg(unix)]
#[test]
fn killed_agent_leaves_no_mcp_servers() {
    let project = TestProject::new();
    let (editor, server) = start_editor_with_server(&project);
    editor.kill();
    wait_until("the server has ended", || has_exited(server));
}

#[test]
fn invalid_mcp_server_is_reported_at_startup() {
    let project = TestProject::new();
    project.write_config("config.toml", "[[mcp_servers]]\nname = \"files\"\n");
    let output = project
        .acp_command(&["agent"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("\"files\" requires either `command` or `url`"),
        "{said}"
    );
}

#[test]
fn model_gets_user_and_project_instructions() {
    let project = TestProject::new();
    project.write_config("AGENTS.md", "Mine: answer in rhymes.");
    project.write_file("AGENTS.md", "Ours: use tabs.");
    let script = project.write_turn_script(
        r#"{"expect": "Mine: answer in rhymes."}, {"expect": "Ours: use tabs."}, {"say": "Told."}"#,
    );
    let ended = project.run(&["go", "--", common::ACP, "agent", "--script", &script]);
    assert!(ended.stdout.contains("Told."), "{}", ended.stderr);
    std::fs::remove_file(project.file("AGENTS.md")).unwrap();
    let ended = project.run(&["go", "--", common::ACP, "agent", "--script", &script]);
    assert!(ended.stderr.contains("Ours: use tabs."), "{}", ended.stderr);
}
