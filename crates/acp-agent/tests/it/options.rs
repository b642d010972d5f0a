//! Tests the config options for the model and the thought level, their effect on requests, and their storage.

use crate::common;
use crate::common::provider::{AnswerPiece, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NO_CAPABILITIES, connect, wait_for_thread};
use acp::v1::{
    NewSessionRequest, PermissionOptionKind, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory,
};
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{
    CodingAgent, KeySources, ModelChoices, ModelConfig, Provider, ProviderModel, ThoughtLevel,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Returns a model on this server. `gpt-5.4` supports thought levels, and `plain` does not.
fn served_model(server: &ProviderServer, name: &str) -> ProviderModel {
    let mut model = server.model();
    model.name = name.to_owned();
    model
}

fn agent_with_choices(choices: ModelChoices) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Choices(Box::new(choices))).unwrap()
}

/// Formats each option as `id=value`, in order.
fn option_lines(options: &[SessionConfigOption]) -> Vec<String> {
    let each = options.iter().map(|option| match &option.kind {
        SessionConfigKind::Select(select) => format!("{}={}", option.id, select.current_value),
        other => panic!("{other:?}"),
    });
    each.collect()
}

fn session_option_lines(session: &acp::client::ClientSession) -> Vec<String> {
    session
        .thread()
        .read(|thread| option_lines(thread.config_options()))
}

