//! `providers/list`, `providers/set` and `providers/disable`, which configure the URLs of model providers.

use acp_wire::v1::{
    DisableProviderRequest, DisableProviderResponse, ListProvidersRequest, ListProvidersResponse,
    ProviderId, ProviderInfo, SetProviderRequest, SetProviderResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `providers/list`, `providers/set` and `providers/disable`, which configure the URLs of model
/// providers, for clients that route model calls themselves. Unstable.
pub trait Providers: Send + Sync {
    /// Returns the providers that can be configured, with their current URLs but without API keys.
    ///
    /// # Errors
    /// The providers cannot be determined.
    fn list(&self) -> impl Future<Output = Result<Vec<ProviderInfo>>> + Send;

    /// Replaces all settings of a provider, starting with the next turn.
    ///
    /// # Errors
    /// The provider does not exist or does not support the wire format, or the URL is invalid
    /// ([`Error::invalid_params`](crate::Error::invalid_params)).
    fn set(&self, request: SetProviderRequest) -> impl Future<Output = Result<()>> + Send;

    /// Disables a provider. Does nothing if the provider is already disabled.
    ///
    /// # Errors
    /// The agent requires the provider ([`Error::invalid_params`](crate::Error::invalid_params)).
    fn disable(&self, provider: &ProviderId) -> impl Future<Output = Result<()>> + Send;
}

impl Providers for UnsupportedMethod {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        match *self {}
    }
    async fn set(&self, _: SetProviderRequest) -> Result<()> {
        match *self {}
    }
    async fn disable(&self, _: &ProviderId) -> Result<()> {
        match *self {}
    }
}

offered_by! { providers: ListProvidersRequest, SetProviderRequest, DisableProviderRequest }

impl<A: Agent> MessageHandler<ListProvidersRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: ListProvidersRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let providers = require_handler(side.agent.providers(), ListProvidersRequest::METHOD)?;
            Ok(ListProvidersResponse::new(providers.list().await?))
        });
    }
}

impl<A: Agent> MessageHandler<SetProviderRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SetProviderRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let providers = require_handler(side.agent.providers(), SetProviderRequest::METHOD)?;
            providers.set(request).await?;
            Ok(SetProviderResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<DisableProviderRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: DisableProviderRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let providers =
                require_handler(side.agent.providers(), DisableProviderRequest::METHOD)?;
            providers.disable(&request.provider_id).await?;
            Ok(DisableProviderResponse::new())
        });
    }
}
