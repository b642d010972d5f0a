//! Tests of the permissions that a host grants, and of actions that an agent takes without asking.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::one_session::OneSession;
use acp::client::{ClientState, PermissionRequest, WriteTextFile};
use acp::testing::ScriptedPeer;
use acp::thread::{ThreadToolCall, ThreadToolCallContent};
use acp::{Client, Error, Thread, ThreadHandle, jsonrpc};
use acp_host::{Host, HostSession, Policy, Prompter};
use acp_wire::v1::{
    self, CreateTerminalRequest, Diff, EnvVariable, PermissionOption, PermissionOptionId,
    PermissionOptionKind, ReadTextFileRequest, RequestPermissionOutcome, SessionId, StopReason,
    ToolCallLocation, ToolCallUpdate, ToolKind, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use serde_json::json;

/// A prompter that gives prepared answers and records the questions.
#[derive(Clone, Default)]
struct ScriptedPrompter {
    answer: Option<&'static str>,
    asked: Arc<Mutex<Vec<ThreadToolCall>>>,
}

impl ScriptedPrompter {
    fn with_answer(answer: &'static str) -> Self {
        Self {
            answer: Some(answer),
            ..Self::default()
        }
    }

    fn question_count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Prompter for ScriptedPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.asked.lock().unwrap().push(request.tool_call.clone());
        self.answer.map(PermissionOptionId::from)
    }
}

fn host_with_policy(
    policy: Policy,
    person: &ScriptedPrompter,
    root: &Path,
) -> (OneSession<ScriptedPrompter>, ThreadHandle) {
    let host = Host::new(policy, person.clone(), [root.to_owned()]).unwrap();
    let thread = ThreadHandle::new();
    (OneSession::new(host, &thread), thread)
}

fn permission_request(kind: Option<ToolKind>, thread: &ThreadHandle) -> PermissionRequest {
    let mut call = ToolCallUpdate::new("call");
    call.kind = kind;
    let options = vec![
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
    ];
    PermissionRequest::new("s", &call, options, thread.clone())
}

fn write_request(root: &Path, content: &str) -> WriteTextFileRequest {
    WriteTextFileRequest::new("s", root.join("file").to_str().unwrap(), content)
}

#[tokio::test]
async fn user_is_asked_only_if_the_policy_asks() {
    let root = tempfile::tempdir().unwrap();
    let (yes, no) = (
        RequestPermissionOutcome::selected("yes"),
        RequestPermissionOutcome::selected("no"),
    );
    let cancelled = RequestPermissionOutcome::cancelled();
    let cases = [
        (Policy::Ask, None, Some("yes"), yes.clone(), 1),
        (Policy::Ask, None, None, cancelled.clone(), 1),
        (Policy::Ask, None, Some("never offered"), cancelled, 1),
        (Policy::Reads, Some(ToolKind::Read), None, yes.clone(), 0),
        (Policy::Reads, Some(ToolKind::Execute), None, no.clone(), 0),
        (Policy::All, None, None, yes, 0),
        (Policy::None, Some(ToolKind::Read), None, no, 0),
    ];
    for (policy, kind, answer, outcome, asked) in cases {
        let person = ScriptedPrompter {
            answer,
            ..ScriptedPrompter::default()
        };
        let (host, thread) = host_with_policy(policy, &person, root.path());
        assert_eq!(
            host.request_permission(&permission_request(kind, &thread))
                .await
                .unwrap(),
            outcome,
            "{policy} {answer:?}"
        );
        assert_eq!(person.question_count(), asked, "{policy} {answer:?}");
    }
}

#[tokio::test]
async fn policy_uses_the_kind_of_the_announced_tool_call() {
    let root = tempfile::tempdir().unwrap();
    let (host, thread) = host_with_policy(Policy::Reads, &ScriptedPrompter::default(), root.path());
    thread.change(|thread: &mut Thread| {
        thread.apply_permission_request(&ToolCallUpdate::new("call").kind(ToolKind::Search).into());
    });
    let outcome = host
        .request_permission(&permission_request(None, &thread))
        .await
        .unwrap();
    assert_eq!(outcome, RequestPermissionOutcome::selected("yes"));
}

