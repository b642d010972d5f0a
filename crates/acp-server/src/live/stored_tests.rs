//! Tests of a live agent whose sessions are stored, without I/O: the test plays the store, too.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::tests::{Harness, load_params, messages, words};
use super::unwritten::{Unwritten, UnwrittenBatch};
use crate::store::{
    FencingToken, LiveSessionKey, LoggedLine, PromptRecord, PromptState, SessionHead,
    StoredLiveSession,
};

impl Harness {
    /// Creates an agent whose sessions are stored.
    fn stored(capabilities: &Value) -> Self {
        let mut harness = Self::new(capabilities);
        harness.agent.unwritten = Some(Unwritten::new("agent", Arc::<Notify>::default()));
        harness
    }

    /// Takes what is to be written.
    fn take_batch(&mut self) -> UnwrittenBatch {
        self.agent.take_unwritten().unwrap_or_default()
    }

    /// Writes everything. Returns the texts of the lines.
    fn write_all(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        while let Some(batch) = self.agent.take_unwritten() {
            written.extend(batch_lines(&batch));
            self.agent.batch_written(&[]);
        }
        written
    }

    /// Opens a session, and writes it.
    fn open_stored(&mut self, client: super::log::ClientId, session: &str) {
        let params = json!({ "cwd": "/work", "mcpServers": [] });
        self.send(client, "session/new", &params);
        let new = self.take_agent_message();
        self.answer(&new, &json!({ "sessionId": session }));
        self.write_all();
        let [response] = self.read(client).try_into().unwrap();
        assert_eq!(response["result"]["sessionId"], session);
    }
}

fn batch_lines(batch: &UnwrittenBatch) -> Vec<String> {
    let lines = batch.changes.iter().flat_map(|change| &change.lines);
    let lines = lines.flat_map(|line| messages(line.line.as_bytes()));
    words(&lines.collect::<Vec<_>>())
}

fn key(session: &str) -> LiveSessionKey {
    LiveSessionKey {
        agent: "agent".to_owned(),
        session: session.to_owned(),
    }
}

fn prompt_record(number: u64, state: PromptState) -> PromptRecord {
    PromptRecord {
        number,
        key: format!("key{number}"),
        sender: Some("client".to_owned()),
        params: json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": format!("p{number}") }] })
            .to_string(),
        state,
        position: number,
        response: None,
    }
}

fn stored_session(prompts: Vec<PromptRecord>) -> StoredLiveSession {
    StoredLiveSession {
        key: key("s"),
        token: FencingToken(2),
        head: SessionHead {
            creator: None,
            cwd: Some("/work".to_owned()),
            title: None,
            setup: r#"{"result":{},"params":{"mcpServers":[{"name":"m"}]}}"#.to_owned(),
        },
        next_line: 10,
        next_prompt: 5,
        prompts,
    }
}

fn chunk_line(number: u64, text: &str) -> LoggedLine {
    let update = json!({
        "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text },
    });
    logged(number, &update)
}

fn logged(number: u64, update: &Value) -> LoggedLine {
    let params = json!({ "sessionId": "s", "update": update });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    LoggedLine {
        number,
        until: number + 1,
        line: line.to_string().into(),
    }
}

#[test]
fn nothing_is_shown_before_it_is_written() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    h.say("s", "one");
    assert_eq!(h.read(client).len(), 0);
    let batch = h.take_batch();
    assert_eq!(batch_lines(&batch), ["agent:one"]);
    // What comes while the batch is written is in the next one.
    h.say("s", "two");
    assert_eq!(h.read(client).len(), 0);
    h.agent.batch_written(&[]);
    assert_eq!(words(&h.read(client)), ["agent:one"]);
    assert_eq!(h.write_all(), ["agent:two"]);
    assert_eq!(words(&h.read(client)), ["agent:two"]);
}

