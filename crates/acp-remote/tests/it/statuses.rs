//! Every status that the draft names, by requests as other clients send them.

use acp_remote::server::{ServeOptions, ServerConfig, ServerLimits};

use crate::common::Server;
use crate::common::raw::{BEARER, INITIALIZE, JSON, NEW_SESSION, RawStream, SSE, request};
use crate::common::server::token;

/// Opens a connection and a session without the extension.
async fn open(server: &Server) -> (String, String, RawStream) {
    let opened = request(server.address, "POST", &[BEARER, JSON], INITIALIZE).await;
    assert_eq!(opened.status, 200);
    let id = opened.connection();
    let mut stream =
        RawStream::open(server.address, &[BEARER, SSE, ("Acp-Connection-Id", &id)]).await;
    let headers = [BEARER, JSON, ("Acp-Connection-Id", &*id)];
    assert_eq!(
        request(server.address, "POST", &headers, NEW_SESSION)
            .await
            .status,
        202
    );
    let session = stream.message().await["result"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    (id, session, stream)
}

fn prompt(id: u32, session: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[tokio::test]
async fn initialize_is_answered_at_once_and_the_rest_on_streams() {
    let server = Server::start().await;
    let to = server.address;
    let opened = request(to, "POST", &[BEARER, JSON], INITIALIZE).await;
    assert_eq!(opened.status, 200);
    assert_eq!(opened.header("content-type"), Some("application/json"));
    let id = opened.connection();
    let body: serde_json::Value = serde_json::from_str(&opened.body).unwrap();
    assert_eq!(
        (&body["id"], &body["result"]["connectionId"]),
        (&0.into(), &(*id).into())
    );
    assert_eq!(
        body["result"]["_meta"]["acp-sdk/remote"],
        serde_json::json!({"connectionId": id})
    );

    let (id, session, _stream) = open(&server).await;
    let both = [
        BEARER,
        JSON,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let headers = [
        BEARER,
        SSE,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    let answered = request(to, "POST", &both, &prompt(2, &session, "ask 1")).await;
    assert_eq!((answered.status, &*answered.body), (202, ""));
    assert_eq!(
        stream.message().await["params"]["update"]["sessionUpdate"],
        "tool_call"
    );
    let question = stream.message().await;
    assert_eq!(question["method"], "session/request_permission");
    // Some clients leave the session out of their answers.
    let answer = serde_json::json!({
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
    });
    let without = [BEARER, JSON, ("Acp-Connection-Id", &*id)];
    assert_eq!(
        request(to, "POST", &without, &answer.to_string())
            .await
            .status,
        202
    );
    assert_eq!(
        stream.message().await["params"]["update"]["content"]["text"],
        "0: Allowed;"
    );
    assert_eq!(
        stream.message().await["params"]["update"]["sessionUpdate"],
        "tool_call_update"
    );
    assert_eq!(stream.message().await["result"]["stopReason"], "end_turn");

    // The end: streams say so, and the connection is unknown.
    assert_eq!(request(to, "DELETE", &without, "").await.status, 202);
    let last = stream.line().await;
    assert_eq!(
        (last.as_deref(), stream.line().await),
        (Some(": close 1000"), None)
    );
    assert_eq!(request(to, "DELETE", &without, "").await.status, 404);
    assert_eq!(
        request(to, "POST", &both, &prompt(3, &session, "hi"))
            .await
            .status,
        404
    );
}

/// The status that is expected, the method, the headers and the body.
type Case<'a> = (u16, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[tokio::test]
async fn what_is_wrong_gets_the_status_of_the_draft() {
    let limits = ServerLimits::new().message(1000_usize);
    let config = ServerConfig::new().token(token()).limits(limits);
    let server = Server::with(config, ServeOptions::new()).await;
    let (id, session, _stream) = open(&server).await;
    let connection = ("Acp-Connection-Id", &*id);
    let in_session = ("Acp-Session-Id", &*session);
    let unknown = ("Acp-Connection-Id", "1234");
    let hello = &*prompt(5, &session, "hi");
    let long = &*prompt(6, &session, &"x".repeat(1000));
    let cases: &[Case<'_>] = &[
        // POST.
        (415, "POST", &[BEARER], INITIALIZE),
        (
            415,
            "POST",
            &[BEARER, ("Content-Type", "text/plain")],
            INITIALIZE,
        ),
        (
            200,
            "POST",
            &[BEARER, ("Content-Type", "application/json; charset=utf-8")],
            INITIALIZE,
        ),
        (501, "POST", &[BEARER, JSON], "[]"),
        (
            501,
            "POST",
            &[BEARER, JSON, connection],
            "[{\"jsonrpc\":\"2.0\"}]",
        ),
        (400, "POST", &[BEARER, JSON], ""),
        (400, "POST", &[BEARER, JSON], "{"),
        (400, "POST", &[BEARER, JSON], "{}"),
        (400, "POST", &[BEARER, JSON], NEW_SESSION),
        (404, "POST", &[BEARER, JSON, unknown], NEW_SESSION),
        (400, "POST", &[BEARER, JSON, connection], hello),
        (
            400,
            "POST",
            &[BEARER, JSON, connection, ("Acp-Session-Id", "other")],
            hello,
        ),
        (413, "POST", &[BEARER, JSON, connection, in_session], long),
        (202, "POST", &[BEARER, JSON, connection, in_session], hello),
        // GET.
        (406, "GET", &[BEARER, connection], ""),
        (
            406,
            "GET",
            &[BEARER, connection, ("Accept", "text/html, */*")],
            "",
        ),
        (400, "GET", &[BEARER, SSE], ""),
        (404, "GET", &[BEARER, SSE, unknown], ""),
        (
            400,
            "GET",
            &[BEARER, SSE, connection, ("Last-Event-ID", "x")],
            "",
        ),
        (
            400,
            "GET",
            &[BEARER, SSE, connection, ("Last-Event-ID", "999999")],
            "",
        ),
        (
            426,
            "GET",
            &[BEARER, ("Connection", "Upgrade"), ("Upgrade", "websocket")],
            "",
        ),
        // DELETE and others.
        (400, "DELETE", &[BEARER], ""),
        (404, "DELETE", &[BEARER, unknown], ""),
        (405, "PUT", &[BEARER, connection], ""),
        (405, "OPTIONS", &[BEARER], ""),
        // Access.
        (401, "POST", &[JSON], INITIALIZE),
        (
            401,
            "POST",
            &[JSON, ("Authorization", "Bearer a-token-for-test")],
            INITIALIZE,
        ),
        (401, "GET", &[SSE, connection], ""),
        (401, "DELETE", &[connection], ""),
        (
            403,
            "POST",
            &[BEARER, JSON, ("Host", "evil.example")],
            INITIALIZE,
        ),
        (
            403,
            "POST",
            &[BEARER, JSON, ("Origin", "https://evil.example")],
            INITIALIZE,
        ),
        (
            403,
            "GET",
            &[BEARER, SSE, connection, ("Origin", "https://evil.example")],
            "",
        ),
    ];
    for (status, method, headers, body) in cases {
        let answered = request(server.address, method, headers, body).await;
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
async fn a_session_can_be_opened_before_it_is_loaded_and_its_history_stays_in_order() {
    let server = Server::start().await;
    let to = server.address;
    let (id, ..) = open(&server).await;
    let headers = [
        BEARER,
        SSE,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", "old"),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    let load = r#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"old","cwd":"/","mcpServers":[]}}"#;
    let headers = [
        BEARER,
        JSON,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", "old"),
    ];
    assert_eq!(request(to, "POST", &headers, load).await.status, 202);
    assert_eq!(
        stream.message().await["params"]["update"]["content"]["text"],
        "history"
    );
    for number in 0..1000 {
        let text = stream.message().await["params"]["update"]["content"]["text"].to_string();
        assert!(text.starts_with(&format!("\"[{number}]")), "{text}");
    }
    assert_eq!(stream.message().await["id"], 7);
}

#[tokio::test]
async fn a_second_stream_takes_over_and_ids_let_a_client_continue() {
    let server = Server::start().await;
    let to = server.address;
    let (id, session, _connection) = open(&server).await;
    let headers = [
        BEARER,
        SSE,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut first = RawStream::open(to, &headers).await;
    let post = [
        BEARER,
        JSON,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let stream = |id| prompt(id, &session, "stream 3 20");
    assert_eq!(request(to, "POST", &post, &stream(2)).await.status, 202);
    let mut ids = Vec::new();
    let mut texts = Vec::new();
    for _ in 0..4 {
        let (message, id) = first.event().await.unwrap();
        texts.push(message.to_string());
        ids.push(id);
    }
    assert!(ids.is_sorted());
    // Another stream for the session: the first one ends, and nothing is sent twice.
    let mut second = RawStream::open(to, &headers).await;
    assert_eq!(first.line().await, None);
    assert_eq!(request(to, "POST", &post, &stream(3)).await.status, 202);
    assert!(second.message().await.to_string().contains("[0]"));
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
        assert_eq!(third.message().await.to_string(), *text);
    }
    assert!(third.message().await.to_string().contains("[0]"));
}
