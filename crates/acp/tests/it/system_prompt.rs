//! Tests of `systemPrompt` in session setup, in both versions.

use std::sync::{Arc, Mutex};

use acp::agent::{
    Agent, ForkSession, LoadSession, OpenedSession, Prompt, ResumeSession, Session, SessionSetup,
    Turn,
};
use acp::testing::{NoopClient, connect, connect_with};
use acp::v1::{
    ContentBlock, SessionId, SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
    SessionSystemPromptOverrideCapabilities, StopReason, SystemPrompt, SystemPromptMode,
};
use acp::{Error, Options, Result};
use serde_json::{Value, json};

use crate::common::{TestPeer, idle_agent};

/// An agent that records the system prompts it receives.
#[derive(Default, Clone)]
struct SystemPromptAgent {
    instructions: Arc<Mutex<Vec<String>>>,
    is_strict: bool,
}

impl SystemPromptAgent {
    fn open_with_setup(&self, setup: SessionSetup) -> Result<OpenedSession> {
        let prompt = setup.system_prompt.map(|prompt| {
            let text = prompt.content.iter().filter_map(ContentBlock::as_text);
            format!("{}: {}", prompt.mode, text.collect::<String>())
        });
        self.instructions.lock().unwrap().extend(prompt);
        Ok(OpenedSession::new())
    }
}

impl Agent for SystemPromptAgent {
    type State = ();

    async fn new_session(&self, _: &Session, setup: SessionSetup) -> Result<OpenedSession> {
        self.open_with_setup(setup)
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }

    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        let mut capabilities = SessionSystemPromptCapabilities::new();
        if !self.is_strict {
            let overriding = SessionSystemPromptOverrideCapabilities::new();
            let modes = SessionSystemPromptModeCapabilities::new().overriding(overriding);
            capabilities = capabilities.mode(modes);
        }
        Some(capabilities)
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }
    fn resume_session(&self) -> Option<&impl ResumeSession> {
        Some(self)
    }
    fn fork_session(&self) -> Option<&impl ForkSession> {
        Some(self)
    }
}

impl LoadSession for SystemPromptAgent {
    async fn load(&self, _: &Session, setup: SessionSetup) -> Result<OpenedSession> {
        self.open_with_setup(setup)
    }
}
impl ResumeSession for SystemPromptAgent {
    async fn resume(&self, _: &Session, setup: SessionSetup) -> Result<OpenedSession> {
        self.open_with_setup(setup)
    }
}
impl ForkSession for SystemPromptAgent {
    async fn fork(&self, _: &SessionId, _: &Session, setup: SessionSetup) -> Result<OpenedSession> {
        self.open_with_setup(setup)
    }
}

fn setup_with_prompt(mode: SystemPromptMode, text: &str) -> SessionSetup {
    let prompt = SystemPrompt::new(mode, vec![ContentBlock::from(text)]);
    SessionSetup::new("/garden").system_prompt(prompt)
}

#[tokio::test(start_paused = true)]
async fn every_opening_method_passes_the_instructions_on() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let student = SystemPromptAgent::default();
        let (agent, _serving) = connect_with(student.clone(), NoopClient, options).await;
        let append = |text| setup_with_prompt(SystemPromptMode::Append, text);
        let new = agent.new_session(append("new")).await.unwrap();
        agent.load_session("a", append("load")).await.unwrap();
        agent.resume_session("b", append("resume")).await.unwrap();
        agent.fork_session(new.id(), append("fork")).await.unwrap();
        let instead = setup_with_prompt(SystemPromptMode::Override, "instead");
        agent.new_session(instead).await.unwrap();
        assert_eq!(
            *student.instructions.lock().unwrap(),
            [
                "append: new",
                "append: load",
                "append: resume",
                "append: fork",
                "override: instead"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_send_unsupported_instructions() {
    let (agent, _serving) = connect(idle_agent(), NoopClient).await;
    let error = agent
        .new_session(setup_with_prompt(SystemPromptMode::Append, "hi"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");

    let student = SystemPromptAgent {
        is_strict: true,
        ..SystemPromptAgent::default()
    };
    let (agent, _serving) = connect(student, NoopClient).await;
    let error = agent
        .new_session(setup_with_prompt(SystemPromptMode::Override, "hi"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("systemPrompt.mode.override"),
        "{error}"
    );
    let empty = SystemPrompt::new(SystemPromptMode::Append, Vec::new());
    let setup = SessionSetup::new("/garden").system_prompt(empty);
    let error = agent.new_session(setup).await.unwrap_err();
    assert!(matches!(error, Error::InvalidRequest(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_rejects_unsupported_instructions() {
    let text = || json!([{"type": "text", "text": "hi"}]);
    let image = json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}]);
    let cases: [(Value, &str); 6] = [
        (json!({"mode": "override", "content": text()}), "override"),
        (json!({"mode": "_prepend", "content": text()}), "_prepend"),
        (json!({"mode": "append", "content": []}), "empty"),
        (json!({"mode": "append", "content": image}), "not text"),
        (
            json!({"mode": "append", "content": "hi"}),
            "expected a sequence",
        ),
        (json!("hi"), ""),
    ];
    let student = SystemPromptAgent {
        is_strict: true,
        ..SystemPromptAgent::default()
    };
    let (_conn, mut peer) = TestPeer::connect_to_agent(student.clone());
    peer.initialize(json!({})).await;
    for (n, (prompt, why)) in cases.into_iter().enumerate() {
        let params = json!({"cwd": "/garden", "mcpServers": [], "systemPrompt": prompt});
        let id = i64::try_from(n).unwrap();
        peer.send_request(id, "session/new", params).await;
        let (code, message) = peer.expect_error(id).await;
        assert_eq!(code, -32602, "{prompt}: {message}");
        assert!(message.contains(why), "{prompt}: {message}");
    }
    // `null` counts as absent.
    let params = json!({"cwd": "/garden", "mcpServers": [], "systemPrompt": null});
    peer.send_request("last", "session/new", params).await;
    peer.expect_result("last").await;
    assert!(student.instructions.lock().unwrap().is_empty());
}
