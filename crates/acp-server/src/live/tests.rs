//! Tests of a live agent without I/O: the test plays the clients and the agent.

use std::sync::Arc;

use acp_remote::CloseStatus;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::agent::LiveAgent;
use super::log::ClientId;
use crate::metrics::AgentCounters;
use crate::users::{Scope, User, UserLimits};

/// A live agent whose process and clients are the test.
pub(super) struct Harness {
    pub(super) agent: LiveAgent,
    next_id: i64,
}

impl Harness {
    /// Creates an agent that has answered `initialize` with these capabilities.
    pub(super) fn new(capabilities: &Value) -> Self {
        let agent = LiveAgent::new(Arc::default(), Arc::<AgentCounters>::default());
        let mut harness = Self { agent, next_id: 1 };
        let [initialize] = harness.take_agent_messages().try_into().unwrap();
        assert_eq!(initialize["method"], "initialize");
        let result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities });
        harness.answer(&initialize, &result);
        harness
    }

    /// Lets the agent's process exit.
    pub(super) fn end_agent(&mut self, reason: &str) {
        let status = CloseStatus::failed(reason);
        self.agent.agent_ended(&status, false);
        self.agent.close_clients(&status);
    }

    /// Returns the messages to the agent since the last call.
    pub(super) fn take_agent_messages(&mut self) -> Vec<Value> {
        messages(&self.agent.take_agent_output())
    }

    /// Returns the only message to the agent since the last call.
    pub(super) fn take_agent_message(&mut self) -> Value {
        let [message] = self.take_agent_messages().try_into().unwrap();
        message
    }

    /// Sends a message of the agent.
    pub(super) fn send_from_agent(&mut self, message: &Value) {
        let line = message.to_string();
        self.agent.handle_agent_line(line.as_bytes()).unwrap();
    }

    /// Sends the agent's response to a request.
    pub(super) fn answer(&mut self, request: &Value, result: &Value) {
        self.send_from_agent(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Sends a chunk of the agent's message.
    pub(super) fn say(&mut self, session: &str, text: &str) {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": session, "update": update });
        let line = format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
        self.agent.handle_agent_line(line.as_bytes()).unwrap();
    }

    /// Sends a permission request of the agent.
    pub(super) fn ask_permission(&mut self, id: i64, session: &str) {
        let params =
            json!({ "sessionId": session, "toolCall": { "toolCallId": "c" }, "options": [] });
        self.send_from_agent(&request(id, "session/request_permission", &params));
    }

    /// Connects a client, and initializes the connection.
    pub(super) fn connect(&mut self, name: &str) -> ClientId {
        let client = self.agent.add_client(Arc::new(Notify::new()));
        let params = json!({ "protocolVersion": 1, "clientInfo": { "name": name } });
        self.send(client, "initialize", &params);
        let [response] = self.read(client).try_into().unwrap();
        assert_eq!(response["result"]["protocolVersion"], 1);
        client
    }

    /// Sends a client's request, and returns its id.
    pub(super) fn send(&mut self, client: ClientId, method: &str, params: &Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let line = request(id, method, params).to_string();
        self.agent.handle_client_line(client, line.as_bytes());
        id
    }

    pub(super) fn notify(&mut self, client: ClientId, method: &str, params: &Value) {
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        self.agent.handle_client_line(client, line.as_bytes());
    }

    /// Sends a client's response to a request.
    pub(super) fn respond(&mut self, client: ClientId, id: &Value, result: &Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        self.agent.handle_client_line(client, line.as_bytes());
    }

    /// Returns everything that a client can read.
    pub(super) fn read(&mut self, client: ClientId) -> Vec<Value> {
        let mut read = Vec::new();
        loop {
            let output = self.agent.take_client_output(client, 64);
            assert_eq!(output.close, None);
            if output.bytes.is_empty() {
                return read;
            }
            read.extend(messages(&output.bytes));
        }
    }

    /// Opens a session for a client, which reads the response.
    pub(super) fn open(&mut self, client: ClientId, session: &str) {
        self.send(
            client,
            "session/new",
            &json!({ "cwd": "/work", "mcpServers": [] }),
        );
        let new = self.take_agent_message();
        let modes = json!({ "currentModeId": "ask", "availableModes": [] });
        self.answer(&new, &json!({ "sessionId": session, "modes": modes }));
        let [response] = self.read(client).try_into().unwrap();
        assert_eq!(response["result"]["sessionId"], session);
    }

    /// Lets a client load a session, and returns what it reads.
    pub(super) fn load(&mut self, client: ClientId, session: &str) -> Vec<Value> {
        let id = self.send(client, "session/load", &load_params(session));
        let read = self.read(client);
        assert!(read.iter().any(|message| message["id"] == id), "{read:?}");
        read
    }

    pub(super) fn prompt(&mut self, client: ClientId, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.send(client, "session/prompt", &params)
    }
}

fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn load_params(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] })
}

