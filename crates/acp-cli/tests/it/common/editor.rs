//! An editor that has started `acp agent`. It sends raw lines and keeps track of what the agent has shown.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Map, Value, json};

use super::patient::TimedReader;

pub(crate) struct ScriptedEditor {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<TimedReader>,
    version: u16,
    requests: i64,
    /// The state of the current session, as shown by the agent.
    pub(crate) shown: ShownSession,
    /// The number of updates about the agent's work that have been received so far.
    pub(crate) updates: usize,
}

impl ScriptedEditor {
    /// Starts the agent and negotiates the protocol version.
    pub(crate) fn start(mut command: Command, version: u16) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut editor = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(TimedReader::new(child.stdout.take().unwrap())),
            child,
            version,
            requests: 0,
            shown: ShownSession::default(),
            updates: 0,
        };
        let info = json!({"name": "test", "version": "1"});
        let params = match version {
            2 => json!({"protocolVersion": 2, "info": info, "capabilities": {}}),
            _ => json!({"protocolVersion": 1, "clientInfo": info}),
        };
        let answer = editor.send_and_wait("initialize", params).unwrap();
        assert_eq!(answer["protocolVersion"], version);
        editor
    }

    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        let id = self.requests;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // An agent that is killed reads no more.
        let _ = writeln!(self.stdin.as_mut().unwrap(), "{message}");
        id
    }

    /// Returns the next message, or `None` at the end of the output. Ignores an incomplete last line.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if !line.ends_with('\n') {
            return None;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "session/update" {
            let update = &message["params"]["update"];
            let kind = update["sessionUpdate"].as_str().unwrap();
            let parts = ["agent_", "tool_", "plan", "terminal_"];
            self.updates += usize::from(parts.iter().any(|part| kind.starts_with(part)));
            self.shown.apply_update(update);
        }
        if message["method"] == "session/request_permission" {
            panic!("nobody expects a question: {line}");
        }
        Some(message)
    }

    /// Waits for the response to a request.
    fn read_response(&mut self, id: i64) -> Result<Value, String> {
        while let Some(mut message) = self.next() {
            if message["id"] == id {
                return match message["error"]["message"].as_str() {
                    Some(error) => Err(error.to_owned()),
                    None => Ok(message["result"].take()),
                };
            }
        }
        Err("the agent has ended".to_owned())
    }

    pub(crate) fn send_and_wait(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params);
        self.read_response(id)
    }

    /// Opens a session in code mode, in which the agent does not request permission for edits.
    pub(crate) fn new_session(&mut self, cwd: &std::path::Path) -> String {
        let params = json!({"cwd": cwd, "mcpServers": []});
        let mut opened = self.send_and_wait("session/new", params).unwrap();
        let session = opened["sessionId"].take();
        self.set_mode(&session, "code");
        session.as_str().unwrap().to_owned()
    }

    pub(crate) fn set_mode(&mut self, session: &Value, mode: &str) {
        let params = json!({"sessionId": session, "configId": "mode", "value": mode});
        self.send_and_wait("session/set_config_option", params)
            .unwrap();
    }

    /// Loads an existing session, which replays its history.
    pub(crate) fn load_session(
        &mut self,
        session: &str,
        cwd: &std::path::Path,
    ) -> Result<Value, String> {
        self.shown = ShownSession::default();
        let mut params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        if self.version == 2 {
            params["replayFrom"] = json!({"type": "start"});
            return self.send_and_wait("session/resume", params);
        }
        self.send_and_wait("session/load", params)
    }

    /// Sends a prompt and returns the request id.
    pub(crate) fn start_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.send("session/prompt", params)
    }

    /// Runs a turn and returns its stop reason.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<String, String> {
        let id = self.start_prompt(session, text);
        if self.version == 1 {
            let answer = self.read_response(id)?;
            return Ok(answer["stopReason"].as_str().unwrap().to_owned());
        }
        self.read_response(id)?;
        while let Some(message) = self.next() {
            let update = &message["params"]["update"];
            if update["state"] == "idle" {
                return match update["error"]["message"].as_str() {
                    Some(error) => Err(error.to_owned()),
                    None => Ok(update["stopReason"].as_str().unwrap().to_owned()),
                };
            }
        }
        Err("the agent has ended".to_owned())
    }

    /// Reads until this many updates in total have been received. Returns `false` if the turn or the agent ends first.
    pub(crate) fn read_updates(&mut self, updates: usize) -> bool {
        while self.updates < updates {
            match self.next() {
                None => return false,
                Some(message) if message["params"]["update"]["state"] == "idle" => return false,
                Some(message) if message["result"]["stopReason"].is_string() => return false,
                Some(_) => {}
            }
        }
        true
    }

    /// Kills the agent with SIGKILL, and reads the rest of its output.
    pub(crate) fn kill(mut self) -> ShownSession {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.next().is_some() {}
        std::mem::take(&mut self.shown)
    }

    /// Closes the agent's stdin and waits for it to exit.
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        while self.next().is_some() {}
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for ScriptedEditor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The content of a session as shown in an editor. Assembled without the library's help.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct ShownSession {
    /// Messages by id, each with its sender and text.
    pub(crate) texts: BTreeMap<String, (String, String)>,
    pub(crate) calls: BTreeMap<String, Map<String, Value>>,
    /// Base64 chunks of each terminal's output, by terminal id.
    pub(crate) terminals: BTreeMap<String, Vec<String>>,
    /// The steps of the plan, as pairs of content and status.
    pub(crate) plan: Option<Vec<(String, String)>>,
}

