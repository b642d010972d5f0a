//! Runs a typical coding task from start to finish, using the code for real providers: in each of their formats, with
//! and without the client's files and terminals, and in both protocol versions.
//!
//! The model reads two files, makes a plan, edits, runs tests that really fail, sees why, edits again, and runs them
//! again.

use crate::common;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::provider::ProviderServer;
use crate::common::task::{
    self, CORRECT_GREETING, FINAL_ANSWER, INCOMPLETE_GREETING, ORIGINAL_GREETING, TASK_PROMPT,
    TEST_COMMAND, TEST_SCRIPT,
};
use crate::common::{call_terminal, call_text, with_line_numbers};
use acp::client::{
    Client, ClientState, PermissionRequest, ReadTextFile, Terminals, Update, UpdateContext,
    WriteTextFile,
};
use acp::thread::{FileOperation, ItemKind, ThreadDiff, ThreadToolCall, ThreadToolCallContent};
use acp::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    PermissionOptionId, PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionOutcome, SessionId,
    StopReason, TerminalOutputRequest, TerminalOutputResponse, ToolCallId, ToolKind,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp::{Options, Thread, ThreadHandle};
use acp_agent::store::MemoryStore;
use acp_agent::{CodingAgent, ModelConfig, WireFormat};
use acp_host::{Host, HostSession, Policy, Prompter};

/// How the agent accesses files and runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskSetting {
    /// Version 1, with the client's files and terminals.
    Lent,
    /// Version 1, where the agent accesses files and runs commands itself, and the client shows the output as text.
    Own,
    /// Version 2, in which clients have no files or terminals to offer. The client shows display terminals.
    Draft,
}

#[tokio::test]
async fn task_succeeds_with_client_files_and_terminals() {
    for format in WireFormat::ALL {
        run_full_task(format, TaskSetting::Lent).await;
    }
}

#[tokio::test]
async fn task_succeeds_with_local_access() {
    for format in WireFormat::ALL {
        run_full_task(format, TaskSetting::Own).await;
    }
}

#[tokio::test]
async fn task_succeeds_in_version_2() {
    for format in WireFormat::ALL {
        run_full_task(format, TaskSetting::Draft).await;
    }
}

async fn run_full_task(format: WireFormat, way: TaskSetting) {
    let what = format!("{format}, {way:?}");
    let project = tempfile::tempdir().unwrap();
    for (name, text) in task::PROJECT_FILES {
        std::fs::write(project.path().join(name), text).unwrap();
    }
    let server = ProviderServer::new(format, task::task_replies()).await;
    let mut model = server.model();
    model.context_window = Some(200_000);
    let agent = CodingAgent::new(&ModelConfig::Provider(Box::new(model))).unwrap();
    let agent = agent.keep_sessions(MemoryStore::new());
    let seen = Arc::new(TaskRecord::default());
    let agent = connect_client(agent, way, project.path(), &seen).await;
    let session = agent.new_session(project.path()).await.unwrap();
    let ended = tokio::time::timeout(common::TIMEOUT, session.prompt(TASK_PROMPT)).await;
    assert_eq!(ended.expect(&what).unwrap(), StopReason::EndTurn, "{what}");

    let text = |name| std::fs::read_to_string(project.path().join(name)).unwrap();
    assert_eq!(text("greet.sh"), CORRECT_GREETING, "{what}");
    assert_eq!(text("test.sh"), TEST_SCRIPT, "{what}");
    let left = std::fs::read_dir(project.path()).unwrap().count();
    assert_eq!(
        left,
        task::PROJECT_FILES.len(),
        "nothing else is there: {what}"
    );
    assert_model_requests(&server, project.path());
    session.thread().read(|thread| {
        assert_thread(thread, way, project.path());
    });
    seen.assert_update_order(&session.thread().read(tool_calls), project.path());
    seen.assert_client_calls(way);
}

/// Checks that each request to the model contained the actual results of the previous round.
fn assert_model_requests(server: &ProviderServer, project: &Path) {
    let heard = server.requests();
    assert_eq!(heard.len(), 6);
    let first = heard[0].body.to_string();
    assert!(first.contains(TASK_PROMPT), "{first}");
    let results: Vec<_> = heard
        .iter()
        .map(|h| h.tool_results(server.format))
        .collect();
    let [none, read, edited, failed, passed, planned] = &results[..] else {
        panic!("{results:?}")
    };
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(
        read[..],
        [ORIGINAL_GREETING, TEST_SCRIPT].map(with_line_numbers)
    );
    let [_, edited] = &edited[..] else {
        panic!("{edited:?}")
    };
    assert!(edited.contains("Edited `greet.sh` at line 2"), "{edited}");
    let [_, ran] = &failed[..] else {
        panic!("{failed:?}")
    };
    assert_eq!(
        *ran,
        format!("Exit code 3.\n{}", failed_test_output(project))
    );
    let [_, _, ran] = &passed[..] else {
        panic!("{passed:?}")
    };
    assert_eq!(
        *ran,
        format!("Exit code 0.\n{}", passed_test_output(project))
    );
    assert_eq!(planned.len(), 1);
}

