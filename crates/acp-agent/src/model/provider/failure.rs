//! Decides whether to retry after a model has failed, and what to tell the user.

use std::io;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::config::ProviderModel;
use super::decode::DecodeError;
use super::error_report::{ErrorReport, MAX_MESSAGE_BYTES, parse_retry_after, quote_message};
use super::exchange::ExchangeError;
use crate::causes::{error_chain, error_sources};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::text::truncate_to_head;

/// A failed request to a model.
#[derive(Debug)]
pub(super) struct ModelFailure {
    pub(super) error: ModelError,
    /// The message without advice, to show during a retry.
    pub(super) summary: String,
    pub(super) again: RetryAdvice,
}

/// Advice on whether a retry may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Never,
    /// A retry may succeed, after this time if the provider specified one.
    After(Option<Duration>),
}

/// The model that failed, with the properties that error messages need.
pub(super) struct FailedModel<'a> {
    pub(super) model: &'a ProviderModel,
    /// The URL of the model's API.
    pub(super) address: &'a str,
    /// Whether the URL refers to this machine.
    pub(super) is_local: bool,
}

impl FailedModel<'_> {
    /// Creates a failure with a one-sentence message that contains the model, the URL, the problem, and what the user
    /// can do.
    pub(super) fn failure(
        &self,
        kind: ModelErrorKind,
        again: RetryAdvice,
        what: &str,
        todo: &str,
    ) -> ModelFailure {
        let plain = format!("{} at {}: {what}", self.model, self.address);
        let plain = self.redact_key(plain);
        let text = match todo {
            "" => plain.clone(),
            todo => format!("{plain}; {todo}"),
        };
        ModelFailure {
            error: ModelError::with_kind(kind, text),
            summary: plain,
            again,
        }
    }

    /// Creates the failure for a response that was cut off or is invalid.
    pub(super) fn invalid_response(&self, what: &str) -> ModelFailure {
        let again = RetryAdvice::After(None);
        self.failure(
            ModelErrorKind::InvalidResponse,
            again,
            what,
            "continue the conversation, or try again",
        )
    }

    /// Removes the key from a provider's message, because some providers repeat the key that they reject.
    fn redact_key(&self, text: String) -> String {
        match self
            .model
            .key
            .as_ref()
            .map(crate::model::provider::secret::Secret::reveal)
        {
            Some(key) if !key.is_empty() => text.replace(key, "(the key)"),
            _ => text,
        }
    }

    /// Creates the failure for a response that cannot be decoded.
    pub(super) fn decode_failure(&self, fault: &DecodeError) -> ModelFailure {
        match fault {
            DecodeError::Reported(body) => self.event_failure(body),
            DecodeError::Malformed(why, event) => {
                self.invalid_response(&format!("invalid response: {why} in {event:?}"))
            }
            DecodeError::UnexpectedEnd(reason) => {
                self.invalid_response(&format!("the response ended with {reason}"))
            }
        }
    }

    fn other_failure(&self, what: &str) -> ModelFailure {
        self.failure(
            ModelErrorKind::Other,
            RetryAdvice::Never,
            truncate_to_head(what, MAX_MESSAGE_BYTES),
            "",
        )
    }

    /// Creates the failure for an error that occurred while communicating with the provider.
    pub(super) fn connection_failure(&self, exchange_error: &ExchangeError) -> ModelFailure {
        let seconds = self.model.idle_timeout.as_secs_f64();
        match exchange_error {
            ExchangeError::Web(error) => self.web_failure(error),
            ExchangeError::NoResponse => self.failure(
                ModelErrorKind::Unreachable,
                RetryAdvice::Never,
                &format!("no response within {seconds} s"),
                "try again, or try another model",
            ),
            ExchangeError::IdleTimeout => {
                self.invalid_response(&format!("the response stalled: no data for {seconds} s"))
            }
            ExchangeError::Status(status, headers, body) => {
                self.status_failure(*status, headers, body)
            }
            ExchangeError::TooLarge(most) => self.failure(
                // A retry would return an event of the same size.
                ModelErrorKind::InvalidResponse,
                RetryAdvice::Never,
                &format!("an event in the response is larger than {most} bytes"),
                "check that the URL points to a model API",
            ),
        }
    }

    /// Creates the failure for an unreachable server or a lost connection.
    fn web_failure(&self, error: &reqwest::Error) -> ModelFailure {
        let unreachable = |again, what: &str, todo: &str| {
            self.failure(ModelErrorKind::Unreachable, again, what, todo)
        };
        if error.is_builder() {
            return self.other_failure(&error_chain(error));
        }
        if !error.is_connect() {
            // The connection had been made, so it broke before or during the response.
            return self.invalid_response(&format!("connection lost: {}", error_chain(error)));
        }
        // A local server that is not running will not be running a second later.
        let later = if self.is_local {
            RetryAdvice::Never
        } else {
            RetryAdvice::After(None)
        };
        if error.is_timeout() {
            return unreachable(
                later,
                "connection timed out",
                "check the URL and your network connection",
            );
        }
        let causes = || error_sources(error).skip(1);
        let refused = causes()
            .filter_map(|e| e.downcast_ref::<io::Error>())
            .any(|e| e.kind() == io::ErrorKind::ConnectionRefused);
        if refused {
            return unreachable(
                later,
                "connection refused",
                "check the port, and that the server is running",
            );
        }
        let tls =
            causes().any(|e| e.is::<rustls::Error>() || e.to_string().contains("tls handshake"));
        let why = error_chain(error);
        if tls {
            let todo = "check that the server uses https and has a trusted certificate";
            return unreachable(RetryAdvice::Never, &format!("TLS error: {why}"), todo);
        }
        if causes().any(|e| e.to_string().contains("dns error")) {
            return unreachable(
                later,
                "host not found",
                "check the URL and your network connection",
            );
        }
        unreachable(
            later,
            &format!("cannot connect: {why}"),
            "check the URL and your network connection",
        )
    }

    /// Creates the failure for a response with an error status.
    fn status_failure(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ModelFailure {
        let report = ErrorReport::parse(body);
        let code = status.as_u16();
        let what = |what: &str| match &report.message {
            Some(message) => format!("{what} (HTTP {code}: {})", quote_message(message)),
            None => format!("{what} (HTTP {code})"),
        };
        let fail =
            |kind, what: &str, todo: &str| self.failure(kind, RetryAdvice::Never, what, todo);
        if report.is_context_length_error() || code == 413 {
            return self.context_failure(&what("context length exceeded"));
        }
        if matches!(code, 401 | 403) || report.is_authentication_error() {
            return self.unauthorized_failure(&what(match &self.model.key {
                Some(_) => "key rejected",
                None => "API key missing",
            }));
        }
        if report.is_model_not_found_error() || code == 404 && report.message.is_some() {
            let todo = "check the model name";
            return fail(ModelErrorKind::UnknownModel, &what("model not found"), todo);
        }
        if code == 404 || status.is_redirection() {
            let todo = "check the URL; it usually ends in /v1";
            return fail(
                ModelErrorKind::Other,
                &what("no model API at this URL"),
                todo,
            );
        }
        if report.is_billing_error() {
            let todo = "check your plan and billing with the provider";
            return fail(
                ModelErrorKind::Overloaded,
                &what("insufficient credit"),
                todo,
            );
        }
        let again = match headers.get("x-should-retry").map(|value| value.as_bytes()) {
            Some(b"false") => RetryAdvice::Never,
            _ => RetryAdvice::After(parse_retry_after(headers).or(report.retry)),
        };
        match code {
            429 => self.failure(
                ModelErrorKind::Overloaded,
                again,
                &what("rate limit exceeded"),
                "wait, or use another model",
            ),
            503 | 529 => self.overloaded_failure(again, &what("overloaded")),
            408 | 409 | 500..=599 => self.overloaded_failure(again, &what("provider error")),
            _ => fail(ModelErrorKind::Other, &what("request rejected"), ""),
        }
    }

    fn overloaded_failure(&self, again: RetryAdvice, what: &str) -> ModelFailure {
        self.failure(
            ModelErrorKind::Overloaded,
            again,
            what,
            "try again later, or use another model",
        )
    }

    fn context_failure(&self, what: &str) -> ModelFailure {
        let todo = "start a new session, or use a model with a larger context window";
        self.failure(ModelErrorKind::ContextFull, RetryAdvice::Never, what, todo)
    }

    pub(super) fn unauthorized_failure(&self, what: &str) -> ModelFailure {
        let unread = self.model.key_file_error.clone();
        let todo = unread
            .filter(|_| self.model.key.is_none())
            .unwrap_or_else(|| {
                let variable = self.model.key_variable();
                format!("set {variable} to a valid key")
            });
        self.failure(
            ModelErrorKind::Unauthorized,
            RetryAdvice::Never,
            what,
            &todo,
        )
    }

    /// Creates the failure for an error that was sent instead of an event.
    fn event_failure(&self, body: &Value) -> ModelFailure {
        let report = ErrorReport::from_json(body);
        let message = report.message.as_deref().map(quote_message);
        let message = message
            .unwrap_or_else(|| truncate_to_head(&body.to_string(), MAX_MESSAGE_BYTES).to_owned());
        let what = format!("the response ended with an error: {message}");
        if report.is_context_length_error() {
            return self.context_failure(&what);
        }
        let busy = [
            "overloaded",
            "rate_limit",
            "unavailable",
            "resource_exhausted",
            "server_error",
            "api_error",
            "timeout",
        ];
        if busy.iter().any(|busy| report.names.contains(busy)) {
            return self.overloaded_failure(RetryAdvice::After(report.retry), &what);
        }
        self.invalid_response(&what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::name::Provider;

    fn classify_response(
        provider: Provider,
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> ModelFailure {
        let model = ProviderModel::new(provider, "m")
            .key(crate::model::provider::secret::Secret::new("sk-secret"));
        let about = FailedModel {
            model: &model,
            address: "https://a.example/v1",
            is_local: false,
        };
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
        let status = StatusCode::from_u16(status).unwrap();
        about.status_failure(status, &HeaderMap::from_iter(headers), body)
    }

    #[test]
    fn error_reports_of_each_provider_are_classified() {
        use ModelErrorKind::*;
        use Provider::*;
        for (provider, status, body, kind) in [
            (
                Anthropic,
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Unauthorized,
            ),
            (
                Anthropic,
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
                UnknownModel,
            ),
            (
                Anthropic,
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                ContextFull,
            ),
            (
                Anthropic,
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                ContextFull,
            ),
            (
                Anthropic,
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
                Overloaded,
            ),
            (
                OpenAi,
                404,
                r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}"#,
                UnknownModel,
            ),
            (
                OpenAi,
                404,
                r#"{"error":"model 'm' not found"}"#,
                UnknownModel,
            ),
            (OpenAi, 404, "<html>404</html>", Other),
            (
                OpenAi,
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}"#,
                ContextFull,
            ),
            (
                OpenAi,
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                ContextFull,
            ),
            (
                OpenAi,
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Overloaded,
            ),
            (
                OpenAi,
                400,
                r#"{"error":{"message":"Invalid schema"}}"#,
                Other,
            ),
            (
                Gemini,
                400,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                Unauthorized,
            ),
            (
                Gemini,
                404,
                r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#,
                UnknownModel,
            ),
            (
                Gemini,
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
                ContextFull,
            ),
        ] {
            let failure = classify_response(provider, status, &[], body);
            assert_eq!(failure.error.kind, kind, "{body}: {}", failure.error);
            assert_eq!(failure.again, RetryAdvice::Never, "{body}");
        }
    }

    #[test]
    fn retry_delay_is_found_in_header_and_body() {
        let after = |headers: &[(&'static str, &str)], body| {
            classify_response(Provider::Gemini, 429, headers, body).again
        };
        let seconds = |n| RetryAdvice::After(Some(Duration::from_secs(n)));
        assert_eq!(after(&[("retry-after", "7")], ""), seconds(7));
        assert_eq!(
            after(&[("retry-after-ms", "2000"), ("retry-after", "7")], ""),
            seconds(2)
        );
        assert_eq!(
            after(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], ""),
            seconds(0)
        );
        assert_eq!(
            after(&[("retry-after", "soon")], ""),
            RetryAdvice::After(None)
        );
        let body = r#"{"error":{"code":429,"message":"Busy","details":[{"retryDelay":"34s"}]}}"#;
        assert_eq!(after(&[], body), seconds(34));
        assert_eq!(
            after(&[("x-should-retry", "false")], ""),
            RetryAdvice::Never
        );
    }

    #[test]
    fn key_in_an_error_message_is_redacted() {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret."}}"#;
        let text = classify_response(Provider::OpenAi, 401, &[], body)
            .error
            .message;
        assert!(!text.contains("sk-secret"), "{text}");
        assert!(
            text.starts_with("openai/m at https://a.example/v1: key rejected"),
            "{text}"
        );
        assert!(text.contains("OPENAI_API_KEY"), "{text}");
    }
}
