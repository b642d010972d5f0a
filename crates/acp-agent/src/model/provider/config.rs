//! Which model is meant, where it is, and how long it may take.

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

/// The most that one answer may have, in bytes of text, thoughts and arguments, if nothing else is set. No
/// model's longest answer comes near it.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// How long a model may say nothing, if nothing else is set. A large one at home may read a long prompt for
/// minutes before its first word, and some providers are silent while theirs think.
const SILENCE: Duration = Duration::from_secs(300);

/// A language model: whose, which, where, and what is known of it.
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
    /// In whose way it is talked to.
    pub provider: Provider,
    /// The wire format, if it is not the usual one of the provider, or of servers that speak as it does.
    pub(crate) format: Option<WireFormat>,
    /// Its name, as the provider has it.
    pub name: String,
    /// Where it is; the provider's own address if that is not said. It ends with the version, as `/v1`; where
    /// nothing stands behind the host, the provider's usual one is meant.
    pub base_url: Option<String>,
    /// The key. The providers want one, most models at home do not.
    pub key: Option<Secret>,
    /// The environment variable in which the user looks for its key, where that is not its provider's. Nothing is
    /// read here; it is what a person is told. A model that has one needs a key.
    pub key_variable: Option<String>,
    /// Why the file with the keys was not read, if it was not: its key may be in it.
    pub(crate) keys_unread: Option<String>,
    /// How much it is to think, where a session does not say it.
    pub thought: Option<ThoughtLevel>,
    /// How many tokens a conversation and the answer may have together, if it is not what is known of the model.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output: Option<u32>,
    /// Whether it takes pictures, if it is not what is known of the model.
    pub images: Option<bool>,
    /// How long it may say nothing: until it begins to answer, and in the middle of an answer.
    pub idle_timeout: Duration,
    /// How many bytes an answer may have.
    pub max_response_bytes: usize,
    /// How often it is asked again.
    pub retries: RetryPolicy,
}

