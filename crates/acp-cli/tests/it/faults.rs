//! Kills the agent or its client at random points in turns with messages, plans, file changes and commands. Afterwards,
//! the loaded session must contain everything that was shown, no process may be left behind, and the model must be able
//! to continue.
//!
//! `ACP_FAULTS=n` sets how many kills there are, `ACP_FAULT_SEED=n` repeats a run's points.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{ACP, TestProject};
use acp::client::{Client, ClientSession};
use acp::thread::{
    FileOperation, Item, ItemKind, ThreadDiff, ThreadToolCall, ThreadToolCallContent,
};
use acp::v1::{ContentBlock, SessionNotification, StopReason};
use acp::{Options, Thread, Transport};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// The number of kills. Half of them kill the agent, and half its client.
const KILL_COUNT: usize = 200;

/// The approximate number of updates in a whole turn. The kills are spread across them.
const MAX_UPDATES: u64 = 60;

/// How long to wait for all started processes to exit.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A reproducible random number generator.
struct SeededRandom(u64);

impl SeededRandom {
    fn next_below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A project, and a script for an agent that works in it.
struct FaultFixture {
    project: TestProject,
    script: PathBuf,
    /// An argument that all processes started by the agent's commands have in common.
    token: String,
}

impl FaultFixture {
    fn new(number: usize) -> Self {
        let project = TestProject::new();
        project.allow_commands();
        // Nobody else sleeps for this long.
        let token = format!("{}.{number}", 1_000_000 + std::process::id());
        let words: Vec<String> = (0..20).map(|n| format!("word{n} ")).collect();
        // Children, grandchildren, and one that has left its process group for good.
        let leave = format!("sleep {token} & setsid sleep {token} & (sleep {token} &);");
        let turn = json!([
            {"think": ["I ", "look ", "at ", "it."]},
            {"say": ["First ", "I ", "read.\n"]},
            {"plan": [
                {"content": "read", "priority": "high", "status": "in_progress"},
                {"content": "change", "priority": "high", "status": "pending"}]},
            {"read": {"path": "notes.txt"}},
            {"write": {"path": "new.txt", "text": "one\ntwo\n"}},
            {"say": words},
            {"run": {"command": format!("{leave} for i in 1 2 3 4; do echo line $i; sleep 0.01; done")}},
            {"edit": {"path": "new.txt", "search": "two", "replacement": "three"}},
            {"plan": [
                {"content": "read", "priority": "high", "status": "completed"},
                {"content": "change", "priority": "high", "status": "in_progress"}]},
            {"say": ["Now ", "something ", "that ", "takes ", "long.\n"]},
            {"run": {"command": format!("{leave} echo waiting; exec sleep {token}")}},
        ]);
        let script = json!({"turns": [turn, [{"say": "And on we go."}]]});
        let file = project.file(".script.json");
        std::fs::write(&file, script.to_string()).unwrap();
        Self {
            project,
            script: file,
            token,
        }
    }

    /// Returns the `acp` arguments that start the agent.
    fn agent_args(&self, store: &Path, version: u16) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        vec![
            "agent".to_owned(),
            "--script".to_owned(),
            text(&self.script),
            "--sessions".to_owned(),
            text(store),
            format!("--protocol={version}"),
        ]
    }

