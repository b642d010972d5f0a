//! Tests of messages that are too long, too deeply nested or too large in memory.

use acp::client::Update;
use acp::{CloseReason, Error, Limits};
use serde_json::json;

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, UpdateClient, idle_agent, limits_with, wait_until_idle,
    with_timeout,
};
use crate::hostile::assert_alive;

/// Replaces `BIG` in a message with more than 2,000 bytes.
fn oversized_message(message: &str) -> String {
    message.replace("BIG", &"x".repeat(5_000))
}

fn short_limits() -> Limits {
    limits_with(|l| l.message = 2_000)
}

#[tokio::test(start_paused = true)]
async fn an_oversized_request_gets_an_error_with_its_id() {
    for pipe in [16, PIPE_CAPACITY] {
        let (_conn, mut peer, s) =
            TestPeer::open_agent_session_with(idle_agent(), short_limits(), pipe).await;
        for (message, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/BIG"}}"#,
                json!(7),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"z","method":"session/new","params":{"cwd":"/BIG"}}"#,
                json!("z"),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"session/new","params":{"id":4,"cwd":"/BIG"},"id":7}"#,
                json!(7),
            ),
            (
                r#"{"params":{"cwd":"/BIG","x":{"id":4}},"id":7,"method":"session/new"}"#,
                json!(7),
            ),
            // A notification, or a message of unknown type.
            (
                r#"{"jsonrpc":"2.0","method":"session/new","params":{"id":4,"cwd":"/BIG","x":{"id":4}}}"#,
                json!(null),
            ),
            (
                r#"[{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/BIG"}}]"#,
                json!(3),
            ),
        ] {
            peer.send_line(oversized_message(message)).await;
            let (code, text) = peer.expect_error(id).await;
            assert_eq!(code, -32600, "{message}");
            assert!(text.contains("limit: 2000 bytes"), "{text}");
        }
        peer.send_prompt(5, &s, "still there?").await;
        peer.expect_result(5).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_oversized_response_fails_its_request() {
    for pipe in [16, PIPE_CAPACITY] {
        let (conn, mut peer) =
            TestPeer::connect_to_client_with(NoopClient, short_limits(), pipe, json!({})).await;
        for answer in [
            r#"{"jsonrpc":"2.0","id":ID,"result":{"sessionId":"BIG"}}"#,
            r#"{"jsonrpc":"2.0","result":{"sessionId":"BIG"},"id":ID}"#,
            r#"{"jsonrpc":"2.0","result":{"sessionId":"BIG","x":{"id":99}},"id":ID}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"method":"session/new","sessionId":"BIG"}}"#,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"BIG"}}"#,
            r#"{"id":ID,"jsonrpc":"2.0","result":"BIG"}  "#,
        ] {
            let opening = tokio::spawn({
                let conn = conn.clone();
                async move { conn.new_session("/work").await }
            });
            let (id, _) = peer.expect_request("session/new").await;
            peer.send_line(oversized_message(answer).replace("ID", &id.to_string()))
                .await;
            let error = with_timeout("the request fails", opening)
                .await
                .unwrap()
                .unwrap_err();
            assert!(
                matches!(error, Error::InvalidResponse { .. }),
                "{answer}: {error}"
            );
            assert!(error.to_string().contains("limit: 2000 bytes"), "{error}");
        }
        // An oversized request of the agent does not fail a request of this side.
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session("/work").await }
        });
        let (id, _) = peer.expect_request("session/new").await;
        peer.send_line(
            oversized_message(r#"{"id":ID,"params":"BIG","method":"x"}"#)
                .replace("ID", &id.to_string()),
        )
        .await;
        assert_eq!(peer.expect_error(id.clone()).await.0, -32600);
        peer.answer(&id, json!({"sessionId": "s"})).await;
        let session = with_timeout("the session opens", opening)
            .await
            .unwrap()
            .unwrap();
        peer.send_line(oversized_message(
            r#"{"method":"session/update","params":"BIG"}"#,
        ))
        .await;
        assert_eq!(peer.expect_error(json!(null)).await.0, -32600);
        assert_alive(&session, &mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_oversized_response_read_ahead_fails_its_request() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let client = UpdateClient({
        let gate = std::sync::Arc::clone(&gate);
        move |_, _: Update| {
            let gate = std::sync::Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        }
    });
    let (session, mut peer) =
        TestPeer::open_client_session_with(client, short_limits(), json!({})).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    peer.send_text("s", "a").await;
    peer.send_line(oversized_message(r#"{"id":ID,"result":"BIG"}"#).replace("ID", &id.to_string()))
        .await;
    wait_until_idle().await;
    // The response that ends a turn is handled after the updates, even if it is invalid.
    assert!(!turn.is_finished());
    gate.add_permits(2);
    let error = with_timeout("the turn fails", turn)
        .await
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("message too large"), "{error}");
    assert_alive(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn a_last_line_without_a_line_ending_is_handled() {
    let (_conn, mut peer) = TestPeer::connect_to_agent_with(
        idle_agent(),
        limits_with(|l| l.linger = std::time::Duration::from_secs(2)),
        PIPE_CAPACITY,
    );
    let params = json!({"protocolVersion": 1});
    peer.send_bytes(json!({"id": 1, "method": "initialize", "params": params}).to_string())
        .await;
    peer.stop_writing();
    assert_eq!(peer.expect_result(1).await["protocolVersion"], 1);
    peer.expect_end().await;

    let (conn, mut peer) = TestPeer::connect_to_client(NoopClient).await;
    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session("/work").await }
    });
    let (id, _) = peer.expect_request("session/new").await;
    peer.send_bytes(json!({"id": id, "result": {"sessionId": "s"}}).to_string())
        .await;
    peer.stop_writing();
    let session = with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(session.id().as_str(), "s");
    assert!(matches!(
        with_timeout("it ends", conn.closed()).await,
        CloseReason::Peer
    ));

    // Half an oversized line and half a message are ignored.
    for half in [
        "{\"id\":1,\"method\":\"initia".to_owned(),
        "x".repeat(5_000),
    ] {
        let (conn, mut peer) =
            TestPeer::connect_to_agent_with(idle_agent(), short_limits(), PIPE_CAPACITY);
        peer.send_bytes(half).await;
        peer.stop_writing();
        assert!(matches!(
            with_timeout("it ends", conn.closed()).await,
            CloseReason::Peer
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_and_huge_numbers_do_not_end_the_connection() {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let objects = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    for nest in [
        deep(200),
        deep(100_000),
        objects(200),
        objects(100_000),
        "1e9999".to_owned(),
        "9".repeat(10_000),
    ] {
        for message in [
            format!(r#"{{"id":1,"method":"_x","params":{nest}}}"#),
            format!(r#"{{"id":1,"method":"_x","params":{{"a":{nest}}},"more":{nest}}}"#),
            format!(
                r#"{{"id":1,"method":"session/new","params":{{"cwd":{nest},"mcpServers":[]}}}}"#
            ),
            format!(r#"{{"id":1,"method":"session/new","params":{nest}}}"#),
        ] {
            peer.send_line(&message).await;
            let code = peer.expect_error(1).await.0;
            assert!(
                code == -32601 || code == -32602,
                "{code} for {}",
                &message[..80]
            );
        }
        peer.send_line(format!(r#"{{"id":{nest},"method":"_x"}}"#))
            .await;
        assert_eq!(peer.expect_error(json!(null)).await.0, -32600);
        // In unread fields, they are ignored.
        let prompt = r#"[{"type":"text","text":"hi"}]"#;
        peer.send_line(format!(r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"{s}","prompt":{prompt},"x":{nest},"_meta":{{"x":{nest}}}}}}}"#)).await;
        peer.expect_result(1).await;
    }
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    for nest in [deep(100_000), objects(100_000)] {
        let update = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","rawInput":{nest}}}"#
        );
        peer.send_line(format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        ))
        .await;
        peer.send_line(format!(r#"{{"id":99,"result":{nest}}}"#))
            .await;
        peer.send_line(format!(r#"{{"id":99,"error":{nest}}}"#))
            .await;
    }
    assert_alive(&session, &mut peer).await;
}
