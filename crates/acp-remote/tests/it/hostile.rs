//! Tests of how the server responds to malicious clients.

use std::time::Duration;

use acp_remote::client::{ConnectOptions, connect};
use acp_remote::server::{ServeOptions, ServerConfig, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::common::raw::{
    BEARER_HEADER, INITIALIZE_REQUEST, JSON_HEADER, NEW_SESSION_REQUEST, RawStream, SSE_HEADER,
    read_head, send_request,
};
use crate::common::server::test_token;
use crate::common::{TestClient, TestServer, connect_and_open, with_timeout};

/// Opens a WebSocket, and returns the socket after the handshake.
async fn upgrade_to_websocket(server: &TestServer, more: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token-for-tests\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reader = BufReader::new(stream);
    let (status, headers) = with_timeout(read_head(&mut reader)).await;
    if status == 101 {
        let accept = (
            "sec-websocket-accept".to_owned(),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned(),
        );
        assert!(headers.contains(&accept), "{headers:?}");
        assert!(headers.iter().any(|(name, _)| name == "acp-connection-id"));
        // Compression is never negotiated, so compressed bombs are violations.
        assert!(
            headers
                .iter()
                .all(|(name, _)| name != "sec-websocket-extensions")
        );
    }
    (status, reader)
}

/// Reads frames up to the server's close frame, and returns the code in it.
async fn read_close_code(reader: &mut BufReader<TcpStream>) -> u16 {
    with_timeout(async {
        loop {
            let first = reader.read_u8().await.unwrap();
            let mut length = u64::from(reader.read_u8().await.unwrap());
            if length == 126 {
                length = u64::from(reader.read_u16().await.unwrap());
            }
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            reader.read_exact(&mut payload).await.unwrap();
            if first == 0x88 {
                return u16::from_be_bytes([payload[0], payload[1]]);
            }
        }
    })
    .await
}

#[tokio::test]
async fn invalid_frames_get_a_close_frame() {
    let server = TestServer::start().await;
    let masked = |first: u8, length: u8| vec![first, 0x80 | length, 0, 0, 0, 0];
    let gibibyte = [&[0x81, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat();
    let binary = [&[0x82, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat();
    for (name, bytes, code) in [
        ("a message of a gibibyte", gibibyte, 1009),
        ("a binary message of a gibibyte", binary, 1009),
        ("no mask", vec![0x81, 1, b'x'], 1002),
        ("compressed", masked(0xc1, 1), 1002),
        ("an unknown type", masked(0x83, 0), 1002),
        ("a piece of nothing", masked(0x80, 0), 1002),
        ("a ping in pieces", masked(0x09, 0), 1002),
    ] {
        let (status, mut reader) = upgrade_to_websocket(&server, "").await;
        assert_eq!(status, 101);
        reader.get_mut().write_all(&bytes).await.unwrap();
        assert_eq!(read_close_code(&mut reader).await, code, "{name}");
    }
    // A message in endless pieces is refused when it exceeds the limit.
    let limits = ServerLimits::new().message(100_000_usize);
    let config = ServerConfig::new().token(test_token()).limits(limits);
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let (_, mut reader) = upgrade_to_websocket(&server, "").await;
    let mut piece = vec![0x01, 0x80 | 126, 0x27, 0x10, 0, 0, 0, 0];
    piece.extend([b'x'; 10_000]);
    for _ in 0..11 {
        reader.get_mut().write_all(&piece).await.unwrap();
        piece[0] = 0x00;
    }
    assert_eq!(read_close_code(&mut reader).await, 1009);
    // A violation ends its own connection only.
    let options = ConnectOptions::new().token(test_token());
    let (_, session) = connect_and_open(&server.url("ws"), options, TestClient::default()).await;
    with_timeout(session.prompt("hi")).await.unwrap();
}

#[tokio::test]
async fn upgrades_are_subject_to_access_checks() {
    let server = TestServer::start().await;
    assert_eq!(
        upgrade_to_websocket(&server, "Origin: https://evil.example\r\n")
            .await
            .0,
        403
    );
    assert_eq!(
        upgrade_to_websocket(&server, "Origin: http://localhost:3000\r\n")
            .await
            .0,
        101
    );
    let resume = |id: &str| format!("Acp-Connection-Id: {id}\r\nAcp-Last-Event-Id: 0\r\n");
    assert_eq!(upgrade_to_websocket(&server, &resume("x")).await.0, 404);
    let other = send_request(
        server.address,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    assert_eq!(
        upgrade_to_websocket(&server, &resume(&other.connection_id()))
            .await
            .0,
        404
    );
    let unauthorized = connect(&server.url("ws"), ConnectOptions::new()).await;
    assert!(unauthorized.is_err());
}

#[tokio::test]
async fn slow_and_oversized_requests_are_ended() {
    let limits = ServerLimits::new()
        .body_time(Duration::from_millis(300))
        .connections(1_usize);
    let config = ServerConfig::new().token(test_token()).limits(limits);
    let options = ServeOptions::new().header_time(Duration::from_millis(300));
    let server = TestServer::start_with(config, options).await;
    // Headers that never end: the socket is closed.
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /acp HTTP/1.1\r\nHost: localhost\r\n")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let _ = with_timeout(slow.read_to_end(&mut rest)).await;
    assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
    // A body that never ends: 408.
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token-for-tests\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut reader = BufReader::new(slow);
    assert_eq!(with_timeout(read_head(&mut reader)).await.0, 408);
    // Headers of 100 KB: 431.
    let long = "x".repeat(100_000);
    let refused = send_request(
        server.address,
        "GET",
        &[BEARER_HEADER, SSE_HEADER, ("X-Long", &long)],
        "",
    )
    .await;
    assert_eq!(refused.status, 431);
    // A body that claims to be a gigabyte: 413 before it arrives.
    let mut huge = TcpStream::connect(server.address).await.unwrap();
    huge.write_all(head.replace("Length: 100", "Length: 1000000000").as_bytes())
        .await
        .unwrap();
    let mut reader = BufReader::new(huge);
    assert_eq!(with_timeout(read_head(&mut reader)).await.0, 413);
    // More connections than allowed: 503.
    let first = send_request(
        server.address,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    let second = send_request(
        server.address,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    assert_eq!((first.status, second.status), (200, 503));
    assert_eq!(upgrade_to_websocket(&server, "").await.0, 503);
}

#[tokio::test]
async fn sessions_requests_and_rates_are_limited() {
    let limits = ServerLimits::new()
        .sessions(2_usize)
        .requests(2_usize)
        .request_rate(4_u32);
    let config = ServerConfig::new().token(test_token()).limits(limits);
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let to = server.address;
    let id = send_request(
        to,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await
    .connection_id();
    let connection = ("Acp-Connection-Id", &*id);
    let mut stream = RawStream::open(to, &[BEARER_HEADER, SSE_HEADER, connection]).await;
    send_request(
        to,
        "POST",
        &[BEARER_HEADER, JSON_HEADER, connection],
        NEW_SESSION_REQUEST,
    )
    .await;
    let session = stream.read_message().await["result"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    // Streams of more sessions than allowed.
    let mut streams = Vec::new();
    for name in ["a", "b"] {
        streams.push(
            RawStream::open(
                to,
                &[
                    BEARER_HEADER,
                    SSE_HEADER,
                    connection,
                    ("Acp-Session-Id", name),
                ],
            )
            .await,
        );
    }
    let headers = [
        BEARER_HEADER,
        SSE_HEADER,
        connection,
        ("Acp-Session-Id", "c"),
    ];
    assert_eq!(send_request(to, "GET", &headers, "").await.status, 429);
    // More requests in flight than allowed.
    let prompt = |id: u32| {
        serde_json::json!({
            "jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]},
        })
        .to_string()
    };
    let headers = [
        BEARER_HEADER,
        JSON_HEADER,
        connection,
        ("Acp-Session-Id", &*session),
    ];
    let mut statuses = Vec::new();
    for id in [10, 11, 11, 12] {
        statuses.push(send_request(to, "POST", &headers, &prompt(id)).await.status);
    }
    assert_eq!(statuses, [202, 202, 429, 429]);
    // More requests per second than allowed, after those that may come at once.
    let notification = r#"{"jsonrpc":"2.0","method":"_x","params":{}}"#;
    let mut limited = 0;
    for _ in 0..60 {
        let sent = send_request(
            to,
            "POST",
            &[BEARER_HEADER, JSON_HEADER, connection],
            notification,
        )
        .await;
        limited += usize::from(sent.status == 429);
    }
    assert!(limited > 5, "{limited}");
    assert!(server.endpoint.stats().limited > 5);
}

#[tokio::test]
async fn connection_ends_when_its_client_is_gone() {
    let config = ServerConfig::new()
        .token(test_token())
        .grace(Duration::from_secs(1));
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    // Over HTTP, the client has no stream. With a WebSocket, it says that it will come back, and does not.
    send_request(
        server.address,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    drop(upgrade_to_websocket(&server, "Acp-Resume: 1\r\n").await);
    assert_eq!(server.endpoint.stats().open_connections, 2);
    with_timeout(async {
        while server.endpoint.stats().open_connections > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(server.endpoint.stats().abandoned, 2);
}

#[tokio::test]
async fn websocket_client_without_pongs_is_disconnected() {
    let config = ServerConfig::new()
        .token(test_token())
        .heartbeat(Duration::from_millis(100))
        .dead_after(Duration::from_millis(400));
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let (_, mut reader) = upgrade_to_websocket(&server, "").await;
    // Pings arrive, and then the socket is closed.
    let mut frames = Vec::new();
    let _ = with_timeout(reader.read_to_end(&mut frames)).await;
    assert!(
        frames.starts_with(&[0x89, 3, b'a', b'c', b'p', 0x89]),
        "{frames:?}"
    );
    assert_eq!(server.endpoint.stats().open_connections, 0);
}

#[tokio::test]
async fn many_idle_connections_do_not_slow_a_busy_one() {
    let limits = ServerLimits::new().connections(1000_usize);
    let config = ServerConfig::new().token(test_token()).limits(limits);
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        let (status, reader) = upgrade_to_websocket(&server, "").await;
        assert_eq!(status, 101);
        idle.push(reader);
    }
    let options = ConnectOptions::new().token(test_token());
    let (_, session) = connect_and_open(&server.url("ws"), options, TestClient::default()).await;
    with_timeout(session.prompt("stream 2000 100"))
        .await
        .unwrap();
    assert_eq!(server.endpoint.stats().open_connections, 301);
}
