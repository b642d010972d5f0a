//! Servers that go away while a session has them, and come back.

use std::time::Duration;

use acp::thread::{ThreadToolCall, ToolCallStatus};
use acp::v1::McpServer;
use acp_agent::{CodingAgent, McpLimits};
use serde_json::{Value, json};

use super::http::{McpHttpServer, McpHttpState};
use super::server::process;
use super::{SeenRounds, SpyModel, call, model};
use crate::common::{ALLOW, ALLOW_ALWAYS, AgentFixture, NONE, pid, texts, until};

/// A session with the server `ours`. Its model makes these calls, each in a turn of its own, and then says `done`.
async fn session(calls: &[Value], server: McpServer) -> (AgentFixture, SeenRounds) {
    let turns: Vec<Value> = calls
        .iter()
        .map(|call| json!([call, {"say": "done"}]))
        .collect();
    let seen = SeenRounds::default();
    let spy = SpyModel {
        plays: model(&json!(turns)),
        seen: seen.clone(),
    };
    let mut limits = McpLimits::default();
    limits.retry = Duration::from_millis(10);
    let agent = CodingAgent::with_model(spy).mcp_limits(limits);
    let f = AgentFixture::new(agent.mcp_servers(vec![server]), NONE).await;
    is_there(&f, true).await;
    (f, seen)
}

/// Waits until what the client is offered of the server is there, or is not.
async fn is_there(f: &AgentFixture, expected: bool) {
    until(f.session.thread(), |thread| {
        let mut commands = thread.commands().iter();
        commands.any(|command| command.name == "ours:weather") == expected
    })
    .await;
}

/// What the person was told of the server in all turns so far.
fn told(f: &AgentFixture) -> Vec<(ToolCallStatus, String)> {
    let told = f.calls().into_iter();
    let told = told.filter(|call| call.title == "MCP server `ours`");
    told.map(|call| (call.status.clone(), texts(&call)))
        .collect()
}

fn echo() -> Value {
    call("ours__echo", json!({"text": "hello"}))
}

fn has_echoed(call: &ThreadToolCall) -> bool {
    call.status == ToolCallStatus::Completed && texts(call).contains("You said: hello.")
}

/// The names of the tools that the model was offered last.
fn offered(seen: &SeenRounds) -> Vec<String> {
    seen.lock().unwrap().last().unwrap().0.clone()
}

#[tokio::test]
async fn a_server_on_http_that_goes_away_is_told_once_and_is_there_again_when_it_is_needed() {
    for streamable in [true, false] {
        let mut http = McpHttpServer::start().await;
        let server = match streamable {
            true => http.streamable("ours"),
            false => http.sse("ours"),
        };
        let (f, seen) = session(&[echo(), echo(), echo(), echo()], server).await;
        f.answers([ALLOW_ALWAYS]);
        assert_eq!(f.says("go").await, "done");
        assert!(has_echoed(&f.call()));
        http.stop().await;
        // That is noticed without anybody asking for anything.
        is_there(&f, false).await;
        for _ in 0..2 {
            assert_eq!(f.says("go").await, "done");
            assert_eq!(f.call().status, ToolCallStatus::Failed);
            let why = texts(&f.call());
            assert!(why.contains("The MCP server `ours` "), "{why}");
        }
        let news = told(&f);
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0].0, ToolCallStatus::Failed);
        let expected = if streamable {
            "Lost connection to the MCP server"
        } else {
            "closed the connection"
        };
        assert!(news[0].1.contains(expected), "{news:?}");
        assert!(!offered(&seen).iter().any(|name| name.starts_with("ours__")));
        http.start_again().await;
        assert_eq!(f.says("go").await, "done");
        assert!(has_echoed(&f.call()), "{}", texts(&f.call()));
        let news = told(&f);
        assert_eq!(news.len(), 2, "{news:?}");
        assert_eq!(news[1].0, ToolCallStatus::Completed);
        assert!(news[1].1.contains("It reconnected"), "{news:?}");
    }
}

