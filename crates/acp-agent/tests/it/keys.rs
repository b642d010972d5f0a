//! Keys: who has none is asked to log in, and what was typed is found.

use crate::common::provider::{AnswerPiece, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NONE, connect, until};
use acp::Error;
use acp::client::AgentConnection;
use acp::v1::AuthMethod;
use acp_agent::store::MemoryStore;
use acp_agent::{
    CodingAgent, KeyFile, KeySources, ModelChoices, ModelConfig, Provider, ProviderModel, Secret,
};
use serde_json::json;

struct KeyHome {
    dir: tempfile::TempDir,
    file: KeyFile,
}

impl KeyHome {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("acp/keys.json"));
        Self { dir, file }
    }

    fn keys(&self) -> KeySources {
        KeySources::new().file(self.file.clone())
    }

    fn types(&self, provider: Provider) {
        let key = Secret::new("a-key");
        self.file.store(&provider.into(), &key).unwrap();
    }

    async fn agent(&self, choices: ModelChoices) -> AgentConnection {
        connect(agent(choices)).await
    }

    async fn opens(&self, agent: &AgentConnection) -> Result<acp::client::ClientSession, Error> {
        agent.new_session(self.dir.path()).await
    }
}

fn agent(choices: ModelChoices) -> CodingAgent {
    CodingAgent::new(&ModelConfig::Choices(Box::new(choices))).unwrap()
}

/// That one must log in first; gives what is said.
fn must_log_in<T>(answer: Result<T, Error>) -> String {
    let Err(error) = answer else {
        panic!("it works without a key")
    };
    let error = error.peer_error().unwrap();
    assert_eq!(error.code, -32000, "{}", error.message);
    error.message.clone()
}

/// The models that can be chosen.
fn models(session: &acp::client::ClientSession) -> Vec<String> {
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
async fn without_a_key_one_is_asked_to_log_in_and_then_it_works() {
    let home = KeyHome::new();
    let model = ProviderModel::new(Provider::Gemini, "gemini-x");
    let agent = home
        .agent(ModelChoices::new(home.keys()).default_model(model))
        .await;
    let said = must_log_in(home.opens(&agent).await);
    assert!(
        said.contains("gemini/gemini-x") && said.contains("GEMINI_API_KEY"),
        "{said}"
    );
    must_log_in(agent.authenticate("key").await);
    // Another provider's is of no use to it.
    home.types(Provider::OpenAi);
    must_log_in(home.opens(&agent).await);
    home.types(Provider::Gemini);
    agent.authenticate("key").await.unwrap();
    let session = home.opens(&agent).await.unwrap();
    let models = models(&session);
    assert_eq!(models[0], "gemini/gemini-x");
    assert!(
        models
            .iter()
            .any(|model| model.starts_with("gemini/gemini-2.5"))
    );
    assert!(models.iter().any(|model| model.starts_with("openai/")));
    assert!(!models.iter().any(|model| model.starts_with("anthropic/")));

    agent.logout().await.unwrap();
    must_log_in(home.opens(&agent).await);
}

#[tokio::test]
async fn ways_to_log_in_are_those_that_are_of_use() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyHome::new();
    let mut elsewhere = server.model();
    elsewhere.key = None;
    let keys = home.keys().with_key(Provider::Gemini, Secret::new("given"));
    let choices = ModelChoices::new(keys).with_model([elsewhere]);
    let agent = agent(choices);
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
async fn a_key_for_an_address_is_sent_there_and_no_other_is() {
    let refusal = json!({"error": {"message": "who are you?"}}).to_string();
    let answers = [
        ProviderReply::Status(401, &[], refusal),
        ProviderReply::Says(vec![AnswerPiece::Text("Ah, you.")]),
    ];
    let server = ProviderServer::new(Provider::OpenAi, answers).await;
    let home = KeyHome::new();
    home.types(Provider::OpenAi);
    let mut model = server.model();
    model.key = None;
    let account = model.account();
    let choices = ModelChoices::new(home.keys()).default_model(model);
    let f = AgentFixture::new(agent(choices), NONE).await;
    must_log_in(f.prompt("Hi").await);
    home.file.store(&account, &Secret::new("its-own")).unwrap();
    assert_eq!(f.says("And now?").await, "Ah, you.");
    let heard = server.heard();
    assert_eq!(heard[0].header("authorization"), None);
    assert_eq!(heard[1].header("authorization"), Some("Bearer its-own"));
}

#[tokio::test]
async fn a_model_with_a_variable_of_its_own_needs_what_is_in_it() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyHome::new();
    let mut model = server.model();
    model.key = None;
    model.key_variable = Some("HOME_KEY".to_owned());
    let agent = home
        .agent(ModelChoices::new(home.keys()).default_model(model.clone()))
        .await;
    let said = must_log_in(home.opens(&agent).await);
    assert!(said.contains("HOME_KEY"), "{said}");
    // One that was only named is not offered without.
    let agent = home
        .agent(ModelChoices::new(home.keys()).with_model([model]))
        .await;
    let session = home.opens(&agent).await.unwrap();
    assert_eq!(models(&session), Vec::<String>::new());
}