impl ProviderModel {
    /// A model of a provider.
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self {
            provider,
            format: None,
            name: name.into(),
            base_url: None,
            key: None,
            key_variable: None,
            keys_unread: None,
            thought: None,
            context_window: None,
            max_output: None,
            images: None,
            idle_timeout: SILENCE,
            max_response_bytes: LONGEST_ANSWER,
            retries: RetryPolicy::default(),
        }
    }

    /// A model of a provider that is named as users name it: `anthropic`, `openai`, `gemini`, or with one of OpenAI's
    /// two wire formats, `openai-chat` and `openai-responses`.
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

    /// Sets in which wire format it is asked.
    #[must_use]
    pub fn with_wire_format(mut self, format: WireFormat) -> Self {
        self.provider = format.provider();
        self.format = Some(format);
        self
    }

    /// In which wire format it is asked. If that was not said: OpenAI itself in that of its Responses, and a server
    /// that speaks as OpenAI does in that of Chat Completions, which all of them have.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        match (self.format, self.provider, &self.base_url) {
            (Some(format), _, _) => format,
            (None, Provider::OpenAi, None) => WireFormat::OpenAiResponses,
            (None, provider, _) => provider.into(),
        }
    }

    /// Sets where it is.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets how often it is asked again.
    #[must_use]
    pub fn retries(mut self, retries: RetryPolicy) -> Self {
        self.retries = retries;
        self
    }

    /// The environment variable in which its key is looked for.
    #[must_use]
    pub fn key_variable(&self) -> &str {
        let variable = self.key_variable.as_deref();
        variable.unwrap_or(self.provider.key_variable())
    }

    /// Whether it needs a key and has none.
    pub(crate) fn lacks_key(&self) -> bool {
        self.key.is_none() && (self.base_url.is_none() || self.key_variable.is_some())
    }

    /// Whom its key is for.
    #[must_use]
    pub fn account(&self) -> Account {
        match (&self.base_url, self.address()) {
            (None, _) => self.provider.into(),
            (Some(_), Ok(address)) => Account::at(self.provider, address),
            (Some(text), Err(_)) => Account::at(self.provider, text),
        }
    }

    /// That it can be asked, as far as that is known without asking.
    ///
    /// # Errors
    /// Its name, its address or its key is none.
    pub fn check(&self) -> Result<(), ModelError> {
        self.address().map(drop)
    }

    /// Its address, with a `/` at the end.
    ///
    /// # Errors
    /// The address, the name or the key is none that can be used.
    pub(super) fn address(&self) -> Result<Url, ModelError> {
        let unusable = |why: String| ModelError::new(format!("the model {self}: {why}"));
        // It becomes a part of an address.
        let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#');
        if self.name.is_empty() || self.name.contains(strange) {
            return Err(unusable("this is no name of a model".to_owned()));
        }
        let key = self.key.as_ref().map_or("", Secret::reveal);
        if HeaderValue::from_str(key).is_err() {
            return Err(ModelError::of(
                ModelErrorKind::Unauthorized,
                format!(
                    "the key for the model {self} has characters that no key has; check {}",
                    self.key_variable()
                ),
            ));
        }
        let text = self.base_url.as_deref();
        let text = text.unwrap_or(self.provider.base_url());
        let mut url =
            Url::parse(text).map_err(|e| unusable(format!("{text} is no address: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(unusable(format!(
                "{text} is no address of a server; it begins with http:// or https://"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unusable(
                "a name or password in its address is not supported".to_owned(),
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

    /// Reads `PROVIDER/NAME`, the provider as in [`from_name`](Self::from_name). There may be a `/` in the name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((provider, name)) = text.split_once('/').filter(|(_, name)| !name.is_empty())
        else {
            return Err(ModelError::new(format!(
                "{text} is no model: expected PROVIDER/NAME, as in anthropic/claude-sonnet-4-6"
            )));
        };
        Self::from_name(provider, name).map_err(|e| ModelError::new(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> String {
        let model = ProviderModel::new(Provider::OpenAi, "m").base_url(text);
        model.address().map_or_else(|e| e.to_string(), Into::into)
    }

    #[test]
    fn an_address_is_taken_as_people_write_it() {
        assert_eq!(
            address("http://localhost:11434"),
            "http://localhost:11434/v1/"
        );
        assert_eq!(
            address("http://localhost:11434/v1"),
            "http://localhost:11434/v1/"
        );
        assert_eq!(
            address("https://a.example/x/v2/"),
            "https://a.example/x/v2/"
        );
        assert!(address("localhost:11434").contains("no address"));
        assert!(address("https://me:secret@a.example").contains("not supported"));
        assert!(!address("https://me:secret@a.example").contains("secret"));
    }

    #[test]
    fn a_model_is_named_with_its_provider() {
        let model: ProviderModel = "openai/meta/llama-4".parse().unwrap();
        assert_eq!(model.name, "meta/llama-4");
        assert_eq!(model.to_string(), "openai/meta/llama-4");
        for wrong in ["claude", "anthropic/", "/x", "acme/x"] {
            assert!(wrong.parse::<ProviderModel>().is_err(), "{wrong}");
        }
        let strange = ProviderModel::new(Provider::Gemini, "a b");
        assert!(strange.address().is_err());
    }

    #[test]
    fn the_wire_format_is_the_usual_one_unless_it_is_named() {
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
        // Whose key it takes does not depend on it.
        let chat: ProviderModel = "openai-chat/m".parse().unwrap();
        assert_eq!(chat.account(), Provider::OpenAi.into());
    }

    #[test]
    fn a_key_is_never_shown() {
        let model = ProviderModel::new(Provider::OpenAi, "m").key(Secret::new(" sk-1\n2 "));
        assert!(!format!("{model:?}").contains("sk-1"));
        let error = model.address().unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unauthorized);
        assert!(!error.message.contains("sk-1"), "{error}");
    }
}
