//! Tests `systemPrompt`, the client's own instructions for the model.

use acp::Options;
use acp::client::SessionSetup;
use acp::v1::{ContentBlock, SystemPrompt, SystemPromptMode};
use acp_agent::store::MemoryStore;

use crate::common::hears::RequestRecorder;
use crate::common::{AgentFixture, NO_CAPABILITIES};

const SCRIPT: &str =
    r#"{"turns": [[{"say": "1"}], [{"say": "2"}], [{"say": "3"}], [{"say": "4"}]]}"#;

fn system_prompt(mode: SystemPromptMode, words: &[&str]) -> SystemPrompt {
    let content = words.iter().copied().map(ContentBlock::text);
    SystemPrompt::new(mode, content.collect::<Vec<_>>())
}

#[tokio::test]
async fn system_prompt_appends_to_or_replaces_the_default() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let heard = RequestRecorder::default();
        let agent = heard
            .scripted_agent(SCRIPT)
            .keep_sessions(MemoryStore::new());
        let f = AgentFixture::start_with_options(options, agent, NO_CAPABILITIES).await;
        f.write_file("repo/.git/HEAD", "");
        f.write_file("repo/AGENTS.md", "Use tabs.");
        let cwd = f.path("repo");
        let told = || heard.last_request().instructions;
        let append = system_prompt(SystemPromptMode::Append, &["Speak of plants.", "Be kind."]);
        let setup = SessionSetup::new(&cwd).system_prompt(append);
        let session = f.agent.new_session(setup).await.unwrap();
        session.prompt("hello").await.unwrap();
        assert!(told().starts_with("You are a coding agent."), "{}", told());
        assert!(told().contains("Use tabs."), "{}", told());
        assert!(
            told().contains("Speak of plants.\n\nBe kind.\n"),
            "{}",
            told()
        );

        // If the session is opened again without a system prompt, the stored one still applies.
        let id = session.id().clone();
        session.close().await.unwrap();
        let session = f.agent.resume_session(id.clone(), &cwd).await.unwrap();
        session.prompt("again").await.unwrap();
        assert!(told().contains("Speak of plants."), "{}", told());

        // If it is opened with another system prompt, that one applies.
        session.close().await.unwrap();
        let replace = system_prompt(SystemPromptMode::Override, &["You are a gardener."]);
        let setup = SessionSetup::new(&cwd).system_prompt(replace);
        let session = f.agent.load_session(id.clone(), setup).await.unwrap();
        session.prompt("and again").await.unwrap();
        assert!(told().starts_with("You are a gardener.\n"), "{}", told());
        assert!(!told().contains("coding agent"), "{}", told());
        assert!(!told().contains("plants"), "{}", told());
        // The information about the project and the session is not part of the agent's own prompt.
        assert!(told().contains("Use tabs."), "{}", told());
        assert!(told().contains(&cwd), "{}", told());
        session.close().await.unwrap();
        let session = f.agent.resume_session(id, &cwd).await.unwrap();
        session.prompt("and once more").await.unwrap();
        assert!(told().starts_with("You are a gardener.\n"), "{}", told());
    }
}
