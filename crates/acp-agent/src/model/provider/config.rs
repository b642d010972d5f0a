//! The settings of a model: its name, server and limits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::backoff::RetryPolicy;
use super::name::{ParseProviderError, Provider};
use super::secret::Secret;
use super::wire_format::WireFormat;
use crate::keys::Account;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::thought::ThoughtLevel;

/// The default limit on a response, in bytes of text, thoughts and arguments. It far exceeds the longest response of
/// any model.
const DEFAULT_MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// The default limit on how long a model may stay silent. A large local model may take minutes to process a long prompt
/// before it responds, and some providers send nothing while a model thinks.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// A language model: its provider, name, URL and settings.
///
/// ```
/// use acp_agent::{Provider, ProviderModel};
///
/// let model: ProviderModel = "openai/qwen3:8b".parse()?;
/// let model = model.base_url("http://127.0.0.1:11434/v1");
/// assert_eq!((model.provider, model.name.as_str()), (Provider::OpenAi, "qwen3:8b"));
/// # Ok::<(), acp_agent::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderModel {
    /// The provider, or the provider whose wire format the server at `base_url` uses.
    pub provider: Provider,
    /// The wire format, if it differs from the default of the provider or of compatible servers.
    pub(crate) format: Option<WireFormat>,
    /// The provider's name for the model.
    pub name: String,
    /// The base URL of the API, if it is not the provider's own. It ends with the API's version, such as `/v1`. If the
    /// URL has no path, the provider's usual path is added.
    pub base_url: Option<String>,
    /// The API key. Providers require one, but most local models do not.
    pub key: Option<Secret>,
    /// The environment variable for the model's key, if it is not the provider's. It is not read here, only shown to
    /// the user. A model with its own variable requires a key.
    pub key_variable: Option<String>,
    /// Why the key file, which may contain the model's key, could not be read. `None` if it was read.
    pub(crate) key_file_error: Option<String>,
    /// The thought level for sessions that do not set one.
    pub thought: Option<ThoughtLevel>,
    /// The maximum combined number of tokens in a conversation and its response, if it differs from the catalogue.
    pub context_window: Option<u64>,
    /// The maximum length of a response, in tokens.
    pub max_output: Option<u32>,
    /// Whether the model accepts images, if that differs from the catalogue.
    pub images: Option<bool>,
    /// How long the model may stay silent, before and during a response.
    pub idle_timeout: Duration,
    /// The maximum size of a response, in bytes.
    pub max_response_bytes: usize,
    /// The policy for retrying failed requests.
    pub retries: RetryPolicy,
}

impl ProviderModel {
    /// Creates a model of a provider, with default settings.
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self {
            provider,
            format: None,
            name: name.into(),
            base_url: None,
            key: None,
            key_variable: None,
            key_file_error: None,
            thought: None,
            context_window: None,
            max_output: None,
            images: None,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            retries: RetryPolicy::default(),
        }
    }

    /// Creates a model from the name of a provider as users enter it: `anthropic`, `openai`, `gemini`, or, for one of
    /// OpenAI's two wire formats, `openai-chat` or `openai-responses`.
    ///
    /// # Errors
    /// There is no such provider.
    pub fn from_name(provider: &str, name: impl Into<String>) -> Result<Self, ParseProviderError> {
        let formats = [WireFormat::OpenAiChat, WireFormat::OpenAiResponses];
        let mut formats = formats.into_iter();
        match formats.find(|format| format.as_str() == provider) {
            Some(format) => Ok(Self::new(format.provider(), name).with_wire_format(format)),
            None => Ok(Self::new(provider.parse()?, name)),
        }
    }

    /// Sets the wire format, and the provider that defines it.
    #[must_use]
    pub fn with_wire_format(mut self, format: WireFormat) -> Self {
        self.provider = format.provider();
        self.format = Some(format);
        self
    }

    /// Returns the wire format. The default is Responses for OpenAI itself, and Chat Completions for compatible
    /// servers, because all of them support it.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        match (self.format, self.provider, &self.base_url) {
            (Some(format), _, _) => format,
            (None, Provider::OpenAi, None) => WireFormat::OpenAiResponses,
            (None, provider, _) => provider.into(),
        }
    }

    /// Sets the base URL of the API.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the API key of the model.
    #[must_use]
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the policy for retrying failed requests.
    #[must_use]
    pub fn retries(mut self, retries: RetryPolicy) -> Self {
        self.retries = retries;
        self
    }

    /// Returns the name of the environment variable for the model's key.
    #[must_use]
    pub fn key_variable(&self) -> &str {
        let variable = self.key_variable.as_deref();
        variable.unwrap_or(self.provider.key_variable())
    }

    /// Returns `true` if the model requires a key and has none.
    pub(crate) fn lacks_key(&self) -> bool {
        self.key.is_none() && (self.base_url.is_none() || self.key_variable.is_some())
    }

    /// Returns the account that the model's key belongs to.
    #[must_use]
    pub fn account(&self) -> Account {
        match (&self.base_url, self.parsed_url()) {
            (None, _) => self.provider.into(),
            (Some(_), Ok(address)) => Account::for_url(self.provider, address),
            (Some(text), Err(_)) => Account::for_url(self.provider, text),
        }
    }

    /// Checks the settings without sending a request to the model.
    ///
    /// # Errors
    /// The name, the URL or the key is not valid.
    pub fn check(&self) -> Result<(), ModelError> {
        self.parsed_url().map(drop)
    }

    /// Returns the base URL of the API, with a trailing `/`.
    ///
    /// # Errors
    /// The URL, the name or the key is not valid.
    pub(super) fn parsed_url(&self) -> Result<Url, ModelError> {
        let unusable = |why: String| ModelError::new(format!("model {self}: {why}"));
        // The name becomes a part of the URL.
        let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#');
        if self.name.is_empty() || self.name.contains(strange) {
            return Err(unusable("invalid model name".to_owned()));
        }
        let key = self.key.as_ref().map_or("", Secret::reveal);
        if HeaderValue::from_str(key).is_err() {
            return Err(ModelError::with_kind(
                ModelErrorKind::Unauthorized,
                format!(
                    "invalid characters in the key for model {self}; check {}",
                    self.key_variable()
                ),
            ));
        }
        let text = self.base_url.as_deref();
        let text = text.unwrap_or(self.provider.base_url());
        let mut url = Url::parse(text).map_err(|e| unusable(format!("invalid URL {text}: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(unusable(format!(
                "invalid URL {text}; expected http:// or https://"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unusable(
                "user names and passwords in the URL are not supported".to_owned(),
            ));
        }
        url.set_fragment(None);
        if url.path() == "/" {
            url.set_path(self.provider.version_path());
        } else if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(url)
    }
}