pub(super) fn messages(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Describes what a client reads, one word per message: `agent:TEXT`, `user:TEXT`, `response:ID`, or the method.
pub(super) fn words(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .map(|message| {
            let update = &message["params"]["update"];
            match (message["method"].as_str(), update["sessionUpdate"].as_str()) {
                (None, _) => format!("response:{}", message["id"]),
                (Some(_), Some(kind)) => {
                    let who = kind.split('_').next().unwrap();
                    let text = update["content"]["text"].as_str().unwrap_or("");
                    format!("{who}:{text}")
                }
                (Some(method), None) => method.to_owned(),
            }
        })
        .collect()
}

#[test]
fn clients_see_one_order_and_a_late_one_gets_the_history_first() {
    let mut h = Harness::new(&json!({}));
    let first = h.connect("first");
    h.open(first, "s");
    let turn = h.prompt(first, "s", "Hello");
    let prompt = h.take_agent_message();
    assert_eq!(prompt["params"]["prompt"][0]["text"], "Hello");
    h.say("s", "a");
    let second = h.connect("second");
    let load = h.send(second, "session/load", &load_params("s"));
    h.say("s", "b");
    h.answer(&prompt, &json!({ "stopReason": "end_turn" }));
    let expected = [
        "_live/turn_started",
        "agent:a",
        "agent:b",
        &format!("response:{turn}"),
    ];
    assert_eq!(words(&h.read(first)), expected);
    let read = h.read(second);
    let expected = [
        "user:Hello",
        "agent:a",
        &format!("response:{load}"),
        "agent:b",
        "_live/turn_ended",
    ];
    assert_eq!(words(&read), expected);
    let meta = &read[0]["params"]["update"]["_meta"];
    assert_eq!(meta["live"]["client"], "first");
    assert_eq!(read[4]["params"]["stopReason"], "end_turn");
    // The agent was asked for nothing: the history is the server's.
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    // Now it is history for both.
    let expected = ["user:Hello", "agent:a", "agent:b"];
    for client in [first, second] {
        let read = h.load(client, "s");
        assert_eq!(words(&read)[..3], expected);
        assert_eq!(read.len(), 4);
    }
}

#[test]
fn every_client_reads_a_prefix_of_one_order_however_fast_it_reads() {
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..50 {
        let mut h = Harness::new(&json!({}));
        let owner = h.connect("owner");
        h.open(owner, "s");
        let mut read: Vec<(ClientId, Vec<String>)> = vec![(owner, Vec::new())];
        let (mut said, mut turns) = (Vec::new(), 0);
        for step in 0..200 {
            match next(10) {
                0 if read.len() < 4 => {
                    let client = h.connect("other");
                    h.send(client, "session/load", &load_params("s"));
                    read.push((client, Vec::new()));
                }
                1 => {
                    h.prompt(owner, "s", "more");
                }
                2 => {
                    // The turn ends, which compacts the log.
                    for message in h.take_agent_messages() {
                        if message["method"] == "session/prompt" {
                            h.answer(&message, &json!({ "stopReason": "end_turn" }));
                            turns += 1;
                        }
                    }
                }
                3..6 => {
                    let at = usize::try_from(next(read.len() as u64)).unwrap();
                    let (client, texts) = &mut read[at];
                    let output = h.agent.take_client_output(*client, 200);
                    assert_eq!(output.close, None);
                    texts.extend(agent_texts(&messages(&output.bytes)));
                }
                _ => {
                    let text = format!("{step};");
                    h.say("s", &text);
                    said.push(text);
                }
            }
        }
        let said = said.concat();
        for (client, mut texts) in read {
            let before = texts.concat();
            assert!(said.starts_with(&before), "{before} is no prefix of {said}");
            texts.extend(agent_texts(&h.read(client)));
            assert_eq!(texts.concat(), said, "after {turns} turns");
        }
    }
}

fn agent_texts(messages: &[Value]) -> Vec<String> {
    let texts = words(messages).into_iter();
    texts
        .filter_map(|word| Some(word.strip_prefix("agent:")?.to_owned()))
        .collect()
}

#[test]
fn first_answer_to_a_question_counts_and_the_other_clients_are_told() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    h.ask_permission(70, "s");
    let asked = [first, second].map(|client| {
        let [question] = h.read(client).try_into().unwrap();
        assert_eq!(question["method"], "session/request_permission");
        assert_eq!(question["params"]["toolCall"]["toolCallId"], "c");
        question["id"].clone()
    });
    // A client that attaches while the question is open is asked, too, after the response to its request.
    let third = h.connect("third");
    let read = h.load(third, "s");
    assert_eq!(words(&read)[1..], ["session/request_permission"]);

    let allow = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    h.respond(second, &asked[1], &allow);
    let answer = h.take_agent_message();
    assert_eq!((&answer["id"], &answer["result"]), (&json!(70), &allow));
    let read = h.read(first);
    assert_eq!(words(&read), ["$/cancel_request", "_live/question_closed"]);
    assert_eq!(read[0]["params"]["requestId"], asked[0]);
    assert_eq!(read[1]["params"]["answeredBy"], "second");
    assert_eq!(h.read(second), Vec::<Value>::new());
    assert_eq!(h.read(third).len(), 2);

    let reject = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
    h.respond(first, &asked[0], &reject);
    h.respond(second, &asked[1], &reject);
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    // Whoever comes now is not asked.
    let fourth = h.connect("fourth");
    let read = words(&h.load(fourth, "s"));
    assert!(
        !read.iter().any(|word| word.contains("permission")),
        "{read:?}"
    );
}

