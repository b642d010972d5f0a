//! Tests every status code in the draft, using the requests that other clients send.

use acp_remote::server::{ServeOptions, ServerConfig, ServerLimits};

use crate::common::TestServer;
use crate::common::raw::{
    BEARER_HEADER, INITIALIZE_REQUEST, JSON_HEADER, NEW_SESSION_REQUEST, RawStream, SSE_HEADER,
    send_request,
};
use crate::common::server::test_token;

/// Opens a connection and a session without the extension.
async fn open_connection(server: &TestServer) -> (String, String, RawStream) {
    let opened = send_request(
        server.address,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    assert_eq!(opened.status, 200);
    let id = opened.connection_id();
    let mut stream = RawStream::open(
        server.address,
        &[BEARER_HEADER, SSE_HEADER, ("Acp-Connection-Id", &id)],
    )
    .await;
    let headers = [BEARER_HEADER, JSON_HEADER, ("Acp-Connection-Id", &*id)];
    assert_eq!(
        send_request(server.address, "POST", &headers, NEW_SESSION_REQUEST)
            .await
            .status,
        202
    );
    let session = stream.read_message().await["result"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    (id, session, stream)
}

fn prompt_request(id: u32, session: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[tokio::test]
async fn initialize_is_answered_at_once_and_the_rest_on_streams() {
    let server = TestServer::start().await;
    let to = server.address;
    let opened = send_request(
        to,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    assert_eq!(opened.status, 200);
    assert_eq!(opened.header("content-type"), Some("application/json"));
    let id = opened.connection_id();
    let body: serde_json::Value = serde_json::from_str(&opened.body).unwrap();
    assert_eq!(
        (&body["id"], &body["result"]["connectionId"]),
        (&0.into(), &(*id).into())
    );
    assert_eq!(
        body["result"]["_meta"]["acp-sdk/remote"],
        serde_json::json!({"connectionId": id})
    );

    let (id, session, _stream) = open_connection(&server).await;
    let both = [
        BEARER_HEADER,
        JSON_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let headers = [
        BEARER_HEADER,
        SSE_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    let answered = send_request(to, "POST", &both, &prompt_request(2, &session, "ask 1")).await;
    assert_eq!((answered.status, &*answered.body), (202, ""));
    assert_eq!(
        stream.read_message().await["params"]["update"]["sessionUpdate"],
        "tool_call"
    );
    let question = stream.read_message().await;
    assert_eq!(question["method"], "session/request_permission");
    // Some clients leave the session out of their answers.
    let answer = serde_json::json!({
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
    });
    let without = [BEARER_HEADER, JSON_HEADER, ("Acp-Connection-Id", &*id)];
    assert_eq!(
        send_request(to, "POST", &without, &answer.to_string())
            .await
            .status,
        202
    );
    assert_eq!(
        stream.read_message().await["params"]["update"]["content"]["text"],
        "0: Allowed;"
    );
    assert_eq!(
        stream.read_message().await["params"]["update"]["sessionUpdate"],
        "tool_call_update"
    );
    assert_eq!(
        stream.read_message().await["result"]["stopReason"],
        "end_turn"
    );

    // The end: streams say so, and the connection is unknown.
    assert_eq!(send_request(to, "DELETE", &without, "").await.status, 202);
    let last = stream.read_line().await;
    assert_eq!(
        (last.as_deref(), stream.read_line().await),
        (Some(": close 1000"), None)
    );
    assert_eq!(send_request(to, "DELETE", &without, "").await.status, 404);
    assert_eq!(
        send_request(to, "POST", &both, &prompt_request(3, &session, "hi"))
            .await
            .status,
        404
    );
}

/// The expected status, the method, the headers and the body.
type StatusCase<'a> = (u16, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[tokio::test]
async fn invalid_requests_get_the_status_required_by_the_draft() {
    let limits = ServerLimits::new().message(1000_usize);
    let config = ServerConfig::new().token(test_token()).limits(limits);
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let (id, session, _stream) = open_connection(&server).await;
    let connection = ("Acp-Connection-Id", &*id);
    let in_session = ("Acp-Session-Id", &*session);
    let unknown = ("Acp-Connection-Id", "1234");
    let hello = &*prompt_request(5, &session, "hi");
    let long = &*prompt_request(6, &session, &"x".repeat(1000));
    let cases: &[StatusCase<'_>] = &[
        // POST.
        (415, "POST", &[BEARER_HEADER], INITIALIZE_REQUEST),
        (
            415,
            "POST",
            &[BEARER_HEADER, ("Content-Type", "text/plain")],
            INITIALIZE_REQUEST,
        ),
        (
            200,
            "POST",
            &[
                BEARER_HEADER,
                ("Content-Type", "application/json; charset=utf-8"),
            ],
            INITIALIZE_REQUEST,
        ),
        (501, "POST", &[BEARER_HEADER, JSON_HEADER], "[]"),
        (
            501,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, connection],
            "[{\"jsonrpc\":\"2.0\"}]",
        ),
        (400, "POST", &[BEARER_HEADER, JSON_HEADER], ""),
        (400, "POST", &[BEARER_HEADER, JSON_HEADER], "{"),
        (400, "POST", &[BEARER_HEADER, JSON_HEADER], "{}"),
        (
            400,
            "POST",
            &[BEARER_HEADER, JSON_HEADER],
            NEW_SESSION_REQUEST,
        ),
        (
            404,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, unknown],
            NEW_SESSION_REQUEST,
        ),
        (
            400,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, connection],
            hello,
        ),
        (
            400,
            "POST",
            &[
                BEARER_HEADER,
                JSON_HEADER,
                connection,
                ("Acp-Session-Id", "other"),
            ],
            hello,
        ),
        (
            413,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, connection, in_session],
            long,
        ),
        (
            202,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, connection, in_session],
            hello,
        ),
        // GET.
        (406, "GET", &[BEARER_HEADER, connection], ""),
        (
            406,
            "GET",
            &[BEARER_HEADER, connection, ("Accept", "text/html, */*")],
            "",
        ),
        (400, "GET", &[BEARER_HEADER, SSE_HEADER], ""),
        (404, "GET", &[BEARER_HEADER, SSE_HEADER, unknown], ""),
        (
            400,
            "GET",
            &[
                BEARER_HEADER,
                SSE_HEADER,
                connection,
                ("Last-Event-ID", "x"),
            ],
            "",
        ),
        (
            400,
            "GET",
            &[
                BEARER_HEADER,
                SSE_HEADER,
                connection,
                ("Last-Event-ID", "999999"),
            ],
            "",
        ),
        (
            426,
            "GET",
            &[
                BEARER_HEADER,
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
            ],
            "",
        ),
        // DELETE and others.
        (400, "DELETE", &[BEARER_HEADER], ""),
        (404, "DELETE", &[BEARER_HEADER, unknown], ""),
        (405, "PUT", &[BEARER_HEADER, connection], ""),
        (405, "OPTIONS", &[BEARER_HEADER], ""),
        // Access.
        (401, "POST", &[JSON_HEADER], INITIALIZE_REQUEST),
        (
            401,
            "POST",
            &[JSON_HEADER, ("Authorization", "Bearer a-token-for-test")],
            INITIALIZE_REQUEST,
        ),
        (401, "GET", &[SSE_HEADER, connection], ""),
        (401, "DELETE", &[connection], ""),
        (
            403,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, ("Host", "evil.example")],
            INITIALIZE_REQUEST,
        ),
        (
            403,
            "POST",
            &[
                BEARER_HEADER,
                JSON_HEADER,
                ("Origin", "https://evil.example"),
            ],
            INITIALIZE_REQUEST,
        ),
        (
            403,
            "GET",
            &[
                BEARER_HEADER,
                SSE_HEADER,
                connection,
                ("Origin", "https://evil.example"),
            ],
            "",
        ),
    ];
    for (status, method, headers, body) in cases {
        let answered = send_request(server.address, method, headers, body).await;
        assert_eq!(
            answered.status, *status,
            "{method} {headers:?} {body}: {answered:?}"
        );
        if *status >= 400 {
            assert!(
                !answered.body.is_empty(),
                "{method} {headers:?}: a reason is missing"
            );
        }
    }
    let stats = server.endpoint.stats();
    assert_eq!(stats.refused, 7);
}