/// Returns the test output from the failing first run.
fn failed_test_output(project: &Path) -> String {
    let name = project.file_name().unwrap().to_str().unwrap();
    format!("testing in {name}\nFAILED: wanted <Hello, Ada!>, got <Hello, Ada>\n")
}

/// Returns the test output once the tests pass.
fn passed_test_output(project: &Path) -> String {
    let name = project.file_name().unwrap().to_str().unwrap();
    format!("testing in {name}\n1 test passed\n")
}

/// Returns the patch that changes the second line of the greeting.
fn diff_hunk(old: &str, new: &str) -> String {
    let [begin, old, end] = old.lines().collect::<Vec<_>>()[..] else {
        panic!("{old}")
    };
    let new = new.lines().nth(1).unwrap();
    format!("@@ -1,3 +1,3 @@\n {begin}\n-{old}\n+{new}\n {end}\n")
}

/// Returns the diff shown in a call.
fn call_diff(call: &ThreadToolCall) -> &ThreadDiff {
    let mut content = call.content.iter();
    let diff = content.find_map(|content| match content {
        ThreadToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    });
    diff.expect("a diff is shown")
}

fn tool_calls(thread: &Thread) -> Vec<ThreadToolCall> {
    let calls = thread.items().iter().filter_map(|item| match &item.kind {
        ItemKind::ToolCall(call) => Some((**call).clone()),
        _ => None,
    });
    calls.collect()
}

/// Checks that the thread matches what happened in the session.
fn assert_thread(thread: &Thread, way: TaskSetting, project: &Path) {
    let items: Vec<String> = thread
        .items()
        .iter()
        .map(|item| match &item.kind {
            ItemKind::User(message) => format!("> {}", message.text()),
            ItemKind::Agent(message) => message.text(),
            ItemKind::Thought(message) => format!("({})", message.text()),
            ItemKind::ToolCall(call) => format!("[{}] {}", call.kind, call.title),
            other => panic!("{other:?}"),
        })
        .collect();
    let run = format!("[execute] Run `{TEST_COMMAND}`");
    assert_eq!(
        items,
        [
            &format!("> {TASK_PROMPT}"),
            "(Two files, I need both.)",
            "I look at the code and its tests.",
            "[read] Read `greet.sh`",
            "[read] Read `test.sh`",
            "[edit] Edit `greet.sh`",
            &run,
            "An exclamation mark is missing.",
            "[edit] Edit `greet.sh`",
            &run,
            FINAL_ANSWER,
        ]
    );
    let calls = tool_calls(thread);
    let [greeting, tests, edit, failed, mend, passed] = &calls[..] else {
        panic!("{calls:?}")
    };
    let path = |name: &str| project.join(name).to_str().unwrap().to_owned();
    let at = |call: &ThreadToolCall| -> Vec<(String, Option<u32>)> {
        let locations = call.locations.iter();
        locations.map(|at| (at.path.to_string(), at.line)).collect()
    };
    assert_eq!(at(greeting), [(path("greet.sh"), None)]);
    assert_eq!(at(tests), [(path("test.sh"), None)]);
    assert_eq!(call_text(greeting), format!("```\n{ORIGINAL_GREETING}```"));
    assert_eq!(call_text(tests), format!("```\n{TEST_SCRIPT}```"));
    for (call, old, new) in [
        (edit, ORIGINAL_GREETING, INCOMPLETE_GREETING),
        (mend, INCOMPLETE_GREETING, CORRECT_GREETING),
    ] {
        assert_eq!(at(call), [(path("greet.sh"), Some(2))]);
        let diff = call_diff(call);
        let [change] = &diff.changes[..] else {
            panic!("{diff:?}")
        };
        assert_eq!(change.path, path("greet.sh"));
        assert_eq!(change.operation, FileOperation::Modify);
        match &change.texts {
            Some(texts) => assert_eq!((texts.old.as_deref(), &*texts.new), (Some(old), new)),
            // Version 2 has a patch instead.
            None => {
                assert_eq!(way, TaskSetting::Draft);
                let patch = &diff.patch.as_ref().expect("the change is shown").text;
                assert!(patch.ends_with(&diff_hunk(old, new)), "{patch}");
            }
        }
    }
    for (call, status, code, printed) in [
        (failed, "failed", 3, failed_test_output(project)),
        (passed, "completed", 0, passed_test_output(project)),
    ] {
        assert_eq!(call.status.as_str(), status);
        assert_eq!(at(call), []);
        if way == TaskSetting::Own {
            let shown = call_text(call);
            assert!(shown.contains(&printed), "{shown}");
            assert_eq!(shown.contains("Exit code 3"), code == 3, "{shown}");
            continue;
        }
        let id = call_terminal(call).expect("a terminal is shown");
        let shown = thread.terminal(&id).expect("something came of it");
        assert_eq!(shown.output(), printed);
        let exit = shown.exit_status.as_ref().expect("it has ended");
        assert_eq!(exit.exit_code, Some(code));
    }
    let [plan] = thread.plans() else {
        panic!("{:?}", thread.plans())
    };
    let entries = plan.entries().iter();
    let entries: Vec<_> = entries.map(|e| (&*e.content, e.status.as_str())).collect();
    assert_eq!(
        entries,
        task::PLAN_STEPS.map(|content| (content, "completed"))
    );
    let usage = thread.usage().expect("it is shown");
    assert_eq!((usage.used, usage.size), (task::LAST_ROUND_TOKENS, 200_000));
    assert_eq!(thread.stop_reason(), Some(&StopReason::EndTurn));
    assert!(!thread.is_running());
}