#[test]
fn question_waits_while_no_client_is_connected() {
    let mut h = Harness::new(&json!({}));
    let first = h.connect("first");
    h.open(first, "s");
    h.prompt(first, "s", "Hello");
    h.take_agent_messages();
    h.agent.remove_client(first);
    h.ask_permission(70, "s");
    assert!(!h.agent.is_idle());
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    let second = h.connect("second");
    let read = h.load(second, "s");
    let question = read.last().unwrap();
    assert_eq!(question["method"], "session/request_permission");
    h.respond(second, &question["id"], &json!({ "outcome": {} }));
    assert_eq!(h.take_agent_message()["id"], 70);
}

#[test]
fn observer_that_closes_a_session_does_not_end_its_turn() {
    let mut h = Harness::new(&json!({ "sessionCapabilities": { "close": {} } }));
    let [prompter, observer] = ["prompter", "observer"].map(|name| h.connect(name));
    h.open(prompter, "s");
    h.load(observer, "s");
    let (user, _) = User::new("anna", [Scope::Look], false, UserLimits::default()).unwrap();
    h.agent.set_user(observer, user.to_client_user());
    h.send(
        prompter,
        "session/prompt",
        &json!({ "sessionId": "s", "prompt": [] }),
    );
    assert_eq!(h.take_agent_message()["method"], "session/prompt");
    h.agent.remove_client(prompter);
    h.read(observer);
    let id = h.send(observer, "session/close", &json!({ "sessionId": "s" }));
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    assert_eq!(h.read(observer)[0]["id"], id);
    assert!(h.agent.has_work());
}

#[cfg(target_os = "linux")]
#[test]
fn answer_that_cannot_be_recorded_does_not_reach_the_agent() {
    let mut h = Harness::new(&json!({}));
    // A disk that is always full.
    let log = crate::users::AuditLog::open("/dev/full".as_ref()).unwrap();
    let client = h.connect("client");
    h.open(client, "s");
    h.agent.audit = Some((log, "agent".to_owned()));
    h.ask_permission(70, "s");
    let asked = h.read(client)[0]["id"].clone();
    let allow = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    h.respond(client, &asked, &allow);
    let answer = h.take_agent_message();
    let error = answer["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("cannot write the audit log"), "{error}");
    let params = json!({ "sessionId": "s", "prompt": [] });
    h.send(client, "session/prompt", &params);
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    let read = h.read(client);
    let error = read.last().unwrap()["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("cannot write the audit log"), "{error}");
}

#[test]
fn client_that_cannot_answer_leaves_the_question_to_the_others() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    let params = json!({ "sessionId": "s", "message": "?", "mode": "form", "requestedSchema": {} });
    h.send_from_agent(&request(5, "elicitation/create", &params));
    let [asked, other] = [first, second].map(|client| h.read(client)[0]["id"].clone());
    let cannot = |id: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } })
            .to_string()
    };
    h.agent.handle_client_line(first, cannot(&asked).as_bytes());
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    h.agent
        .handle_client_line(second, cannot(&other).as_bytes());
    assert_eq!(h.take_agent_message()["error"]["code"], -32601);
}

