//! The wire formats of the providers: their names, URLs and headers.

use std::borrow::Cow;
use std::fmt;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};

use super::name::Provider;
use super::secret::Secret;

/// The version of Anthropic's API, which servers require in a header.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The wire format of requests to a model and of the model's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WireFormat {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API, which many other servers support.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Gemini's `generateContent` API.
    Gemini,
}

impl WireFormat {
    /// All wire formats, in display order.
    pub const ALL: [Self; 4] = [
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// Returns the name of the wire format, as used in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the provider that defines the wire format.
    #[must_use]
    pub fn provider(self) -> Provider {
        match self {
            Self::AnthropicMessages => Provider::Anthropic,
            Self::OpenAiChat | Self::OpenAiResponses => Provider::OpenAi,
            Self::Gemini => Provider::Gemini,
        }
    }

    /// Returns the URL for a request to a model.
    pub(super) fn url(self, base: &Url, model: &str) -> Url {
        let path = match self {
            Self::AnthropicMessages => "messages".into(),
            Self::OpenAiChat => "chat/completions".into(),
            Self::OpenAiResponses => "responses".into(),
            Self::Gemini => Cow::Owned(format!("models/{model}:streamGenerateContent")),
        };
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path()));
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url
    }

    /// Returns the request headers, including the header for the key if there is one.
    pub(super) fn headers(self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if self == Self::AnthropicMessages {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert("anthropic-version", version);
        }
        let key = key.map_or("", Secret::reveal);
        // Some servers reject a header with an empty key.
        if key.is_empty() {
            return Ok(headers);
        }
        let (name, value) = match self {
            Self::AnthropicMessages => (HeaderName::from_static("x-api-key"), Cow::Borrowed(key)),
            Self::OpenAiChat | Self::OpenAiResponses => {
                (AUTHORIZATION, Cow::Owned(format!("Bearer {key}")))
            }
            Self::Gemini => (
                HeaderName::from_static("x-goog-api-key"),
                Cow::Borrowed(key),
            ),
        };
        let mut value = HeaderValue::from_str(&value)?;
        // This keeps the key out of `Debug` output.
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }
}

/// Returns the default wire format for servers that are compatible with the provider.
impl From<Provider> for WireFormat {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::AnthropicMessages,
            Provider::OpenAi => Self::OpenAiChat,
            Provider::Gemini => Self::Gemini,
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_url_and_authorization_header() {
        let base = Url::parse("http://a.test/v1/?api-version=2").unwrap();
        let key = Secret::new("sk-1");
        for (format, url, header, value) in [
            (
                WireFormat::AnthropicMessages,
                "http://a.test/v1/messages?api-version=2",
                "x-api-key",
                "sk-1",
            ),
            (
                WireFormat::OpenAiChat,
                "http://a.test/v1/chat/completions?api-version=2",
                "authorization",
                "Bearer sk-1",
            ),
            (
                WireFormat::OpenAiResponses,
                "http://a.test/v1/responses?api-version=2",
                "authorization",
                "Bearer sk-1",
            ),
            (
                WireFormat::Gemini,
                "http://a.test/v1/models/m:streamGenerateContent?api-version=2&alt=sse",
                "x-goog-api-key",
                "sk-1",
            ),
        ] {
            assert_eq!(format.url(&base, "m").as_str(), url);
            let headers = format.headers(Some(&key)).unwrap();
            assert_eq!(headers[header], value);
            assert!(!format!("{headers:?}").contains("sk-1"), "{headers:?}");
            assert!(!format.headers(None).unwrap().contains_key(header));
        }
    }
}