#[test]
fn prompt_is_sent_to_the_agent_when_its_turn_is_written() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let id = h.prompt(client, "s", "go");
    assert_eq!(h.take_agent_messages().len(), 0);
    let batch = h.take_batch();
    let [change] = &batch.changes[..] else {
        panic!("{batch:?}");
    };
    let states: Vec<PromptState> = change.prompts.iter().map(|p| p.state).collect();
    assert_eq!(states, [PromptState::Running]);
    assert_eq!(h.take_agent_messages().len(), 0);
    h.agent.batch_written(&[]);
    let sent = h.take_agent_message();
    assert_eq!(sent["method"], "session/prompt");
    h.answer(&sent, &json!({ "stopReason": "end_turn" }));
    h.write_all();
    let read = h.read(client);
    assert!(read.iter().any(|message| message["id"] == id), "{read:?}");
}

#[test]
fn cancelled_prompt_that_was_not_sent_is_never_sent() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let id = h.prompt(client, "s", "go");
    h.notify(client, "session/cancel", &json!({ "sessionId": "s" }));
    h.write_all();
    assert_eq!(h.take_agent_messages().len(), 0);
    let read = h.read(client);
    let response = read.iter().find(|message| message["id"] == id).unwrap();
    assert_eq!(response["result"]["stopReason"], "cancelled");
}

#[test]
fn prompt_that_is_sent_again_does_not_run_twice() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let params = json!({
        "sessionId": "s",
        "prompt": [{ "type": "text", "text": "go" }],
        "_meta": { "live": { "promptKey": "k1" } },
    });
    h.send(client, "session/prompt", &params);
    h.write_all();
    let sent = h.take_agent_message();
    // Another client sends it while it runs, and gets the response.
    let other = h.connect("client");
    h.send(other, "session/resume", &load_params("s"));
    let again = h.send(other, "session/prompt", &params);
    h.answer(&sent, &json!({ "stopReason": "end_turn" }));
    h.write_all();
    assert_eq!(h.take_agent_messages().len(), 0);
    let read = h.read(other);
    let response = read.iter().find(|message| message["id"] == again).unwrap();
    assert_eq!(response["result"]["stopReason"], "end_turn");
    // After the end, too.
    let late = h.send(other, "session/prompt", &params);
    h.write_all();
    assert_eq!(h.take_agent_messages().len(), 0);
    let read = h.read(other);
    let response = read.iter().find(|message| message["id"] == late).unwrap();
    assert_eq!(response["result"]["stopReason"], "end_turn");
}

#[test]
fn turn_that_was_cut_is_not_run_again_and_the_queue_goes_on() {
    let mut h = Harness::stored(&json!({ "sessionCapabilities": { "resume": {} } }));
    let tool_call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run" });
    let finished = json!({
        "sessionUpdate": "tool_call", "toolCallId": "f", "title": "Read", "status": "completed",
    });
    let lines = vec![
        chunk_line(0, "said"),
        logged(5, &finished),
        logged(7, &tool_call),
    ];
    let prompts = vec![
        prompt_record(3, PromptState::Running),
        prompt_record(4, PromptState::Queued),
    ];
    h.agent.reopen(stored_session(prompts), lines);
    // The agent opens the session as it was opened before.
    let resume = h.take_agent_message();
    assert_eq!(resume["method"], "session/resume");
    assert_eq!(resume["params"]["mcpServers"][0]["name"], "m");
    assert_eq!(resume["params"]["cwd"], "/work");
    let batch = h.take_batch();
    let [change] = &batch.changes[..] else {
        panic!("{batch:?}");
    };
    assert_eq!((change.token, change.is_new), (FencingToken(2), false));
    assert_eq!(change.lines[0].number, 10);
    let failed = messages(change.lines[0].line.as_bytes());
    let update = &failed[0]["params"]["update"];
    assert_eq!(
        (&update["toolCallId"], &update["status"]),
        (&json!("t"), &json!("failed"))
    );
    assert!(change.lines[1].line.contains("The turn was cut"));
    assert_eq!(change.lines.len(), 2);
    assert_eq!(change.prompts[0].state, PromptState::Ended);
    h.agent.batch_written(&[]);
    // Whoever sent the prompt that was cut learns that, and it does not run again.
    let client = h.connect("client");
    h.send(client, "session/load", &load_params("s"));
    h.answer(&resume, &json!({}));
    h.write_all();
    let next = h.take_agent_message();
    assert_eq!(next["params"]["prompt"][0]["text"], "p4");
    let mut params = load_params("s");
    params["prompt"] = json!([]);
    params["_meta"] = json!({ "live": { "promptKey": "key3" } });
    let again = h.send(client, "session/prompt", &params);
    h.write_all();
    let read = h.read(client);
    let response = read.iter().find(|message| message["id"] == again).unwrap();
    assert_eq!(response["error"]["data"]["live"], "turnCut");
    assert!(h.take_agent_messages().is_empty());
}

