//! Tests of `acp run` with a version 2 agent behind `acp bridge --to 1`.
//!
//! The agent is this program itself, started again.

use std::io::Write;

use crate::common::{ACP, CommandResult, TestProject, itself};
use serde_json::{Value, json};

/// Not a real test: runs the agent for the other tests.
#[test]
#[ignore = "it is the agent of the other tests"]
fn run_as_agent() {
    itself::run_if_agent(|_| run_agent());
}

fn run_acp(project: &TestProject, allow: &str, prompt: &str) -> CommandResult {
    let script = itself::agent_script("bridge_to_v1::run_as_agent", "");
    project.run(&[
        "--allow", allow, "--mode", "deep", prompt, "--", ACP, "bridge", "--to", "1", "--", "sh",
        "-c", &script,
    ])
}

#[test]
fn version_2_agent_turn_is_shown() {
    let project = TestProject::new();
    let ended = run_acp(&project, "all", "work").expect_code(0);
    let ended = ended.expect_stdout(&[
        "Thinking in mode deep.",
        "Clean up (execute)",
        "+new line",
        "Allowed. All done.",
    ]);
    // Whether a terminal or what comes after it is shown first is a matter of time.
    assert!(ended.stdout.contains("| héllo"), "{ended:#?}");
    // The agent's echo of the prompt and the message that is told whole are not shown again.
    assert_eq!(ended.stdout.matches("All done").count(), 1, "{ended:#?}");
    assert!(!ended.stdout.contains("work"), "{ended:#?}");
}

#[test]
fn permission_can_be_rejected() {
    let project = TestProject::new();
    run_acp(&project, "none", "work")
        .expect_code(8)
        .expect_stdout(&["Clean up", "Rejected. All done."]);
}

#[test]
fn agent_error_is_reported() {
    let project = TestProject::new();
    run_acp(&project, "all", "fail")
        .expect_code(1)
        .expect_stderr("the model is not there");
}

/// Runs a version 2 agent on stdin and stdout.
fn run_agent() {
    let mut agent = BridgedV2Agent {
        lines: std::io::stdin().lines(),
        mode: "quick".to_owned(),
    };
    println!("a banner, which is not a message");
    while let Some(asked) = agent.next() {
        agent.handle_request(&asked);
    }
}

struct BridgedV2Agent {
    lines: std::io::Lines<std::io::StdinLock<'static>>,
    mode: String,
}

impl BridgedV2Agent {
    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap())
    }

    fn send(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{message}").unwrap();
        stdout.flush().unwrap();
    }

    fn send_update(&self, update: Value) {
        self.send(
            json!({"method": "session/update", "params": {"sessionId": "v2", "update": update}}),
        );
    }

    fn config_options(&self) -> Value {
        json!([{"configId": "effort", "name": "Effort", "category": "mode", "type": "select",
                "currentValue": self.mode,
                "options": [{"value": "quick", "name": "Quick"}, {"value": "deep", "name": "Deep"}]}])
    }

    fn handle_request(&mut self, asked: &Value) {
        let result = match asked["method"].as_str() {
            Some("initialize") => {
                assert_eq!(asked["params"]["protocolVersion"], 2);
                json!({"protocolVersion": 2, "info": {"name": "v2", "version": "1"}, "capabilities": {"session": {}}})
            }
            Some("session/new") => {
                json!({"sessionId": "v2", "configOptions": self.config_options()})
            }
            Some("session/set_config_option") => {
                assert_eq!(asked["params"]["configId"], "effort");
                asked["params"]["value"]
                    .as_str()
                    .unwrap()
                    .clone_into(&mut self.mode);
                json!({"configOptions": self.config_options()})
            }
            Some("session/close") => json!({}),
            Some("session/prompt") => return self.run_turn(asked),
            _ => return,
        };
        self.send(json!({"id": asked["id"], "result": result}));
    }

    fn run_turn(&mut self, asked: &Value) {
        let prompt = &asked["params"]["prompt"];
        self.send_update(
            json!({"sessionUpdate": "user_message", "messageId": "u", "content": prompt}),
        );
        self.send(json!({"id": asked["id"], "result": {"messageId": "u"}}));
        self.send_update(json!({"sessionUpdate": "state_update", "state": "running"}));
        if prompt[0]["text"] == "fail" {
            let error = json!({"code": -32603, "message": "the model is not there"});
            return self.send_update(json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error}));
        }
        let thought = format!("Thinking in mode {}.", self.mode);
        self.send_update(json!({"sessionUpdate": "agent_message", "messageId": "t",
            "content": [{"type": "text", "text": thought}]}));
        self.send_update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Clean up",
            "kind": "execute", "content": [{"type": "terminal", "terminalId": "x"}]}),
        );
        self.send_update(json!({"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make", "cwd": "/"}));
        // "héllo\n", cut within a character.
        for data in ["aMM=", "qWxsbwo="] {
            self.send_update(
                json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data}),
            );
        }
        self.send_update(json!({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": {"exitCode": 0}}));
        self.send_update(json!({"sessionUpdate": "state_update", "state": "requires_action"}));
        self.send(
            json!({"id": "p", "method": "session/request_permission", "params": {
            "sessionId": "v2", "title": "May I?",
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                        {"optionId": "n", "name": "No", "kind": "reject_once"}]}}),
        );
        let chosen = self.next().unwrap();
        let allowed = chosen["result"]["outcome"]["optionId"] == "y";
        self.send_update(json!({"sessionUpdate": "state_update", "state": "running"}));
        let patch = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-old line\n+new line\n";
        self.send_update(
            json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": {
            "type": "diff", "changes": [{"operation": "modify", "path": "/a"}],
            "patch": {"format": "git_patch", "text": patch}}}),
        );
        let status = if allowed { "completed" } else { "cancelled" };
        self.send_update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}),
        );
        let first = if allowed { "Allowed." } else { "Rejected." };
        self.send_update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": first}}),
        );
        self.send_update(json!({"sessionUpdate": "agent_message", "messageId": "m",
            "content": [{"type": "text", "text": format!("{first} All done.")}]}));
        self.send_update(
            json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}),
        );
    }
}
