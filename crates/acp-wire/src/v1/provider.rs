//! The agent's model providers, for clients that route model calls themselves. Unstable: requires the agent's
//! capability `providers`.

use std::collections::BTreeMap;

string_id! {
    /// The id of a model provider, chosen by the agent.
    pub struct ProviderId;
}

record! {
    /// The `providers/list` request: lists the providers that can be configured.
    pub struct ListProvidersRequest {}
}

record! {
    /// The response to `providers/list`, with all providers and their settings.
    pub struct ListProvidersResponse {
        /// The providers that can be configured.
        required_list providers: ProviderInfo,
    }
}

record! {
    /// A model provider that can be configured, with its current configuration.
    pub struct ProviderInfo {
        /// The id used to configure the provider.
        required provider_id: ProviderId,
        /// The wire formats that the provider supports.
        required_list supported: LlmProtocol,
        /// `true` if the provider cannot be disabled.
        required required: bool,
        /// The current configuration. Absent while the provider is disabled.
        optional current: ProviderCurrentConfig,
    }
}

record! {
    /// The current configuration of a provider.
    pub struct ProviderCurrentConfig {
        /// The wire format in use.
        required api_type: LlmProtocol,
        /// The base URL of the model API.
        required base_url: String,
    }
}

open_enum! {
    /// A wire format for model requests.
    pub enum LlmProtocol {
        /// The format of Anthropic's API.
        Anthropic = "anthropic",
        /// The format of OpenAI's API.
        Openai = "openai",
        /// The format of Azure OpenAI's API.
        Azure = "azure",
        /// The format of Google Vertex AI.
        Vertex = "vertex",
        /// The format of AWS Bedrock.
        Bedrock = "bedrock",
    }
}

record! {
    /// The `providers/set` request: replaces the whole configuration of a provider.
    pub secret SetProviderRequest {
        /// The provider to configure.
        required provider_id: ProviderId,
        /// The wire format to use.
        required api_type: LlmProtocol,
        /// The base URL of the model API.
        required base_url: String,
        /// The headers to send with each model call. They may contain API keys.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        defaulted headers: BTreeMap<String, String>,
    }
}

impl std::fmt::Debug for SetProviderRequest {
    /// Omits header values, to keep secrets out of logs.
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
    /// The response to `providers/set`, sent once the provider is configured.
    pub struct SetProviderResponse {}
}

record! {
    /// The `providers/disable` request: turns a provider off.
    pub struct DisableProviderRequest {
        /// The provider to disable.
        required provider_id: ProviderId,
    }
}

record! {
    /// The response to `providers/disable`, sent once the provider is disabled.
    pub struct DisableProviderResponse {}
}

record! {
    /// An empty object that declares support for `providers/list`, `providers/set` and `providers/disable`.
    pub struct ProvidersCapabilities {}
}
