//! Tests of valid and invalid responses.

use acp::Error;
use acp::v1::StopReason;
use serde_json::json;

use crate::common::{NoopClient, PIPE_CAPACITY, TestPeer, limits_with, with_timeout};
use crate::hostile::assert_alive;

#[tokio::test(start_paused = true)]
async fn null_counts_as_an_empty_result() {
    let capabilities = json!({
        "loadSession": true,
        "auth": {"logout": {}},
        "sessionCapabilities": {"close": {}, "delete": {}, "resume": {}},
    });
    let (conn, mut peer) = TestPeer::connect_to_client_with(
        NoopClient,
        limits_with(|_| ()),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    let modes = json!({"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]});
    let session = peer
        .open_session(&conn, json!({"sessionId": "s", "modes": modes}))
        .await;
    macro_rules! answered_with_null {
        ($method:literal, $call:expr) => {{
            let working = tokio::spawn(async move { $call.await.map(drop) });
            let (id, _) = peer.expect_request($method).await;
            peer.answer(&id, json!(null)).await;
            with_timeout($method, working).await.unwrap().unwrap();
        }};
    }
    let (s, c) = (session.clone(), conn.clone());
    answered_with_null!("session/set_mode", s.set_mode("b"));
    answered_with_null!("session/load", c.load_session("old", "/work"));
    let c = conn.clone();
    answered_with_null!("session/resume", c.resume_session("older", "/work"));
    let c = conn.clone();
    answered_with_null!("authenticate", c.authenticate("x"));
    let c = conn.clone();
    answered_with_null!("logout", c.logout());
    let c = conn.clone();
    answered_with_null!("session/delete", c.delete_session(&"old".into()));
    let s = session.clone();
    answered_with_null!("session/close", s.close());
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_response_fails_only_its_request() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    for result in [
        json!(null),
        json!({}),
        json!([1]),
        json!(["end_turn"]),
        json!("end_turn"),
        json!({"stopReason": 5}),
    ] {
        let (id, turn) = peer.start_prompt(&session, "hi").await;
        peer.answer(&id, result.clone()).await;
        let error = with_timeout("the turn fails", turn)
            .await
            .unwrap()
            .unwrap_err();
        assert!(
            matches!(&error, Error::InvalidResponse { method, .. } if method == "session/prompt"),
            "{result}: {error}"
        );
        assert!(!session.thread().read(acp::Thread::is_running));
    }
    // Errors of every form count as errors, and so does an unknown stop reason.
    for (error, code, expected) in [
        (json!({"code": 5, "message": "no"}), 5, "no"),
        (json!({"message": "no"}), -32603, "no"),
        (
            json!({"code": "x", "message": 3}),
            -32603,
            "error without a message",
        ),
        (json!("no"), -32603, "\"no\""),
    ] {
        let (id, turn) = peer.start_prompt(&session, "hi").await;
        peer.send(json!({"id": id, "error": error})).await;
        let error = with_timeout("the turn fails", turn)
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(error.peer_error().map(|error| error.code), Some(code));
        assert_eq!(error.to_string(), expected);
    }
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    peer.answer(&id, json!({"stopReason": "tired"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Unknown("tired".to_owned())
    );
    assert_alive(&session, &mut peer).await;
}