/// Records what the client sees during the task. The final thread shows only the end result.
#[derive(Default)]
struct TaskRecord {
    /// The statuses of the plan, each time they changed.
    plans: Mutex<Vec<Vec<String>>>,
    /// The status of a tool call, each time it changed.
    statuses: Mutex<Vec<(ToolCallId, String)>>,
    asked: Mutex<Vec<PermissionRequest>>,
    /// The methods that were called on the client.
    lent: Mutex<Vec<&'static str>>,
}

impl TaskRecord {
    fn record_thread(&self, thread: &Thread) {
        let entries = thread.plans().iter().flat_map(|plan| plan.entries());
        let plan: Vec<String> = entries.map(|entry| entry.status.to_string()).collect();
        let mut plans = self.plans.lock().unwrap();
        if !plan.is_empty() && plans.last() != Some(&plan) {
            plans.push(plan);
        }
        let mut statuses = self.statuses.lock().unwrap();
        for call in tool_calls(thread) {
            let last = statuses.iter().rev().find(|(id, _)| *id == call.id);
            if last.is_none_or(|(_, status)| *status != call.status.as_str()) {
                statuses.push((call.id, call.status.to_string()));
            }
        }
    }

    fn assert_update_order(&self, calls: &[ThreadToolCall], project: &Path) {
        let plans = self.plans.lock().unwrap().clone();
        assert_eq!(
            plans[..3],
            task::PLAN_STATUSES.map(|states| states.map(String::from))
        );
        assert_eq!(plans[3..], [task::FINISHED_PLAN_STATUSES]);
        let statuses = self.statuses.lock().unwrap();
        for (n, call) in calls.iter().enumerate() {
            let of = statuses.iter().filter(|(id, _)| *id == call.id);
            let of: Vec<&str> = of.map(|(_, status)| status.as_str()).collect();
            let end = if n == 3 { "failed" } else { "completed" };
            assert_eq!(of, ["pending", "in_progress", end], "{}", call.title);
        }

        // Permission is requested for each change, with everything that the user needs to decide.
        let asked = self.asked.lock().unwrap();
        let about: Vec<_> = asked.iter().map(|a| a.tool_call.id.clone()).collect();
        let changing: Vec<_> = calls[2..].iter().map(|call| call.id.clone()).collect();
        assert_eq!(about, changing);
        for (asked, call) in asked.iter().zip(&calls[2..]) {
            let offered: Vec<&str> = asked.options.iter().map(|o| o.kind.as_str()).collect();
            assert_eq!(
                offered,
                ["allow_once", "allow_always", "reject_once", "reject_always"]
            );
            let shown = &asked.tool_call;
            assert_eq!((&shown.title, &shown.kind), (&call.title, &call.kind));
            assert_eq!(shown.status.as_str(), "pending");
            if call.kind == ToolKind::Edit {
                assert_eq!(call_diff(shown), call_diff(call));
            }
        }
        let path = project.join("greet.sh").to_str().unwrap().to_owned();
        assert_eq!(asked[0].tool_call.locations[0].path.to_string(), path);
    }