#[tokio::test]
async fn who_logs_in_has_a_model_in_the_session_that_is_open() {
    let home = KeyHome::new();
    let f = AgentFixture::new(agent(ModelChoices::new(home.keys())), NONE).await;
    let typed = |name: &'static str| {
        move |thread: &acp::Thread| {
            let mut commands = thread.commands().iter();
            commands.any(|command| command.name == name)
        }
    };
    assert_eq!(models(&f.session), Vec::<String>::new());
    assert!(f.session.thread().read(typed("read")));
    home.types(Provider::Anthropic);
    // It is answered by the agent itself: nobody is asked anything.
    assert!(f.says("/help").await.contains("/compact"));
    until(f.session.thread(), typed("compact")).await;
    assert_eq!(models(&f.session)[0], "anthropic/claude-sonnet-4-6");
    home.file.remove(None).unwrap();
    assert!(f.says("/help").await.contains("/read"));
    until(f.session.thread(), typed("read")).await;
    assert_eq!(models(&f.session), Vec::<String>::new());
}

/// A model at this server that needs a key of its own.
fn keyed(server: &ProviderServer, name: &str) -> ProviderModel {
    let mut model = server.model();
    model.name = name.to_owned();
    model.key = None;
    model.key_variable = Some("HOME_KEY".to_owned());
    model
}

#[tokio::test]
async fn a_key_that_is_gone_ends_the_turn_and_a_new_one_goes_on_with_the_session() {
    for provider in Provider::ALL {
        let says = |text| ProviderReply::Says(vec![AnswerPiece::Text(text)]);
        let server = ProviderServer::new(provider, [says("One."), says("Four.")]).await;
        let home = KeyHome::new();
        let model = keyed(&server, "a-model");
        let account = model.account();
        let types = |key| home.file.store(&account, &Secret::new(key)).unwrap();
        types("first");
        let agent = agent(ModelChoices::new(home.keys()).default_model(model));
        let f = AgentFixture::new(agent.keep_sessions(MemoryStore::new()), NONE).await;
        assert_eq!(f.says("1").await, "One.");
        std::fs::remove_file(home.file.path()).unwrap();
        for prompt in ["two", "three"] {
            let said = must_log_in(f.prompt(prompt).await);
            assert!(said.contains("HOME_KEY"), "{said}");
        }
        types("second");
        assert_eq!(f.says("four").await, "Four.", "{provider}");
        // Nobody was asked without a key, and nothing that was typed is lost.
        let heard = server.heard();
        assert_eq!(heard.len(), 2, "{provider}");
        let told = heard[1].body.to_string();
        assert!(told.contains("two") && told.contains("three"), "{told}");
    }
}

