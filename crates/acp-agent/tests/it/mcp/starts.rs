//! Tests the startup of servers: they all start at the same time, a slow server causes no long wait, and some servers
//! require a key.

use std::time::Duration;

use acp::thread::ToolCallStatus;
use acp_agent::{CodingAgent, McpLimits};
use serde_json::json;

use super::http::{McpHttpServer, McpHttpState};
use super::server::stdio_config;
use super::{SeenRounds, SpyModel, call_step, scripted_model, wait_for_file};
use crate::common::{
    ALLOW, AgentFixture, NO_CAPABILITIES, call_text, is_running, parse_pid, wait_for_thread,
};

#[tokio::test]
async fn hanging_server_does_not_delay_others_and_is_reported_on_timeout() {
    let http = McpHttpServer::start().await;
    let seen = SeenRounds::default();
    let echo = call_step("two__echo", json!({"text": "hello"}));
    let turns = json!([[echo, {"say": "done"}], [{"say": "done"}], [{"say": "done"}]]);
    let spy = SpyModel {
        plays: scripted_model(&turns),
        seen: seen.clone(),
    };
    let mut limits = McpLimits::default();
    (limits.start, limits.first_prompt) = (Duration::from_secs(3), Duration::from_millis(50));
    let servers = vec![
        stdio_config("hanging", "silent"),
        stdio_config("one", "usual"),
        http.streamable_config("two"),
    ];
    let agent = CodingAgent::with_model(spy).mcp_limits(limits);
    // The session is opened at once.
    let f = AgentFixture::new(agent.mcp_servers(servers), NO_CAPABILITIES).await;
    for name in ["one:weather", "two:weather"] {
        wait_for_thread(f.session.thread(), |thread| {
            thread.commands().iter().any(|command| command.name == name)
        })
        .await;
    }
    f.queue_answers([ALLOW]);
    assert_eq!(f.prompt_for_text("go").await, "done");
    assert!(call_text(&f.last_tool_call()).contains("You said: hello."));
    let (names, _) = seen.lock().unwrap().first().unwrap().clone();
    for name in ["one__echo", "two__echo"] {
        assert!(names.iter().any(|given| given == name), "{name}: {names:?}");
    }
    let waited = f.tool_calls().remove(0);
    assert_eq!(waited.title, "Waiting for the MCP server `hanging`");
    assert!(call_text(&waited).contains("did not start within"));
    // When the server is given up, its process is killed.
    wait_for_file(&f, "silent").await;
    let hanging = parse_pid(&f.read_file("silent")).unwrap();
    let ended = async {
        while is_running(hanging) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("it still runs");
    for _ in 0..2 {
        f.prompt_for_text("go").await;
    }
    let told = f.tool_calls().into_iter();
    let told: Vec<_> = told
        .filter(|call| call.title == "MCP server `hanging`")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].status, ToolCallStatus::Failed);
    assert!(
        call_text(&told[0]).contains("did not respond within 3 s"),
        "{}",
        call_text(&told[0])
    );
}

#[tokio::test]
async fn unauthorized_server_error_explains_what_to_do() {
    for (challenge, expected) in [
        ("", "(HTTP status 401)"),
        (
            "WWW-Authenticate: Bearer realm=\"the docs\", resource_metadata=\"https://docs.example/meta\"",
            "realm `the docs`, described at `https://docs.example/meta`",
        ),
    ] {
        let http =
            McpHttpServer::start_with_state(McpHttpState::default().with_auth_challenge(challenge))
                .await;
        for server in [
            http.streamable_config_with_headers("docs", Vec::new()),
            http.sse_config_with_headers("docs", Vec::new()),
        ] {
            let turns = json!([[{"say": "done"}], [{"say": "done"}]]);
            let agent = CodingAgent::with_model(scripted_model(&turns)).mcp_servers(vec![server]);
            let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
            f.prompt_for_text("go").await;
            let why = call_text(&f.last_tool_call());
            for part in [
                expected,
                "`docs`",
                "an `Authorization` header",
                "config.toml",
            ] {
                assert!(why.contains(part), "{part}: {why}");
            }
            assert_eq!(why.contains("OAuth"), !challenge.is_empty(), "{why}");
            // The server is not contacted again, and the user is not informed again.
            f.prompt_for_text("go").await;
            assert_eq!(f.tool_calls().len(), 1);
        }
        // With its key, the server works like any other.
        let turns = json!([[call_step("docs__echo", json!({"text": "hello"})), {"say": "done"}]]);
        let agent = CodingAgent::with_model(scripted_model(&turns));
        let f = AgentFixture::new(
            agent.mcp_servers(vec![http.streamable_config("docs")]),
            NO_CAPABILITIES,
        )
        .await;
        f.queue_answers([ALLOW]);
        f.prompt_for_text("go").await;
        assert!(call_text(&f.last_tool_call()).contains("You said: hello."));
    }
}