    /// Checks that the agent used only what the client offers.
    fn assert_client_calls(&self, way: TaskSetting) {
        let lent = self.lent.lock().unwrap();
        let count = |method| lent.iter().filter(|m| **m == method).count();
        if way != TaskSetting::Lent {
            assert!(lent.is_empty(), "{lent:?}");
            return;
        }
        // An edit first reads the file that it changes.
        assert!(count("fs/read_text_file") >= 4, "{lent:?}");
        assert_eq!(count("fs/write_text_file"), 2);
        assert_eq!(count("terminal/create"), 2);
        assert_eq!(count("terminal/release"), 2);
    }
}

/// A prompter that allows every request once.
struct TaskPrompter(Arc<TaskRecord>);

impl Prompter for TaskPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.0.asked.lock().unwrap().push(request.clone());
        let mut options = request.options.iter();
        let once = options.find(|option| option.kind == PermissionOptionKind::AllowOnce);
        once.map(|option| option.option_id.clone())
    }
}

/// A client that offers its files and terminals, or nothing.
struct TaskClient {
    host: Host<TaskPrompter>,
    lends: bool,
    seen: Arc<TaskRecord>,
}

async fn connect_client(
    agent: CodingAgent,
    way: TaskSetting,
    project: &Path,
    seen: &Arc<TaskRecord>,
) -> acp::client::AgentConnection {
    let options = match way {
        TaskSetting::Draft => Options::new().draft_version_2(),
        _ => Options::new(),
    };
    let person = TaskPrompter(Arc::clone(seen));
    let client = TaskClient {
        host: Host::new(Policy::Ask, person, [project.to_owned()]).unwrap(),
        lends: way != TaskSetting::Own,
        seen: Arc::clone(seen),
    };
    let (ours, mut theirs) = acp::transport::memory();
    if way == TaskSetting::Own {
        theirs = common::hide_terminals(theirs);
    }
    acp::testing::start_agent(theirs, agent, options.clone());
    acp::testing::start_client(ours, client, options)
        .await
        .unwrap()
}

impl ClientState<TaskClient> for HostSession {
    fn new(client: &TaskClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        client.host.session(session, thread)
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        HostSession::turn_ended(self, stop_reason);
    }

    fn closed(&self) {
        HostSession::closed(self);
    }
}

impl Client for TaskClient {
    type State = HostSession;

    async fn update(&self, _: &HostSession, context: &UpdateContext, _: &Update) {
        context
            .thread
            .read(|thread| self.seen.record_thread(thread));
    }

    async fn request_permission(
        &self,
        session: &HostSession,
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.host.request_permission(session, &request).await
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<HostSession>> {
        self.lends.then_some(self)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<HostSession>> {
        self.lends.then_some(self)
    }

    fn terminals(&self) -> Option<&impl Terminals<HostSession>> {
        self.lends.then_some(self)
    }
}

impl TaskClient {
    fn host_for(&self, method: &'static str) -> &Host<TaskPrompter> {
        self.seen.lent.lock().unwrap().push(method);
        &self.host
    }
}

impl ReadTextFile<HostSession> for TaskClient {
    async fn read(
        &self,
        session: &HostSession,
        request: ReadTextFileRequest,
    ) -> acp::Result<ReadTextFileResponse> {
        self.host_for("fs/read_text_file")
            .read(session, request)
            .await
    }
}

impl WriteTextFile<HostSession> for TaskClient {
    async fn write(
        &self,
        session: &HostSession,
        request: WriteTextFileRequest,
    ) -> acp::Result<WriteTextFileResponse> {
        let host = self.host_for("fs/write_text_file");
        host.write(session, request).await
    }
}

impl Terminals<HostSession> for TaskClient {
    async fn create(
        &self,
        session: &HostSession,
        request: CreateTerminalRequest,
    ) -> acp::Result<CreateTerminalResponse> {
        self.host_for("terminal/create")
            .create(session, request)
            .await
    }
    async fn output(
        &self,
        session: &HostSession,
        request: TerminalOutputRequest,
    ) -> acp::Result<TerminalOutputResponse> {
        self.host_for("terminal/output")
            .output(session, request)
            .await
    }
    async fn wait_for_exit(
        &self,
        session: &HostSession,
        request: WaitForTerminalExitRequest,
    ) -> acp::Result<WaitForTerminalExitResponse> {
        let host = self.host_for("terminal/wait_for_exit");
        host.wait_for_exit(session, request).await
    }
    async fn kill(
        &self,
        session: &HostSession,
        request: KillTerminalRequest,
    ) -> acp::Result<KillTerminalResponse> {
        self.host_for("terminal/kill").kill(session, request).await
    }
    async fn release(
        &self,
        session: &HostSession,
        request: ReleaseTerminalRequest,
    ) -> acp::Result<ReleaseTerminalResponse> {
        self.host_for("terminal/release")
            .release(session, request)
            .await
    }
}
