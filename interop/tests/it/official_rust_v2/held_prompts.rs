//! Prompts that are sent while a turn runs. An agent queues them until the turn has ended.

use std::future::poll_fn;
use std::task::Poll;

use acp::v1::StopReason;
use acp::{Error, jsonrpc};

use crate::common::version2::agent::say_meanwhile;
use crate::common::{
    InteropClient, InteropProject, cancel_when, code, in_order, item, last, prompt, soon, until,
};
use crate::official_rust_v2::{OFFICIAL_AGENT, examples::SIMPLE_AGENT, their_client};

#[tokio::test]
async fn an_official_agent_works_on_one_prompt_after_the_other() {
    for (agent, answer) in [(OFFICIAL_AGENT, ""), (SIMPLE_AGENT, "Echo: ")] {
        let project = InteropProject::new();
        let person = InteropClient::of_version_2(&project);
        let (connection, _process) = person.start(&project, &[agent]).await;
        let session = connection.new_session(project.path()).await.unwrap();
        let (first, second) = tokio::join!(
            prompt(&session, "first"),
            say_meanwhile(session.clone(), "second")
        );
        first.unwrap();
        second.unwrap();
        let end = format!("agent {answer}second");
        until(session.thread(), |thread| {
            last(thread) == end && !thread.is_running()
        })
        .await;
        // Each answer follows its question.
        let first = format!("agent {answer}first");
        let expected = ["user first", &first, "user second", &end];
        session.thread().read(|thread| {
            let items: Vec<String> = thread.items().iter().map(item).collect();
            assert_eq!(items, expected, "{agent}");
        });
    }
}

#[tokio::test]
async fn a_cancel_takes_the_held_prompt_with_it() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("wait").await }
    });
    until(session.thread(), |thread| last(thread) == "agent waiting").await;
    let mut held = std::pin::pin!(say_meanwhile(session.clone(), "hello"));
    // A request is on its way as soon as it is begun.
    let begun = poll_fn(|cx| Poll::Ready(held.as_mut().poll(cx).is_pending()));
    assert!(begun.await, "it is held");
    session.cancel().await.unwrap();
    let ended = soon("the turn ends", turn).await.unwrap();
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
    let held = soon("the prompt is answered", held).await;
    match held {
        Err(Error::Rpc(error)) => assert_eq!(error.code, jsonrpc::Error::REQUEST_CANCELLED),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn our_agent_works_on_one_prompt_after_the_other() {
    let client = their_client();
    let told = client.ours(&["--meanwhile", "second", "first"]).await;
    told.ended("end_turn");
    assert_eq!(told.all("prompted").len(), 2);
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

    // A cancel takes the held prompt with it.
    let args = ["--cancel-at", "message", "--meanwhile", "second", "wait"];
    let told = client.ours(&args).await;
    told.ended("cancelled");
    assert_eq!(told.one("refused")["code"], -32800);

    // One that is taken back leaves the turn alone.
    let args = ["--meanwhile", "second", "--take-back", "ask-person"];
    let told = client.ours(&args).await;
    told.ended("end_turn");
    assert_eq!(told.one("refused")["code"], -32800);
    assert_eq!(told.all("prompted").len(), 1);
    in_order(&told.outline(), &["form", "message \"accept 11\""]);
}

#[tokio::test]
async fn our_client_runs_one_turn_at_a_time() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    cancel_when(&session, "wait", |thread| last(thread) == "agent waiting").await;
    let (first, second) = tokio::join!(prompt(&session, "hello"), prompt(&session, "hello"));
    first.unwrap();
    assert_eq!(code(&second.unwrap_err()), jsonrpc::Error::INTERNAL_ERROR);
}
