//! Tests of our library's client with the official agent.

use acp::thread::{ONLY_PLAN_ID, PlanEntryStatus, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{
    ContentBlock, ImageContent, ListSessionsRequest, ResourceLink, SessionConfigOptionCategory,
    StopReason,
};
use acp::{Error, Thread, jsonrpc};
use acp_host::Policy;
use serde_json::{Value, json};

use crate::common::{
    InteropClient, cancel_when, current_value, error_code, item_outline, last_item_outline,
    run_prompt, wait_for_thread, with_timeout, work_updates,
};
use crate::official_typescript::TypeScriptFixture;

#[tokio::test]
async fn our_client_completes_a_full_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    assert_eq!(agent.info().unwrap().name, "official-agent");
    let session = agent.new_session(official.project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(official.project.read_file("note.txt"), "ONE\nTWO\n");

    // Each update arrives once and in order, as from our agent, except for events of the client itself. This agent has
    // modes, but no config option for them.
    let mut expected = work_updates();
    expected.retain(|line| *line != "config_option_update");
    assert_eq!(person.outline(), expected);

    session.thread().read(|thread| {
        let items: Vec<String> = thread.items().iter().map(item_outline).collect();
        assert_eq!(
            items,
            [
                "user work",
                "thought First I look.",
                "agent Reading the note.",
                "call Read note.txt Completed",
                "call Shout Completed",
                "call Count Completed",
                "call Wait Failed",
                "agent  Done.",
            ]
        );
        let plan = &thread.plans()[0];
        assert_eq!((thread.plans().len(), plan.id.as_str()), (1, ONLY_PLAN_ID));
        assert!(
            plan.entries()
                .iter()
                .all(|entry| entry.status == PlanEntryStatus::Completed)
        );

        let read = thread.tool_call(&"read".into()).unwrap();
        assert_eq!(read.raw_output, Some(json!({"second": "two\n"})));
        assert_eq!(read.locations[0].line, Some(1));
        let edit = thread.tool_call(&"edit".into()).unwrap();
        let [ThreadToolCallContent::Diff(diff)] = &edit.content[..] else {
            panic!("{edit:?}")
        };
        let (_, texts) = diff.file_texts().unwrap();
        assert_eq!(
            (texts.old.as_deref(), texts.new.as_str()),
            (Some("one\ntwo\n"), "ONE\nTWO\n")
        );

        let run = thread.tool_call(&"run".into()).unwrap();
        let [ThreadToolCallContent::Terminal(terminal)] = &run.content[..] else {
            panic!("{run:?}")
        };
        let terminal = thread.terminal(terminal).unwrap();
        assert_eq!(terminal.output(), "ONE\nTWO\nhello\n");
        assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
        assert!(terminal.is_released);
        let told =
            json!({"code": 3, "output": "ONE\nTWO\nhello\n", "truncated": false, "ended": true});
        assert_eq!(run.raw_output, Some(told));
        let kill = thread.tool_call(&"kill".into()).unwrap();
        assert_eq!(kill.status, ToolCallStatus::Failed);
        assert_eq!(
            kill.raw_output,
            Some(json!({"ran": true, "signal": "SIGKILL", "gone": true}))
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
        assert_eq!(thread.stop_reason(), Some(&StopReason::EndTurn));
    });
    assert_eq!(agent.connection().noise(), acp::Noise::default());
}

#[tokio::test]
async fn our_client_can_reject_permission_to_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let mut person = InteropClient::new(&official.project, Policy::All);
    person.says_no = true;
    let (agent, _process) = official.start(&person, &[]).await;
    let session = agent.new_session(official.project.path()).await.unwrap();
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(official.project.read_file("note.txt"), "one\ntwo\n");
    session.thread().read(|thread| {
        let edit = thread.tool_call(&"edit".into()).unwrap();
        assert_eq!(edit.status, ToolCallStatus::Failed);
        assert_eq!(last_item_outline(thread), "agent  I was not allowed to.");
    });
}

#[tokio::test]
async fn our_client_cancels_the_official_agent_at_every_point() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let mut person = InteropClient::new(&official.project, Policy::All);
    person.never_answers = true;
    let (agent, _process) = official.start(&person, &[]).await;
    let session = agent.new_session(official.project.path()).await.unwrap();

    cancel_when(&session, "wait", |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    cancel_when(&session, "wait-permission", |thread| {
        last_item_outline(thread) == "call Ask Pending"
    })
    .await;
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent the question was withdrawn"
    );
    cancel_when(&session, "wait-command", |thread| {
        let call = thread.tool_call(&"run".into());
        let Some(ThreadToolCallContent::Terminal(shown)) =
            call.and_then(|call| call.content.first())
        else {
            return false;
        };
        thread
            .terminal(shown)
            .is_some_and(|terminal| terminal.output() == "started\n")
    })
    .await;
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent the command was ended"
    );
    official.project.assert_command_ended();

    // Dropping a prompt also cancels it, and the session continues.
    {
        let mut turn = std::pin::pin!(session.prompt("wait"));
        tokio::select! {
            _ = &mut turn => panic!("it waits"),
            () = wait_for_thread(session.thread(), |thread| last_item_outline(thread) == "agent waiting") => {}
        }
    }
    wait_for_thread(session.thread(), |thread| !thread.is_running()).await;
    assert_eq!(
        session
            .thread()
            .read(|thread| thread.stop_reason().cloned()),
        Some(StopReason::Cancelled)
    );
    run_prompt(&session, "hello").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent hello");
}

