//! A hostile agent. During its turn, it plays a list of steps and records every response it gets.
//!
//! It speaks raw JSON-RPC, so that a test can send what no library would.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{ACP, ChatScreen, CommandResult, CommandTerminal, TestProject, itself};

/// The environment variable that contains the path of the file with the agent's steps.
pub(crate) const STEPS_VARIABLE: &str = "HOSTILE_AGENT_STEPS";

/// The environment variable that contains the path of the file where the agent records responses, one JSON value per
/// line.
const RESPONSES_VARIABLE: &str = "HOSTILE_AGENT_ANSWERS";

/// The id of the session that the agent opens.
pub(crate) const SESSION_ID: &str = "s";

/// Returns a step that sends a request and waits for the response.
pub(crate) fn request_step(method: &str, params: Value) -> Value {
    json!({ "request": { "method": method, "params": params } })
}

/// Returns a step that sends a request without waiting for the response. The response is still recorded when it
/// arrives.
pub(crate) fn request_without_waiting_step(method: &str, params: Value) -> Value {
    json!({ "send": { "id": method, "method": method, "params": params } })
}

/// Returns a step that sends a notification.
pub(crate) fn notification_step(method: &str, params: Value) -> Value {
    json!({ "send": { "method": method, "params": params } })
}

/// Returns a step that sends a session update.
pub(crate) fn update_step(update: Value) -> Value {
    notification_step(
        "session/update",
        json!({ "sessionId": SESSION_ID, "update": update }),
    )
}

/// Returns a step that runs a shell command line as a child of the agent.
pub(crate) fn shell_step(line: &str) -> Value {
    json!({ "shell": line })
}

/// Returns a step that waits until a file with this name exists.
pub(crate) fn wait_step(file: &str) -> Value {
    json!({ "wait": file })
}

/// Returns a step that requests permission for a tool call, with the usual options.
pub(crate) fn permission_step(tool_call: Value) -> Value {
    let option = |kind: &str, name: &str| json!({"optionId": kind, "name": name, "kind": kind});
    request_step(
        "session/request_permission",
        json!({"sessionId": SESSION_ID, "toolCall": tool_call, "options": [
            option("allow_once", "Allow"),
            option("allow_always", "Always allow"),
            option("reject_once", "Reject"),
        ]}),
    )
}

/// Returns a step that runs a command in a client terminal.
pub(crate) fn terminal_step(command: &str, args: &[&str]) -> Value {
    request_step(
        "terminal/create",
        json!({"sessionId": SESSION_ID, "command": command, "args": args}),
    )
}

