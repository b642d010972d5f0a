//! Servers that have something else than before, and say so.

use acp_agent::CodingAgent;
use serde_json::json;

use super::http::McpHttpServer;
use super::server::process;
use super::{SeenRounds, SpyModel, allowed, call, model};
use crate::common::{AgentFixture, NONE, texts, until};

#[tokio::test]
async fn other_tools_prompts_and_resources_are_there_when_the_server_says_so() {
    let (streamable, sse) = (McpHttpServer::start().await, McpHttpServer::start().await);
    let servers = [
        process("ours", "usual"),
        streamable.streamable("ours"),
        sse.sse("ours"),
    ];
    for server in servers {
        for said in ["tools", "prompts"] {
            let seen = SeenRounds::default();
            let turns = json!([
                [call("ours__grow", json!({"text": said})), {"say": "done"}],
                [call("list_resources", json!({})), {"say": "done"}],
            ]);
            let spy = SpyModel {
                plays: model(&turns),
                seen: seen.clone(),
            };
            let agent = CodingAgent::with_model(spy).mcp_servers(vec![server.clone()]);
            let f = AgentFixture::new(agent, NONE).await;
            allowed(&f).await;
            // The server is asked anew beside the turns, and its prompts are announced when it has answered.
            until(f.session.thread(), |thread| {
                let mut commands = thread.commands().iter();
                commands.any(|command| command.name == "ours:grown")
            })
            .await;
            f.says("go").await;
            let resources = texts(&f.call());
            assert!(resources.contains("`note://grown`"), "{resources}");
            let grown = |names: &[String]| names.iter().any(|name| name == "ours__grown");
            let seen = seen.lock().unwrap();
            assert!(!grown(&seen.first().unwrap().0));
            assert!(grown(&seen.last().unwrap().0));
        }
    }
}

#[tokio::test]
async fn resources_are_listed_anew_each_time() {
    let http = McpHttpServer::start().await;
    for server in [process("ours", "usual"), http.streamable("ours")] {
        let turns = json!([
            [call("list_resources", json!({})), {"say": "done"}],
            [call("ours__grow", json!({"text": "resources"})), {"say": "done"}],
            [call("list_resources", json!({})), {"say": "done"}],
        ]);
        let agent = CodingAgent::with_model(model(&turns)).mcp_servers(vec![server]);
        let f = AgentFixture::new(agent, NONE).await;
        f.says("go").await;
        assert!(!texts(&f.call()).contains("note://grown"));
        allowed(&f).await;
        f.says("go").await;
        assert!(texts(&f.call()).contains("note://grown"));
    }
}