#[test]
fn agent_that_cannot_open_a_session_again_leaves_its_log_readable() {
    let mut h = Harness::stored(&json!({}));
    let prompts = vec![prompt_record(4, PromptState::Queued)];
    h.agent
        .reopen(stored_session(prompts), vec![chunk_line(0, "said")]);
    h.write_all();
    let client = h.connect("client");
    h.send(client, "session/load", &load_params("s"));
    let prompt = h.prompt(client, "s", "go");
    h.write_all();
    let read = h.read(client);
    assert!(words(&read).contains(&"agent:said".to_owned()), "{read:?}");
    let response = read.iter().find(|message| message["id"] == prompt).unwrap();
    assert_eq!(response["error"]["data"]["live"], "sessionLost");
    assert!(h.take_agent_messages().is_empty());
}

#[test]
fn session_of_another_owner_is_given_up_and_its_clients_move() {
    let mut h = Harness::stored(&json!({ "sessionCapabilities": { "close": {} } }));
    let client = h.connect("client");
    h.open_stored(client, "s");
    h.say("s", "shown");
    h.write_all();
    h.read(client);
    let prompt = h.prompt(client, "s", "go");
    h.write_all();
    h.read(client);
    h.take_agent_messages();
    h.say("s", "never shown");
    let batch = h.take_batch();
    assert_eq!(batch_lines(&batch), ["agent:never shown"]);
    h.agent.batch_written(&[key("s")]);
    assert_eq!(h.read(client).len(), 0);
    let methods: Vec<Value> = h
        .take_agent_messages()
        .iter()
        .map(|m| m["method"].clone())
        .collect();
    assert_eq!(methods, ["session/cancel", "session/close"]);
    let [moved] = h.agent.take_moved(client).try_into().unwrap();
    assert_eq!(moved.id.0.as_ref(), "s");
    // The position of the line that was not written.
    assert_eq!(moved.position, batch.changes[0].lines[0].number);
    assert_eq!(moved.prompts[0].request, prompt.into());
    // Nothing is written about it any more.
    h.say("s", "late");
    assert!(h.agent.take_unwritten().is_none());
}

#[test]
fn client_continues_from_its_position_without_its_own_prompts() {
    let mut h = Harness::stored(&json!({ "sessionCapabilities": { "resume": {} } }));
    let own = json!({
        "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "own" },
        "_meta": { "live": { "client": "c", "promptKey": "k9" } },
    });
    let lines = vec![
        chunk_line(0, "zero"),
        logged(3, &own),
        chunk_line(4, "four"),
    ];
    h.agent.reopen(stored_session(Vec::new()), lines);
    let client = h.connect("client");
    let mut params = load_params("s");
    params["_meta"] = json!({ "live": { "from": 1, "ownPrompts": ["k9"] } });
    h.send(client, "session/resume", &params);
    h.write_all();
    assert_eq!(words(&h.read(client)), ["agent:four", "response:2"]);
    params["_meta"] = json!({ "live": { "from": 99 } });
    let id = h.send(client, "session/resume", &params);
    let read = h.read(client);
    let response = read.iter().find(|message| message["id"] == id).unwrap();
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("invalid cursor"), "{message}");
}

#[test]
fn closed_session_is_written_and_given_up() {
    let mut h = Harness::stored(&json!({ "sessionCapabilities": { "close": {} } }));
    let client = h.connect("client");
    h.open_stored(client, "s");
    h.send(client, "session/close", &json!({ "sessionId": "s" }));
    let close = h.take_agent_message();
    h.say("s", "last words");
    h.answer(&close, &json!({}));
    let batch = h.take_batch();
    assert_eq!(batch_lines(&batch), ["agent:last words"]);
    let [ended] = &batch.ended[..] else {
        panic!("{batch:?}");
    };
    assert_eq!((&ended.key, ended.is_deleted), (&key("s"), false));
    // Until that is written, the session is not claimed again: the change would be rejected.
    let id = "s".into();
    assert!(h.agent.is_ending(&id));
    h.agent.batch_written(&[]);
    assert!(!h.agent.is_ending(&id));
}