#[tokio::test]
async fn unrequested_action_is_asked_about() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "old").unwrap();
    let person = ScriptedPrompter::with_answer("no");
    let (host, _) = host_with_policy(Policy::Ask, &person, root.path());
    let error = host
        .write(write_request(root.path(), "new"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("rejected"), "{error}");
    assert_eq!(
        std::fs::read_to_string(root.path().join("file")).unwrap(),
        "old"
    );
    {
        let asked = person.asked.lock().unwrap();
        let [ThreadToolCallContent::Diff(diff)] = &asked[0].content[..] else {
            panic!("{asked:?}")
        };
        let (_, texts) = diff.file_texts().unwrap();
        assert_eq!(
            (texts.old.as_deref(), texts.new.as_str()),
            (Some("old"), "new")
        );
    }
    assert!(
        host.create(CreateTerminalRequest::new("s", "touch").args(["x".to_owned()]))
            .await
            .is_err()
    );
    assert!(!root.path().join("x").exists());
    // Reading needs no permission.
    let read = ReadTextFileRequest::new("s", root.path().join("file").to_str().unwrap());
    assert_eq!(host.read(read).await.unwrap().content, "old");
    assert_eq!(person.question_count(), 2);
}

/// Returns a request to edit the file, with a diff of the change.
fn edit_request(
    root: &Path,
    thread: &ThreadHandle,
    old: Option<&str>,
    new: &str,
) -> PermissionRequest {
    let mut diff = Diff::new(root.join("file").to_str().unwrap(), new);
    diff.old_text = old.map(str::to_owned);
    let mut request = permission_request(Some(ToolKind::Edit), thread);
    request.tool_call.content = vec![v1::ToolCallContent::Diff(diff).into()];
    request
}

#[tokio::test]
async fn grant_covers_the_shown_edit() {
    let root = tempfile::tempdir().unwrap();
    let person = ScriptedPrompter::with_answer("yes");
    let (host, thread) = host_with_policy(Policy::Ask, &person, root.path());
    let write = async |content: &str| {
        let written = host.write(write_request(root.path(), content)).await;
        (written.is_ok(), person.question_count())
    };
    // "yes" is not one of the host's own options, so each question of the host is rejected.
    let yes = RequestPermissionOutcome::selected("yes");
    let request = edit_request(root.path(), &thread, None, "1");
    assert_eq!(host.request_permission(&request).await.unwrap(), yes);
    assert_eq!(write("2").await, (false, 2), "not what was shown");
    assert_eq!(write("1").await, (true, 2));
    assert_eq!(write("1").await, (false, 3), "once");

    // Only the file is known. The user has not seen the change.
    let mut request = self::permission_request(Some(ToolKind::Edit), &thread);
    let file = root.path().join("file");
    request.tool_call.locations = vec![ToolCallLocation::new(file.to_str().unwrap())];
    host.request_permission(&request).await.unwrap();
    assert_eq!(write("3").await, (false, 5));

    let request = edit_request(root.path(), &thread, Some("1"), "4");
    host.request_permission(&request).await.unwrap();
    host.turn_ended(Some(&StopReason::EndTurn));
    assert_eq!(write("4").await, (false, 7), "the turn has ended");

    // Allowed between two turns, and used in the next one.
    host.request_permission(&request).await.unwrap();
    thread.change(|thread| thread.begin_turn(&[]));
    assert_eq!(write("4").await, (false, 9), "another turn");
}

#[tokio::test]
async fn allowed_diff_covers_only_its_own_file() {
    let root = tempfile::tempdir().unwrap();
    let person = ScriptedPrompter::with_answer("yes");
    let (host, thread) = host_with_policy(Policy::Ask, &person, root.path());
    let mut request = edit_request(root.path(), &thread, None, "1");
    let other = root.path().join("other");
    let other = other.to_str().unwrap();
    request.tool_call.locations = vec![ToolCallLocation::new(other)];
    host.request_permission(&request).await.unwrap();
    let unseen = WriteTextFileRequest::new("s", other, "unseen");
    host.write(unseen).await.unwrap_err();
    host.write(write_request(root.path(), "1")).await.unwrap();
    assert_eq!(person.question_count(), 2);
}

#[tokio::test]
async fn always_answer_lasts_for_the_session() {
    let root = tempfile::tempdir().unwrap();
    let person = ScriptedPrompter::with_answer("session");
    let (host, _) = self::host_with_policy(Policy::Ask, &person, root.path());
    for content in ["3", "4"] {
        host.write(write_request(root.path(), content))
            .await
            .unwrap();
        host.turn_ended(Some(&StopReason::EndTurn));
    }
    assert_eq!(person.question_count(), 1);
    // Always allowing a write does not allow commands, and always allowing one command does not allow another.
    for (command, asked) in [("true", 2), ("true", 2), ("false", 3)] {
        host.create(CreateTerminalRequest::new("s", command))
            .await
            .unwrap();
        assert_eq!(person.question_count(), asked, "{command}");
    }
    let env = vec![EnvVariable::new("PATH", "/usr/bin")];
    let _ = host
        .create(CreateTerminalRequest::new("s", "true").env(env))
        .await;
    assert_eq!(person.question_count(), 4);
    let own = root.path().join(".acp/permissions.toml");
    let own = WriteTextFileRequest::new("s", own.to_str().unwrap(), "");
    let _ = host.write(own).await;
    assert_eq!(person.question_count(), 5);
}

