//! Tests cancelling a turn at every point.

use crate::common;
use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, QuestionAnswer, call_text,
    has_call_showing, is_running, load_count, parse_pid, wait_for_thread,
};
use acp::thread::ItemKind;
use acp::thread::PlanEntryStatus;
use acp::thread::ToolCallStatus;
use acp::v1::*;

/// A command that prints its own process id and that of a child process, and then waits for the child.
const HANGING_COMMAND: &str = "/run echo pid:$$; sleep 1000 & echo child:$!; wait";

fn child_pid(text: &str) -> Option<u32> {
    parse_pid(&text.replace("pid:", "").replace("child:", "pid:"))
}

/// Checks everything that must hold after any cancelled turn.
async fn assert_clean_cancel(f: &AgentFixture) {
    assert!(f.tool_calls().iter().all(|call| call.is_finished()));
    f.session
        .thread()
        .read(|thread| assert!(!thread.is_running()));
    f.queue_answers([]);
    assert!(f.prompt_for_text("/help").await.contains("/help"));
}

#[tokio::test]
async fn cancel_kills_the_command_in_a_client_terminal() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt(HANGING_COMMAND);
    let printed = f
        .printed
        .clone()
        .wait_for(|text| child_pid(text).is_some())
        .await
        .unwrap()
        .clone();
    let pids = [parse_pid(&printed).unwrap(), child_pid(&printed).unwrap()];
    assert!(pids.into_iter().all(is_running));
    assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
    assert!(!pids.into_iter().any(is_running));
    let call = f.last_tool_call();
    assert_eq!(call.status, ToolCallStatus::Failed);
    assert!(call_text(&call).contains("Cancelled"));
    // The content that it showed stays.
    assert!(common::call_terminal(&call).is_some());
    assert_eq!(
        (load_count(&f.seen.created), load_count(&f.seen.released)),
        (1, 1)
    );
    assert_clean_cancel(&f).await;
}

#[tokio::test]
async fn cancel_kills_a_local_process() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt(HANGING_COMMAND);
    wait_for_thread(f.session.thread(), |thread| {
        has_call_showing(thread, ToolCallStatus::InProgress, "child:")
    })
    .await;
    let printed = call_text(&f.last_tool_call());
    let pids = [parse_pid(&printed).unwrap(), child_pid(&printed).unwrap()];
    assert!(pids.into_iter().all(is_running));
    assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
    assert!(!pids.into_iter().any(is_running));
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    assert!(call_text(&f.last_tool_call()).contains("Cancelled"));
    assert_clean_cancel(&f).await;
}

#[tokio::test]
async fn cancel_during_a_permission_request_fails_the_call() {
    for command in ["/write a.txt new", "/run touch a.txt"] {
        let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
        f.queue_answers([QuestionAnswer::Hang]);
        let stopped = f
            .cancel_when(command, |_| !f.permission_requests().is_empty())
            .await;
        assert_eq!(stopped, StopReason::Cancelled);
        let call = f.last_tool_call();
        assert_eq!(call.status, ToolCallStatus::Failed);
        assert!(
            call_text(&call).contains("Cancelled"),
            "{}",
            call_text(&call)
        );
        assert!(!f.file_exists("a.txt"));
        assert_clean_cancel(&f).await;
    }
}

#[tokio::test]
async fn cancel_during_the_mode_switch_question_keeps_the_mode() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.session.set_mode("architect").await.unwrap();
    f.queue_answers([QuestionAnswer::Hang]);
    let stopped = f
        .cancel_when("/write a.txt new", |_| !f.permission_requests().is_empty())
        .await;
    assert_eq!(
        (stopped, f.current_mode().as_str()),
        (StopReason::Cancelled, "architect")
    );
    assert!(!f.file_exists("a.txt"));
    assert_clean_cancel(&f).await;
}

#[tokio::test]
async fn cancel_ends_a_hanging_or_streaming_response() {
    let script = r#"{"turns": [
        [{"say": "working"}, {"hang": true}],
        [{"think": "hm"}, {"plan": [{"content": "a", "status": "in_progress"}]}, {"hang": true}],
        [{"say": "again"}]
    ]}"#;
    let f = AgentFixture::start_scripted(script, NO_CAPABILITIES).await;
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
    // The plan stays as it is.
    f.session.thread().read(|thread| {
        assert_eq!(
            thread.plans()[0].entries()[0].status,
            PlanEntryStatus::InProgress
        );
    });
    assert_eq!(f.prompt_for_text("go").await, "again");
}

#[tokio::test]
async fn calls_after_the_cancelled_one_are_skipped() {
    let script = r#"{"turns": [[
        {"write": {"path": "a.txt", "text": "1"}},
        {"write": {"path": "b.txt", "text": "2"}}
    ]]}"#;
    let f = AgentFixture::start_scripted(script, NO_CAPABILITIES).await;
    f.queue_answers([QuestionAnswer::Hang]);
    assert_eq!(
        f.cancel_when("go", |_| !f.permission_requests().is_empty())
            .await,
        StopReason::Cancelled
    );
    assert_eq!(f.tool_calls().len(), 1);
    assert!(!f.file_exists("a.txt") && !f.file_exists("b.txt"));
}

#[tokio::test]
async fn client_disconnect_cancels_the_turn() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    let turn = f.start_prompt(HANGING_COMMAND);
    wait_for_thread(f.session.thread(), |thread| {
        has_call_showing(thread, ToolCallStatus::InProgress, "child:")
    })
    .await;
    let pids = [
        parse_pid(&call_text(&f.last_tool_call())).unwrap(),
        child_pid(&call_text(&f.last_tool_call())).unwrap(),
    ];
    f.agent.close();
    assert!(turn.await.unwrap().is_err());
    let gone = async {
        while pids.into_iter().any(is_running) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone)
        .await
        .expect("they still run");
}
