//! Tests of our client with an official agent.

use acp::client::ClientSession;
use acp::thread::{
    Activity, FileOperation, PlanEntryStatus, ThreadTerminal, ThreadToolCallContent, ToolCallStatus,
};
use acp::v1::{
    CloseSessionRequest, ContentBlock, ListSessionsRequest, ProtocolVersion, ResourceLink,
    SessionConfigOptionCategory, StopReason, ToolKind,
};
use acp::{Error, Thread, jsonrpc, v2};
use serde_json::{Value, json};

use crate::common::{
    InteropClient, InteropProject, assert_in_order, cancel_when, current_value, error_code,
    item_outline, last_item_outline, run_prompt, wait_for_thread, with_timeout,
};

/// The updates of the prompt `work`, except the output of commands, which may be split in any way.
const WORK_OUTLINE: [&str; 32] = [
    "user_message",
    "state running",
    "thought \"First I look.\"",
    "message \"Reading \"",
    "message \"the \"",
    "message \"note.\"",
    "plan steps in_progress pending pending",
    "call read in_progress",
    "tool_call_content_chunk",
    "tool_call_content_chunk",
    "call read completed",
    "call edit pending",
    "state requires_action",
    "state running",
    "call edit in_progress",
    "call edit completed",
    "plan steps completed in_progress pending",
    "terminal_update",
    "call run in_progress",
    "terminal_update",
    "call run completed",
    "terminal_update",
    "call kill in_progress",
    "terminal_update",
    "call kill cancelled",
    "plan steps completed completed completed",
    "usage_update",
    "config_option_update",
    "session_info_update",
    "agent_message",
    "message \"ne.\"",
    "state idle end_turn",
];

/// The items that the user sees after the prompt `work`.
const SEEN_OUTLINE: [&str; 8] = [
    "user work",
    "thought First I look.",
    "agent Reading the note.",
    "call Read note.txt Completed",
    "call Shout Completed",
    "call Count Completed",
    "call Wait Cancelled",
    "agent Done.",
];

pub(crate) async fn check_full_turn(agent: &[&str]) {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, agent).await;
    assert_eq!(connection.version(), ProtocolVersion::V2);
    assert_eq!(connection.info().unwrap().name, "official-agent-v2");
    let session = connection.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");

    // Each update must arrive once and in order.
    let mut outline = person.outline();
    outline.retain(|line| line != "terminal_output_chunk");
    assert_eq!(outline, WORK_OUTLINE);

    session.thread().read(|thread| {
        let items: Vec<String> = thread.items().iter().map(item_outline).collect();
        assert_eq!(items, SEEN_OUTLINE);
        assert_eq!(thread.activity(), Activity::Idle);
        assert!(!thread.is_running());
        assert_eq!(thread.stop_reason(), Some(&StopReason::EndTurn));
        let [plan] = thread.plans() else {
            panic!("{:?}", thread.plans())
        };
        assert_eq!(plan.id.as_str(), "steps");
        let done = |entry: &acp::thread::PlanEntry| entry.status == PlanEntryStatus::Completed;
        assert!(plan.entries().iter().all(done));

        let read = thread.tool_call(&"read".into()).unwrap();
        assert_eq!(
            read.content,
            ["one\n", "two\n"].map(|line| ThreadToolCallContent::Content(ContentBlock::text(line)))
        );
        assert_eq!(read.raw_output, Some(json!({"bytes": 8})));
        assert_eq!(read.locations[0].line, Some(1));
        assert_edited(&project, &thread.tool_call(&"edit".into()).unwrap().content);

        let run = call_terminal(thread, "run");
        assert!(run.command.as_ref().unwrap().starts_with("cat note.txt"));
        assert_eq!(run.cwd.as_deref(), project.path().to_str());
        // There are two pipes, so output on stderr can come before earlier output on stdout.
        let printed = run.output();
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["ONE", "TWO", "héllo"]);
        assert_eq!(run.exit_status.as_ref().unwrap().exit_code, Some(3));
        let kill = call_terminal(thread, "kill").exit_status.as_ref().unwrap();
        assert_eq!(
            (kill.exit_code, kill.signal.as_deref()),
            (None, Some("SIGKILL"))
        );

        let usage = thread.usage().unwrap();
        assert_eq!(
            (usage.used, usage.size, usage.cost.as_ref().unwrap().amount),
            (1200, 200_000, 0.25)
        );
        assert_eq!(thread.title(), Some("A loud note"));
        assert_eq!(thread.commands()[0].name, "work");
        assert_eq!(
            current_value(thread, &SessionConfigOptionCategory::Mode),
            "code"
        );
    });

    let asked = person.asked.lock().unwrap();
    let [asked] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (asked.title.as_str(), asked.tool_call.title.as_str()),
        ("Shout?", "Shout")
    );
    assert_eq!(asked.kind(), &ToolKind::Edit);
    assert_edited(&project, &asked.tool_call.content);
    assert_eq!(connection.connection().noise(), acp::Noise::default());
}