fn option_values(options: &[SessionConfigOption], id: &str) -> Vec<String> {
    let option = options.iter().find(|option| option.id.as_str() == id);
    match &option.unwrap().kind {
        SessionConfigKind::Select(select) => {
            let values = select.options.iter();
            values.map(|value| value.value.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn text_reply(text: &'static str) -> ProviderReply {
    ProviderReply::Says(vec![AnswerPiece::Text(text)])
}

#[tokio::test]
async fn chosen_model_is_used_and_changes_the_offered_options() {
    let one = ProviderServer::new(
        Provider::OpenAi,
        [text_reply("a"), text_reply("b"), text_reply("e")],
    )
    .await;
    let two = ProviderServer::new(Provider::Anthropic, [text_reply("c"), text_reply("d")]).await;
    let choices = ModelChoices::new(KeySources::new())
        .default_model(served_model(&one, "gpt-5.4"))
        .with_model([
            served_model(&two, "claude-haiku-4-5"),
            served_model(&one, "plain"),
        ]);
    let f = AgentFixture::new(agent_with_choices(choices), NO_CAPABILITIES).await;
    let request = NewSessionRequest::new(f.cwd(), Vec::new());
    let answer = f.agent.connection().request(&request).await.unwrap();
    let all = answer.config_options.unwrap();
    let begins = ["mode=ask", "model=openai/gpt-5.4", "thought_level=default"];
    assert_eq!(option_lines(&all), begins);
    let categories: Vec<_> = all.iter().map(|option| option.category.clone()).collect();
    assert_eq!(
        categories,
        [
            Some(SessionConfigOptionCategory::Mode),
            Some(SessionConfigOptionCategory::Model),
            Some(SessionConfigOptionCategory::ThoughtLevel),
        ]
    );
    let models = [
        "openai/gpt-5.4",
        "anthropic/claude-haiku-4-5",
        "openai/plain",
    ];
    assert_eq!(option_values(&all, "model"), models);
    let levels = ["default", "off", "low", "medium", "high", "max"];
    assert_eq!(option_values(&all, "thought_level"), levels);

    let set = async |option: &str, value: &str| {
        f.session.set_config_option(option, value).await.unwrap();
    };
    assert_eq!(f.prompt_for_text("1").await, "a");
    set("thought_level", "high").await;
    assert_eq!(f.prompt_for_text("2").await, "b");
    set("model", "anthropic/claude-haiku-4-5").await;
    let now = [
        "mode=ask",
        "model=anthropic/claude-haiku-4-5",
        "thought_level=high",
    ];
    assert_eq!(session_option_lines(&f.session), now);
    assert_eq!(f.prompt_for_text("3").await, "c");
    set("thought_level", "off").await;
    assert_eq!(f.prompt_for_text("4").await, "d");
    // This model does not support thought levels, so the option disappears. Its value is kept for later.
    set("model", "openai/plain").await;
    assert_eq!(
        session_option_lines(&f.session),
        ["mode=ask", "model=openai/plain"]
    );
    assert_eq!(f.prompt_for_text("5").await, "e");
    set("model", "openai/gpt-5.4").await;
    let now = ["mode=ask", "model=openai/gpt-5.4", "thought_level=off"];
    assert_eq!(session_option_lines(&f.session), now);
    for (option, value) in [("model", "openai/none"), ("thought_level", "huge")] {
        let set = f.session.set_config_option(option, value).await;
        assert!(set.is_err(), "{option} {value}");
    }

    let heard = one.requests();
    let each = |key: &str| -> Vec<Value> {
        let bodies = heard.iter().map(|heard| heard.body[key].clone());
        bodies.collect()
    };
    assert_eq!(each("model"), ["gpt-5.4", "gpt-5.4", "plain"]);
    let efforts = [Value::Null, json!("high"), Value::Null];
    assert_eq!(each("reasoning_effort"), efforts);
    let heard = two.requests();
    assert!(heard[0].body["thinking"].is_object(), "{}", heard[0].body);
    assert!(!heard[1].body["thinking"].is_object(), "{}", heard[1].body);
    // The next model gets the conversation with the previous model.
    assert!(heard[0].body["messages"].to_string().contains("\"a\""));
}

#[tokio::test]
async fn model_can_be_changed_between_rounds() {
    let write = AnswerPiece::Call("1", "write", json!({"path": "a.txt", "text": "1"}));
    let one = ProviderServer::new(Provider::OpenAi, [ProviderReply::Says(vec![write])]).await;
    let two = ProviderServer::new(Provider::Gemini, [text_reply("Written.")]).await;
    let choices = ModelChoices::new(KeySources::new())
        .default_model(served_model(&one, "plain"))
        .with_model([served_model(&two, "other")]);
    let f = AgentFixture::new(agent_with_choices(choices), NO_CAPABILITIES).await;
    let (allow, allowed) = oneshot::channel();
    let allowed = common::QuestionAnswer::When(allowed, PermissionOptionKind::AllowOnce);
    f.queue_answers([allowed]);
    let turn = f.start_prompt("Write it");
    wait_for_thread(f.session.thread(), |_| !f.permission_requests().is_empty()).await;
    f.session
        .set_config_option("model", "gemini/other")
        .await
        .unwrap();
    allow.send(()).unwrap();
    turn.await.unwrap().unwrap();
    assert_eq!(f.read_file("a.txt"), "1");
    assert_eq!((one.requests().len(), two.requests().len()), (1, 1));
}

#[tokio::test]
async fn chosen_options_are_stored_with_the_session() {
    let server = ProviderServer::new(
        Provider::OpenAi,
        [text_reply("a"), text_reply("b"), text_reply("c")],
    )
    .await;
    let sessions = tempfile::tempdir().unwrap();
    let cwd = tempfile::tempdir().unwrap();
    let cwd = cwd.path().to_str().unwrap();
    let started = async |models: &[&str]| {
        let models = models.iter().map(|name| served_model(&server, name));
        let choices = ModelChoices::new(KeySources::new()).with_model(models);
        let agent =
            agent_with_choices(choices).keep_sessions(SqliteStore::open(sessions.path()).unwrap());
        connect(agent).await
    };
    let agent = started(&["plain", "gpt-5.4"]).await;
    let session = agent.new_session(cwd).await.unwrap();
    session
        .set_config_option("model", "openai/gpt-5.4")
        .await
        .unwrap();
    session
        .set_config_option("thought_level", "low")
        .await
        .unwrap();
    session.prompt("1").await.unwrap();
    let id = session.id().clone();
    drop((agent, session));

    let chosen = ["mode=ask", "model=openai/gpt-5.4", "thought_level=low"];
    let agent = started(&["plain", "gpt-5.4"]).await;
    let session = agent.load_session(id.clone(), cwd).await.unwrap();
    assert_eq!(session_option_lines(&session), chosen);
    session.prompt("2").await.unwrap();
    let copy = agent.fork_session(id.clone(), cwd).await.unwrap();
    assert_eq!(session_option_lines(&copy), chosen);
    drop((agent, session, copy));

    // A model that is no longer available is replaced by another.
    let agent = started(&["plain"]).await;
    let session = agent.resume_session(id.clone(), cwd).await.unwrap();
    assert_eq!(
        session_option_lines(&session),
        ["mode=ask", "model=openai/plain"]
    );
    session.prompt("3").await.unwrap();
    drop((agent, session));
    let agent = started(&["plain", "gpt-5.4"]).await;
    let session = agent.resume_session(id, cwd).await.unwrap();
    assert_eq!(session_option_lines(&session), chosen);

    let heard = server.requests();
    let models: Vec<&Value> = heard.iter().map(|heard| &heard.body["model"]).collect();
    assert_eq!(models, ["gpt-5.4", "gpt-5.4", "plain"]);
    assert_eq!(heard[1].body["reasoning_effort"], "low");
}

#[tokio::test]
async fn models_of_two_servers_may_share_a_name() {
    let one = ProviderServer::new(Provider::OpenAi, [text_reply("one")]).await;
    let two = ProviderServer::new(Provider::OpenAi, [text_reply("two")]).await;
    let choices = ModelChoices::new(KeySources::new()).with_model([
        served_model(&one, "plain"),
        served_model(&two, "plain"),
        served_model(&one, "plain"),
    ]);
    let f = AgentFixture::new(
        agent_with_choices(choices).keep_sessions(MemoryStore::new()),
        NO_CAPABILITIES,
    )
    .await;
    let second = format!("openai/plain@{}", two.address);
    let all = f
        .session
        .thread()
        .read(|thread| thread.config_options().to_vec());
    assert_eq!(
        option_values(&all, "model"),
        ["openai/plain", second.as_str()]
    );
    assert_eq!(f.prompt_for_text("?").await, "one");
    f.session
        .set_config_option("model", second.as_str())
        .await
        .unwrap();
    assert_eq!(f.prompt_for_text("?").await, "two");
}

#[tokio::test]
async fn configured_defaults_apply_to_new_sessions() {
    let server = ProviderServer::new(Provider::OpenAi, [text_reply("a"), text_reply("b")]).await;
    let mut choices = ModelChoices::new(KeySources::new())
        .default_model(served_model(&server, "gpt-5.4"))
        .thought_level(Some(ThoughtLevel::Medium));
    // Nothing is known about the model, but a user who sets a level knows that it is supported.
    let mut thinks = served_model(&server, "plain");
    thinks.thought = Some(ThoughtLevel::Low);
    choices.named_models.push(thinks);
    let f = AgentFixture::new(
        agent_with_choices(choices).mode(acp_agent::Mode::Code),
        NO_CAPABILITIES,
    )
    .await;
    let begins = ["mode=code", "model=openai/gpt-5.4", "thought_level=default"];
    assert_eq!(session_option_lines(&f.session), begins);
    f.prompt_for_text("1").await;
    f.session
        .set_config_option("model", "openai/plain")
        .await
        .unwrap();
    f.session
        .set_config_option("thought_level", "high")
        .await
        .unwrap();
    f.prompt_for_text("2").await;
    let heard = server.requests();
    assert_eq!(heard[0].body["reasoning_effort"], "medium");
    assert_eq!(heard[1].body["reasoning_effort"], "high");
}
