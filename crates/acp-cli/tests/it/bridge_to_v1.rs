//! `acp run` with an agent of version 2 behind `acp bridge --to 1`.
//!
//! The agent is this program itself, started again.

use std::io::Write;

use crate::common::{ACP, CommandResult, TestProject, itself};
use serde_json::{Value, json};

/// No test, but the agent of the others.
#[test]
#[ignore = "it is the agent of the other tests"]
fn the_agent() {
    itself::be(|_| agent());
}

fn run(project: &TestProject, allow: &str, prompt: &str) -> CommandResult {
    let script = itself::script("bridge_to_v1::the_agent", "");
    project.run(&[
        "--allow", allow, "--mode", "deep", prompt, "--", ACP, "bridge", "--to", "1", "--", "sh",
        "-c", &script,
    ])
}

#[test]
fn a_person_sees_a_turn_of_an_agent_of_version_2() {
    let project = TestProject::new();
    let ended = run(&project, "all", "work").code(0);
    let ended = ended.shows(&[
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
fn a_permission_can_be_rejected() {
    let project = TestProject::new();
    run(&project, "none", "work")
        .code(0)
        .shows(&["Clean up", "Rejected. All done."]);
}

#[test]
fn an_error_of_the_agent_s_is_told() {
    let project = TestProject::new();
    run(&project, "all", "fail")
        .code(1)
        .says("the model is not there");
}

/// An agent of version 2, on stdin and stdout.
fn agent() {
    let mut agent = BridgedV2Agent {
        lines: std::io::stdin().lines(),
        mode: "quick".to_owned(),
    };
    println!("a banner, which is not a message");
    while let Some(asked) = agent.next() {
        agent.answer(&asked);
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

    fn say(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{message}").unwrap();
        stdout.flush().unwrap();
    }

    fn update(&self, update: Value) {
        self.say(
            json!({"method": "session/update", "params": {"sessionId": "v2", "update": update}}),
        );
    }

    fn options(&self) -> Value {
        json!([{"configId": "effort", "name": "Effort", "category": "mode", "type": "select",
                "currentValue": self.mode,
                "options": [{"value": "quick", "name": "Quick"}, {"value": "deep", "name": "Deep"}]}])
    }

    fn answer(&mut self, asked: &Value) {
        let result = match asked["method"].as_str() {
            Some("initialize") => {
                assert_eq!(asked["params"]["protocolVersion"], 2);
                json!({"protocolVersion": 2, "info": {"name": "v2", "version": "1"}, "capabilities": {"session": {}}})
            }
            Some("session/new") => json!({"sessionId": "v2", "configOptions": self.options()}),
            Some("session/set_config_option") => {
                assert_eq!(asked["params"]["configId"], "effort");
                asked["params"]["value"]
                    .as_str()
                    .unwrap()
                    .clone_into(&mut self.mode);
                json!({"configOptions": self.options()})
            }
            Some("session/close") => json!({}),
            Some("session/prompt") => return self.turn(asked),
            _ => return,
        };
        self.say(json!({"id": asked["id"], "result": result}));
    }

    fn turn(&mut self, asked: &Value) {
        let prompt = &asked["params"]["prompt"];
        self.update(json!({"sessionUpdate": "user_message", "messageId": "u", "content": prompt}));
        self.say(json!({"id": asked["id"], "result": {"messageId": "u"}}));
        self.update(json!({"sessionUpdate": "state_update", "state": "running"}));
        if prompt[0]["text"] == "fail" {
            let error = json!({"code": -32603, "message": "the model is not there"});
            return self.update(json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error}));
        }
        let thought = format!("Thinking in mode {}.", self.mode);
        self.update(json!({"sessionUpdate": "agent_message", "messageId": "t",
            "content": [{"type": "text", "text": thought}]}));
        self.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Clean up",
            "kind": "execute", "content": [{"type": "terminal", "terminalId": "x"}]}),
        );
        self.update(json!({"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make", "cwd": "/"}));
        // "héllo\n", cut within a character.
        for data in ["aMM=", "qWxsbwo="] {
            self.update(
                json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data}),
            );
        }
        self.update(json!({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": {"exitCode": 0}}));
        self.update(json!({"sessionUpdate": "state_update", "state": "requires_action"}));
        self.say(
            json!({"id": "p", "method": "session/request_permission", "params": {
            "sessionId": "v2", "title": "May I?",
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                        {"optionId": "n", "name": "No", "kind": "reject_once"}]}}),
        );
        let chosen = self.next().unwrap();
        let allowed = chosen["result"]["outcome"]["optionId"] == "y";
        self.update(json!({"sessionUpdate": "state_update", "state": "running"}));
        let patch = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-old line\n+new line\n";
        self.update(
            json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": {
            "type": "diff", "changes": [{"operation": "modify", "path": "/a"}],
            "patch": {"format": "git_patch", "text": patch}}}),
        );
        let status = if allowed { "completed" } else { "cancelled" };
        self.update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}),
        );
        let first = if allowed { "Allowed." } else { "Rejected." };
        self.update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": first}}),
        );
        self.update(json!({"sessionUpdate": "agent_message", "messageId": "m",
            "content": [{"type": "text", "text": format!("{first} All done.")}]}));
        self.update(
            json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}),
        );
    }
}