/// Requires that a tool call has the diff of the edited note.
#[track_caller]
fn assert_edited(project: &InteropProject, content: &[ThreadToolCallContent]) {
    let [ThreadToolCallContent::Diff(diff)] = content else {
        panic!("{content:?}")
    };
    let file = project.file("note.txt");
    let file = file.to_str().unwrap();
    assert_eq!(diff.changes.len(), 1);
    assert_eq!(diff.changes[0].operation, FileOperation::Modify);
    assert_eq!(diff.changes[0].path, file);
    let patch = diff.patch.as_ref().unwrap();
    assert_eq!(
        patch.text,
        format!(
            "diff --git {file} {file}\n--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n-one\n-two\n+ONE\n+TWO\n"
        )
    );
}

/// Returns the terminal that a tool call shows.
#[track_caller]
fn call_terminal<'a>(thread: &'a Thread, call: &str) -> &'a ThreadTerminal {
    let call = thread.tool_call(&call.into()).unwrap();
    let [ThreadToolCallContent::Terminal(terminal)] = &call.content[..] else {
        panic!("{call:?}")
    };
    thread.terminal(terminal).unwrap()
}

pub(crate) async fn check_rejection(agent: &[&str]) {
    let project = InteropProject::new();
    let mut person = InteropClient::for_version_2(&project);
    person.says_no = true;
    let (connection, _process) = person.start(&project, agent).await;
    let session = connection.new_session(project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
    session.thread().read(|thread| {
        let edit = thread.tool_call(&"edit".into()).unwrap();
        assert_eq!(edit.status, ToolCallStatus::Failed);
        // Text after the tool call continues the message before it, because it has the same id.
        let said = "agent Reading the note. I was not allowed to.";
        assert!(
            thread
                .items()
                .iter()
                .any(|found| item_outline(found) == said)
        );
    });
}

pub(crate) async fn check_cancel_at_every_point(agent: &[&str]) {
    let project = InteropProject::new();
    let mut person = InteropClient::for_version_2(&project);
    person.never_answers = true;
    let (connection, _process) = person.start(&project, agent).await;
    let session = connection.new_session(project.path()).await.unwrap();

    cancel_when(&session, "wait", |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    cancel_when(&session, "wait-permission", |thread| {
        last_item_outline(thread) == "call Ask Pending"
            && thread.activity() == Activity::RequiresAction
    })
    .await;
    let withdrawn = "agent the question was withdrawn";
    assert_eq!(session.thread().read(last_item_outline), withdrawn);
    cancel_when(&session, "wait-command", |thread| {
        let call = thread.tool_call(&"run".into());
        let shown = call.and_then(|call| call.content.first());
        let Some(ThreadToolCallContent::Terminal(shown)) = shown else {
            return false;
        };
        let terminal = thread.terminal(shown);
        terminal.is_some_and(|terminal| terminal.output() == "started\n")
    })
    .await;
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent the command was ended"
    );
    project.assert_command_ended();

    // Dropping a prompt also cancels it, and the session continues.
    {
        let mut turn = std::pin::pin!(session.prompt("wait"));
        tokio::select! {
            _ = &mut turn => panic!("it waits"),
            () = wait_for_thread(session.thread(), |thread| last_item_outline(thread) == "agent waiting") => {}
        }
    }
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
    let reason = |thread: &Thread| thread.stop_reason().cloned();
    assert_eq!(session.thread().read(reason), Some(StopReason::Cancelled));
    let ended = run_prompt(&session, "hello").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    assert_eq!(session.thread().read(last_item_outline), "agent hello");

    // Closing the session also cancels the prompt.
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("wait").await }
    });
    wait_for_thread(session.thread(), |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    session.close().await.unwrap();
    let ended = with_timeout("the turn ends", turn).await.unwrap();
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
}

