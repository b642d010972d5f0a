//! Parses the error reports of providers.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::text::truncate_to_head;

/// The maximum length of a provider's message when it is shown to the user, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 400;

/// A provider's error report. All providers use JSON, but in different shapes.
#[derive(Debug, Default)]
pub(super) struct ErrorReport {
    pub(super) message: Option<String>,
    /// The provider's names for the error, in lowercase.
    pub(super) names: String,
    /// The request parameter that caused the error, if the provider identifies it.
    pub(super) parameter: String,
    /// How long the provider asks to wait before a retry.
    pub(super) retry: Option<Duration>,
}

impl ErrorReport {
    pub(super) fn parse(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(body) => Self::from_json(&body),
            // An HTML page contains nothing useful.
            Err(_) if body.trim_start().starts_with('<') || body.trim().is_empty() => {
                Self::default()
            }
            Err(_) => Self {
                message: None,
                names: truncate_to_head(body, MAX_MESSAGE_BYTES).to_lowercase(),
                ..Self::default()
            },
        }
    }

    pub(super) fn from_json(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let text = |name: &str| match error.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let message = error
            .as_str()
            .map(str::to_owned)
            .or_else(|| text("message"));
        let names = ["type", "code", "status"].into_iter().filter_map(text);
        let mut names = names.collect::<Vec<_>>().join(" ");
        let details = error.get("details").and_then(Value::as_array);
        let details = details.map_or(&[][..], Vec::as_slice);
        let mut retry = None;
        for detail in details {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                names = format!("{names} {reason}");
            }
            let delay = detail.get("retryDelay").and_then(Value::as_str);
            let seconds = delay.and_then(|delay| delay.trim_end_matches('s').parse().ok());
            retry = retry.or(seconds.and_then(duration_from_seconds));
        }
        Self {
            message,
            names: names.to_lowercase(),
            parameter: text("param").unwrap_or_default(),
            retry,
        }
    }

    fn contains_any(&self, words: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        words
            .iter()
            .any(|word| self.names.contains(word) || message.contains(word))
    }

    pub(super) fn is_context_length_error(&self) -> bool {
        self.contains_any(&[
            "context_length_exceeded",
            "exceed_context_size",
            "request_too_large",
            "prompt is too long",
            "exceed context limit",
            "maximum context length",
            "available context size",
            "exceeds the maximum number of tokens",
            "context window",
            "context the overflows",
        ])
    }

    pub(super) fn is_authentication_error(&self) -> bool {
        self.contains_any(&[
            "api_key_invalid",
            "invalid_api_key",
            "authentication_error",
            "api key not valid",
        ])
    }

    pub(super) fn is_model_not_found_error(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        let not_there = [
            "not found",
            "does not exist",
            "not exist",
            "not a valid model",
        ];
        self.names.contains("model_not_found")
            || message.contains("model") && not_there.iter().any(|word| message.contains(word))
    }

    pub(super) fn is_billing_error(&self) -> bool {
        self.contains_any(&[
            "insufficient_quota",
            "credit balance",
            "billing_error",
            "insufficient credits",
        ])
    }
}

/// Shortens a provider's message and puts it on one line.
pub(super) fn quote_message(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    truncate_to_head(&line.join(" "), MAX_MESSAGE_BYTES)
        .trim_end_matches('.')
        .to_owned()
}

/// Returns how long the provider asks to wait before a retry, if it specifies a time.
pub(super) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(milliseconds) = text("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok())
    {
        return duration_from_seconds(milliseconds / 1000.0);
    }
    let after = text("retry-after")?.trim();
    if let Ok(seconds) = after.parse() {
        return duration_from_seconds(seconds);
    }
    // The header may also be a date.
    let then = jiff::fmt::rfc2822::parse(after).ok()?;
    let then = SystemTime::from(then.timestamp());
    Some(then.duration_since(SystemTime::now()).unwrap_or_default())
}

fn duration_from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
