//! Tests that an observer's threads match those of the client.

use std::sync::{Arc, Mutex};

use acp::agent::{Prompt, Turn};
use acp::client::{ObservedChange, ObservedEvent, Observer, PermissionRequest};
use acp::thread::ItemKind;
use acp::transport::LineDirection;
use acp::v1::{RequestPermissionOutcome, SessionConfigKind, StopReason};
use acp::wire::jsonrpc::{self, RequestId};
use acp::{Client, Options, Result, Thread, transport};
use serde_json::{Value, json};

use crate::common::{PromptAgent, with_timeout};

/// A sent line. The flag is `true` if the client sent it, and `false` if the agent did.
type SentLine = (bool, Vec<u8>);

fn observe_line(observer: &mut Observer, is_client: bool, line: &[u8]) -> Option<ObservedChange> {
    let message = jsonrpc::parse(line).unwrap();
    if is_client {
        observer.handle_client_message(&message)
    } else {
        observer.handle_agent_message(&message)
    }
}

/// Returns everything that a user sees in a thread, as text.
fn describe_thread(thread: &Thread) -> String {
    let items: Vec<&ItemKind> = thread.items().iter().map(|item| &item.kind).collect();
    let items: Vec<String> = items
        .into_iter()
        .map(|kind| match kind {
            ItemKind::Subagent(subagent) => {
                format!(
                    "{}: {}",
                    subagent.name(),
                    subagent.thread.read(describe_thread)
                )
            }
            other => format!("{other:?}"),
        })
        .collect();
    let plans: Vec<_> = thread.plans().iter().map(|plan| &plan.content).collect();
    format!(
        "{items:#?} {plans:?} {:?} {:?} {} {:?}",
        thread.stop_reason(),
        thread.commands(),
        thread.is_running(),
        thread.title(),
    )
}

/// A client that allows everything.
struct AllowingClient;

impl Client for AllowingClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        Ok(request.allow())
    }
}

async fn run_turn(turn: Turn, prompt: Prompt) -> Result<StopReason> {
    turn.send_thought("Let me see.").await?;
    turn.send_message("One ").await?;
    turn.send_message("word.").await?;
    let call = turn.report_tool_call("Read notes.txt").await?;
    assert!(turn.ask(&call).await?.is_allowed());
    call.complete().await?;
    let subagent = turn.start_subagent("helper", "Help").await?;
    subagent.send_message("I help.").await?;
    let call = subagent.report_tool_call("Look").await?;
    call.complete().await?;
    subagent.end(StopReason::EndTurn).await?;
    turn.set_title("Notes").await?;
    match prompt.text().as_str() {
        "fail" => Err(jsonrpc::Error::internal("it does not work").into()),
        _ => Ok(StopReason::EndTurn),
    }
}

#[tokio::test(start_paused = true)]
async fn sent_lines_can_be_inspected_in_order_with_received_ones() {
    let seen: Arc<Mutex<Vec<SentLine>>> = Arc::default();
    let arrived: Arc<Mutex<Vec<SentLine>>> = Arc::default();
    let (ours, theirs) = transport::memory();
    let to = Arc::clone(&seen);
    let ours = ours.inspect_both(move |direction, line| {
        let is_client = direction == LineDirection::Sent;
        to.lock().unwrap().push((is_client, line.to_vec()));
    });
    let to = Arc::clone(&arrived);
    let theirs = theirs.inspect(move |line| to.lock().unwrap().push((true, line.to_vec())));
    let options = Options::new();
    let _agent = acp::testing::start_agent(theirs, PromptAgent(run_turn), options.clone());
    let agent = acp::testing::start_client(ours, AllowingClient, options);
    let agent = with_timeout("the client connects", agent).await.unwrap();
    let session = agent.new_session("/").await.unwrap();
    session.prompt("go").await.unwrap();

    let seen = seen.lock().unwrap();
    let sent: Vec<SentLine> = seen.iter().filter(|line| line.0).cloned().collect();
    assert_eq!(sent, *arrived.lock().unwrap());
    let position = |is_client: bool, part: &str| {
        let is_it = |(from_client, line): &SentLine| {
            *from_client == is_client && String::from_utf8_lossy(line).contains(part)
        };
        seen.iter().position(is_it).unwrap()
    };
    let in_order = [
        position(true, "session/prompt"),
        position(false, "session/request_permission"),
        position(true, "selected"),
        position(false, "stopReason"),
    ];
    assert!(in_order.is_sorted(), "{in_order:?}");
}