#[test]
fn prompts_queue_and_go_on_without_their_client() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    h.prompt(first, "s", "one");
    let two = h.prompt(second, "s", "two");
    let one = h.take_agent_message();
    assert_eq!(one["params"]["prompt"][0]["text"], "one");
    h.agent.remove_client(first);
    h.say("s", "1");
    h.answer(&one, &json!({ "stopReason": "end_turn" }));
    let next = h.take_agent_message();
    assert_eq!(next["params"]["prompt"][0]["text"], "two");
    h.say("s", "2");
    h.answer(&next, &json!({ "stopReason": "end_turn" }));
    let expected = [
        "user:one",
        "_live/turn_started",
        "_live/queue_changed",
        "agent:1",
        "_live/turn_ended",
        "_live/turn_started",
        "_live/queue_changed",
        "agent:2",
        &format!("response:{two}"),
    ];
    assert_eq!(words(&h.read(second)), expected);
    h.agent.remove_client(second);
    assert!(h.agent.is_idle());
}

#[test]
fn cancel_ends_the_turn_and_takes_back_only_the_client_s_own_prompts() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    h.prompt(first, "s", "one");
    let own = h.prompt(first, "s", "own");
    let other = h.prompt(second, "s", "other");
    let one = h.take_agent_message();
    h.ask_permission(70, "s");
    h.notify(first, "session/cancel", &json!({ "sessionId": "s" }));
    let [answer, cancel] = h.take_agent_messages().try_into().unwrap();
    assert_eq!(answer["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(answer["id"], 70);
    assert_eq!(cancel["method"], "session/cancel");
    let read = h.read(first);
    let cancelled = read.iter().find(|message| message["id"] == own).unwrap();
    assert_eq!(cancelled["result"]["stopReason"], "cancelled");
    h.answer(&one, &json!({ "stopReason": "cancelled" }));
    let next = h.take_agent_message();
    assert_eq!(next["params"]["prompt"][0]["text"], "other");
    // A request that waits in the queue can be cancelled, too.
    let later = h.prompt(second, "s", "later");
    h.notify(second, "$/cancel_request", &json!({ "requestId": later }));
    h.notify(second, "$/cancel_request", &json!({ "requestId": other }));
    let cancel = h.take_agent_message();
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], next["id"]);
    let read = h.read(second);
    let cancelled = read.iter().find(|message| message["id"] == later).unwrap();
    assert_eq!(cancelled["error"]["code"], -32800);
}

#[test]
fn client_that_reads_too_slowly_is_disconnected_and_holds_nobody_up() {
    let mut h = Harness::new(&json!({}));
    h.agent.max_log_bytes = 100_000;
    let [first, slow] = ["first", "slow"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(slow, "s");
    let text = "x".repeat(1000);
    for _ in 0..1000 {
        h.say("s", &text);
        assert_eq!(h.read(first).len(), 1);
    }
    let output = h.agent.take_client_output(slow, 64);
    let reason = output.close.unwrap().reason;
    assert!(reason.starts_with("too slow: "), "{reason}");
    // What is left is loaded, and the response says that it is not everything.
    let late = h.connect("late");
    let read = h.load(late, "s");
    let dropped = &read.last().unwrap()["result"]["_meta"]["live"]["droppedEntries"];
    assert!(dropped.as_u64().unwrap() > 900, "{dropped}");
    assert!((50..100).contains(&read.len()), "{}", read.len());
}

#[test]
fn session_that_is_not_live_is_loaded_once_for_all_who_ask() {
    let mut h = Harness::new(&json!({ "loadSession": true }));
    let [first, second, third] = ["first", "second", "third"].map(|name| h.connect(name));
    let one = h.send(first, "session/load", &load_params("old"));
    let load = h.take_agent_message();
    assert_eq!(load["method"], "session/load");
    h.say("old", "past");
    let two = h.send(second, "session/load", &load_params("old"));
    let three = h.send(third, "session/resume", &load_params("old"));
    h.say("old", "more");
    h.answer(&load, &json!({ "modes": { "currentModeId": "code" } }));
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    for (client, id) in [(first, one), (second, two)] {
        let read = h.read(client);
        let expected = ["agent:past", "agent:more", &format!("response:{id}")];
        assert_eq!(words(&read), expected);
        assert_eq!(read[2]["result"]["modes"]["currentModeId"], "code");
    }
    assert_eq!(words(&h.read(third)), [format!("response:{three}")]);

    // A session that the agent does not know is nobody's.
    h.send(first, "session/load", &load_params("gone"));
    let load = h.take_agent_message();
    let error = json!({ "code": -32002, "message": "not found" });
    h.send_from_agent(&json!({ "jsonrpc": "2.0", "id": load["id"], "error": error }));
    let [response] = h.read(first).try_into().unwrap();
    assert_eq!(response["error"]["code"], -32002);
    assert!(!h.agent.has_work());
}

#[test]
fn late_client_gets_the_current_mode() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    let params = json!({ "sessionId": "s", "modeId": "code" });
    let id = h.send(first, "session/set_mode", &params);
    let set = h.take_agent_message();
    h.answer(&set, &json!({}));
    assert_eq!(words(&h.read(first)), [format!("response:{id}")]);
    let [update] = h.read(second).try_into().unwrap();
    assert_eq!(update["params"]["update"]["currentModeId"], "code");
    let third = h.connect("third");
    let read = h.load(third, "s");
    assert_eq!(
        read.last().unwrap()["result"]["modes"]["currentModeId"],
        "code"
    );
}