impl fmt::Display for ProviderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = match self.format {
            Some(format @ (WireFormat::OpenAiChat | WireFormat::OpenAiResponses)) => {
                format.as_str()
            }
            _ => self.provider.as_str(),
        };
        write!(f, "{provider}/{}", self.name)
    }
}

impl FromStr for ProviderModel {
    type Err = ModelError;

    /// Parses `PROVIDER/NAME`. The provider may be any name that [`from_name`](Self::from_name) accepts. The name of
    /// the model may contain a `/`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((provider, name)) = text.split_once('/').filter(|(_, name)| !name.is_empty())
        else {
            return Err(ModelError::new(format!(
                "invalid model {text}: expected PROVIDER/NAME, for example anthropic/claude-sonnet-4-6"
            )));
        };
        Self::from_name(provider, name).map_err(|e| ModelError::new(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized_url(text: &str) -> String {
        let model = ProviderModel::new(Provider::OpenAi, "m").base_url(text);
        model
            .parsed_url()
            .map_or_else(|e| e.to_string(), Into::into)
    }

    #[test]
    fn base_url_is_normalized() {
        assert_eq!(
            normalized_url("http://localhost:11434"),
            "http://localhost:11434/v1/"
        );
        assert_eq!(
            normalized_url("http://localhost:11434/v1"),
            "http://localhost:11434/v1/"
        );
        assert_eq!(
            normalized_url("https://a.example/x/v2/"),
            "https://a.example/x/v2/"
        );
        assert!(normalized_url("localhost:11434").contains("invalid URL"));
        assert!(normalized_url("https://me:secret@a.example").contains("not supported"));
        assert!(!normalized_url("https://me:secret@a.example").contains("secret"));
    }

    #[test]
    fn model_name_includes_the_provider() {
        let model: ProviderModel = "openai/meta/llama-4".parse().unwrap();
        assert_eq!(model.name, "meta/llama-4");
        assert_eq!(model.to_string(), "openai/meta/llama-4");
        for wrong in ["claude", "anthropic/", "/x", "acme/x"] {
            assert!(wrong.parse::<ProviderModel>().is_err(), "{wrong}");
        }
        let strange = ProviderModel::new(Provider::Gemini, "a b");
        assert!(strange.parsed_url().is_err());
    }

    #[test]
    fn wire_format_defaults_to_the_format_of_the_provider() {
        let format = |name: &str| name.parse().map(|model: ProviderModel| model.wire_format());
        let elsewhere = |name: &str| {
            let model: ProviderModel = name.parse().unwrap();
            let model = model.base_url("http://127.0.0.1:1/v1");
            assert_eq!(model.to_string(), name);
            model.wire_format()
        };
        for (name, own, others) in [
            (
                "anthropic/m",
                WireFormat::AnthropicMessages,
                WireFormat::AnthropicMessages,
            ),
            (
                "openai/m",
                WireFormat::OpenAiResponses,
                WireFormat::OpenAiChat,
            ),
            (
                "openai-chat/m",
                WireFormat::OpenAiChat,
                WireFormat::OpenAiChat,
            ),
            (
                "openai-responses/m",
                WireFormat::OpenAiResponses,
                WireFormat::OpenAiResponses,
            ),
            ("gemini/m", WireFormat::Gemini, WireFormat::Gemini),
        ] {
            assert_eq!(format(name), Ok(own), "{name}");
            assert_eq!(elsewhere(name), others, "{name}");
        }
        assert!(format("anthropic-messages/m").is_err());
        // The account does not depend on the wire format.
        let chat: ProviderModel = "openai-chat/m".parse().unwrap();
        assert_eq!(chat.account(), Provider::OpenAi.into());
    }

    #[test]
    fn key_is_never_printed() {
        let model = ProviderModel::new(Provider::OpenAi, "m").key(Secret::new(" sk-1\n2 "));
        assert!(!format!("{model:?}").contains("sk-1"));
        let error = model.parsed_url().unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unauthorized);
        assert!(!error.message.contains("sk-1"), "{error}");
    }
}
