//! How servers start: all at once, and nobody waits long for one; and those that want to know who asks.

use std::time::Duration;

use acp::thread::ToolCallStatus;
use acp_agent::{CodingAgent, McpLimits};
use serde_json::json;

use super::http::{McpHttpServer, McpHttpState};
use super::server::process;
use super::{SeenRounds, SpyModel, call, exists, model};
use crate::common::{ALLOW, AgentFixture, NONE, pid, runs, texts, until};

#[tokio::test]
async fn one_that_hangs_costs_the_others_nothing_and_is_told_when_its_time_is_over() {
    let http = McpHttpServer::start().await;
    let seen = SeenRounds::default();
    let echo = call("two__echo", json!({"text": "hello"}));
    let turns = json!([[echo, {"say": "done"}], [{"say": "done"}], [{"say": "done"}]]);
    let spy = SpyModel {
        plays: model(&turns),
        seen: seen.clone(),
    };
    let mut limits = McpLimits::default();
    (limits.start, limits.first_prompt) = (Duration::from_secs(3), Duration::from_millis(50));
    let servers = vec![
        process("hanging", "silent"),
        process("one", "usual"),
        http.streamable("two"),
    ];
    let agent = CodingAgent::with_model(spy).mcp_limits(limits);
    // The session is there at once.
    let f = AgentFixture::new(agent.mcp_servers(servers), NONE).await;
    for name in ["one:weather", "two:weather"] {
        until(f.session.thread(), |thread| {
            thread.commands().iter().any(|command| command.name == name)
        })
        .await;
    }
    f.answers([ALLOW]);
    assert_eq!(f.says("go").await, "done");
    assert!(texts(&f.call()).contains("You said: hello."));
    let (names, _) = seen.lock().unwrap().first().unwrap().clone();
    for name in ["one__echo", "two__echo"] {
        assert!(names.iter().any(|given| given == name), "{name}: {names:?}");
    }
    let waited = f.calls().remove(0);
    assert_eq!(waited.title, "Waiting for the MCP server `hanging`");
    assert!(texts(&waited).contains("did not start within"));
    // When it is given up its process ends.
    exists(&f, "silent").await;
    let hanging = pid(&f.text("silent")).unwrap();
    let ended = async {
        while runs(hanging) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("it still runs");
    for _ in 0..2 {
        f.says("go").await;
    }
    let told = f.calls().into_iter();
    let told: Vec<_> = told
        .filter(|call| call.title == "MCP server `hanging`")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].status, ToolCallStatus::Failed);
    assert!(
        texts(&told[0]).contains("did not respond within 3 s"),
        "{}",
        texts(&told[0])
    );
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks_says_what_to_do() {
    for (challenge, expected) in [
        ("", "(HTTP status 401)"),
        (
            "WWW-Authenticate: Bearer realm=\"the docs\", resource_metadata=\"https://docs.example/meta\"",
            "realm `the docs`, described at `https://docs.example/meta`",
        ),
    ] {
        let http = McpHttpServer::with(McpHttpState::default().locked(challenge)).await;
        for server in [
            http.streamable_with("docs", Vec::new()),
            http.sse_with("docs", Vec::new()),
        ] {
            let turns = json!([[{"say": "done"}], [{"say": "done"}]]);
            let agent = CodingAgent::with_model(model(&turns)).mcp_servers(vec![server]);
            let f = AgentFixture::new(agent, NONE).await;
            f.says("go").await;
            let why = texts(&f.call());
            for part in [
                expected,
                "`docs`",
                "an `Authorization` header",
                "config.toml",
            ] {
                assert!(why.contains(part), "{part}: {why}");
            }
            assert_eq!(why.contains("OAuth"), !challenge.is_empty(), "{why}");
            // It is not asked again, and not told again.
            f.says("go").await;
            assert_eq!(f.calls().len(), 1);
        }
        // With its key it is as good as any.
        let turns = json!([[call("docs__echo", json!({"text": "hello"})), {"say": "done"}]]);
        let agent = CodingAgent::with_model(model(&turns));
        let f = AgentFixture::new(agent.mcp_servers(vec![http.streamable("docs")]), NONE).await;
        f.answers([ALLOW]);
        f.says("go").await;
        assert!(texts(&f.call()).contains("You said: hello."));
    }
}
