//! The models that a server at an address of the user's own says it has: they can be chosen, and nothing waits for them.

use std::sync::Arc;

use crate::common::provider::{AnswerPiece, Listing, ProviderReply, ProviderServer, ProviderUsage};
use crate::common::{AgentFixture, NONE, connect, until};
use acp::Thread;
use acp::v1::SessionConfigKind;
use acp_agent::store::SqliteStore;
use acp_agent::{CodingAgent, ModelConfig, ProviderModel, WireFormat};
use serde_json::json;
use tokio::sync::Notify;

fn agent(model: ProviderModel) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Provider(Box::new(model))).unwrap()
}

fn says(text: &'static str) -> ProviderReply {
    let used = ProviderUsage {
        input: 10,
        output: 2,
        ..ProviderUsage::default()
    };
    ProviderReply::Says(vec![AnswerPiece::Text(text), AnswerPiece::Usage(used)])
}

/// The models there are to choose from, the one that is chosen first.
fn models(thread: &Thread) -> Vec<String> {
    let options = thread.config_options();
    let option = options.iter().find(|option| option.id.as_str() == "model");
    let SessionConfigKind::Select(select) = &option.unwrap().kind else {
        panic!("{option:?}")
    };
    let values = select.options.iter().map(|value| value.value.to_string());
    let current = select.current_value.to_string();
    let others: Vec<_> = values.filter(|value| *value != current).collect();
    std::iter::once(current).chain(others).collect()
}

/// A list as a server of this kind writes it: the model that is configured, two more, and what is none.
fn list(format: WireFormat) -> String {
    let list = match format {
        WireFormat::AnthropicMessages => json!({"has_more": false, "data": [
            {"type": "model", "id": "a-model", "display_name": "A model"},
            {"type": "model", "id": "b-model"}, {"type": "model", "id": "c-model"}]}),
        // As vLLM and OpenRouter have it; llama.cpp says everything twice.
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
            json!({"object": "list", "models": [{"name": "twice"}], "data": [
            {"id": "a-model", "object": "model"}, {"id": "b-model", "max_model_len": 4096},
            {"id": "no name", "object": "model"}, {"object": "model"}, 7,
            {"id": "c-model", "context_length": 8192, "name": "C"}]})
        }
        _ => json!({"models": [
            {"name": "models/a-model", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/embeds", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/b-model", "inputTokenLimit": 4096},
            {"name": "models/c-model", "supportedGenerationMethods": ["generateContent"]}]}),
    };
    list.to_string()
}

#[tokio::test]
async fn they_come_when_the_session_is_there_and_can_be_chosen() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(format, [says("b")]).await;
        let now = Arc::new(Notify::new());
        server.lists(Listing::When(Arc::clone(&now), list(format)));
        let f = AgentFixture::new(agent(server.model()), NONE).await;
        let provider = match format {
            WireFormat::OpenAiResponses => "openai-responses",
            _ => format.provider().as_str(),
        };
        let own = format!("{provider}/a-model");
        // It was asked, and nobody waits for what it says.
        let asked = server.listed(1).await.remove(0);
        assert_eq!(f.session.thread().read(models), std::slice::from_ref(&own));
        let (path, header, key) = match format {
            WireFormat::AnthropicMessages => ("/v1/models", "x-api-key", "a-key"),
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
                ("/v1/models", "authorization", "Bearer a-key")
            }
            _ => ("/v1beta/models", "x-goog-api-key", "a-key"),
        };
        assert_eq!(asked.path, path);
        assert_eq!(asked.header(header), Some(key));
        now.notify_one();
        let all = [
            own.clone(),
            format!("{provider}/b-model"),
            format!("{provider}/c-model"),
        ];
        until(f.session.thread(), |thread| models(thread) == all).await;
        f.session
            .set_config_option("model", all[1].as_str())
            .await
            .unwrap();
        assert_eq!(f.says("Who?").await, "b");
        let heard = server.heard().remove(0);
        assert!(
            heard.path.contains("b-model") || heard.body["model"] == "b-model",
            "{heard:?}"
        );
        // A session that begins later has them at once.
        let other = f.agent.new_session(f.cwd()).await.unwrap();
        assert_eq!(other.thread().read(models), all);
        assert_eq!(server.listed(1).await.len(), 1);
    }
}

