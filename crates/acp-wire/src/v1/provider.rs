//! Where an agent's models are called, for clients that route the calls themselves. Unstable: for agents that have
//! `providers`.

use std::collections::BTreeMap;

string_id! {
    /// Names a provider of models.
    pub struct ProviderId;
}

record! {
    /// `providers/list`.
    pub struct ListProvidersRequest {}
}

record! {
    /// The answer to `providers/list`.
    pub struct ListProvidersResponse {
        /// The providers that can be set.
        required_list providers: ProviderInfo,
    }
}

record! {
    /// A provider.
    pub struct ProviderInfo {
        /// The id of the provider.
        required provider_id: ProviderId,
        /// The wire formats that it supports.
        required_list supported: LlmProtocol,
        /// Whether it cannot be disabled.
        required required: bool,
        /// Where it is called; absent while it is disabled.
        optional current: ProviderCurrentConfig,
    }
}

record! {
    /// Where a provider is called.
    pub struct ProviderCurrentConfig {
        /// By which protocol.
        required api_type: LlmProtocol,
        /// Under which URL.
        required base_url: String,
    }
}

open_enum! {
    /// A protocol by which models are called.
    pub enum LlmProtocol {
        /// Anthropic's.
        Anthropic = "anthropic",
        /// OpenAI's.
        Openai = "openai",
        /// Azure OpenAI's.
        Azure = "azure",
        /// Google Vertex AI's.
        Vertex = "vertex",
        /// AWS Bedrock's.
        Bedrock = "bedrock",
    }
}

record! {
    /// `providers/set`: replaces all that is set for a provider.
    pub secret SetProviderRequest {
        /// The id of the provider.
        required provider_id: ProviderId,
        /// The wire format to use.
        required api_type: LlmProtocol,
        /// Under which URL.
        required base_url: String,
        /// What is sent with each call; there may be keys among them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        defaulted headers: BTreeMap<String, String>,
    }
}

impl std::fmt::Debug for SetProviderRequest {
    /// The values of headers stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("SetProviderRequest")
            .field("provider_id", &self.provider_id)
            .field("api_type", &self.api_type)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

record! {
    /// The answer to `providers/set`.
    pub struct SetProviderResponse {}
}

record! {
    /// `providers/disable`.
    pub struct DisableProviderRequest {
        /// The id of the provider.
        required provider_id: ProviderId,
    }
}

record! {
    /// The answer to `providers/disable`.
    pub struct DisableProviderResponse {}
}

record! {
    /// Present when the agent has `providers/list`, `providers/set` and `providers/disable`.
    pub struct ProvidersCapabilities {}
}
