//! Tests of valid and invalid ways to start a connection.

use acp::Error;
use serde_json::json;

use crate::common::{NoopClient, PIPE_CAPACITY, TestPeer, connect_pipes, idle_agent, with_timeout};

#[tokio::test(start_paused = true)]
async fn a_connection_starts_with_initialize() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
    for (method, params) in [
        ("session/new", json!({"cwd": "/", "mcpServers": []})),
        ("session/prompt", json!({"sessionId": "s", "prompt": []})),
        (
            "session/load",
            json!({"sessionId": "s", "cwd": "/", "mcpServers": []}),
        ),
        ("authenticate", json!({"methodId": "x"})),
    ] {
        peer.send_request(1, method, params).await;
        let (code, text) = peer.expect_error(1).await;
        assert_eq!(code, -32600, "{method}");
        assert!(text.contains("initialize"), "{text}");
    }
    peer.initialize(json!({})).await;
    peer.new_session().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_responds_to_any_version_with_its_own() {
    for version in [
        json!(0),
        json!(1),
        json!(2),
        json!(99),
        json!(65536),
        json!(-1),
        json!("2024-01-01"),
        json!(1.5),
        json!(null),
        json!([]),
    ] {
        let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
        peer.send_request(0, "initialize", json!({"protocolVersion": version}))
            .await;
        assert_eq!(
            peer.expect_result(0).await["protocolVersion"],
            1,
            "{version}"
        );
        peer.new_session().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_rejects_an_unsupported_version_and_closes() {
    for (version, theirs) in [
        (json!(2), 2),
        (json!(0), 0),
        (json!(99), 99),
        (json!("2024-01-01"), 0),
    ] {
        let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
        let connecting = tokio::spawn(acp::testing::start_client(
            transport,
            NoopClient,
            acp::Options::new(),
        ));
        let (id, _) = peer.expect_request("initialize").await;
        peer.answer(&id, json!({"protocolVersion": version})).await;
        let error = with_timeout("the client refuses", connecting)
            .await
            .unwrap()
            .unwrap_err();
        assert!(
            matches!(error, Error::Version { theirs: t, ours: 1 } if t == theirs),
            "{version}: {error}"
        );
        peer.expect_end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_closes_after_a_failed_handshake() {
    for answer in [
        json!({"error": {"code": -32603, "message": "out of order"}}),
        json!({"result": null, "error": {"code": "odd"}}),
        json!({"result": []}),
    ] {
        let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
        let connecting = tokio::spawn(acp::testing::start_client(
            transport,
            NoopClient,
            acp::Options::new(),
        ));
        let (id, _) = peer.expect_request("initialize").await;
        let mut message = answer.clone();
        message["id"] = id;
        peer.send(message).await;
        with_timeout("the client gives up", connecting)
            .await
            .unwrap()
            .unwrap_err();
        peer.expect_end().await;
    }
}