#[test]
fn updates_before_a_session_is_confirmed_follow_its_response() {
    let mut h = Harness::new(&json!({}));
    let client = h.connect("client");
    let id = h.send(client, "session/new", &json!({ "cwd": "/work" }));
    let new = h.take_agent_message();
    h.say("s", "early");
    h.say("other", "never seen");
    h.answer(&new, &json!({ "sessionId": "s" }));
    let expected = [format!("response:{id}"), "agent:early".to_owned()];
    assert_eq!(words(&h.read(client)), expected);
}

#[test]
fn capabilities_are_those_of_the_agent_as_far_as_it_can_be_shared() {
    let capabilities = json!({
        "promptCapabilities": { "image": true },
        "sessionCapabilities": { "fork": {}, "delete": {} },
        "mcpCapabilities": { "http": true, "acp": true },
        "other": 1,
    });
    let mut h = Harness::new(&capabilities);
    let client = h.agent.add_client(Arc::new(Notify::new()));
    h.send(client, "session/new", &json!({ "cwd": "/" }));
    h.send(client, "initialize", &json!({ "protocolVersion": 1 }));
    let [rejected, response] = h.read(client).try_into().unwrap();
    assert_eq!(rejected["error"]["code"], -32600);
    let expected = json!({
        "_meta": { "live": { "isStored": false, "linePositions": true } },
        "loadSession": true,
        "promptCapabilities": { "image": true },
        "sessionCapabilities": { "delete": {}, "list": {}, "resume": {}, "close": {} },
        "mcpCapabilities": { "http": true },
        "other": 1,
    });
    assert_eq!(response["result"]["agentCapabilities"], expected);
    // Files and terminals are not offered.
    h.send_from_agent(&request(
        1,
        "fs/read_text_file",
        &json!({ "sessionId": "s", "path": "/a" }),
    ));
    assert_eq!(h.take_agent_message()["error"]["code"], -32601);
}

#[test]
fn close_ends_the_session_with_its_last_client() {
    let mut h = Harness::new(&json!({ "sessionCapabilities": { "close": {} } }));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    let params = json!({ "sessionId": "s" });
    let id = h.send(first, "session/close", &params);
    assert_eq!(words(&h.read(first)), [format!("response:{id}")]);
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    // It is no longer open there, even though it is live.
    h.prompt(first, "s", "Hello");
    assert_eq!(h.read(first)[0]["error"]["code"], -32002);
    let turn = h.prompt(second, "s", "Hello");
    h.take_agent_messages();
    let id = h.send(second, "session/close", &params);
    let close = h.take_agent_message();
    assert_eq!(close["method"], "session/close");
    h.say("s", "last words");
    h.answer(&close, &json!({}));
    let read = h.read(second);
    let expected = [
        "_live/turn_started",
        "agent:last words",
        &format!("response:{turn}"),
        &format!("response:{id}"),
    ];
    assert_eq!(words(&read), expected);
    assert_eq!(read[2]["result"]["stopReason"], "cancelled");
    h.send(second, "session/load", &load_params("s"));
    assert_eq!(h.read(second)[0]["error"]["code"], -32002);
}

#[test]
fn clients_are_disconnected_when_the_agent_ends() {
    let mut h = Harness::new(&json!({}));
    let client = h.connect("client");
    h.open(client, "s");
    h.say("s", "last words");
    h.end_agent("the agent exited");
    let output = h.agent.take_client_output(client, 1024);
    assert_eq!(words(&messages(&output.bytes)), ["agent:last words"]);
    let output = h.agent.take_client_output(client, 1024);
    assert_eq!(output.close.unwrap().reason, "the agent exited");
}

