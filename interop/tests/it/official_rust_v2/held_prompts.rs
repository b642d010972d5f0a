//! Prompts that are sent while a turn runs. An agent queues them until the turn has ended.

use std::future::poll_fn;
use std::task::Poll;

use acp::v1::StopReason;
use acp::{Error, jsonrpc};

use crate::common::version2::agent::prompt_during_turn;
use crate::common::{
    InteropClient, InteropProject, assert_in_order, cancel_when, error_code, item_outline,
    last_item_outline, run_prompt, wait_for_thread, with_timeout,
};
use crate::official_rust_v2::{OFFICIAL_AGENT, examples::SIMPLE_AGENT, official_client};

#[tokio::test]
async fn official_agent_runs_prompts_one_after_another() {
    for (agent, answer) in [(OFFICIAL_AGENT, ""), (SIMPLE_AGENT, "Echo: ")] {
        let project = InteropProject::new();
        let person = InteropClient::for_version_2(&project);
        let (connection, _process) = person.start(&project, &[agent]).await;
        let session = connection.new_session(project.path()).await.unwrap();
        let (first, second) = tokio::join!(
            run_prompt(&session, "first"),
            prompt_during_turn(session.clone(), "second")
        );
        first.unwrap();
        second.unwrap();
        let end = format!("agent {answer}second");
        wait_for_thread(session.thread(), |thread| {
            last_item_outline(thread) == end && !thread.is_running()
        })
        .await;
        // Each response follows its prompt.
        let first = format!("agent {answer}first");
        let expected = ["user first", &first, "user second", &end];
        session.thread().read(|thread| {
            let items: Vec<String> = thread.items().iter().map(item_outline).collect();
            assert_eq!(items, expected, "{agent}");
        });
    }
}

#[tokio::test]
async fn cancel_also_cancels_the_queued_prompt() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("wait").await }
    });
    wait_for_thread(session.thread(), |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    let mut held = std::pin::pin!(prompt_during_turn(session.clone(), "hello"));
    // The request is sent when its future is first polled.
    let begun = poll_fn(|cx| Poll::Ready(held.as_mut().poll(cx).is_pending()));
    assert!(begun.await, "it is held");
    session.cancel().await.unwrap();
    let ended = with_timeout("the turn ends", turn).await.unwrap();
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
    let held = with_timeout("the prompt is answered", held).await;
    match held {
        Err(Error::Rpc(error)) => assert_eq!(error.code, jsonrpc::Error::REQUEST_CANCELLED),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn our_agent_runs_prompts_one_after_another() {
    let client = official_client();
    let told = client
        .run_with_our_agent(&["--meanwhile", "second", "first"])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.all_of_type("prompted").len(), 2);
    assert_eq!(
        told.outline(),
        [
            "user_message",
            "state running",
            "message \"first\"",
            "state idle end_turn",
            "user_message",
            "state running",
            "message \"second\"",
            "state idle end_turn",
            "ended end_turn",
        ]
    );

    // A cancel also cancels the queued prompt.
    let args = ["--cancel-at", "message", "--meanwhile", "second", "wait"];
    let told = client.run_with_our_agent(&args).await;
    told.expect_stop_reason("cancelled");
    assert_eq!(told.one_of_type("refused")["code"], -32800);

    // Cancelling the queued prompt does not affect the running turn.
    let args = ["--meanwhile", "second", "--take-back", "ask-person"];
    let told = client.run_with_our_agent(&args).await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.one_of_type("refused")["code"], -32800);
    assert_eq!(told.all_of_type("prompted").len(), 1);
    assert_in_order(&told.outline(), &["form", "message \"accept 11\""]);
}

#[tokio::test]
async fn our_client_runs_one_turn_at_a_time() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    cancel_when(&session, "wait", |thread| {
        last_item_outline(thread) == "agent waiting"
    })
    .await;
    let (first, second) =
        tokio::join!(run_prompt(&session, "hello"), run_prompt(&session, "hello"));
    first.unwrap();
    assert_eq!(
        error_code(&second.unwrap_err()),
        jsonrpc::Error::INTERNAL_ERROR
    );
}