#[tokio::test]
async fn the_room_that_one_has_is_taken_from_the_list() {
    let server = ProviderServer::new(WireFormat::OpenAiChat, [says("b")]).await;
    server.lists(Listing::Models(list(WireFormat::OpenAiChat)));
    let f = AgentFixture::new(agent(server.model()), NONE).await;
    until(f.session.thread(), |thread| models(thread).len() == 3).await;
    let set = f.session.set_config_option("model", "openai/c-model");
    set.await.unwrap();
    f.says("Who?").await;
    let size = f
        .session
        .thread()
        .read(|thread| thread.usage().unwrap().size);
    assert_eq!(size, 8192);
}

#[tokio::test]
async fn without_a_list_there_is_what_is_configured() {
    let garbage = || Listing::Models("<html>Welcome to the hotel's network</html>".to_owned());
    let nothing = || Listing::Models(json!({"object": "list", "data": null}).to_string());
    for listing in [
        Listing::Absent,
        Listing::Silent,
        Listing::Endless,
        garbage(),
        nothing(),
    ] {
        let server = ProviderServer::new(WireFormat::OpenAiChat, [says("a"), says("b")]).await;
        server.lists(listing.clone());
        let f = AgentFixture::new(agent(server.model()), NONE).await;
        server.listed(1).await;
        assert_eq!(f.says("Who?").await, "a", "{listing:?}");
        if let Listing::Endless = listing {
            let taken = server.ended(1).await;
            assert!(taken < 32 * 1024 * 1024, "{taken}");
        }
        assert_eq!(f.says("And now?").await, "b", "{listing:?}");
        assert_eq!(f.session.thread().read(models), ["openai/a-model"]);
    }
}

#[tokio::test]
async fn one_that_was_chosen_is_gone_on_with_though_nobody_has_heard_of_it_yet() {
    let sessions = tempfile::tempdir().unwrap();
    let cwd = tempfile::tempdir().unwrap();
    let cwd = cwd.path().to_str().unwrap();
    let server =
        ProviderServer::new(WireFormat::OpenAiChat, [says("1"), says("2"), says("3")]).await;
    server.lists(Listing::Models(list(WireFormat::OpenAiChat)));
    let started = async || {
        let store = SqliteStore::open(sessions.path()).unwrap();
        connect(agent(server.model()).keep_sessions(store)).await
    };
    let session = started().await.new_session(cwd).await.unwrap();
    until(session.thread(), |thread| models(thread).len() == 3).await;
    let set = session.set_config_option("model", "openai/b-model");
    set.await.unwrap();
    session.prompt("1").await.unwrap();
    let id = session.id().clone();
    drop(session);
    // The list is late, but the prompt is not asked of another model for that.
    let now = Arc::new(Notify::new());
    server.lists(Listing::When(
        Arc::clone(&now),
        list(WireFormat::OpenAiChat),
    ));
    let agent = started().await;
    let session = agent.resume_session(id.clone(), cwd).await.unwrap();
    server.listed(2).await;
    let turn = tokio::spawn(async move { session.prompt("2").await });
    now.notify_one();
    turn.await.unwrap().unwrap();
    drop(agent);
    // Where the server does not say it any more, it gives way to what is configured.
    server.lists(Listing::Absent);
    let session = started().await.resume_session(id, cwd).await.unwrap();
    session.prompt("3").await.unwrap();
    assert_eq!(session.thread().read(models), ["openai/a-model"]);
    let heard = server.heard();
    let asked: Vec<_> = heard.iter().map(|heard| &heard.body["model"]).collect();
    assert_eq!(asked, ["b-model", "b-model", "a-model"]);
}
