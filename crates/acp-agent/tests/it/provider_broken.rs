//! Tests how a language model's failures are reported to the client, and that the session can continue afterwards. For
//! failures in the middle of a task, see `provider_broken_midway.rs`.

use crate::common;
use std::time::Duration;

use crate::common::provider::{AnswerPiece, ProviderReply, ProviderServer};
use crate::common::{AgentFixture, NO_CAPABILITIES, connect};
use acp::thread::ToolCallStatus;
use acp::v1::{SessionUpdate, StopReason};
use acp_agent::store::MemoryStore;
use acp_agent::{CodingAgent, ModelConfig, Provider, ProviderModel, WireFormat};
use serde_json::json;
use tokio::net::TcpSocket;

/// Returns the reply to the final request, after all the failures.
fn successful_reply() -> ProviderReply {
    ProviderReply::Says(vec![AnswerPiece::Text("Fine.")])
}

async fn start_fixture(model: ProviderModel) -> AgentFixture {
    let agent = CodingAgent::new(&ModelConfig::Provider(Box::new(model))).unwrap();
    // The next turn reads the stored history in the same way.
    AgentFixture::new(agent.keep_sessions(MemoryStore::new()), NO_CAPABILITIES).await
}

/// Sends a prompt that fails, and returns the error's code, kind and message.
async fn prompt_for_error(f: &AgentFixture) -> (i32, String, String) {
    let error = f.prompt("Well?").await.expect_err("the model fails");
    let error = error.peer_error().unwrap().clone();
    let kind = error.data.as_ref().and_then(|data| data["kind"].as_str());
    let kind = kind.unwrap_or_default().to_owned();
    assert!(!error.message.contains("a-key"), "{}", error.message);
    (error.code, kind, error.message)
}

/// Returns the text of all thoughts from the last turn.
fn thought_text(f: &AgentFixture) -> String {
    let updates = f.seen.updates.lock().unwrap();
    let thoughts = updates.iter().filter_map(|update| match update {
        SessionUpdate::AgentThoughtChunk(chunk) => chunk.content.as_text(),
        _ => None,
    });
    thoughts.collect()
}

/// Returns the provider's error responses: the status, the body, and the kind of the resulting error.
fn error_responses(format: WireFormat) -> Vec<(u16, String, &'static str)> {
    let body = |body: serde_json::Value| body.to_string();
    match format {
        WireFormat::AnthropicMessages => {
            let error = |kind: &str, message: &str| {
                body(json!({"type": "error", "error": {"type": kind, "message": message}}))
            };
            vec![
                (
                    401,
                    error("authentication_error", "invalid x-api-key"),
                    "unauthorized",
                ),
                (
                    403,
                    error("permission_error", "Your key may not do this"),
                    "unauthorized",
                ),
                (
                    404,
                    error("not_found_error", "model: a-model"),
                    "unknown_model",
                ),
                (
                    400,
                    error(
                        "invalid_request_error",
                        "prompt is too long: 210000 tokens > 200000 maximum",
                    ),
                    "context_full",
                ),
                (
                    413,
                    error("request_too_large", "Request exceeds the maximum size"),
                    "context_full",
                ),
                (
                    400,
                    error("invalid_request_error", "messages: roles must alternate"),
                    "other",
                ),
            ]
        }
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => {
            let error = |code: &str, message: &str| {
                body(
                    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}}),
                )
            };
            vec![
                (
                    401,
                    error("invalid_api_key", "Incorrect API key provided: a-key."),
                    "unauthorized",
                ),
                (
                    404,
                    error("model_not_found", "The model `a-model` does not exist"),
                    "unknown_model",
                ),
                (
                    400,
                    error(
                        "context_length_exceeded",
                        "This model's maximum context length is 128000 tokens.",
                    ),
                    "context_full",
                ),
                (
                    429,
                    error("insufficient_quota", "You exceeded your current quota"),
                    "overloaded",
                ),
                (404, "<html><h1>404</h1></html>".to_owned(), "other"),
                (301, String::new(), "other"),
            ]
        }
        _ => {
            let error = |code: u16, status: &str, message: &str| {
                body(json!({"error": {"code": code, "message": message, "status": status}}))
            };
            vec![
                (
                    400,
                    error(
                        400,
                        "INVALID_ARGUMENT",
                        "API key not valid. Please pass a valid API key.",
                    ),
                    "unauthorized",
                ),
                (
                    403,
                    error(
                        403,
                        "PERMISSION_DENIED",
                        "Method doesn't allow unregistered callers",
                    ),
                    "unauthorized",
                ),
                (
                    404,
                    error(
                        404,
                        "NOT_FOUND",
                        "models/a-model is not found for API version v1beta",
                    ),
                    "unknown_model",
                ),
                (
                    400,
                    error(
                        400,
                        "INVALID_ARGUMENT",
                        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
                    ),
                    "context_full",
                ),
            ]
        }
    }
}