#[tokio::test]
async fn a_model_that_was_chosen_does_not_give_way_to_another_when_its_key_goes() {
    let says = |text| ProviderReply::Says(vec![AnswerPiece::Text(text)]);
    let open = ProviderServer::new(Provider::OpenAi, [says("Open.")]).await;
    let closed = ProviderServer::new(Provider::Anthropic, [says("One."), says("Two.")]).await;
    let home = KeyHome::new();
    let model = keyed(&closed, "closed");
    let account = model.account();
    let types = || home.file.store(&account, &Secret::new("a-key")).unwrap();
    types();
    let choices = ModelChoices::new(home.keys())
        .default_model(open.model())
        .with_model([model]);
    let f = AgentFixture::new(agent(choices), NONE).await;
    let choose = async |model: &str| f.session.set_config_option("model", model).await;
    choose("anthropic/closed").await.unwrap();
    assert_eq!(f.says("1").await, "One.");

    home.file.remove(Some(&account)).unwrap();
    let said = must_log_in(f.prompt("between us").await);
    assert!(said.contains("anthropic/closed"), "{said}");
    assert_eq!(open.heard().len(), 0);
    types();
    assert_eq!(f.says("2").await, "Two.");
    home.file.remove(Some(&account)).unwrap();
    must_log_in(f.prompt("3").await);
    // Who does not want to log in chooses another; what has no key cannot be chosen then.
    assert_eq!(models(&f.session), ["openai/a-model", "anthropic/closed"]);
    choose("openai/a-model").await.unwrap();
    assert_eq!(f.says("4").await, "Open.");
    assert_eq!(models(&f.session), ["openai/a-model"]);
    assert!(choose("anthropic/closed").await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = KeyHome::new();
    home.types(Provider::OpenAi);
    let file = home.file.path().to_owned();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let model = ProviderModel::new(Provider::OpenAi, "gpt-x");
    let agent = home
        .agent(ModelChoices::new(home.keys()).default_model(model))
        .await;
    let said = must_log_in(home.opens(&agent).await);
    let todo = format!("chmod 600 {}", file.display());
    assert!(
        said.contains("other users can read it") && said.contains(&todo),
        "{said}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    home.opens(&agent).await.unwrap();
}

/// Makes a file of keys one that is refused.
#[cfg(unix)]
type KeyFileDamage = fn(&std::path::Path);

/// Ways to spoil the file, and a part of what is said of it then.
#[cfg(unix)]
fn refused_files() -> [(KeyFileDamage, &'static str); 2] {
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
async fn a_server_that_wants_a_key_is_not_said_to_refuse_one_that_was_not_read() {
    for (refuse, expected) in refused_files() {
        let refusal = r#"{"error":{"message":"no key"}}"#.to_owned();
        let refusal = ProviderReply::Status(401, &[], refusal);
        let server = ProviderServer::new(Provider::OpenAi, [refusal]).await;
        let home = KeyHome::new();
        // It may be one that needs none.
        let mut model = server.model();
        model.key = None;
        let account = model.account();
        home.file.store(&account, &Secret::new("a-key")).unwrap();
        refuse(home.file.path());
        let agent = agent(ModelChoices::new(home.keys()).default_model(model));
        let f = AgentFixture::new(agent, NONE).await;
        let said = must_log_in(f.prompt("hello").await);
        let file = home.file.path().display().to_string();
        assert!(said.contains(expected) && said.contains(&file), "{said}");
        assert!(said.contains("HTTP 401: no key"), "{said}");
        assert!(!said.contains("key rejected"), "{said}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_refused_is_not_taken_for_none() {
    for (refuse, expected) in refused_files() {
        let home = KeyHome::new();
        home.types(Provider::Anthropic);
        refuse(home.file.path());
        let agent = home.agent(ModelChoices::new(home.keys())).await;
        let said = must_log_in(home.opens(&agent).await);
        let file = home.file.path().display().to_string();
        assert!(said.contains(expected) && said.contains(&file), "{said}");
        std::fs::remove_file(home.file.path()).unwrap();
        home.opens(&agent).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_authenticates_first_can_open_a_session_that_needs_no_key() {
    let home = KeyHome::new();
    let agent = home.agent(ModelChoices::new(home.keys())).await;
    // Some clients do so, by the first method that they are offered.
    agent.authenticate("key").await.unwrap();
    home.opens(&agent).await.unwrap();
    // Now it is the person who wants to know whether there is a key.
    must_log_in(agent.authenticate("key").await);
    home.types(Provider::OpenAi);
    agent.authenticate("key").await.unwrap();
}

#[tokio::test]
async fn a_provider_that_a_server_stands_for_offers_no_models_of_its_own() {
    let server = ProviderServer::new(Provider::OpenAi, []).await;
    let home = KeyHome::new();
    let keys = home
        .keys()
        .with_key(Provider::OpenAi, Secret::new("given"))
        .with_key(Provider::Gemini, Secret::new("given"));
    let first = server.model();
    let agent = home
        .agent(ModelChoices::new(keys).default_model(first.clone()))
        .await;
    let models = models(&home.opens(&agent).await.unwrap());
    let openai: Vec<_> = models.iter().filter(|m| m.starts_with("openai/")).collect();
    assert_eq!(openai, [&first.to_string()]);
    assert!(models.iter().any(|model| model.starts_with("gemini/")));
}
