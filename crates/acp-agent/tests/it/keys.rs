//! Tests API keys: users without a key are asked to log in, and stored keys are found.

use crate::common::provider::{AnswerPiece, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NO_CAPABILITIES, connect, wait_for_thread};
use acp::Error;
use acp::client::AgentConnection;
use acp::v1::AuthMethod;
use acp_agent::store::MemoryStore;
use acp_agent::{
    CodingAgent, KeyFile, KeySources, ModelChoices, ModelConfig, Provider, ProviderModel, Secret,
};
use serde_json::json;

struct KeyFileFixture {
    dir: tempfile::TempDir,
    file: KeyFile,
}

impl KeyFileFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("acp/keys.json"));
        Self { dir, file }
    }

    fn key_sources(&self) -> KeySources {
        KeySources::new().with_file(self.file.clone())
    }

    fn store_key(&self, provider: Provider) {
        let key = Secret::new("a-key");
        self.file.store(&provider.into(), &key).unwrap();
    }

    async fn connect_agent(&self, choices: ModelChoices) -> AgentConnection {
        connect(agent_with_choices(choices)).await
    }

    async fn open_session(
        &self,
        agent: &AgentConnection,
    ) -> Result<acp::client::ClientSession, Error> {
        agent.new_session(self.dir.path()).await
    }
}

fn agent_with_choices(choices: ModelChoices) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Choices(Box::new(choices))).unwrap()
}

/// Checks that a login is required, and returns the error message.
fn expect_auth_required<T>(answer: Result<T, Error>) -> String {
    let Err(error) = answer else {
        panic!("it works without a key")
    };
    let error = error.peer_error().unwrap();
    assert_eq!(error.code, -32000, "{}", error.message);
    error.message.clone()
}

/// Returns the models that the user can choose.
fn offered_models(session: &acp::client::ClientSession) -> Vec<String> {
    let options = session
        .thread()
        .read(|thread| thread.config_options().to_vec());
    let model = options.iter().find(|option| option.id.as_str() == "model");
    let Some(option) = model else {
        return Vec::new();
    };
    match &option.kind {
        acp::v1::SessionConfigKind::Select(select) => {
            let values = select.options.iter();
            values.map(|value| value.value.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn session_without_a_key_requires_login_first() {
    let home = KeyFileFixture::new();
    let model = ProviderModel::new(Provider::Gemini, "gemini-x");
    let agent = home
        .connect_agent(ModelChoices::new(home.key_sources()).default_model(model))
        .await;
    let said = expect_auth_required(home.open_session(&agent).await);
    assert!(
        said.contains("gemini/gemini-x") && said.contains("GEMINI_API_KEY"),
        "{said}"
    );
    expect_auth_required(agent.authenticate("key").await);
    // It cannot use another provider's key.
    home.store_key(Provider::OpenAi);
    expect_auth_required(home.open_session(&agent).await);
    home.store_key(Provider::Gemini);
    agent.authenticate("key").await.unwrap();
    let session = home.open_session(&agent).await.unwrap();
    let models = offered_models(&session);
    assert_eq!(models[0], "gemini/gemini-x");
    assert!(
        models
            .iter()
            .any(|model| model.starts_with("gemini/gemini-2.5"))
    );
    assert!(models.iter().any(|model| model.starts_with("openai/")));
    assert!(!models.iter().any(|model| model.starts_with("anthropic/")));

    agent.logout().await.unwrap();
    expect_auth_required(home.open_session(&agent).await);
}

#[tokio::test]
async fn only_applicable_auth_methods_are_offered() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyFileFixture::new();
    let mut elsewhere = server.model();
    elsewhere.key = None;
    let keys = home
        .key_sources()
        .with_key(Provider::Gemini, Secret::new("given"));
    let choices = ModelChoices::new(keys).with_model([elsewhere]);
    let agent = agent_with_choices(choices);
    let methods = acp::agent::Authentication::methods(acp::Agent::authentication(&agent).unwrap());
    let all: Vec<(String, Vec<String>)> = methods
        .iter()
        .map(|method| match method {
            AuthMethod::Terminal(method) => (method.id.to_string(), method.args.clone()),
            AuthMethod::Agent(method) => (method.id.to_string(), Vec::new()),
            other => panic!("{other:?}"),
        })
        .collect();
    let at = format!("http://{}/v1/", server.address);
    let args = |args: &[&str]| args.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        all,
        [
            ("anthropic".to_owned(), args(&["login", "anthropic"])),
            ("openai".to_owned(), args(&["login", "openai"])),
            (
                format!("openai {at}"),
                args(&["login", "openai", "--at", &at])
            ),
            ("key".to_owned(), Vec::new()),
        ]
    );
}

#[tokio::test]
async fn key_is_sent_only_to_its_own_url() {
    let refusal = json!({"error": {"message": "who are you?"}}).to_string();
    let answers = [
        ProviderReply::Status(401, &[], refusal),
        ProviderReply::Says(vec![AnswerPiece::Text("Ah, you.")]),
    ];
    let server = ProviderServer::new(Provider::OpenAi, answers).await;
    let home = KeyFileFixture::new();
    home.store_key(Provider::OpenAi);
    let mut model = server.model();
    model.key = None;
    let account = model.account();
    let choices = ModelChoices::new(home.key_sources()).default_model(model);
    let f = AgentFixture::new(agent_with_choices(choices), NO_CAPABILITIES).await;
    expect_auth_required(f.prompt("Hi").await);
    home.file.store(&account, &Secret::new("its-own")).unwrap();
    assert_eq!(f.prompt_for_text("And now?").await, "Ah, you.");
    let heard = server.requests();
    assert_eq!(heard[0].header("authorization"), None);
    assert_eq!(heard[1].header("authorization"), Some("Bearer its-own"));
}

#[tokio::test]
async fn model_with_its_own_key_variable_requires_it() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyFileFixture::new();
    let mut model = server.model();
    model.key = None;
    model.key_variable = Some("HOME_KEY".to_owned());
    let agent = home
        .connect_agent(ModelChoices::new(home.key_sources()).default_model(model.clone()))
        .await;
    let said = expect_auth_required(home.open_session(&agent).await);
    assert!(said.contains("HOME_KEY"), "{said}");
    // A model that was only configured is not offered without a key.
    let agent = home
        .connect_agent(ModelChoices::new(home.key_sources()).with_model([model]))
        .await;
    let session = home.open_session(&agent).await.unwrap();
    assert_eq!(offered_models(&session), Vec::<String>::new());
}

#[tokio::test]
async fn login_adds_models_to_the_open_session() {
    let home = KeyFileFixture::new();
    let f = AgentFixture::new(
        agent_with_choices(ModelChoices::new(home.key_sources())),
        NO_CAPABILITIES,
    )
    .await;
    let typed = |name: &'static str| {
        move |thread: &acp::Thread| {
            let mut commands = thread.commands().iter();
            commands.any(|command| command.name == name)
        }
    };
    assert_eq!(offered_models(&f.session), Vec::<String>::new());
    assert!(f.session.thread().read(typed("read")));
    home.store_key(Provider::Anthropic);
    // The agent itself responds, without calling a model.
    assert!(f.prompt_for_text("/help").await.contains("/compact"));
    wait_for_thread(f.session.thread(), typed("compact")).await;
    assert_eq!(offered_models(&f.session)[0], "anthropic/claude-sonnet-4-6");
    home.file.remove(None).unwrap();
    assert!(f.prompt_for_text("/help").await.contains("/read"));
    wait_for_thread(f.session.thread(), typed("read")).await;
    assert_eq!(offered_models(&f.session), Vec::<String>::new());
}

