//! Tests of `providers/list`, `providers/set` and `providers/disable` in both versions.

use std::sync::Mutex;

use acp::agent::{Agent, OpenedSession, Prompt, Providers, Session, SessionSetup, Turn};
use acp::testing::{NoopClient, connect_with};
use acp::v1::{
    LlmProtocol, ProviderCurrentConfig, ProviderId, ProviderInfo, SetProviderRequest, StopReason,
};
use acp::{Error, Options, Result};

use crate::common::idle_agent;

/// An agent with one provider.
#[derive(Default)]
struct ProvidersAgent(Mutex<Option<SetProviderRequest>>);

impl Agent for ProvidersAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }

    fn providers(&self) -> Option<&impl Providers> {
        Some(self)
    }
}

impl Providers for ProvidersAgent {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        let mut info = ProviderInfo::new("main", vec![LlmProtocol::Openai], false);
        if let Some(set) = &*self.0.lock().unwrap() {
            let current = ProviderCurrentConfig::new(set.api_type.clone(), &set.base_url);
            info.current = Some(current);
        }
        Ok(vec![info])
    }

    async fn set(&self, request: SetProviderRequest) -> Result<()> {
        if request.api_type != LlmProtocol::Openai {
            return Err(Error::invalid_params(
                "it cannot be called by this protocol",
            ));
        }
        *self.0.lock().unwrap() = Some(request);
        Ok(())
    }

    async fn disable(&self, _: &ProviderId) -> Result<()> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_configures_model_providers() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let (agent, _serving) = connect_with(ProvidersAgent::default(), NoopClient, options).await;
        assert!(agent.capabilities().providers.is_some());
        let current = async || agent.list_providers().await.unwrap()[0].current.clone();
        assert_eq!(current().await, None);

        let headers = [("Authorization".to_owned(), "Bearer s3cret".to_owned())];
        let request = SetProviderRequest::new("main", LlmProtocol::Openai, "http://gateway/v1")
            .headers(headers);
        // A key must not be logged.
        assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
        agent.set_provider(&request).await.unwrap();
        let expected = ProviderCurrentConfig::new(LlmProtocol::Openai, "http://gateway/v1");
        assert_eq!(current().await, Some(expected));

        let other = SetProviderRequest::new("main", LlmProtocol::Vertex, "http://gateway/v1");
        agent.set_provider(&other).await.unwrap_err();
        agent.disable_provider("main").await.unwrap();
        assert_eq!(current().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_not_sent_to_agents_without_the_capability() {
    let (agent, _serving) = acp::testing::connect(idle_agent(), NoopClient).await;
    let request = SetProviderRequest::new("main", LlmProtocol::Openai, "http://gateway/v1");
    let error = agent.set_provider(&request).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
}