#[tokio::test]
async fn malformed_permission_request_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    for policy in Policy::ALL {
        let person = ScriptedPrompter::with_answer("yes");
        let (host, thread) = host_with_policy(policy, &person, root.path());
        let mut twice = permission_request(None, &thread);
        twice.options.push(twice.options[0].clone());
        let mut cut = permission_request(None, &thread);
        cut.tool_call.is_truncated = true;
        for malformed in [twice, cut] {
            let error = host.request_permission(&malformed).await.unwrap_err();
            let Error::Rpc(error) = error else {
                panic!("{error:?}")
            };
            assert_eq!(error.code, jsonrpc::Error::INVALID_PARAMS);
        }
        assert_eq!(person.question_count(), 0);
    }
}

#[tokio::test]
async fn terminal_output_appears_in_the_thread() {
    let root = tempfile::tempdir().unwrap();
    let (host, thread) = host_with_policy(Policy::All, &ScriptedPrompter::default(), root.path());
    let create = CreateTerminalRequest::new("s", "sh")
        .args(["-c".to_owned(), "echo out; exit 3".to_owned()]);
    let id = host.create(create).await.unwrap().terminal_id;
    let exit = host
        .wait_for_exit(WaitForTerminalExitRequest::new("s", &id))
        .await
        .unwrap();
    assert_eq!(exit.exit_code, Some(3));
    let mut seen = 0;
    while thread.read(|t| t.terminal(&id).is_none_or(|t| t.exit_status.is_none())) {
        seen = thread.changed(seen).await;
    }
    thread.read(|thread| {
        let terminal = thread.terminal(&id).unwrap();
        assert_eq!(terminal.output(), "out\n");
        assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
        assert_eq!(
            terminal.command.as_deref(),
            Some("sh -c 'echo out; exit 3'")
        );
    });
}

/// The session that the user opened, the session that asks the question, and the name of the subagent.
type QuestionOrigin = (SessionId, SessionId, Option<String>);

/// A prompter that rejects everything and records which session and subagent asked each question.
#[derive(Clone, Default)]
struct OriginPrompter(Arc<Mutex<Vec<QuestionOrigin>>>);

impl Prompter for OriginPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.0.lock().unwrap().push((
            request.root_session_id.clone(),
            request.session_id.clone(),
            request.subagent.clone(),
        ));
        None
    }
}

/// A client that supports everything its host provides.
struct HostClient(Host<OriginPrompter>);

impl ClientState<HostClient> for HostSession {
    fn new(client: &HostClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        client.0.session(session, thread)
    }
}

impl Client for HostClient {
    type State = HostSession;

    fn write_text_file(&self) -> Option<&impl WriteTextFile<HostSession>> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn unrequested_subagent_action_is_asked_about_in_the_root_session() {
    let root = tempfile::tempdir().unwrap();
    let prompter = OriginPrompter::default();
    let host = Host::new(Policy::Ask, prompter.clone(), [root.path().to_owned()]).unwrap();
    let (conn, mut peer) = ScriptedPeer::connect_client(HostClient(host)).await;
    let opening = conn.new_session(root.path());
    let (session, ()) = tokio::join!(opening, peer.answer_new_session("s"));
    let _session = session.unwrap();
    let announce = |id: &str, title: &str| json!({"sessionUpdate": "subagent_update", "sessionId": id, "title": title});
    peer.update("s", announce("c", "Look around")).await;
    peer.update("c", announce("d", "Look closer")).await;
    for session in ["s", "c", "d"] {
        let path = root.path().join("file");
        let params = json!({"sessionId": session, "path": path, "content": "new"});
        let id = peer.request("fs/write_text_file", params).await;
        let error = peer.expect_error(id).await;
        assert!(error.message.contains("rejected"), "{error:?}");
    }
    let asked = |session: &str, subagent: Option<&str>| {
        let root = SessionId::from("s");
        (root, SessionId::from(session), subagent.map(str::to_owned))
    };
    assert_eq!(
        *prompter.0.lock().unwrap(),
        [
            asked("s", None),
            asked("c", Some("Look around")),
            asked("d", Some("Look closer")),
        ]
    );
}