impl ShownSession {
    fn apply_update(&mut self, update: &Value) {
        let text = |name: &str| update[name].as_str().unwrap_or_default().to_owned();
        let kind = text("sessionUpdate");
        match kind.as_str() {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                let id = text("messageId");
                assert_ne!(id, "", "{update}");
                let speaker = kind.trim_end_matches("_chunk").to_owned();
                let message = self
                    .texts
                    .entry(id)
                    .or_insert((speaker.clone(), String::new()));
                assert_eq!(message.0, speaker);
                message
                    .1
                    .push_str(update["content"]["text"].as_str().unwrap());
            }
            "user_message" | "agent_message" | "agent_thought" => {
                let blocks = update["content"].as_array().unwrap().iter();
                let whole = blocks
                    .map(|block| block["text"].as_str().unwrap())
                    .collect();
                self.texts.insert(text("messageId"), (kind, whole));
            }
            "tool_call" | "tool_call_update" => {
                let call = self.calls.entry(text("toolCallId")).or_default();
                for (name, value) in update.as_object().unwrap() {
                    if name != "sessionUpdate" {
                        call.insert(name.clone(), value.clone());
                    }
                }
            }
            "terminal_update" => {
                let output = self.terminals.entry(text("terminalId")).or_default();
                if let Some(data) = update["output"]["data"].as_str() {
                    *output = vec![data.to_owned()];
                }
            }
            "terminal_output_chunk" => {
                let output = self.terminals.entry(text("terminalId")).or_default();
                output.push(text("data"));
            }
            "plan" => self.plan = Some(plan_steps(&update["entries"])),
            "plan_update" => self.plan = Some(plan_steps(&update["plan"]["entries"])),
            _ => {}
        }
    }

    fn terminal_output(&self, terminal: &str) -> Vec<u8> {
        use base64::Engine as _;
        let pieces = self.terminals.get(terminal).into_iter().flatten();
        let decode = |piece: &String| {
            base64::engine::general_purpose::STANDARD
                .decode(piece)
                .unwrap()
        };
        pieces.flat_map(decode).collect()
    }

    /// Asserts that the session includes everything that was shown `before` the agent was killed. It may include more,
    /// since the agent may have stored updates that it did not get to send. `plans` are the plans that the turn shows,
    /// in order.
    #[track_caller]
    pub(crate) fn assert_includes(&self, before: &Self, plans: &[Vec<(String, String)>]) {
        for (id, (speaker, text)) in &before.texts {
            let now = self.texts.get(id);
            let (who, now) = now.unwrap_or_else(|| panic!("message {id} is lost: {before:#?}"));
            assert_eq!(who, speaker);
            assert!(now.starts_with(text.as_str()), "{id}: {now:?} and {text:?}");
        }
        let is_final = |call: &Map<String, Value>| {
            ["completed", "failed", "cancelled"]
                .iter()
                .any(|end| call["status"] == *end)
        };
        for (id, call) in &before.calls {
            let now = self.calls.get(id);
            let now = now.unwrap_or_else(|| panic!("call {id} is lost: {before:#?}"));
            assert!(is_final(now), "{id} has no end: {now:?}");
            for name in ["title", "kind", "rawInput"] {
                assert_eq!(now.get(name), call.get(name), "{id}");
            }
            // Of version 2 the status is not told as long as it is the first one.
            let ended = call.contains_key("status") && is_final(call);
            if ended {
                for name in ["status", "content", "locations", "rawOutput"] {
                    assert_eq!(now.get(name), call.get(name), "{id} {name}");
                }
            } else if now["status"] == "failed" && !now.contains_key("rawOutput") {
                let said = now["content"].to_string();
                assert!(
                    said.contains("The agent exited before this finished."),
                    "{id}: {said}"
                );
            }
        }
        for terminal in before.terminals.keys() {
            let (now, before) = (
                self.terminal_output(terminal),
                before.terminal_output(terminal),
            );
            assert!(now.starts_with(&before), "{terminal}: {now:?} {before:?}");
        }
        let place = |plan: &Option<Vec<_>>| {
            let plan = plan.as_ref()?;
            let at = plans.iter().position(|known| known == plan);
            Some(at.unwrap_or_else(|| panic!("an unknown plan: {plan:?}")))
        };
        assert!(place(&self.plan) >= place(&before.plan), "{:?}", self.plan);
    }
}

pub(crate) fn plan_steps(entries: &Value) -> Vec<(String, String)> {
    let step = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        (text("content"), text("status"))
    };
    entries.as_array().unwrap().iter().map(step).collect()
}