#[tokio::test]
async fn a_server_on_http_that_is_not_there_yet_is_tried_with_each_prompt() {
    let mut http = McpHttpServer::start().await;
    http.stop().await;
    let turns = json!([[{"say": "done"}], [echo(), {"say": "done"}]]);
    let agent = CodingAgent::with_model(model(&turns));
    let f = AgentFixture::new(agent.mcp_servers(vec![http.streamable("ours")]), NONE).await;
    assert_eq!(f.says("go").await, "done");
    let news = told(&f);
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(
        news[0].1.contains("did not start") && news[0].1.contains("with each prompt"),
        "{news:?}"
    );
    http.start_again().await;
    f.answers([ALLOW]);
    assert_eq!(f.says("go").await, "done");
    assert!(has_echoed(&f.call()), "{}", texts(&f.call()));
}

#[tokio::test]
async fn a_session_that_has_expired_is_begun_anew_and_the_call_is_made() {
    for is_odd in [false, true] {
        let http = McpHttpServer::with(McpHttpState::default().odd(is_odd)).await;
        let (f, _) = session(&[echo(), echo()], http.streamable("ours")).await;
        f.answers([ALLOW_ALWAYS]);
        f.says("go").await;
        http.forget();
        f.says("go").await;
        assert!(has_echoed(&f.call()), "{}", texts(&f.call()));
        assert_eq!(*http.all.begun.lock().unwrap(), 2);
        // Nobody needs to hear of that.
        assert_eq!(told(&f), []);
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_fails_the_call_and_costs_nothing_else() {
    let cut = call("ours__echo", json!({"text": "cut"}));
    let http = McpHttpServer::start().await;
    let (f, _) = session(&[cut, echo()], http.streamable("ours")).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("go").await;
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    let why = texts(&f.call());
    assert!(why.contains("`ours` sent an incomplete response"), "{why}");
    f.says("go").await;
    assert!(has_echoed(&f.call()));
    // It was not made twice, and nothing was connected anew: the server may have done it.
    assert_eq!(*http.all.begun.lock().unwrap(), 1);
    assert_eq!(told(&f), []);
}

#[tokio::test]
async fn a_process_that_is_killed_is_started_again() {
    let (f, _) = session(&[echo(), echo()], process("ours", "usual")).await;
    f.answers([ALLOW_ALWAYS]);
    f.says("go").await;
    let first = pid(&texts(&f.call())).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &first.to_string()])
        .status();
    assert!(killed.unwrap().success());
    is_there(&f, false).await;
    is_there(&f, true).await;
    f.says("go").await;
    assert!(has_echoed(&f.call()), "{}", texts(&f.call()));
    assert_ne!(pid(&texts(&f.call())).unwrap(), first);
    let news = told(&f);
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].0, ToolCallStatus::Completed);
    assert!(
        news[0].1.contains("has ended") && news[0].1.contains("was restarted"),
        "{news:?}"
    );
}

#[tokio::test]
async fn a_process_that_keeps_ending_is_given_up() {
    let die = call("ours__die", json!({}));
    let (f, _) = session(
        &[die.clone(), die.clone(), die.clone(), die.clone(), die],
        process("ours", "usual"),
    )
    .await;
    f.answers([ALLOW_ALWAYS]);
    for nth in 1..=5 {
        assert_eq!(f.says("go").await, "done");
        let last = f
            .calls()
            .into_iter()
            .rfind(|call| call.title != "MCP server `ours`");
        let why = texts(&last.unwrap());
        assert!(
            why.contains("exit code 3") && why.contains("I die"),
            "{nth}: {why}"
        );
        if nth < 4 {
            is_there(&f, true).await;
        }
    }
    let news = told(&f);
    assert!(
        news.last()
            .unwrap()
            .1
            .contains("will not be restarted again in this session"),
        "{news:?}"
    );
}
