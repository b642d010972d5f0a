//! Tests servers that are lost during a session and come back later.

use std::time::Duration;

use acp::thread::{ThreadToolCall, ToolCallStatus};
use acp::v1::McpServer;
use acp_agent::{CodingAgent, McpLimits};
use serde_json::{Value, json};

use super::http::{McpHttpServer, McpHttpState};
use super::server::stdio_config;
use super::{SeenRounds, SpyModel, call_step, scripted_model};
use crate::common::{
    ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, call_text, parse_pid, wait_for_thread,
};

/// Opens a session with the server `ours`. Its model makes each of these calls in a separate turn, and then responds
/// with `done`.
async fn start_session(calls: &[Value], server: McpServer) -> (AgentFixture, SeenRounds) {
    let turns: Vec<Value> = calls
        .iter()
        .map(|call| json!([call, {"say": "done"}]))
        .collect();
    let seen = SeenRounds::default();
    let spy = SpyModel {
        plays: scripted_model(&json!(turns)),
        seen: seen.clone(),
    };
    let mut limits = McpLimits::default();
    limits.retry = Duration::from_millis(10);
    let agent = CodingAgent::with_model(spy).mcp_limits(limits);
    let f = AgentFixture::new(agent.mcp_servers(vec![server]), NO_CAPABILITIES).await;
    wait_for_prompt_command(&f, true).await;
    (f, seen)
}

/// Waits until the server's prompts are offered to the client or, if `expected` is `false`, until they no longer are.
async fn wait_for_prompt_command(f: &AgentFixture, expected: bool) {
    wait_for_thread(f.session.thread(), |thread| {
        let mut commands = thread.commands().iter();
        commands.any(|command| command.name == "ours:weather") == expected
    })
    .await;
}

/// Returns all reports about the server that the user has received in any turn so far.
fn server_change_reports(f: &AgentFixture) -> Vec<(ToolCallStatus, String)> {
    let told = f.tool_calls().into_iter();
    let told = told.filter(|call| call.title == "MCP server `ours`");
    told.map(|call| (call.status.clone(), call_text(&call)))
        .collect()
}

fn echo_call() -> Value {
    call_step("ours__echo", json!({"text": "hello"}))
}

fn has_echoed(call: &ThreadToolCall) -> bool {
    call.status == ToolCallStatus::Completed && call_text(call).contains("You said: hello.")
}

/// Returns the names of the tools most recently offered to the model.
fn offered_tools(seen: &SeenRounds) -> Vec<String> {
    seen.lock().unwrap().last().unwrap().0.clone()
}

#[tokio::test]
async fn lost_http_server_is_reported_once_and_reconnected_on_demand() {
    for streamable in [true, false] {
        let mut http = McpHttpServer::start().await;
        let server = match streamable {
            true => http.streamable_config("ours"),
            false => http.sse_config("ours"),
        };
        let (f, seen) = start_session(
            &[echo_call(), echo_call(), echo_call(), echo_call()],
            server,
        )
        .await;
        f.queue_answers([ALLOW_ALWAYS]);
        assert_eq!(f.prompt_for_text("go").await, "done");
        assert!(has_echoed(&f.last_tool_call()));
        http.stop().await;
        // The loss is noticed without any request.
        wait_for_prompt_command(&f, false).await;
        for _ in 0..2 {
            assert_eq!(f.prompt_for_text("go").await, "done");
            assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
            let why = call_text(&f.last_tool_call());
            assert!(why.contains("The MCP server `ours` "), "{why}");
        }
        let news = server_change_reports(&f);
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0].0, ToolCallStatus::Failed);
        let expected = if streamable {
            "Lost connection to the MCP server"
        } else {
            "closed the connection"
        };
        assert!(news[0].1.contains(expected), "{news:?}");
        assert!(
            !offered_tools(&seen)
                .iter()
                .any(|name| name.starts_with("ours__"))
        );
        http.restart().await;
        assert_eq!(f.prompt_for_text("go").await, "done");
        assert!(
            has_echoed(&f.last_tool_call()),
            "{}",
            call_text(&f.last_tool_call())
        );
        let news = server_change_reports(&f);
        assert_eq!(news.len(), 2, "{news:?}");
        assert_eq!(news[1].0, ToolCallStatus::Completed);
        assert!(news[1].1.contains("It reconnected"), "{news:?}");
    }
}

