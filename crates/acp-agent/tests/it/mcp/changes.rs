//! Tests servers that report that their tools, prompts or resources have changed.

use acp_agent::CodingAgent;
use serde_json::json;

use super::http::McpHttpServer;
use super::server::stdio_config;
use super::{SeenRounds, SpyModel, allow_only_call, call_step, scripted_model};
use crate::common::{AgentFixture, NO_CAPABILITIES, call_text, wait_for_thread};

#[tokio::test]
async fn list_changed_notifications_refresh_tools_prompts_and_resources() {
    let (streamable, sse) = (McpHttpServer::start().await, McpHttpServer::start().await);
    let servers = [
        stdio_config("ours", "usual"),
        streamable.streamable_config("ours"),
        sse.sse_config("ours"),
    ];
    for server in servers {
        for said in ["tools", "prompts"] {
            let seen = SeenRounds::default();
            let turns = json!([
                [call_step("ours__grow", json!({"text": said})), {"say": "done"}],
                [call_step("list_resources", json!({})), {"say": "done"}],
            ]);
            let spy = SpyModel {
                plays: scripted_model(&turns),
                seen: seen.clone(),
            };
            let agent = CodingAgent::with_model(spy).mcp_servers(vec![server.clone()]);
            let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
            allow_only_call(&f).await;
            // The server is queried outside of turns, and its prompts are announced when it has responded.
            wait_for_thread(f.session.thread(), |thread| {
                let mut commands = thread.commands().iter();
                commands.any(|command| command.name == "ours:grown")
            })
            .await;
            f.prompt_for_text("go").await;
            let resources = call_text(&f.last_tool_call());
            assert!(resources.contains("`note://grown`"), "{resources}");
            let grown = |names: &[String]| names.iter().any(|name| name == "ours__grown");
            let seen = seen.lock().unwrap();
            assert!(!grown(&seen.first().unwrap().0));
            assert!(grown(&seen.last().unwrap().0));
        }
    }
}

#[tokio::test]
async fn resources_are_listed_again_each_time() {
    let http = McpHttpServer::start().await;
    for server in [
        stdio_config("ours", "usual"),
        http.streamable_config("ours"),
    ] {
        let turns = json!([
            [call_step("list_resources", json!({})), {"say": "done"}],
            [call_step("ours__grow", json!({"text": "resources"})), {"say": "done"}],
            [call_step("list_resources", json!({})), {"say": "done"}],
        ]);
        let agent = CodingAgent::with_model(scripted_model(&turns)).mcp_servers(vec![server]);
        let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
        f.prompt_for_text("go").await;
        assert!(!call_text(&f.last_tool_call()).contains("note://grown"));
        allow_only_call(&f).await;
        f.prompt_for_text("go").await;
        assert!(call_text(&f.last_tool_call()).contains("note://grown"));
    }
}