#[tokio::test]
async fn stream_opened_before_load_gets_the_history_in_order() {
    let server = TestServer::start().await;
    let to = server.address;
    let (id, ..) = open_connection(&server).await;
    let headers = [
        BEARER_HEADER,
        SSE_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", "old"),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    let load = r#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"old","cwd":"/","mcpServers":[]}}"#;
    let headers = [
        BEARER_HEADER,
        JSON_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", "old"),
    ];
    assert_eq!(send_request(to, "POST", &headers, load).await.status, 202);
    assert_eq!(
        stream.read_message().await["params"]["update"]["content"]["text"],
        "history"
    );
    for number in 0..1000 {
        let text = stream.read_message().await["params"]["update"]["content"]["text"].to_string();
        assert!(text.starts_with(&format!("\"[{number}]")), "{text}");
    }
    assert_eq!(stream.read_message().await["id"], 7);
}

#[tokio::test]
async fn second_stream_takes_over_and_resumes_after_an_event_id() {
    let server = TestServer::start().await;
    let to = server.address;
    let (id, session, _connection) = open_connection(&server).await;
    let headers = [
        BEARER_HEADER,
        SSE_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut first = RawStream::open(to, &headers).await;
    let post = [
        BEARER_HEADER,
        JSON_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let stream = |id| prompt_request(id, &session, "stream 3 20");
    assert_eq!(
        send_request(to, "POST", &post, &stream(2)).await.status,
        202
    );
    let mut ids = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..4 {
        let (message, id) = first.read_event().await.unwrap();
        texts.push(message.to_string());
        ids.push(id);
    }
    assert!(ids.is_sorted());
    // Another stream for the session: the first one ends, and nothing is sent twice.
    let mut second = RawStream::open(to, &headers).await;
    assert_eq!(first.read_line().await, None);
    assert_eq!(
        send_request(to, "POST", &post, &stream(3)).await.status,
        202
    );
    assert!(second.read_message().await.to_string().contains("[0]"));
    // A client that has seen the first two comes back for the rest.
    let last = ids[1].to_string();
    let continued = [
        headers[0],
        headers[1],
        headers[2],
        headers[3],
        ("Last-Event-ID", &*last),
    ];
    let mut third = RawStream::open(to, &continued).await;
    for text in &texts[2..] {
        assert_eq!(third.read_message().await.to_string(), *text);
    }
    assert!(third.read_message().await.to_string().contains("[0]"));
}