/// Returns a model on this server that requires its own key.
fn model_with_key(server: &ProviderServer, name: &str) -> ProviderModel {
    let mut model = server.model();
    model.name = name.to_owned();
    model.key = None;
    model.key_variable = Some("HOME_KEY".to_owned());
    model
}

#[tokio::test]
async fn missing_key_ends_the_turn_and_a_new_key_continues_the_session() {
    for provider in Provider::ALL {
        let says = |text| ProviderReply::Says(vec![AnswerPiece::Text(text)]);
        let server = ProviderServer::new(provider, [says("One."), says("Four.")]).await;
        let home = KeyFileFixture::new();
        let model = model_with_key(&server, "a-model");
        let account = model.account();
        let types = |key| home.file.store(&account, &Secret::new(key)).unwrap();
        types("first");
        let agent = agent_with_choices(ModelChoices::new(home.key_sources()).default_model(model));
        let f = AgentFixture::new(agent.keep_sessions(MemoryStore::new()), NO_CAPABILITIES).await;
        assert_eq!(f.prompt_for_text("1").await, "One.");
        std::fs::remove_file(home.file.path()).unwrap();
        for prompt in ["two", "three"] {
            let said = expect_auth_required(f.prompt(prompt).await);
            assert!(said.contains("HOME_KEY"), "{said}");
        }
        types("second");
        assert_eq!(f.prompt_for_text("four").await, "Four.", "{provider}");
        // No request was sent without a key, and nothing that the user typed is lost.
        let heard = server.requests();
        assert_eq!(heard.len(), 2, "{provider}");
        let told = heard[1].body.to_string();
        assert!(told.contains("two") && told.contains("three"), "{told}");
    }
}