pub(crate) async fn check_extensions_and_errors(agent: &[&str]) {
    let project = InteropProject::new();
    let mut person = InteropClient::for_version_2(&project);
    let mut told = person.listen();
    let (connection, _process) = person.start(&project, agent).await;
    let raw = connection.connection();
    let hello = json!({"what": "hello"});
    raw.notify_raw("_interop/told", &hello).await.unwrap();
    let back = with_timeout("it is told back", told.recv()).await.unwrap();
    assert_eq!(back, "the official agent was told hello");
    let question = json!({"question": "who are you"});
    let answer = raw.request_raw("_interop/ask", &question).await.unwrap();
    let answer: Value = serde_json::from_str(answer.get()).unwrap();
    let expected = json!({"answer": "the official agent heard who are you"});
    assert_eq!(answer, expected);
    for method in ["session/explode", "_nobody/knows"] {
        let error = raw.request_raw(method, &json!({})).await.unwrap_err();
        assert_eq!(
            error_code(&error),
            jsonrpc::Error::METHOD_NOT_FOUND,
            "{error}"
        );
    }

    let session = connection.new_session(project.path()).await.unwrap();
    let said = async |text| {
        let ended = run_prompt(&session, text).await.unwrap();
        assert_eq!(ended, StopReason::EndTurn);
        session.thread().read(last_item_outline)
    };
    let answered = "agent our client heard how are you";
    assert_eq!(said("ask-extension").await, answered);
    let heard = with_timeout("it is told", told.recv()).await.unwrap();
    assert_eq!(heard, "a turn runs");
    assert_eq!(said("ask-unknown").await, "agent error -32601");
    assert_eq!(said("ask-withdraw").await, "agent error -32800");
}

pub(crate) async fn check_stop_reasons(agent: &[&str]) {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, agent).await;
    let session = connection.new_session(project.path()).await.unwrap();
    let refused = run_prompt(&session, "refuse").await.unwrap();
    assert_eq!(refused, StopReason::Refusal);
    let full = run_prompt(&session, "max-tokens").await.unwrap();
    assert_eq!(full, StopReason::MaxTokens);
    // The prompt was accepted, but the turn fails.
    let error = run_prompt(&session, "fail").await.unwrap_err();
    let Error::Rpc(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (i64::from(error.code), error.message.as_str()),
        (-32050, "the model is on holiday")
    );
    assert_eq!(json!(error.data), json!({"until": "Monday"}));
    let ended = run_prompt(&session, "hello").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    // The prompt is shown once, although the agent echoes it.
    session.thread().read(|thread| {
        let items: Vec<String> = thread.items().iter().map(item_outline).collect();
        let said = ["user refuse", "user max-tokens", "user fail", "user hello"];
        assert_eq!(items, [&said[..], &["agent hello"]].concat());
    });

    let link =
        ContentBlock::ResourceLink(Box::new(ResourceLink::new("note.txt", "file:///note.txt")));
    let content = vec![ContentBlock::text("content"), link];
    let ended = with_timeout("the turn ends", session.prompt(content)).await;
    assert_eq!(ended.unwrap(), StopReason::EndTurn);
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent text resource_link "
    );
    let image = ContentBlock::Image(Box::new(acp::v1::ImageContent::new("aGk=", "image/png")));
    let error = session.prompt(vec![image]).await.unwrap_err();
    assert!(
        matches!(error, Error::Unsupported { peer: "agent", .. }),
        "{error}"
    );
}

pub(crate) async fn check_config_options(agent: &[&str]) {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, agent).await;
    let session = connection.new_session(project.path()).await.unwrap();
    let shown = |category| {
        session
            .thread()
            .read(|thread| current_value(thread, category))
    };
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "small");
    session.set_config_option("model", "large").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "large");
    session.set_mode("code").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Mode), "code");
    session.set_config_option("loud", true).await.unwrap();
    assert!(session.set_config_option("model", "huge").await.is_err());
    run_prompt(&session, "settings").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent code large true"
    );
}