#[tokio::test]
async fn sessions_of_the_official_agent_run_concurrently() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    let first = agent.new_session(official.project.path()).await.unwrap();
    let second = agent.new_session(official.project.path()).await.unwrap();
    let waiting = tokio::spawn({
        let first = first.clone();
        async move { first.prompt("wait").await }
    });
    wait_for_thread(first.thread(), |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    run_prompt(&second, "hello").await.unwrap();
    assert_eq!(second.thread().read(last_item_outline), "agent hello");
    assert!(first.thread().read(Thread::is_running));
    first.cancel().await.unwrap();
    assert_eq!(
        with_timeout("the turn ends", waiting)
            .await
            .unwrap()
            .unwrap(),
        StopReason::Cancelled
    );
    assert_eq!(first.thread().read(|thread| thread.items().len()), 2);
}

#[tokio::test]
async fn extensions_work_both_ways_with_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let mut person = InteropClient::new(&official.project, Policy::All);
    let mut told = person.listen();
    let (agent, _process) = official.start(&person, &[]).await;
    let connection = agent.connection();
    connection
        .notify_raw("_interop/told", &json!({"what": "hello"}))
        .await
        .unwrap();
    assert_eq!(
        with_timeout("it is told back", told.recv()).await.unwrap(),
        "the official agent was told hello"
    );
    let answer = connection
        .request_raw("_interop/ask", &json!({"question": "who are you"}))
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(answer.get()).unwrap();
    assert_eq!(
        answer,
        json!({"answer": "the official agent heard who are you"})
    );

    let session = agent.new_session(official.project.path()).await.unwrap();
    run_prompt(&session, "ask-extension").await.unwrap();
    assert_eq!(
        with_timeout("it is told", told.recv()).await.unwrap(),
        "a turn runs"
    );
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent our client heard how are you"
    );
    // The agent cancels its own request, and gets an error for it.
    run_prompt(&session, "ask-withdraw").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent error -32800"
    );
}

#[tokio::test]
async fn official_agent_elicits_a_form() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    let session = agent.new_session(official.project.path()).await.unwrap();
    run_prompt(&session, "ask-person").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent accept 11");
}

#[tokio::test]
async fn our_client_and_the_official_agent_understand_each_others_errors() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    for method in ["session/explode", "_nobody/knows"] {
        let nothing = json!({});
        let asking = agent.connection().request_raw(method, &nothing);
        let error = asking.await.unwrap_err();
        assert_eq!(
            error_code(&error),
            jsonrpc::Error::METHOD_NOT_FOUND,
            "{error}"
        );
    }
    let session = agent.new_session(official.project.path()).await.unwrap();
    run_prompt(&session, "ask-unknown").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent error -32601"
    );
    run_prompt(&session, "ask-missing-file").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent error -32002"
    );

    assert_eq!(
        run_prompt(&session, "refuse").await.unwrap(),
        StopReason::Refusal
    );
    assert_eq!(
        run_prompt(&session, "max-tokens").await.unwrap(),
        StopReason::MaxTokens
    );
    let error = run_prompt(&session, "fail").await.unwrap_err();
    let Error::Rpc(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (i64::from(error.code), error.message.as_str()),
        (-32050, "the model is on holiday")
    );
    let data: Value = serde_json::to_value(&error.data).unwrap();
    assert_eq!(data, json!({"until": "Monday"}));
    assert_eq!(
        run_prompt(&session, "hello").await.unwrap(),
        StopReason::EndTurn
    );
}

#[tokio::test]
async fn official_agent_gets_only_supported_content() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    let session = agent.new_session(official.project.path()).await.unwrap();
    let link =
        ContentBlock::ResourceLink(Box::new(ResourceLink::new("note.txt", "file:///note.txt")));
    let content = vec![ContentBlock::text("content"), link];
    assert_eq!(session.prompt(content).await.unwrap(), StopReason::EndTurn);
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent text resource_link "
    );
    let image = ContentBlock::Image(Box::new(ImageContent::new("aGk=", "image/png")));
    let error = session.prompt(vec![image]).await.unwrap_err();
    assert!(
        matches!(error, Error::Unsupported { peer: "agent", .. }),
        "{error}"
    );
}