#[tokio::test(start_paused = true)]
async fn an_observer_shows_what_the_client_shows_in_both_versions() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let sent: Arc<Mutex<Vec<SentLine>>> = Arc::default();
        let to = |is_client| {
            let sent = Arc::clone(&sent);
            move |line: &[u8]| sent.lock().unwrap().push((is_client, line.to_vec()))
        };
        let (ours, theirs) = transport::memory();
        let (ours, theirs) = (ours.inspect(to(false)), theirs.inspect(to(true)));
        let _agent = acp::testing::start_agent(theirs, PromptAgent(run_turn), options.clone());
        let agent = acp::testing::start_client(ours, AllowingClient, options);
        let agent = with_timeout("the client connects", agent).await.unwrap();
        let session = agent.new_session("/").await.unwrap();
        session.prompt("go").await.unwrap();
        session.prompt("fail").await.unwrap_err();

        let mut observer = Observer::new(10);
        let (mut ends, mut asked, mut answered) = (Vec::new(), 0, 0);
        let mut thread = None;
        for (is_client, line) in sent.lock().unwrap().iter() {
            let Some(change) = observe_line(&mut observer, *is_client, line) else {
                continue;
            };
            match change.event {
                Some(ObservedEvent::TurnEnded(result)) => ends.push(result),
                Some(ObservedEvent::PermissionRequested(_, request)) => {
                    assert_eq!(request.tool_call.title, "Read notes.txt");
                    asked += 1;
                }
                Some(ObservedEvent::PermissionAnswered(_, outcome)) => {
                    assert!(matches!(outcome, Ok(RequestPermissionOutcome::Selected(_))));
                    answered += 1;
                }
                _ => {}
            }
            if change.session_id == *session.id() {
                thread = Some(change.thread);
            }
        }
        let version = agent.version();
        assert_eq!(
            thread.unwrap().read(describe_thread),
            session.thread().read(describe_thread),
            "in version {version}"
        );
        assert_eq!((asked, answered), (2, 2), "in version {version}");
        assert_eq!(ends.len(), 2, "in version {version}");
        assert_eq!(ends[0], Ok(StopReason::EndTurn));
        let error = ends[1].as_ref().unwrap_err();
        assert!(error.message.contains("it does not work"), "{error:?}");
    }
}

/// An observed connection, for which the test writes the messages.
struct ObservedConnection {
    observer: Observer,
    id: i64,
}

impl ObservedConnection {
    /// Creates an initialized connection of the given version.
    fn new(version: u16) -> Self {
        let mut new = Self {
            observer: Observer::new(2),
            id: 0,
        };
        new.send_request("initialize", json!({"protocolVersion": version}));
        new.send_result(json!({"protocolVersion": version}));
        new
    }

    fn send(&mut self, is_client: bool, mut message: Value) -> Option<ObservedChange> {
        message["jsonrpc"] = json!("2.0");
        observe_line(
            &mut self.observer,
            is_client,
            message.to_string().as_bytes(),
        )
    }

    /// Sends a request as the client.
    fn send_request(&mut self, method: &str, params: Value) -> Option<ObservedChange> {
        self.id += 1;
        self.send(
            true,
            json!({"id": self.id, "method": method, "params": params}),
        )
    }

    /// Responds to the client's last request as the agent.
    fn send_result(&mut self, result: Value) -> Option<ObservedChange> {
        self.send(false, json!({"id": self.id, "result": result}))
    }

    fn send_error(&mut self, code: i32) -> Option<ObservedChange> {
        let error = json!({"code": code, "message": "refused"});
        self.send(false, json!({"id": self.id, "error": error}))
    }

    fn send_update(&mut self, session: &str, update: Value) -> Option<ObservedChange> {
        let params = json!({"sessionId": session, "update": update});
        self.send(false, json!({"method": "session/update", "params": params}))
    }

    fn send_chunk(&mut self, session: &str, text: &str) -> ObservedChange {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        self.send_update(session, update).unwrap()
    }

    /// Sends a request as the agent, and then responds to it as the client.
    fn send_agent_request(
        &mut self,
        method: &str,
        params: Value,
        result: Value,
    ) -> Option<ObservedChange> {
        self.send(false, json!({"id": 1, "method": method, "params": params}));
        self.send(true, json!({"id": 1, "result": result}))
    }
}

fn message_texts(thread: &Thread) -> Vec<String> {
    let items = thread.items().iter().filter_map(|item| match &item.kind {
        ItemKind::Agent(message) => Some(message.text()),
        _ => None,
    });
    items.collect()
}

#[test]
fn a_replay_replaces_the_thread_and_a_failed_one_restores_it() {
    let mut connection = ObservedConnection::new(1);
    let thread = connection.send_chunk("s", "before").thread;
    let load = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});

    let started = connection
        .send_request("session/load", load.clone())
        .unwrap();
    assert!(matches!(started.event, Some(ObservedEvent::ReplayStarted)));
    connection.send_chunk("s", "half");
    assert_eq!(thread.read(message_texts), ["half"]);
    let failed = connection.send_error(-32603).unwrap();
    assert!(matches!(failed.event, Some(ObservedEvent::ReplayFailed)));
    assert_eq!(thread.read(message_texts), ["before"]);

    connection.send_request("session/load", load);
    connection.send_chunk("s", "replayed");
    assert!(connection.send_result(json!({})).unwrap().event.is_none());
    assert_eq!(thread.read(message_texts), ["replayed"]);
}

