//! The providers and their names.

use std::fmt;
use std::str::FromStr;

/// A provider of models. Other servers may use its wire format too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Anthropic, the provider of Claude.
    Anthropic,
    /// OpenAI, and compatible servers: Ollama, vLLM, LM Studio, llama.cpp, OpenRouter.
    OpenAi,
    /// Google, the provider of Gemini.
    Gemini,
}

/// The error for an unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider {0}; expected anthropic, openai or gemini")]
pub struct ParseProviderError(String);

impl Provider {
    /// All providers, in display order.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Returns the provider's name as users enter it: `anthropic`, `openai` or `gemini`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the provider's name for display.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::Gemini => "Google Gemini",
        }
    }

    /// Returns the environment variable that usually contains the provider's key.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    /// Returns the base URL of the provider's own API.
    pub(super) fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        }
    }

    /// Returns the usual path of the API, which is added to a URL without a path.
    pub(super) fn version_path(self) -> &'static str {
        match self {
            Self::Anthropic | Self::OpenAi => "/v1/",
            Self::Gemini => "/v1beta/",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = ParseProviderError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|provider| provider.as_str() == name)
            .ok_or_else(|| ParseProviderError(name.to_owned()))
    }
}