#[tokio::test]
async fn our_client_sets_modes_and_options_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &[]).await;
    let session = agent.new_session(official.project.path()).await.unwrap();
    let shown = |category| {
        session
            .thread()
            .read(|thread| current_value(thread, category))
    };
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "small");
    session.set_config_option("model", "large").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Model), "large");
    assert!(session.set_config_option("model", "huge").await.is_err());
    // The agent has modes in addition to config options.
    session.set_mode("code").await.unwrap();
    assert_eq!(shown(&SessionConfigOptionCategory::Mode), "code");
    assert!(session.set_mode("none").await.is_err());
    session.set_config_option("loud", true).await.unwrap();
    run_prompt(&session, "settings").await.unwrap();
    assert_eq!(
        session.thread().read(last_item_outline),
        "agent code large true"
    );
}

#[tokio::test]
async fn our_client_finds_sessions_of_the_official_agent_in_another_process() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let project = &official.project;
    let store = project.file("store.json");
    let with_store = ["--store", store.to_str().unwrap()];
    let person = InteropClient::new(project, Policy::All);
    let (agent, _process) = official.start(&person, &with_store).await;
    let other = agent.new_session(project.path()).await.unwrap();
    run_prompt(&other, "hello").await.unwrap();
    let session = agent.new_session(project.path()).await.unwrap();
    run_prompt(&session, "work").await.unwrap();
    let items =
        |thread: &Thread| -> Vec<String> { thread.items().iter().map(item_outline).collect() };
    let (id, before) = (session.id().clone(), session.thread().read(items));
    assert_eq!(before.len(), 8);
    drop((other, session, agent));

    let person = InteropClient::new(project, Policy::All);
    let (agent, _process) = official.start(&person, &with_store).await;
    // The agent returns one session per page.
    let first = agent.list_sessions(&ListSessionsRequest::new()).await;
    let first = first.unwrap();
    let mut rest = ListSessionsRequest::new();
    rest.cursor = first.next_cursor.clone();
    let second = agent.list_sessions(&rest).await.unwrap();
    assert_eq!(first.sessions[0].title, None);
    assert_eq!(second.sessions[0].session_id, id);
    assert_eq!(second.sessions[0].title.as_deref(), Some("A loud note"));
    assert_eq!(second.next_cursor, None);

    let error = agent.load_session("nothing", project.path()).await;
    let error = error.unwrap_err();
    assert_eq!(
        error_code(&error),
        jsonrpc::Error::RESOURCE_NOT_FOUND,
        "{error}"
    );
    let session = agent.load_session(id, project.path()).await.unwrap();
    // The thread is complete as soon as the session is loaded, and all updates are part of the replay.
    assert_eq!(session.thread().read(items), before);
    let title = |thread: &Thread| thread.title().map(str::to_owned);
    assert_eq!(session.thread().read(title).as_deref(), Some("A loud note"));
    let seen = person.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|(_, replay)| *replay), "{seen:?}");
    run_prompt(&session, "hello").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent hello");

    // A resumed session has no replay, a closed one accepts no prompts, and a deleted one cannot be resumed.
    let other = first.sessions[0].session_id.clone();
    let resumed = agent.resume_session(other.clone(), project.path()).await;
    let resumed = resumed.unwrap();
    assert_eq!(resumed.thread().read(|thread| thread.items().len()), 0);
    run_prompt(&resumed, "again").await.unwrap();
    resumed.close().await.unwrap();
    let error = run_prompt(&resumed, "hello").await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    agent.delete_session(&other).await.unwrap();
    let error = agent.resume_session(other, project.path()).await;
    let error = error.unwrap_err();
    assert_eq!(
        error_code(&error),
        jsonrpc::Error::RESOURCE_NOT_FOUND,
        "{error}"
    );
}

#[tokio::test]
async fn our_client_authenticates_with_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let person = InteropClient::new(&official.project, Policy::All);
    let (agent, _process) = official.start(&person, &["--auth"]).await;
    assert_eq!(agent.auth_methods()[0].id_and_name().unwrap().1, "A key");
    let opening = || agent.new_session(official.project.path());
    let error = opening().await.unwrap_err();
    assert!(error.is_auth_required(), "{error}");
    assert!(agent.authenticate("nothing").await.is_err());
    agent.authenticate("key").await.unwrap();
    let session = opening().await.unwrap();
    run_prompt(&session, "hello").await.unwrap();
    agent.logout().await.unwrap();
    let error = opening().await.unwrap_err();
    assert!(error.is_auth_required(), "{error}");
}