/// A random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A client of the random test, with what it has asked and what it was asked.
struct RandomClient {
    id: ClientId,
    /// The ids and methods of its requests without a response.
    open_requests: Vec<(i64, String)>,
    questions: Vec<Value>,
}

impl RandomClient {
    fn receive(&mut self, messages: Vec<Value>) {
        for message in messages {
            match (message["method"].as_str(), &message["id"]) {
                (None, id) if id.is_null() => {}
                (None, id) => {
                    let at = self.open_requests.iter().position(|(open, _)| *id == *open);
                    let at = at.unwrap_or_else(|| panic!("nobody asked for {message}"));
                    self.open_requests.swap_remove(at);
                }
                (Some("$/cancel_request"), _) => {
                    let id = &message["params"]["requestId"];
                    self.questions.retain(|question| question != id);
                }
                (Some(_), id) if !id.is_null() => self.questions.push(id.clone()),
                _ => {}
            }
        }
    }
}

#[test]
fn every_request_gets_exactly_one_response_whatever_happens() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let capabilities = json!({
            "loadSession": seed % 2 == 0,
            "sessionCapabilities": { "close": {}, "list": {} },
        });
        let mut h = Harness::new(&capabilities);
        let mut clients: Vec<RandomClient> = Vec::new();
        let (mut to_answer, mut asked): (Vec<Value>, Vec<i64>) = (Vec::new(), Vec::new());
        let sessions = ["a", "b", "c"];
        for step in 0..400_i64 {
            let session = *random.choose(&sessions);
            match random.below(12) {
                0 if clients.len() < 4 => {
                    let id = h.connect("client");
                    clients.push(RandomClient {
                        id,
                        open_requests: Vec::new(),
                        questions: Vec::new(),
                    });
                }
                1 if clients.len() > 1 && random.below(4) == 0 => {
                    let at = random.below(clients.len());
                    h.agent.remove_client(clients.swap_remove(at).id);
                }
                2..6 if !clients.is_empty() => {
                    let at = random.below(clients.len());
                    let client = &mut clients[at];
                    let methods = [
                        "session/new",
                        "session/load",
                        "session/resume",
                        "session/list",
                        "session/prompt",
                        "session/prompt",
                        "session/close",
                        "session/delete",
                        "session/set_mode",
                        "_other/method",
                    ];
                    let method = random.choose(&methods);
                    let mut params = load_params(session);
                    params["prompt"] = json!([{ "type": "text", "text": "x" }]);
                    let id = h.send(client.id, method, &params);
                    client.open_requests.push((id, (*method).to_owned()));
                }
                6 if !clients.is_empty() => {
                    let client = random.choose(&clients);
                    match client.open_requests.last() {
                        Some((id, _)) if random.below(2) == 0 => {
                            h.notify(client.id, "$/cancel_request", &json!({ "requestId": id }));
                        }
                        _ => h.notify(
                            client.id,
                            "session/cancel",
                            &json!({ "sessionId": session }),
                        ),
                    }
                }
                7 if !to_answer.is_empty() => {
                    let request = to_answer.swap_remove(random.below(to_answer.len()));
                    answer_randomly(&mut h, &mut random, &request, session);
                }
                8 => {
                    asked.push(step);
                    h.ask_permission(step, session);
                }
                9 if !clients.is_empty() => {
                    let at = random.below(clients.len());
                    if let Some(id) = clients[at].questions.pop() {
                        h.respond(clients[at].id, &id, &json!({}));
                    }
                }
                10 if !clients.is_empty() => {
                    let at = random.below(clients.len());
                    let output = h.agent.take_client_output(clients[at].id, 300);
                    assert_eq!(output.close, None);
                    clients[at].receive(messages(&output.bytes));
                }
                _ => h.say(session, "text"),
            }
            collect(&mut h, &mut to_answer, &mut asked);
        }
        // Everything that is still open comes to its end.
        while !to_answer.is_empty() {
            for request in std::mem::take(&mut to_answer) {
                answer_randomly(&mut h, &mut random, &request, "a");
            }
            collect(&mut h, &mut to_answer, &mut asked);
        }
        for client in &mut clients {
            let read = h.read(client.id);
            client.receive(read);
            for id in std::mem::take(&mut client.questions) {
                h.respond(client.id, &id, &json!({}));
            }
            assert!(
                client.open_requests.is_empty(),
                "seed {seed}: {:?}",
                client.open_requests
            );
        }
        collect(&mut h, &mut to_answer, &mut asked);
        // Questions of sessions that no client has open wait for one.
        if !clients.is_empty() {
            let attached: Vec<_> = sessions
                .iter()
                .filter_map(|id| h.agent.sessions.get(&acp::v1::SessionId::from(*id)))
                .filter(|session| session.clients().count() > 0)
                .collect();
            let open = attached.iter().map(|session| session.questions().count());
            assert_eq!(open.sum::<usize>(), 0, "seed {seed}");
        }
    }
}

