//! Cancelling at every point of a turn.

use crate::common;
use crate::common::{
    ALL, ALLOW, AgentFixture, NONE, QuestionAnswer, count, pid, runs, shows, texts, until,
};
use acp::thread::ItemKind;
use acp::thread::PlanEntryStatus;
use acp::thread::ToolCallStatus;
use acp::v1::*;

/// Prints its process id and that of a child, and ends neither.
const HANG: &str = "/run echo pid:$$; sleep 1000 & echo child:$!; wait";

fn child(text: &str) -> Option<u32> {
    pid(&text.replace("pid:", "").replace("child:", "pid:"))
}

/// What has to be true after every cancelled turn.
async fn is_clean(f: &AgentFixture) {
    assert!(f.calls().iter().all(|call| call.is_finished()));
    f.session
        .thread()
        .read(|thread| assert!(!thread.is_running()));
    f.answers([]);
    assert!(f.says("/help").await.contains("/help"));
}

#[tokio::test]
async fn while_a_terminal_runs() {
    let f = AgentFixture::offline(ALL).await;
    f.answers([ALLOW]);
    let turn = f.begin(HANG);
    let printed = f
        .printed
        .clone()
        .wait_for(|text| child(text).is_some())
        .await
        .unwrap()
        .clone();
    let pids = [pid(&printed).unwrap(), child(&printed).unwrap()];
    assert!(pids.into_iter().all(runs));
    assert_eq!(f.cancelled(turn).await, StopReason::Cancelled);
    assert!(!pids.into_iter().any(runs));
    let call = f.call();
    assert_eq!(call.status, ToolCallStatus::Failed);
    assert!(texts(&call).contains("Cancelled"));
    // What it showed stays.
    assert!(common::terminal(&call).is_some());
    assert_eq!((count(&f.seen.created), count(&f.seen.released)), (1, 1));
    is_clean(&f).await;
}

#[tokio::test]
async fn while_a_process_of_the_agents_runs() {
    let f = AgentFixture::offline(NONE).await;
    f.answers([ALLOW]);
    let turn = f.begin(HANG);
    until(f.session.thread(), |thread| {
        shows(thread, ToolCallStatus::InProgress, "child:")
    })
    .await;
    let printed = texts(&f.call());
    let pids = [pid(&printed).unwrap(), child(&printed).unwrap()];
    assert!(pids.into_iter().all(runs));
    assert_eq!(f.cancelled(turn).await, StopReason::Cancelled);
    assert!(!pids.into_iter().any(runs));
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    assert!(texts(&f.call()).contains("Cancelled"));
    is_clean(&f).await;
}

#[tokio::test]
async fn while_a_permission_is_open() {
    for command in ["/write a.txt new", "/run touch a.txt"] {
        let f = AgentFixture::offline(ALL).await;
        f.answers([QuestionAnswer::Hang]);
        let stopped = f.cancel_when(command, |_| !f.asked().is_empty()).await;
        assert_eq!(stopped, StopReason::Cancelled);
        let call = f.call();
        assert_eq!(call.status, ToolCallStatus::Failed);
        assert!(texts(&call).contains("Cancelled"), "{}", texts(&call));
        assert!(!f.there("a.txt"));
        is_clean(&f).await;
    }
}

#[tokio::test]
async fn while_the_way_out_of_architect_mode_is_open() {
    let f = AgentFixture::offline(ALL).await;
    f.session.set_mode("architect").await.unwrap();
    f.answers([QuestionAnswer::Hang]);
    let stopped = f
        .cancel_when("/write a.txt new", |_| !f.asked().is_empty())
        .await;
    assert_eq!(
        (stopped, f.mode().as_str()),
        (StopReason::Cancelled, "architect")
    );
    assert!(!f.there("a.txt"));
    is_clean(&f).await;
}

#[tokio::test]
async fn while_the_model_hangs_or_streams() {
    let script = r#"{"turns": [
        [{"say": "working"}, {"hang": true}],
        [{"think": "hm"}, {"plan": [{"content": "a", "status": "in_progress"}]}, {"hang": true}],
        [{"say": "again"}]
    ]}"#;
    let f = AgentFixture::scripted(script, NONE).await;
    let stopped = f
        .cancel_when("go", |thread| {
            thread
                .items()
                .iter()
                .any(|item| matches!(item.kind, ItemKind::Agent(_)))
        })
        .await;
    assert_eq!(stopped, StopReason::Cancelled);
    let stopped = f
        .cancel_when("go", |thread| !thread.plans().is_empty())
        .await;
    assert_eq!(stopped, StopReason::Cancelled);
    // The plan is left as it is.
    f.session.thread().read(|thread| {
        assert_eq!(
            thread.plans()[0].entries()[0].status,
            PlanEntryStatus::InProgress
        );
    });
    assert_eq!(f.says("go").await, "again");
}

#[tokio::test]
async fn calls_behind_the_cancelled_one_are_not_made() {
    let script = r#"{"turns": [[
        {"write": {"path": "a.txt", "text": "1"}},
        {"write": {"path": "b.txt", "text": "2"}}
    ]]}"#;
    let f = AgentFixture::scripted(script, NONE).await;
    f.answers([QuestionAnswer::Hang]);
    assert_eq!(
        f.cancel_when("go", |_| !f.asked().is_empty()).await,
        StopReason::Cancelled
    );
    assert_eq!(f.calls().len(), 1);
    assert!(!f.there("a.txt") && !f.there("b.txt"));
}

#[tokio::test]
async fn when_the_client_goes_away() {
    let f = AgentFixture::offline(NONE).await;
    f.answers([ALLOW]);
    let turn = f.begin(HANG);
    until(f.session.thread(), |thread| {
        shows(thread, ToolCallStatus::InProgress, "child:")
    })
    .await;
    let pids = [
        pid(&texts(&f.call())).unwrap(),
        child(&texts(&f.call())).unwrap(),
    ];
    f.agent.close();
    assert!(turn.await.unwrap().is_err());
    let gone = async {
        while pids.into_iter().any(runs) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone)
        .await
        .expect("they still run");
}