#[test]
fn session_at_rest_is_removed_from_memory_and_not_opened_in_the_agent_again() {
    let mut h = Harness::stored(&json!({ "sessionCapabilities": { "resume": {} } }));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let other = h.connect("other");
    h.open_stored(other, "attached");
    h.say("s", "said");
    h.write_all();
    h.agent.remove_client(client);
    h.agent.forget_sessions_at_rest();
    assert_eq!(h.agent.sessions.len(), 2);
    // Something happens, so it is not at rest.
    h.say("s", "more");
    h.agent.forget_sessions_at_rest();
    h.write_all();
    h.agent.forget_sessions_at_rest();
    h.agent.forget_sessions_at_rest();
    let left: Vec<_> = h.agent.sessions.keys().map(ToString::to_string).collect();
    assert_eq!(left, ["attached"]);
    // It is still owned, and given up when the agent ends.
    assert_eq!(h.agent.owned_sessions().len(), 2);
    h.agent
        .reopen(stored_session(Vec::new()), vec![chunk_line(0, "said")]);
    assert!(h.take_agent_messages().is_empty());
    let late = h.connect("late");
    h.send(late, "session/load", &load_params("s"));
    h.prompt(late, "s", "go");
    h.write_all();
    assert_eq!(h.take_agent_message()["method"], "session/prompt");
}

#[test]
fn response_that_was_not_written_is_not_sent_and_its_prompt_moves() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let prompt = h.prompt(client, "s", "go");
    h.write_all();
    h.read(client);
    let sent = h.take_agent_message();
    h.say("s", "said");
    h.answer(&sent, &json!({ "stopReason": "end_turn" }));
    // The agent has finished, but another server owns the session by now, and has cut the turn.
    h.take_batch();
    h.agent.batch_written(&[key("s")]);
    assert_eq!(h.read(client).len(), 0);
    let [moved] = h.agent.take_moved(client).try_into().unwrap();
    let [moved] = &moved.prompts[..] else {
        panic!("{moved:?}");
    };
    assert_eq!(moved.request, prompt.into());
    // It has the key with which it was stored, so it does not run again.
    let params: Value = serde_json::from_str(moved.params.get()).unwrap();
    assert_eq!(params["_meta"]["live"]["promptKey"], moved.key.as_str());
    assert_eq!(params["prompt"][0]["text"], "go");
}

#[test]
fn client_that_loads_again_gets_the_response_that_it_waits_for() {
    let mut h = Harness::stored(&json!({}));
    let client = h.connect("client");
    h.open_stored(client, "s");
    let prompt = h.prompt(client, "s", "go");
    h.write_all();
    let sent = h.take_agent_message();
    h.say("s", "said");
    h.answer(&sent, &json!({ "stopReason": "end_turn" }));
    h.read(client);
    let load = h.send(client, "session/load", &load_params("s"));
    assert!(h.read(client).iter().all(|message| message["id"] != prompt));
    h.write_all();
    let read = words(&h.read(client));
    let at = |word: &str| read.iter().position(|other| other == word).unwrap();
    assert!(
        at("agent:said") < at(&format!("response:{prompt}")),
        "{read:?}"
    );
    assert!(read.contains(&format!("response:{load}")), "{read:?}");
}

#[test]
fn session_ids_that_a_database_cannot_store_are_rejected() {
    let mut h = Harness::stored(&json!({ "loadSession": true }));
    let client = h.connect("client");
    h.send(client, "session/load", &load_params("a\0b"));
    let [response] = h.read(client).try_into().unwrap();
    assert_eq!(response["error"]["code"], -32602);
    let params = json!({ "cwd": "/work", "mcpServers": [] });
    h.send(client, "session/new", &params);
    let new = h.take_agent_message();
    h.answer(&new, &json!({ "sessionId": "a\0b" }));
    let [response] = h.read(client).try_into().unwrap();
    assert_eq!(response["error"]["code"], -32603);
    assert!(h.agent.take_unwritten().is_none());
}