/// Takes the requests that the agent must answer, and notes which of its own have been answered.
fn collect(h: &mut Harness, to_answer: &mut Vec<Value>, asked: &mut Vec<i64>) {
    for message in h.take_agent_messages() {
        match message["method"].as_str() {
            Some(_) if message["id"].is_null() => {}
            Some(_) => to_answer.push(message),
            None => {
                let at = asked.iter().position(|id| message["id"] == *id);
                let at = at.unwrap_or_else(|| panic!("the agent did not ask for {message}"));
                asked.swap_remove(at);
            }
        }
    }
}

fn answer_randomly(h: &mut Harness, random: &mut Random, request: &Value, session: &str) {
    if random.below(5) == 0 {
        let error = json!({ "code": -32603, "message": "failed" });
        h.send_from_agent(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
        return;
    }
    let result = match request["method"].as_str() {
        Some("session/new") => json!({ "sessionId": session }),
        Some("session/prompt") => json!({ "stopReason": "end_turn" }),
        _ => json!({}),
    };
    h.answer(request, &result);
}

#[test]
fn cancel_of_a_waiting_client_leaves_the_turn_of_another_alone() {
    let mut h = Harness::new(&json!({}));
    let [first, second] = ["first", "second"].map(|name| h.connect(name));
    h.open(first, "s");
    h.load(second, "s");
    h.prompt(first, "s", "one");
    let one = h.take_agent_message();
    let waiting = h.prompt(second, "s", "two");
    h.notify(second, "session/cancel", &json!({ "sessionId": "s" }));
    assert_eq!(h.take_agent_messages(), Vec::<Value>::new());
    let read = h.read(second);
    let ended = read.iter().find(|message| message["id"] == waiting);
    assert_eq!(ended.unwrap()["result"]["stopReason"], "cancelled");
    // Now it waits for nothing, so this is about the turn.
    h.notify(second, "session/cancel", &json!({ "sessionId": "s" }));
    assert_eq!(h.take_agent_message()["method"], "session/cancel");
    h.answer(&one, &json!({ "stopReason": "cancelled" }));
}

#[test]
fn session_is_loaded_with_mcp_servers_even_if_the_client_resumes_it_without() {
    let mut h = Harness::new(&json!({ "loadSession": true }));
    let client = h.connect("client");
    let params = json!({ "sessionId": "s", "cwd": "/work" });
    h.send(client, "session/resume", &params);
    let load = h.take_agent_message();
    assert_eq!(load["method"], "session/load");
    let params = json!({ "sessionId": "s", "cwd": "/work", "mcpServers": [] });
    assert_eq!(load["params"], params);
}

#[test]
fn status_shows_turn_and_queue_and_prompts_can_be_moved_and_taken_back() {
    let mut harness = Harness::new(&json!({}));
    let first = harness.connect("first");
    harness.open(first, "s");
    let second = harness.connect("second");
    harness.send(
        second,
        "session/load",
        &json!({ "sessionId": "s", "cwd": "/work", "mcpServers": [] }),
    );
    harness.read(second);
    let prompt =
        |text: &str| json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
    harness.send(first, "session/prompt", &prompt("one"));
    let turn = harness.take_agent_message();
    let two = harness.send(first, "session/prompt", &prompt("two"));
    harness.send(second, "session/prompt", &prompt("three"));
    harness.send(second, "session/prompt", &prompt("four"));
    harness.read(first);
    harness.read(second);

    // A client that has not initialized its connection can ask, too.
    let asker = harness.agent.add_client(Arc::new(Notify::new()));
    harness.send(asker, "_live/status", &json!({}));
    let [status] = harness.read(asker).try_into().unwrap();
    assert_eq!(status["result"]["otherClients"], 2);
    assert_eq!(status["result"]["isBusy"], true);
    let session = &status["result"]["sessions"][0];
    assert_eq!(session["turn"]["client"], "first");
    assert_eq!(session["turn"]["text"], "one");
    let texts = |queue: &Value| -> Vec<String> {
        let prompts = queue.as_array().unwrap().iter();
        prompts
            .map(|prompt| prompt["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&session["queue"]), ["two", "three", "four"]);
    let number = |at: usize| session["queue"][at]["prompt"].clone();

    harness.send(
        asker,
        "_live/move",
        &json!({ "sessionId": "s", "prompt": number(2), "position": 0 }),
    );
    let [moved] = harness.read(asker).try_into().unwrap();
    assert_eq!(texts(&moved["result"]["queue"]), ["four", "two", "three"]);
    harness.send(
        asker,
        "_live/take_back",
        &json!({ "sessionId": "s", "prompt": number(0) }),
    );
    let [taken] = harness.read(asker).try_into().unwrap();
    assert_eq!(texts(&taken["result"]["queue"]), ["four", "three"]);
    // Whoever sent the prompt learns that it does not run.
    let read = harness.read(first);
    let response = read.iter().find(|message| message["id"] == two).unwrap();
    assert_eq!(response["result"]["stopReason"], "cancelled");
    let queues: Vec<_> = read
        .iter()
        .filter(|message| message["method"] == "_live/queue_changed")
        .map(|message| texts(&message["params"]["queue"]))
        .collect();
    assert_eq!(
        queues,
        [vec!["four", "two", "three"], vec!["four", "three"]]
    );
    // It can be taken back only once.
    harness.send(
        asker,
        "_live/take_back",
        &json!({ "sessionId": "s", "prompt": number(0) }),
    );
    let [again] = harness.read(asker).try_into().unwrap();
    assert_eq!(again["error"]["code"], -32002);

    harness.answer(&turn, &json!({ "stopReason": "end_turn" }));
    let next = harness.take_agent_message();
    assert_eq!(next["params"]["prompt"][0]["text"], "four");
    // An agent that is not private cannot be stopped.
    harness.send(asker, "_live/stop", &json!({}));
    let [stop] = harness.read(asker).try_into().unwrap();
    assert_eq!(stop["error"]["code"], -32601);
}

#[test]
fn requests_in_flight_fail_with_the_reason_when_the_agent_ends() {
    let mut harness = Harness::new(&json!({}));
    let client = harness.connect("client");
    harness.open(client, "s");
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "x" }] });
    let running = harness.send(client, "session/prompt", &params);
    let queued = harness.send(client, "session/prompt", &params);
    let other = harness.send(
        client,
        "session/new",
        &json!({ "cwd": "/", "mcpServers": [] }),
    );
    harness.say("s", "last words");
    harness.end_agent("the agent exited: code 1");
    let mut read = Vec::new();
    let status = loop {
        let output = harness.agent.take_client_output(client, 64);
        if let Some(status) = output.close {
            break status;
        }
        read.extend(messages(&output.bytes));
    };
    assert_eq!(status.reason, "the agent exited: code 1");
    for id in [running, queued, other] {
        let response = read.iter().find(|message| message["id"] == id);
        let error = &response.unwrap()["error"];
        assert_eq!(error["message"], "the agent exited: code 1");
        assert_eq!(error["data"]["live"], "agentEnded");
    }
    // The response comes after the updates.
    let at = |wanted: &dyn Fn(&Value) -> bool| read.iter().position(wanted).unwrap();
    let said = at(&|message| message.to_string().contains("last words"));
    assert!(said < at(&|message| message["id"] == running));
}

#[test]
fn prompt_that_nobody_waits_for_is_shown_to_its_sender_too() {
    let mut h = Harness::new(&json!({}));
    let client = h.connect("client");
    h.open(client, "s");
    let params =
        |text: &str| json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
    let first = h.send(client, "_live/prompt", &params("one"));
    let second = h.send(client, "_live/prompt", &params("two"));
    let read = h.read(client);
    for (id, number) in [(first, 1), (second, 2)] {
        let response = read.iter().find(|message| message["id"] == id).unwrap();
        assert_eq!(response["result"]["prompt"], number);
    }
    let texts: Vec<_> = words(&read)
        .into_iter()
        .filter(|word| word.starts_with("user:"))
        .collect();
    assert_eq!(texts, ["user:one"]);
    let turn = h.take_agent_message();
    h.answer(&turn, &json!({ "stopReason": "refusal" }));
    let read = h.read(client);
    let ended = read
        .iter()
        .find(|message| message["method"] == "_live/turn_ended")
        .unwrap();
    assert_eq!(ended["params"]["stopReason"], "refusal");
    assert!(words(&read).contains(&"user:two".to_owned()));
}