#[tokio::test]
async fn unreachable_http_server_is_retried_with_each_prompt() {
    let mut http = McpHttpServer::start().await;
    http.stop().await;
    let turns = json!([[{"say": "done"}], [echo_call(), {"say": "done"}]]);
    let agent = CodingAgent::with_model(scripted_model(&turns));
    let f = AgentFixture::new(
        agent.mcp_servers(vec![http.streamable_config("ours")]),
        NO_CAPABILITIES,
    )
    .await;
    assert_eq!(f.prompt_for_text("go").await, "done");
    let news = server_change_reports(&f);
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(
        news[0].1.contains("did not start") && news[0].1.contains("with each prompt"),
        "{news:?}"
    );
    http.restart().await;
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt_for_text("go").await, "done");
    assert!(
        has_echoed(&f.last_tool_call()),
        "{}",
        call_text(&f.last_tool_call())
    );
}

#[tokio::test]
async fn expired_session_is_renewed_and_the_call_repeated() {
    for is_odd in [false, true] {
        let http = McpHttpServer::start_with_state(
            McpHttpState::default().with_nonstandard_status(is_odd),
        )
        .await;
        let (f, _) =
            start_session(&[echo_call(), echo_call()], http.streamable_config("ours")).await;
        f.queue_answers([ALLOW_ALWAYS]);
        f.prompt_for_text("go").await;
        http.forget_sessions();
        f.prompt_for_text("go").await;
        assert!(
            has_echoed(&f.last_tool_call()),
            "{}",
            call_text(&f.last_tool_call())
        );
        assert_eq!(*http.all.begun.lock().unwrap(), 2);
        // The user does not need to be informed.
        assert_eq!(server_change_reports(&f), []);
    }
}

#[tokio::test]
async fn truncated_response_fails_only_its_call() {
    let cut = call_step("ours__echo", json!({"text": "cut"}));
    let http = McpHttpServer::start().await;
    let (f, _) = start_session(&[cut, echo_call()], http.streamable_config("ours")).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("go").await;
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    let why = call_text(&f.last_tool_call());
    assert!(why.contains("`ours` sent an incomplete response"), "{why}");
    f.prompt_for_text("go").await;
    assert!(has_echoed(&f.last_tool_call()));
    // The call was not repeated and the server was not reconnected, because it may have executed the call.
    assert_eq!(*http.all.begun.lock().unwrap(), 1);
    assert_eq!(server_change_reports(&f), []);
}

#[tokio::test]
async fn killed_process_is_restarted() {
    let (f, _) = start_session(&[echo_call(), echo_call()], stdio_config("ours", "usual")).await;
    f.queue_answers([ALLOW_ALWAYS]);
    f.prompt_for_text("go").await;
    let first = parse_pid(&call_text(&f.last_tool_call())).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &first.to_string()])
        .status();
    assert!(killed.unwrap().success());
    wait_for_prompt_command(&f, false).await;
    wait_for_prompt_command(&f, true).await;
    f.prompt_for_text("go").await;
    assert!(
        has_echoed(&f.last_tool_call()),
        "{}",
        call_text(&f.last_tool_call())
    );
    assert_ne!(parse_pid(&call_text(&f.last_tool_call())).unwrap(), first);
    let news = server_change_reports(&f);
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].0, ToolCallStatus::Completed);
    assert!(
        news[0].1.contains("has ended") && news[0].1.contains("was restarted"),
        "{news:?}"
    );
}

#[tokio::test]
async fn agent_gives_up_on_a_process_that_keeps_exiting() {
    let die = call_step("ours__die", json!({}));
    let (f, _) = start_session(
        &[die.clone(), die.clone(), die.clone(), die.clone(), die],
        stdio_config("ours", "usual"),
    )
    .await;
    f.queue_answers([ALLOW_ALWAYS]);
    for nth in 1..=5 {
        assert_eq!(f.prompt_for_text("go").await, "done");
        let last = f
            .tool_calls()
            .into_iter()
            .rfind(|call| call.title != "MCP server `ours`");
        let why = call_text(&last.unwrap());
        assert!(
            why.contains("exit code 3") && why.contains("I die"),
            "{nth}: {why}"
        );
        if nth < 4 {
            wait_for_prompt_command(&f, true).await;
        }
    }
    let news = server_change_reports(&f);
    assert!(
        news.last()
            .unwrap()
            .1
            .contains("will not be restarted again in this session"),
        "{news:?}"
    );
}
