//! Tests that the models listed by a server at the user's own URL can be chosen, and that nothing waits for the list.

use std::sync::Arc;

use crate::common::provider::{
    AnswerPiece, ModelListReply, ProviderReply, ProviderServer, ProviderUsage,
};
use crate::common::{AgentFixture, NO_CAPABILITIES, connect, wait_for_thread};
use acp::Thread;
use acp::v1::SessionConfigKind;
use acp_agent::store::SqliteStore;
use acp_agent::{CodingAgent, ModelConfig, ProviderModel, WireFormat};
use serde_json::json;
use tokio::sync::Notify;

fn agent_with_model(model: ProviderModel) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Provider(Box::new(model))).unwrap()
}

fn text_reply(text: &'static str) -> ProviderReply {
    let used = ProviderUsage {
        input: 10,
        output: 2,
        ..ProviderUsage::default()
    };
    ProviderReply::Says(vec![AnswerPiece::Text(text), AnswerPiece::Usage(used)])
}

/// Returns the models to choose from, starting with the chosen one.
fn offered_models(thread: &Thread) -> Vec<String> {
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

/// Returns a model list as this kind of server formats it, with the configured model, two others, and an entry that is
/// not a model.
fn model_list_json(format: WireFormat) -> String {
    let list = match format {
        WireFormat::AnthropicMessages => json!({"has_more": false, "data": [
            {"type": "model", "id": "a-model", "display_name": "A model"},
            {"type": "model", "id": "b-model"}, {"type": "model", "id": "c-model"}]}),
        // This is the list of vLLM and OpenRouter. llama.cpp lists everything twice.
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
async fn listed_models_appear_after_the_session_opens_and_can_be_chosen() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(format, [text_reply("b")]).await;
        let now = Arc::new(Notify::new());
        server.set_listing(ModelListReply::When(
            Arc::clone(&now),
            model_list_json(format),
        ));
        let f = AgentFixture::new(agent_with_model(server.model()), NO_CAPABILITIES).await;
        let provider = match format {
            WireFormat::OpenAiResponses => "openai-responses",
            _ => format.provider().as_str(),
        };
        let own = format!("{provider}/a-model");
        // The list was requested, but nothing waits for the response.
        let asked = server.wait_for_list_requests(1).await.remove(0);
        assert_eq!(
            f.session.thread().read(offered_models),
            std::slice::from_ref(&own)
        );
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
        wait_for_thread(f.session.thread(), |thread| offered_models(thread) == all).await;
        f.session
            .set_config_option("model", all[1].as_str())
            .await
            .unwrap();
        assert_eq!(f.prompt_for_text("Who?").await, "b");
        let heard = server.requests().remove(0);
        assert!(
            heard.path.contains("b-model") || heard.body["model"] == "b-model",
            "{heard:?}"
        );
        // A session that is opened later has the models at once.
        let other = f.agent.new_session(f.cwd()).await.unwrap();
        assert_eq!(other.thread().read(offered_models), all);
        assert_eq!(server.wait_for_list_requests(1).await.len(), 1);
    }
}

#[tokio::test]
async fn context_window_is_taken_from_the_model_list() {
    let server = ProviderServer::new(WireFormat::OpenAiChat, [text_reply("b")]).await;
    server.set_listing(ModelListReply::Models(model_list_json(
        WireFormat::OpenAiChat,
    )));
    let f = AgentFixture::new(agent_with_model(server.model()), NO_CAPABILITIES).await;
    wait_for_thread(f.session.thread(), |thread| {
        offered_models(thread).len() == 3
    })
    .await;
    let set = f.session.set_config_option("model", "openai/c-model");
    set.await.unwrap();
    f.prompt_for_text("Who?").await;
    let size = f
        .session
        .thread()
        .read(|thread| thread.usage().unwrap().size);
    assert_eq!(size, 8192);
}

#[tokio::test]
async fn configured_models_are_offered_without_a_model_list() {
    let garbage =
        || ModelListReply::Models("<html>Welcome to the hotel's network</html>".to_owned());
    let nothing = || ModelListReply::Models(json!({"object": "list", "data": null}).to_string());
    for listing in [
        ModelListReply::Absent,
        ModelListReply::Silent,
        ModelListReply::Endless,
        garbage(),
        nothing(),
    ] {
        let server =
            ProviderServer::new(WireFormat::OpenAiChat, [text_reply("a"), text_reply("b")]).await;
        server.set_listing(listing.clone());
        let f = AgentFixture::new(agent_with_model(server.model()), NO_CAPABILITIES).await;
        server.wait_for_list_requests(1).await;
        assert_eq!(f.prompt_for_text("Who?").await, "a", "{listing:?}");
        if let ModelListReply::Endless = listing {
            let taken = server.wait_for_closed_connections(1).await;
            assert!(taken < 32 * 1024 * 1024, "{taken}");
        }
        assert_eq!(f.prompt_for_text("And now?").await, "b", "{listing:?}");
        assert_eq!(f.session.thread().read(offered_models), ["openai/a-model"]);
    }
}

#[tokio::test]
async fn unlisted_chosen_model_is_kept() {
    let sessions = tempfile::tempdir().unwrap();
    let cwd = tempfile::tempdir().unwrap();
    let cwd = cwd.path().to_str().unwrap();
    let server = ProviderServer::new(
        WireFormat::OpenAiChat,
        [text_reply("1"), text_reply("2"), text_reply("3")],
    )
    .await;
    server.set_listing(ModelListReply::Models(model_list_json(
        WireFormat::OpenAiChat,
    )));
    let started = async || {
        let store = SqliteStore::open(sessions.path()).unwrap();
        connect(agent_with_model(server.model()).keep_sessions(store)).await
    };
    let session = started().await.new_session(cwd).await.unwrap();
    wait_for_thread(session.thread(), |thread| offered_models(thread).len() == 3).await;
    let set = session.set_config_option("model", "openai/b-model");
    set.await.unwrap();
    session.prompt("1").await.unwrap();
    let id = session.id().clone();
    drop(session);
    // The list is late, but the prompt is not sent to another model for that reason.
    let now = Arc::new(Notify::new());
    server.set_listing(ModelListReply::When(
        Arc::clone(&now),
        model_list_json(WireFormat::OpenAiChat),
    ));
    let agent = started().await;
    let session = agent.resume_session(id.clone(), cwd).await.unwrap();
    server.wait_for_list_requests(2).await;
    let turn = tokio::spawn(async move { session.prompt("2").await });
    now.notify_one();
    turn.await.unwrap().unwrap();
    drop(agent);
    // If the server no longer lists the model, the configured model is used.
    server.set_listing(ModelListReply::Absent);
    let session = started().await.resume_session(id, cwd).await.unwrap();
    session.prompt("3").await.unwrap();
    assert_eq!(session.thread().read(offered_models), ["openai/a-model"]);
    let heard = server.requests();
    let asked: Vec<_> = heard.iter().map(|heard| &heard.body["model"]).collect();
    assert_eq!(asked, ["b-model", "b-model", "a-model"]);
}