#[tokio::test]
async fn chosen_model_is_kept_when_its_key_disappears() {
    let says = |text| ProviderReply::Says(vec![AnswerPiece::Text(text)]);
    let open = ProviderServer::new(Provider::OpenAi, [says("Open.")]).await;
    let closed = ProviderServer::new(Provider::Anthropic, [says("One."), says("Two.")]).await;
    let home = KeyFileFixture::new();
    let model = model_with_key(&closed, "closed");
    let account = model.account();
    let types = || home.file.store(&account, &Secret::new("a-key")).unwrap();
    types();
    let choices = ModelChoices::new(home.key_sources())
        .default_model(open.model())
        .with_model([model]);
    let f = AgentFixture::new(agent_with_choices(choices), NO_CAPABILITIES).await;
    let choose = async |model: &str| f.session.set_config_option("model", model).await;
    choose("anthropic/closed").await.unwrap();
    assert_eq!(f.prompt_for_text("1").await, "One.");

    home.file.remove(Some(&account)).unwrap();
    let said = expect_auth_required(f.prompt("between us").await);
    assert!(said.contains("anthropic/closed"), "{said}");
    assert_eq!(open.requests().len(), 0);
    types();
    assert_eq!(f.prompt_for_text("2").await, "Two.");
    home.file.remove(Some(&account)).unwrap();
    expect_auth_required(f.prompt("3").await);
    // A user who does not want to log in can choose another model. A model without its key cannot be chosen.
    assert_eq!(
        offered_models(&f.session),
        ["openai/a-model", "anthropic/closed"]
    );
    choose("openai/a-model").await.unwrap();
    assert_eq!(f.prompt_for_text("4").await, "Open.");
    assert_eq!(offered_models(&f.session), ["openai/a-model"]);
    assert!(choose("anthropic/closed").await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn key_file_readable_by_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt;
    let home = KeyFileFixture::new();
    home.store_key(Provider::OpenAi);
    let file = home.file.path().to_owned();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let model = ProviderModel::new(Provider::OpenAi, "gpt-x");
    let agent = home
        .connect_agent(ModelChoices::new(home.key_sources()).default_model(model))
        .await;
    let said = expect_auth_required(home.open_session(&agent).await);
    let todo = format!("chmod 600 {}", file.display());
    assert!(
        said.contains("other users can read it") && said.contains(&todo),
        "{said}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.open_session(&agent).await.unwrap();
}

/// A function that damages a key file so that it is rejected.
#[cfg(unix)]
type KeyFileDamage = fn(&std::path::Path);

/// Returns several kinds of damage to the file, each with part of the resulting error message.
#[cfg(unix)]
fn key_file_damage_cases() -> [(KeyFileDamage, &'static str); 2] {
    use std::os::unix::fs::PermissionsExt;
    [
        (
            |file| {
                let opened = std::fs::Permissions::from_mode(0o644);
                std::fs::set_permissions(file, opened).unwrap();
            },
            "other users can read it",
        ),
        (|file| std::fs::write(file, "{oops").unwrap(), "line 1"),
    ]
}

#[cfg(unix)]
#[tokio::test]
async fn unread_key_file_is_not_reported_as_a_rejected_key() {
    for (refuse, expected) in key_file_damage_cases() {
        let refusal = r#"{"error":{"message":"no key"}}"#.to_owned();
        let refusal = ProviderReply::Status(401, &[], refusal);
        let server = ProviderServer::new(Provider::OpenAi, [refusal]).await;
        let home = KeyFileFixture::new();
        // The model may not need a key.
        let mut model = server.model();
        model.key = None;
        let account = model.account();
        home.file.store(&account, &Secret::new("a-key")).unwrap();
        refuse(home.file.path());
        let agent = agent_with_choices(ModelChoices::new(home.key_sources()).default_model(model));
        let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
        let said = expect_auth_required(f.prompt("hello").await);
        let file = home.file.path().display().to_string();
        assert!(said.contains(expected) && said.contains(&file), "{said}");
        assert!(said.contains("HTTP 401: no key"), "{said}");
        assert!(!said.contains("key rejected"), "{said}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn rejected_key_file_is_not_treated_as_missing() {
    for (refuse, expected) in key_file_damage_cases() {
        let home = KeyFileFixture::new();
        home.store_key(Provider::Anthropic);
        refuse(home.file.path());
        let agent = home
            .connect_agent(ModelChoices::new(home.key_sources()))
            .await;
        let said = expect_auth_required(home.open_session(&agent).await);
        let file = home.file.path().display().to_string();
        assert!(said.contains(expected) && said.contains(&file), "{said}");
        std::fs::remove_file(home.file.path()).unwrap();
        home.open_session(&agent).await.unwrap();
    }
}

#[tokio::test]
async fn authentication_without_a_key_allows_keyless_sessions() {
    let home = KeyFileFixture::new();
    let agent = home
        .connect_agent(ModelChoices::new(home.key_sources()))
        .await;
    // Some clients do this with the first auth method that they are offered.
    agent.authenticate("key").await.unwrap();
    home.open_session(&agent).await.unwrap();
    // Now the user wants to know whether there is a key.
    expect_auth_required(agent.authenticate("key").await);
    home.store_key(Provider::OpenAi);
    agent.authenticate("key").await.unwrap();
}

#[tokio::test]
async fn configured_server_replaces_the_provider_models() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyFileFixture::new();
    let keys = home
        .key_sources()
        .with_key(Provider::OpenAi, Secret::new("given"))
        .with_key(Provider::Gemini, Secret::new("given"));
    let first = server.model();
    let agent = home
        .connect_agent(ModelChoices::new(keys).default_model(first.clone()))
        .await;
    let models = offered_models(&home.open_session(&agent).await.unwrap());
    let openai: Vec<_> = models.iter().filter(|m| m.starts_with("openai/")).collect();
    assert_eq!(openai, [&first.to_string()]);
    assert!(models.iter().any(|model| model.starts_with("gemini/")));
}