    fn start_agent(&self, store: &Path, version: u16) -> Child {
        Command::new(ACP)
            .args(self.agent_args(store, version))
            .envs(self.project.home_variables())
            .current_dir(self.project.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until the agent and all processes started by its commands have exited.
    fn wait_until_nothing_runs(&self) {
        let script = self.script.to_str().unwrap();
        let start = Instant::now();
        loop {
            let left = processes_matching(&[&self.token, script]);
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "still there: {left:#?}");
            // Nobody is told of the end of a process that is not its child: this looks.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the command lines that contain any of these texts. Processes that have exited have no command line.
fn processes_matching(parts: &[&str]) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        if process.file_name().to_string_lossy() == own {
            continue;
        }
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if parts.iter().any(|part| line.contains(part)) {
            found.push(format!("{}: {line}", process.file_name().to_string_lossy()));
        }
    }
    found
}

/// A client that supports neither files nor terminals, so that the agent does everything itself.
struct BareClient;

impl Client for BareClient {
    type State = ();
}

async fn connect(child: &mut Child, version: u16) -> acp::client::AgentConnection {
    let transport = Transport::child(child).unwrap();
    let options = match version {
        2 => Options::new().draft_version_2(),
        _ => Options::new(),
    };
    acp::testing::start_client(transport, BareClient, options)
        .await
        .unwrap()
}

/// Starts a turn and kills the agent at a random point. Returns the session id and the thread so far.
async fn kill_agent_midway(
    place: &FaultFixture,
    store: &Path,
    version: u16,
    random: &mut SeededRandom,
) -> (String, Thread) {
    let mut child = place.start_agent(store, version);
    let agent = connect(&mut child, version).await;
    let session = agent.new_session(place.project.path()).await.unwrap();
    session.set_mode("code").await.unwrap();
    let at = random.next_below(MAX_UPDATES);
    let thread = session.thread().clone();
    let from = thread.read(Thread::revision);
    let prompt = session.prompt("go");
    let point = async {
        let mut seen = from;
        while seen < from + at && !thread.read(is_waiting) {
            seen = thread.changed(seen).await;
        }
        let pause = Duration::from_micros(random.next_below(3000));
        // Not waited for anything: it makes the point of the kill fall between updates.
        tokio::time::sleep(pause).await;
    };
    tokio::select! {
        ended = prompt => panic!("the turn has ended by itself: {ended:?}"),
        () = point => {}
    }
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    // What it had sent is read to its end.
    agent.closed().await;
    (session.id().to_string(), thread.read(Clone::clone))
}

/// Returns `true` if the turn's last command has started. No more updates follow.
fn is_waiting(thread: &Thread) -> bool {
    let calls = tool_calls(thread);
    calls.len() == 5
        && calls
            .last()
            .is_some_and(|call| shown_text(thread, call).contains("waiting"))
}

fn tool_calls(thread: &Thread) -> Vec<&ThreadToolCall> {
    let items = thread.items().iter();
    items.filter_map(as_tool_call).collect()
}

fn as_tool_call(item: &Item) -> Option<&ThreadToolCall> {
    match &item.kind {
        ItemKind::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// Starts `acp run` and kills it at a random point. Returns the session id and the thread so far.
fn kill_client_midway(
    place: &FaultFixture,
    store: &Path,
    random: &mut SeededRandom,
) -> (String, Thread) {
    let mut command = place.project.agent_command(&[
        "--allow", "all", "--format", "json", "--mode", "code", "go", "--", ACP,
    ]);
    command
        .args(place.agent_args(store, 1))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let at = random.next_below(MAX_UPDATES);
    let pause = Duration::from_micros(random.next_below(3000));
    let (mut id, mut updates, mut killed) = (None, 0, false);
    let mut thread = Thread::new();
    for line in stdout.lines() {
        // The last one may be cut off by the kill.
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else {
            break;
        };
        if let Some(session) = message["result"]["sessionId"].as_str() {
            id = Some(session.to_owned());
        }
        if message["method"] == "session/update" {
            let told: SessionNotification =
                serde_json::from_value(message["params"].clone()).unwrap();
            thread.apply(&told.update.into());
            updates += 1;
        }
        let waits = message["method"] == "terminal/create" && tool_calls(&thread).len() == 5;
        if id.is_some() && !killed && (updates >= at || waits) {
            // As above: a point between updates.
            std::thread::sleep(pause);
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    (id.expect("a session was opened"), thread)
}

/// Loads the session in a new process that uses the same store. Returns the thread, the session and the process.
async fn load_session(
    place: &FaultFixture,
    store: &Path,
    id: &str,
    version: u16,
) -> (Thread, ClientSession, Child) {
    let mut child = place.start_agent(store, version);
    let agent = connect(&mut child, version).await;
    let session = agent.load_session(id, place.project.path()).await.unwrap();
    (session.thread().read(Clone::clone), session, child)
}

/// Asserts that `again` contains everything in `shown`, possibly in a later state.
fn assert_nothing_lost(shown: &Thread, again: &Thread, what: &str) {
    let mut rest = again.items().iter();
    for item in shown.items() {
        let found = match &item.kind {
            // The client's own word, which the agent may not have got to.
            ItemKind::User(_) => continue,
            ItemKind::Agent(said) => rest.any(
                |item| matches!(&item.kind, ItemKind::Agent(again) if again.text().starts_with(&said.text())),
            ),
            ItemKind::Thought(said) => rest.any(
                |item| matches!(&item.kind, ItemKind::Thought(again) if again.text().starts_with(&said.text())),
            ),
            ItemKind::ToolCall(call) => rest.any(|item| match &item.kind {
                ItemKind::ToolCall(later) if later.id == call.id => {
                    assert_same_call(shown, call, again, later, what);
                    true
                }
                _ => false,
            }),
            _ => continue,
        };
        assert!(
            found,
            "{what}: {:#?} is not in {:#?}",
            item.kind,
            again.items()
        );
    }
    for plan in shown.plans() {
        let later = again.plans().iter().find(|later| later.id == plan.id);
        let later = later.unwrap_or_else(|| panic!("{what}: a plan is lost"));
        let contents = |plan: &acp::thread::ThreadPlan| -> Vec<String> {
            plan.entries()
                .iter()
                .map(|entry| entry.content.clone())
                .collect()
        };
        assert_eq!(contents(plan), contents(later), "{what}");
        let done = |plan: &acp::thread::ThreadPlan| {
            plan.entries()
                .iter()
                .filter(|entry| entry.status.as_str() == "completed")
                .count()
        };
        assert!(done(plan) <= done(later), "{what}");
    }
}

fn assert_same_call(
    shown: &Thread,
    call: &ThreadToolCall,
    again: &Thread,
    later: &ThreadToolCall,
    what: &str,
) {
    assert_eq!(
        (&call.title, &call.kind),
        (&later.title, &later.kind),
        "{what}"
    );
    assert_eq!(call.raw_input, later.raw_input, "{what}");
    assert!(later.is_finished(), "{what}: {later:#?} has not ended");
    if call.is_finished() && !call.is_cancelled {
        assert_eq!(call.status, later.status, "{what}");
        assert_eq!(call.raw_output, later.raw_output, "{what}");
    }
    for content in &call.content {
        if let ThreadToolCallContent::Diff(diff) = content {
            let is_there = later
                .content
                .iter()
                .any(|content| is_same_diff(diff, content));
            assert!(is_there, "{what}: {diff:#?} is not in {later:#?}");
        }
    }
    let text = shown_text(again, later);
    for line in shown_text(shown, call)
        .lines()
        .filter(|line| !line.starts_with("```"))
    {
        assert!(text.contains(line), "{what}: {line:?} is not in {text:?}");
    }
}

/// Returns `true` if both arguments describe the same change, in either protocol version.
fn is_same_diff(diff: &ThreadDiff, content: &ThreadToolCallContent) -> bool {
    let files = |diff: &ThreadDiff| -> Vec<(FileOperation, String)> {
        let changes = diff.changes.iter();
        changes
            .map(|change| (change.operation.clone(), change.path.clone()))
            .collect()
    };
    match content {
        ThreadToolCallContent::Diff(again) => match (diff.file_texts(), again.file_texts()) {
            (Some(texts), Some(again)) => texts == again,
            _ => files(diff) == files(again),
        },
        _ => false,
    }
}

/// Returns the text shown for a tool call: its command, its output, and the output of its terminals. A long command is
/// part of the call's content only until its terminal replaces it, and the agent may have been killed after storing
/// that update but before sending it.
fn shown_text(thread: &Thread, call: &ThreadToolCall) -> String {
    let command = call
        .raw_input
        .as_ref()
        .and_then(|input| input["command"].as_str());
    let mut text = command.unwrap_or_default().to_owned();
    text.push('\n');
    for content in &call.content {
        match content {
            ThreadToolCallContent::Content(ContentBlock::Text(block)) => text.push_str(&block.text),
            ThreadToolCallContent::Terminal(id) => {
                text.push_str(
                    &thread
                        .terminal(id)
                        .map(|terminal| terminal.output())
                        .unwrap_or_default(),
                );
            }
            _ => {}
        }
        text.push('\n');
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_loses_no_shown_data_and_leaves_nothing_running() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let clock = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let seed = number("ACP_FAULT_SEED").unwrap_or(clock.as_micros() as u64 | 1);
    let kills = number("ACP_FAULTS").map_or(KILL_COUNT, |kills| kills as usize);
    println!("ACP_FAULT_SEED={seed}");
    let mut random = SeededRandom(seed);
    // One for all of them: it has been in use at every kill.
    let store = tempfile::tempdir().unwrap();
    let (mut agents, mut clients, mut items) = (0, 0, 0);
    let mut points = HashSet::new();
    for kill in 0..kills {
        let place = FaultFixture::new(kill);
        let version = 1 + u16::from(kill % 4 >= 2);
        let (id, shown) = if kill % 2 == 0 {
            agents += 1;
            kill_agent_midway(&place, store.path(), version, &mut random).await
        } else {
            clients += 1;
            tokio::task::block_in_place(|| kill_client_midway(&place, store.path(), &mut random))
        };
        let what = format!("kill {kill} (ACP_FAULT_SEED={seed}), session {id}");
        tokio::task::block_in_place(|| place.wait_until_nothing_runs());
        let (again, session, mut child) = load_session(&place, store.path(), &id, version).await;
        assert_nothing_lost(&shown, &again, &what);
        items += shown.items().len();
        points.insert(shown.revision());

        // The model can go on from there, if it had begun at all.
        let begun = again
            .items()
            .iter()
            .any(|item| matches!(item.kind, ItemKind::User(_)));
        if begun {
            assert_eq!(
                session.prompt("go on").await.unwrap(),
                StopReason::EndTurn,
                "{what}"
            );
            let said = session
                .thread()
                .read(|thread| match &thread.items().last().unwrap().kind {
                    ItemKind::Agent(message) => message.text(),
                    other => panic!("{what}: {other:#?}"),
                });
            assert_eq!(said, "And on we go.", "{what}");
        }
        session.agent().close();
        assert!(child.wait().await.unwrap().success(), "{what}");
    }
    println!(
        "{kills} kills: {agents} of the agent, {clients} of its client, at {} different points; \
         {items} messages and tool calls had been shown, and none is lost",
        points.len()
    );
}