/// Returns the command line that starts the agent with these steps.
pub(crate) fn agent_command(project: &TestProject, steps: &[Value]) -> Vec<String> {
    project.write_file(".steps", &Value::from(steps.to_vec()).to_string());
    let script = format!(
        "export {STEPS_VARIABLE}={} {RESPONSES_VARIABLE}={}
{}",
        project.file(".steps").display(),
        responses_file(project).display(),
        itself::agent_script("hostile::run_as_agent", "")
    );
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

/// Runs `acp run` with the agent, without a terminal.
pub(crate) fn run_steps(project: &TestProject, args: &[&str], steps: &[Value]) -> CommandResult {
    CommandResult::from_output(run_command(project, args, steps).output().unwrap())
}

/// Returns the command that [`run_steps`] runs.
pub(crate) fn run_command(
    project: &TestProject,
    args: &[&str],
    steps: &[Value],
) -> std::process::Command {
    let agent = agent_command(project, steps);
    let writable = writable_args(project, &args.join(" "));
    let mut all: Vec<&str> = args.to_vec();
    all.extend(writable.iter().map(String::as_str));
    all.extend(["go", "--"]);
    all.extend(agent.iter().map(String::as_str));
    project.agent_command(&all)
}

/// Returns the arguments that let the agent record responses if `args` put it in a sandbox.
fn writable_args(project: &TestProject, args: &str) -> Vec<String> {
    let implied = ["--allow none", "--allow reads"];
    let is_confined = match args.contains("--sandbox") {
        true => !args.contains("--sandbox=off"),
        false => implied.iter().any(|policy| args.contains(policy)),
    };
    let answers = project.path_outside("answers");
    match is_confined {
        true => vec!["--writable".to_owned(), answers.display().to_string()],
        false => Vec::new(),
    }
}

/// Starts `acp run` with the agent on a terminal.
pub(crate) fn run_on_terminal(
    project: &TestProject,
    args: &str,
    steps: &[Value],
) -> CommandTerminal {
    write_agent_config(project, steps);
    let writable = writable_args(project, args).join(" ");
    CommandTerminal::start(
        project,
        &format!("{ACP} run --agent hostile {args} {writable} go"),
    )
}

/// Starts `acp chat` with the agent, which plays its steps when prompted.
pub(crate) fn start_chat(
    project: &TestProject,
    columns: u16,
    rows: u16,
    steps: &[Value],
) -> ChatScreen {
    write_agent_config(project, steps);
    let mut screen = ChatScreen::start(
        project,
        columns,
        rows,
        &format!("{ACP} chat --agent hostile"),
    );
    screen.wait_for("hostile");
    screen
}

/// Configures the agent under the name `hostile`.
pub(crate) fn write_agent_config(project: &TestProject, steps: &[Value]) {
    let command = serde_json::to_string(&agent_command(project, steps)).unwrap();
    project.write_config(
        "config.toml",
        &format!("[agents.hostile]\ncommand = {command}\n"),
    );
}

/// Returns the responses to the agent's requests in the order they arrived, each with a `result` or an `error`.
pub(crate) fn read_responses(project: &TestProject) -> Vec<Value> {
    let text = std::fs::read_to_string(responses_file(project)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the path of the file that contains the recorded responses. It is outside the project, in a directory that is
/// made writable in a sandbox.
fn responses_file(project: &TestProject) -> PathBuf {
    project.path_outside("answers").join("answers")
}

/// Runs the agent.
pub(crate) fn run_hostile_agent() {
    let steps = std::fs::read_to_string(std::env::var(STEPS_VARIABLE).unwrap()).unwrap();
    let steps: Vec<Value> = serde_json::from_str(&steps).unwrap();
    HostileAgent {
        client: itself::client_output(),
        heard: BufReader::new(std::io::stdin()),
        asked: 0,
    }
    .run_steps(&steps);
}

struct HostileAgent<R> {
    client: File,
    heard: R,
    /// The number of requests sent so far.
    asked: u64,
}

impl<R: BufRead> HostileAgent<R> {
    fn run_steps(&mut self, steps: &[Value]) {
        while let Some(message) = self.next() {
            let result = match message["method"].as_str() {
                Some("initialize") => {
                    json!({"protocolVersion": 1, "agentInfo": {"name": "hostile", "version": "1"},
                    "agentCapabilities": {"loadSession": true}})
                }
                Some("session/new") => json!({"sessionId": SESSION_ID}),
                Some("session/load") => json!({}),
                Some("session/prompt") => {
                    for step in steps {
                        self.run_step(step);
                    }
                    json!({"stopReason": "end_turn"})
                }
                _ => continue,
            };
            self.send(json!({"id": message["id"], "result": result}));
        }
    }

    fn run_step(&mut self, step: &Value) {
        let (kind, what) = step.as_object().unwrap().iter().next().unwrap();
        match kind.as_str() {
            "send" => self.send(what.clone()),
            "request" => {
                self.asked += 1;
                let id = json!(format!("q{}", self.asked));
                let mut message = what.clone();
                message["id"] = id.clone();
                self.send(message);
                while let Some(message) = self.next() {
                    if message["id"] == id {
                        break;
                    }
                }
            }
            "shell" => {
                let line = what.as_str().unwrap();
                let output = Command::new("sh").args(["-c", line]).output().unwrap();
                record_response(&json!({"shell": String::from_utf8_lossy(&output.stdout),
                    "stderr": String::from_utf8_lossy(&output.stderr), "code": output.status.code()}));
            }
            "wait" => {
                let file = std::path::Path::new(what.as_str().unwrap());
                while !file.exists() {
                    // Nothing else tells it that it may go on.
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            other => panic!("unknown step: {other}"),
        }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        // Whoever has gone does not read it.
        let _ = self.client.write_all(format!("{message}\n").as_bytes());
    }

    /// Returns the next message from the client. If it is a response, records it.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.heard.read_line(&mut line).unwrap_or_default() == 0 {
            return None;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"].is_null() {
            record_response(&message);
        }
        Some(message)
    }
}

/// Records a response if the agent can write to the file.
fn record_response(answer: &Value) {
    let file = std::env::var(RESPONSES_VARIABLE).unwrap();
    let file = OpenOptions::new().create(true).append(true).open(file);
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("{answer}\n").as_bytes());
    }
}