#[tokio::test]
async fn permanent_errors_are_reported_with_their_reason_and_not_retried() {
    for format in WireFormat::ALL {
        for (status, body, expected) in error_responses(format) {
            let refused = ProviderReply::Status(status, &[], body.clone());
            let server = ProviderServer::new(format, [refused, successful_reply()]).await;
            let f = start_fixture(server.model()).await;
            let (code, kind, text) = prompt_for_error(&f).await;
            assert_eq!(kind, expected, "{body}: {text}");
            let auth = if expected == "unauthorized" {
                -32000
            } else {
                -32603
            };
            assert_eq!(code, auth, "{text}");
            assert!(text.contains("a-model at http://127.0.0.1:"), "{text}");
            assert!(text.contains(&status.to_string()), "{text}");
            assert_eq!(server.requests().len(), 1, "{text}");
            assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        }
    }
}

#[tokio::test]
async fn overloaded_provider_is_retried_visibly() {
    let busy: [(WireFormat, u16, &str); 7] = [
        (
            WireFormat::AnthropicMessages,
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ),
        (
            WireFormat::AnthropicMessages,
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#,
        ),
        (
            WireFormat::OpenAiChat,
            500,
            r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
        ),
        (
            WireFormat::OpenAiChat,
            429,
            r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
        ),
        (
            WireFormat::OpenAiResponses,
            500,
            r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
        ),
        (
            WireFormat::Gemini,
            503,
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
        ),
        (WireFormat::Gemini, 502, "<html>Bad Gateway</html>"),
    ];
    for (format, status, body) in busy {
        let busy = || ProviderReply::Status(status, &[], body.to_owned());
        let server = ProviderServer::new(format, [busy(), busy(), successful_reply()]).await;
        let f = start_fixture(server.model()).await;
        assert_eq!(f.prompt_for_text("Well?").await, "Fine.", "{body}");
        assert_eq!(server.requests().len(), 3);
        let thoughts = thought_text(&f);
        assert!(
            thoughts.contains("(2 of 3)") && thoughts.contains("(3 of 3)"),
            "{thoughts}"
        );
        assert!(thoughts.contains(&format!("HTTP {status}")), "{thoughts}");
        // The model does not see it.
        let server =
            ProviderServer::new(format, [busy(), busy(), busy(), successful_reply()]).await;
        let f = start_fixture(server.model()).await;
        let (code, kind, text) = prompt_for_error(&f).await;
        assert_eq!((code, kind.as_str()), (-32603, "overloaded"), "{text}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        let told = server.requests()[3].body.to_string();
        assert!(!told.contains("Retrying"), "{told}");
    }
}

#[tokio::test]
async fn overload_error_in_the_first_event_is_retried() {
    let anthropic = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let openai = "data: {\"error\":{\"message\":\"The server is overloaded\",\"type\":\"server_error\"}}\n\n";
    let responses = "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The server is overloaded\",\"param\":null}\n\n";
    let failed = "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"Slow down\"}}}\n\n";
    let gemini = "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n";
    for (format, event) in [
        (WireFormat::AnthropicMessages, anthropic),
        (WireFormat::OpenAiChat, openai),
        (WireFormat::OpenAiResponses, responses),
        (WireFormat::OpenAiResponses, failed),
        (WireFormat::Gemini, gemini),
    ] {
        let busy = |says: &[AnswerPiece]| ProviderReply::Event(says.to_vec(), event.to_owned());
        let server = ProviderServer::new(format, [busy(&[]), successful_reply()]).await;
        let f = start_fixture(server.model()).await;
        assert_eq!(f.prompt_for_text("Well?").await, "Fine.", "{format}");
        // After some output was shown, a failure ends the turn.
        let server = ProviderServer::new(
            format,
            [busy(&[AnswerPiece::Text("I begin")]), successful_reply()],
        )
        .await;
        let f = start_fixture(server.model()).await;
        let (_, kind, text) = prompt_for_error(&f).await;
        assert_eq!(kind, "overloaded", "{format}: {text}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

#[tokio::test]
async fn provider_retry_delay_is_respected_up_to_a_limit() {
    let after = |headers| {
        ProviderReply::Status(
            429,
            headers,
            r#"{"error":{"message":"Slow down"}}"#.to_owned(),
        )
    };
    for format in WireFormat::ALL {
        // The agent's own wait would take longer than any test.
        let server =
            ProviderServer::new(format, [after(&[("retry-after", "0")]), successful_reply()]).await;
        let mut model = server.model();
        model.retries.first_delay = Duration::from_secs(3600);
        model.retries.max_delay = Duration::from_secs(3600);
        let f = start_fixture(model).await;
        assert_eq!(f.prompt_for_text("Well?").await, "Fine.", "{format}");
        let server = ProviderServer::new(
            format,
            [after(&[("retry-after", "86400")]), successful_reply()],
        )
        .await;
        let f = start_fixture(server.model()).await;
        let (_, kind, text) = prompt_for_error(&f).await;
        assert_eq!(kind, "overloaded");
        assert!(text.contains("retry after 86400 s"), "{text}");
        assert_eq!(server.requests().len(), 1);
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

#[tokio::test]
async fn cancel_ends_the_retry_delay_immediately() {
    let busy = ProviderReply::Status(503, &[("retry-after", "3000")], "{}".to_owned());
    let server = ProviderServer::new(WireFormat::OpenAiChat, [busy, successful_reply()]).await;
    let mut model = server.model();
    model.retries.max_delay = Duration::from_secs(3600);
    let f = start_fixture(model).await;
    let turn = f.start_prompt("Well?");
    server.wait_for_requests(1).await;
    common::wait_for_thread(f.session.thread(), |thread| {
        format!("{:?}", thread.items()).contains("Retrying in 3000.0 s")
    })
    .await;
    assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
    assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
}

#[tokio::test]
async fn cancel_ends_a_streaming_response() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(
            format,
            [
                ProviderReply::Stalls(vec![AnswerPiece::Text("I begin")]),
                successful_reply(),
            ],
        )
        .await;
        let f = start_fixture(server.model()).await;
        let turn = f.start_prompt("Well?");
        common::wait_for_thread(f.session.thread(), |thread| {
            format!("{:?}", thread.items()).contains("I begin")
        })
        .await;
        assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        // The model gets its own partial message.
        assert!(server.requests()[1].body.to_string().contains("I begin"));
    }
}

#[tokio::test]
async fn interrupted_response_is_kept_and_continued() {
    for format in WireFormat::ALL {
        let cut = vec![
            AnswerPiece::Text("I begin, but"),
            AnswerPiece::Call("x", "write", json!({"path": "no.txt", "text": "no"})),
        ];
        let server =
            ProviderServer::new(format, [ProviderReply::Cut(cut), successful_reply()]).await;
        let f = start_fixture(server.model()).await;
        let (code, kind, text) = prompt_for_error(&f).await;
        assert_eq!(
            (code, kind.as_str()),
            (-32603, "broken"),
            "{format}: {text}"
        );
        // It is unknown whether the call is complete, so it is not executed.
        assert!(!f.file_exists("no.txt"));
        assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        let told = server.requests()[1].body.to_string();
        assert!(
            told.contains("I begin, but") && !told.contains("no.txt"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn failure_before_any_output_is_retried() {
    for format in WireFormat::ALL {
        let breaks = || {
            [
                ProviderReply::Closes,
                ProviderReply::Cut(vec![AnswerPiece::Call(
                    "x",
                    "write",
                    json!({"path": "no.txt", "text": "no"}),
                )]),
            ]
        };
        let answers = breaks().into_iter().chain([successful_reply()]);
        let server = ProviderServer::new(format, answers).await;
        let f = start_fixture(server.model()).await;
        assert_eq!(f.prompt_for_text("Well?").await, "Fine.", "{format}");
        assert!(!f.file_exists("no.txt"));
        let answers = breaks()
            .into_iter()
            .chain([ProviderReply::Closes, successful_reply()]);
        let server = ProviderServer::new(format, answers).await;
        let f = start_fixture(server.model()).await;
        let (_, kind, text) = prompt_for_error(&f).await;
        assert_eq!(kind, "broken", "{text}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        // The model sent nothing, so there is nothing to repeat.
        let told = server.requests()[3].body.to_string();
        assert!(
            !told.contains(r#""role":"assistant""#) && !told.contains(r#""role":"model""#),
            "{told}"
        );
    }
}

#[tokio::test]
async fn malformed_data_ends_the_response() {
    let page = || {
        ProviderReply::Body(
            "text/html",
            "<html>Welcome to the hotel's network</html>".to_owned(),
        )
    };
    let bytes = || ProviderReply::Body("text/event-stream", "\u{0}\u{1}\u{2}".to_owned());
    for format in WireFormat::ALL {
        let name = match format {
            WireFormat::AnthropicMessages => "event: content_block_start\n",
            _ => "",
        };
        let scribble = || ProviderReply::Event(vec![], format!("{name}data: {{\"what\": \n\n"));
        for garbage in [page(), bytes(), scribble()] {
            let answers = [
                garbage.clone(),
                garbage.clone(),
                garbage.clone(),
                successful_reply(),
            ];
            let server = ProviderServer::new(format, answers).await;
            let f = start_fixture(server.model()).await;
            let (_, kind, text) = prompt_for_error(&f).await;
            assert_eq!(kind, "broken", "{format} {garbage:?}: {text}");
            assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
        }
        let server = ProviderServer::new(
            format,
            [
                ProviderReply::Event(
                    vec![AnswerPiece::Text("I begin")],
                    format!("{name}data: {{\"what\": \n\n"),
                ),
                successful_reply(),
            ],
        )
        .await;
        let f = start_fixture(server.model()).await;
        let (_, kind, text) = prompt_for_error(&f).await;
        assert_eq!(kind, "broken", "{text}");
        assert!(text.contains("what"), "it says what came: {text}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

#[tokio::test]
async fn silent_provider_times_out() {
    // All of them at the same time, because they only wait.
    tokio::join!(
        check_silent_provider(WireFormat::AnthropicMessages),
        check_silent_provider(WireFormat::OpenAiChat),
        check_silent_provider(WireFormat::OpenAiResponses),
        check_silent_provider(WireFormat::Gemini),
    );
}

async fn check_silent_provider(format: WireFormat) {
    let stalls = ProviderReply::Stalls(vec![AnswerPiece::Text("I begin")]);
    let server =
        ProviderServer::new(format, [stalls, ProviderReply::Silent, successful_reply()]).await;
    let mut model = server.model();
    // This is long enough for a model that does respond.
    model.idle_timeout = Duration::from_millis(1500);
    let f = start_fixture(model).await;
    let (_, kind, text) = prompt_for_error(&f).await;
    assert_eq!(kind, "broken", "{format}: {text}");
    assert!(text.contains("no data for 1.5 s"), "{text}");
    let (_, kind, text) = prompt_for_error(&f).await;
    assert_eq!(kind, "unreachable", "{format}: {text}");
    assert!(text.contains("no response within 1.5 s"), "{text}");
    assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
}

#[tokio::test]
async fn endless_response_is_cut_off() {
    for format in WireFormat::ALL {
        let server =
            ProviderServer::new(format, [ProviderReply::Endless, successful_reply()]).await;
        let mut model = server.model();
        model.max_response_bytes = 20_000;
        let f = start_fixture(model).await;
        let (_, kind, text) = prompt_for_error(&f).await;
        assert_eq!(kind, "broken", "{format}: {text}");
        assert!(text.contains("response larger than 20000 bytes"), "{text}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

/// The maximum number of bytes that the server can send of an endless response: those that the agent reads, plus those
/// that the operating system buffers.
const MAX_READ_BYTES: u64 = 24 * 1024 * 1024;

#[tokio::test]
async fn endless_event_is_cut_off() {
    for format in WireFormat::ALL {
        let server =
            ProviderServer::new(format, [ProviderReply::EndlessEvent, successful_reply()]).await;
        let mut model = server.model();
        model.max_response_bytes = 1_000_000;
        let f = start_fixture(model).await;
        let (code, kind, text) = prompt_for_error(&f).await;
        assert_eq!((code, kind.as_str()), (-32603, "broken"), "{format}");
        assert!(
            text.contains("an event in the response is larger than 1000000 bytes"),
            "{text}"
        );
        let taken = server.wait_for_closed_connections(1).await;
        assert!(taken < MAX_READ_BYTES, "{format}: {taken}");
        assert_eq!(server.requests().len(), 1, "it would be no shorter");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

#[tokio::test]
async fn endless_error_body_is_truncated() {
    for format in WireFormat::ALL {
        let server = ProviderServer::new(
            format,
            [ProviderReply::EndlessStatus(400), successful_reply()],
        )
        .await;
        let f = start_fixture(server.model()).await;
        let (code, kind, text) = prompt_for_error(&f).await;
        assert_eq!((code, kind.as_str()), (-32603, "other"), "{format}");
        assert!(text.contains("HTTP 400"), "{text}");
        let taken = server.wait_for_closed_connections(1).await;
        assert!(taken < MAX_READ_BYTES, "{format}: {taken}");
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.");
    }
}

#[tokio::test]
async fn agent_waits_for_a_slow_provider() {
    // All of them at the same time, because they only wait.
    tokio::join!(
        check_slow_provider(WireFormat::AnthropicMessages),
        check_slow_provider(WireFormat::OpenAiChat),
        check_slow_provider(WireFormat::OpenAiResponses),
        check_slow_provider(WireFormat::Gemini),
    );
}

async fn check_slow_provider(format: WireFormat) {
    let time = Duration::from_millis(2200);
    let words = ["I ", "think ", "of ", "each ", "word ", "twice."].map(AnswerPiece::Text);
    let server = ProviderServer::new(format, [ProviderReply::Slowly(time, words.into())]).await;
    let mut model = server.model();
    // No single pause takes this long, but all of them together do.
    model.idle_timeout = Duration::from_millis(1500);
    let f = start_fixture(model).await;
    let began = std::time::Instant::now();
    let said = f.prompt_for_text("Well?").await;
    assert_eq!(said, "I think of each word twice.", "{format}");
    assert!(began.elapsed() > Duration::from_millis(1500));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn unreachable_provider_is_retried_and_reported_with_its_url() {
    for format in WireFormat::ALL {
        // The test owns the address, and nothing listens there.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("http://{}", socket.local_addr().unwrap());
        let model = ProviderServer::new(format, [])
            .await
            .model()
            .base_url(&address);
        let f = start_fixture(model).await;
        let (code, kind, text) = prompt_for_error(&f).await;
        assert_eq!((code, kind.as_str()), (-32603, "unreachable"));
        assert!(text.contains("connection refused"), "{text}");
        assert!(text.contains(&address), "{text}");
        assert_eq!(thought_text(&f), "", "nobody waits for it");
        let server =
            ProviderServer::start_on(socket.listen(16).unwrap(), format, [successful_reply()]);
        assert_eq!(f.prompt_for_text("And now?").await, "Fine.", "{format}");
        let told = server.requests()[0].body.to_string();
        assert!(
            told.contains("Well?") && told.contains("And now?"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn unresolvable_host_is_reported() {
    // No system sends a DNS query for a name that is too long.
    let nowhere = format!("http://{}/v1", "x".repeat(64));
    let mut model = ProviderServer::new(WireFormat::OpenAiChat, [])
        .await
        .model()
        .base_url(nowhere);
    model.retries.tries = 1;
    let f = start_fixture(model).await;
    let (_, kind, text) = prompt_for_error(&f).await;
    assert_eq!(kind, "unreachable");
    assert!(text.contains("host not found"), "{text}");
    assert_session_usable(&f).await;
}

#[tokio::test]
async fn tls_error_is_explained() {
    let server = ProviderServer::new(WireFormat::OpenAiChat, []).await;
    let model = server
        .model()
        .base_url(format!("https://{}", server.address));
    let f = start_fixture(model).await;
    let (_, kind, text) = prompt_for_error(&f).await;
    assert_eq!(kind, "unreachable", "{text}");
    assert!(text.contains("TLS error"), "{text}");
    assert_session_usable(&f).await;
}

#[tokio::test]
async fn missing_key_requires_login() {
    for provider in Provider::ALL {
        let model = ModelConfig::Provider(Box::new(ProviderModel::new(provider, "a-model")));
        let agent = CodingAgent::new(&model).unwrap();
        let agent = connect(agent).await;
        let error = agent.new_session("/").await.unwrap_err();
        let error = error.peer_error().unwrap();
        assert_eq!(error.code, -32000);
        assert_eq!(error.data, Some(json!({"kind": "unauthorized"})));
        assert!(error.message.contains(provider.key_variable()), "{error}");
    }
}

/// Checks that the session is still usable, by running a command that the agent handles without the model.
async fn assert_session_usable(f: &AgentFixture) {
    let said = f.prompt_for_text("/help").await;
    assert!(said.contains("/compact"), "{said}");
}