#[test]
fn a_queued_and_cancelled_version_2_prompt_ends_as_cancelled() {
    let mut connection = ObservedConnection::new(2);
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    let begun = connection.send_request("session/prompt", prompt).unwrap();
    assert!(begun.thread.read(Thread::is_running));
    let ended = connection.send_error(-32800).unwrap();
    let Some(ObservedEvent::TurnEnded(result)) = ended.event else {
        panic!("the turn has not ended");
    };
    assert_eq!(result, Ok(StopReason::Cancelled));
    assert!(!ended.thread.read(Thread::is_running));
}

#[test]
fn a_client_terminal_shows_the_last_reported_output() {
    let mut connection = ObservedConnection::new(1);
    let params = json!({"sessionId": "s", "command": "make", "args": ["all"]});
    connection.send_agent_request("terminal/create", params, json!({"terminalId": "t"}));
    let terminal = json!({"sessionId": "s", "terminalId": "t"});
    let mut thread = None;
    // The third is the end of the output: the client has dropped its start.
    for output in ["one\n", "one\ntwo\n", "wo\nthree\n"] {
        let result = json!({"output": output, "truncated": false});
        let change = connection.send_agent_request("terminal/output", terminal.clone(), result);
        thread = change.map(|change| change.thread);
    }
    let thread = thread.unwrap();
    let exit = json!({"exitCode": 3});
    connection.send_agent_request("terminal/wait_for_exit", terminal, exit);
    thread.read(|thread| {
        let terminal = thread.terminal(&"t".into()).unwrap();
        assert_eq!(terminal.command.as_deref(), Some("make all"));
        assert_eq!(terminal.output(), "wo\nthree\n");
        assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
    });
}

#[test]
fn client_settings_take_effect_with_the_agents_response() {
    let mut connection = ObservedConnection::new(1);
    connection.send_request("session/new", json!({"cwd": "/", "mcpServers": []}));
    let modes = [
        json!({"id": "ask", "name": "Ask"}),
        json!({"id": "code", "name": "Code"}),
    ];
    let modes = json!({"currentModeId": "ask", "availableModes": modes});
    let opened = connection.send_result(json!({"sessionId": "s", "modes": modes}));
    let thread = opened.unwrap().thread;
    let mode = || {
        thread.read(|thread| match &thread.config_options()[0].kind {
            SessionConfigKind::Select(select) => select.current_value.to_string(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(mode(), "ask");
    let params = json!({"sessionId": "s", "modeId": "code"});
    connection.send_request("session/set_mode", params.clone());
    connection.send_error(-32603);
    assert_eq!(mode(), "ask");
    connection.send_request("session/set_mode", params);
    connection.send_result(json!({}));
    assert_eq!(mode(), "code");
}

#[test]
fn unreadable_messages_change_nothing_and_sessions_are_limited() {
    let mut connection = ObservedConnection::new(1);
    let prompt = json!({"sessionId": "s", "prompt": 7});
    assert!(connection.send_request("session/prompt", prompt).is_none());
    assert!(connection.send_update("s", json!("nothing")).is_none());
    let ask = json!({"id": 9, "method": "session/request_permission", "params": {"options": []}});
    assert!(connection.send(false, ask).is_none());

    connection.send_chunk("one", "1");
    connection.send_chunk("two", "2");
    assert!(!connection.observer.has_ignored_sessions());
    let content = json!({"type": "text", "text": "3"});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    assert!(connection.send_update("three", update).is_none());
    assert!(connection.observer.has_ignored_sessions());
}

#[test]
fn a_subagents_permission_request_names_the_subagent() {
    let mut connection = ObservedConnection::new(1);
    let subagent =
        json!({"sessionUpdate": "subagent_update", "sessionId": "child", "title": "Helper"});
    connection.send_update("s", subagent);
    let params = json!({"sessionId": "child", "toolCall": {"toolCallId": "c", "title": "Look"}, "options": []});
    let ask = json!({"id": 9, "method": "session/request_permission", "params": params});
    let asked = connection.send(false, ask).unwrap();
    let Some(ObservedEvent::PermissionRequested(id, request)) = asked.event else {
        panic!("nothing was asked");
    };
    assert_eq!(id, RequestId::Number(9));
    assert_eq!(request.root_session_id.as_str(), "s");
    assert_eq!(request.subagent.as_deref(), Some("Helper"));
}