pub(crate) async fn check_elicitation(agent: &[&str]) {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, agent).await;
    let session = connection.new_session(project.path()).await.unwrap();
    let ended = run_prompt(&session, "ask-person").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    assert_eq!(session.thread().read(last_item_outline), "agent accept 11");
    assert_in_order(
        &person.outline(),
        &["state running", "state requires_action", "state running"],
    );
    let asked = person.elicited.lock().unwrap();
    let [asked] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(asked.message, "How loud?");
}

/// Opens sessions in another process than the one that created them.
pub(crate) async fn check_stored_sessions(agent: &[&str]) {
    let project = InteropProject::new();
    let store = project.file("store.json");
    let agent = &[agent, &["--store", store.to_str().unwrap()]].concat();
    let id = {
        let person = InteropClient::for_version_2(&project);
        let (connection, _process) = person.start(&project, agent).await;
        let session = connection.new_session(project.path()).await.unwrap();
        run_prompt(&session, "work").await.unwrap();
        let other = connection.new_session(project.path()).await.unwrap();
        run_prompt(&other, "hello").await.unwrap();
        session.id().clone()
    };

    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, agent).await;
    let mut request = ListSessionsRequest::new();
    let mut listed = Vec::new();
    loop {
        let page = connection.list_sessions(&request).await.unwrap();
        let infos = page.sessions.into_iter();
        listed.extend(infos.map(|info| (info.session_id, info.title)));
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(listed.len(), 2, "{listed:?}");
    let first = (id.clone(), Some("A loud note".to_owned()));
    assert!(listed.contains(&first), "{listed:?}");

    let unknown = connection.load_session("nothing", project.path()).await;
    let unknown = unknown.unwrap_err();
    assert_eq!(error_code(&unknown), jsonrpc::Error::RESOURCE_NOT_FOUND);
    let session = connection.load_session(&id, project.path()).await.unwrap();
    let items = |session: &ClientSession| -> Vec<String> {
        let thread = session.thread();
        thread.read(|thread| thread.items().iter().map(item_outline).collect())
    };
    // The thread is complete as soon as the session is loaded, and all updates are part of the replay.
    assert_eq!(items(&session), SEEN_OUTLINE);
    let title = |thread: &Thread| thread.title().map(str::to_owned);
    let title = session.thread().read(title);
    assert_eq!(title.as_deref(), Some("A loud note"));
    assert!(person.seen.lock().unwrap().iter().all(|(_, past)| *past));
    run_prompt(&session, "hello").await.unwrap();
    assert_eq!(items(&session)[8..], ["user hello", "agent hello"]);

    // Close the session twice, and then open it without a replay.
    session.close().await.unwrap();
    let again = CloseSessionRequest::new(&id);
    connection.connection().request(&again).await.unwrap();
    assert!(session.prompt("hello").await.is_err());
    let resumed = connection.resume_session(&id, project.path()).await;
    let resumed = resumed.unwrap();
    assert_eq!(items(&resumed), [""; 0]);
    assert!(!resumed.thread().read(Thread::is_running));
    run_prompt(&resumed, "again").await.unwrap();
    assert_eq!(items(&resumed), ["user again", "agent again"]);

    connection.delete_session(&id).await.unwrap();
    let rest = connection.list_sessions(&ListSessionsRequest::new()).await;
    let rest = rest.unwrap().sessions;
    assert!(rest.iter().all(|info| info.session_id != id), "{rest:?}");
}

pub(crate) async fn check_login(agent: &[&str]) {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, &[agent, &["--auth"]].concat()).await;
    let methods = connection.auth_methods();
    assert_eq!(methods[0].id_and_name().unwrap().1, "A key");
    let refused = connection.new_session(project.path()).await.unwrap_err();
    assert!(refused.is_auth_required(), "{refused}");
    assert!(connection.authenticate("nothing").await.is_err());
    connection.authenticate("key").await.unwrap();
    let session = connection.new_session(project.path()).await.unwrap();
    let ended = run_prompt(&session, "hello").await.unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    connection.logout().await.unwrap();
    let refused = connection.new_session(project.path()).await.unwrap_err();
    assert!(refused.is_auth_required(), "{refused}");
}

/// Sends a prompt while a turn runs, which [`ClientSession::prompt`] does not do.
pub(crate) async fn prompt_during_turn(session: ClientSession, text: &str) -> Result<(), Error> {
    let request = v2::PromptRequest::new(session.id(), vec![ContentBlock::text(text)]);
    let answer = session.agent().connection().request(&request);
    with_timeout("it is answered", answer).await.map(drop)
}
