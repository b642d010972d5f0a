//! Tests of peers with unusual ways of reading or writing.

use std::time::Duration;

use acp::v1::StopReason;
use acp::{CloseReason, Result};
use serde_json::json;

use crate::common::{
    NoopClient, PIPE_CAPACITY, PromptAgent, TestPeer, idle_agent, limits_with, wait_until_idle,
    with_timeout,
};
use crate::hostile::assert_alive;

/// Returns the number of running tasks, other than the test itself.
fn task_count() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_is_skipped_and_the_next_one_read() {
    let short = || limits_with(|l| l.message = 10_000);
    let endless = vec![b'x'; 64 * 1024];
    let (_conn, mut peer, s) =
        TestPeer::open_agent_session_with(idle_agent(), short(), PIPE_CAPACITY).await;
    for _ in 0..200 {
        peer.send_bytes(&endless).await;
    }
    peer.expect_silence().await;
    peer.send_line("").await;
    let (code, text) = peer.expect_error(json!(null)).await;
    assert_eq!(code, -32600);
    assert!(text.contains("13107200 bytes"), "{text}");
    peer.send_prompt(1, &s, "still there?").await;
    peer.expect_result(1).await;

    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, short(), PIPE_CAPACITY, json!({})).await;
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    for _ in 0..200 {
        peer.send_bytes(&endless).await;
    }
    peer.send_line("").await;
    assert_alive(&session, &mut peer).await;
    assert_eq!(conn.connection().noise().lines, 1);
    // A line that ends only with the pipe.
    peer.send_bytes(&endless).await;
    peer.stop_writing();
    let reason = with_timeout("it ends", conn.closed()).await;
    assert!(matches!(reason, CloseReason::Peer), "{reason}");
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_writes_one_byte_a_second_is_understood() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    let prompt = format!("{}\n", crate::common::prompt_request(1, &s, "hi"));
    for byte in prompt.as_bytes() {
        peer.send_bytes([*byte]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    peer.expect_result(1).await;

    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let (id, turn) = peer.start_prompt(&session, "hi").await;
    for message in [
        crate::common::message_notification("s", "slowly"),
        json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}}),
    ] {
        for byte in format!("{message}\n").as_bytes() {
            peer.send_bytes([*byte]).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    let end = with_timeout("the turn ends", turn).await.unwrap().unwrap();
    assert_eq!(end, StopReason::EndTurn);
    let shown = crate::common::thread_lines(session.thread());
    assert_eq!(shown, ["user: hi", "agent: slowly"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_reads_one_byte_a_second_gets_every_request() {
    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, limits_with(|l| l.outbox = 100), 1, json!({}))
            .await;
    let asking: Vec<_> = (0..5)
        .map(|n| {
            let conn = conn.connection().clone();
            tokio::spawn(async move { conn.request_raw("_x", &n).await })
        })
        .collect();
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < 5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        text.push(peer.read_byte().await);
    }
    for line in std::str::from_utf8(&text).unwrap().lines() {
        let request: serde_json::Value = serde_json::from_str(line).unwrap();
        peer.answer(&request["id"], request["params"].clone()).await;
    }
    for (n, asking) in asking.into_iter().enumerate() {
        let answer = with_timeout("it is answered", asking)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer.get(), n.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_is_read_to_its_end() {
    let lines: &[&str] = &[
        r#"{"method":"session/cancel","params":{"sessionId":"none"}}"#,
        r#"{"method":"session/update","params":{"sessionId":"none","update":{}}}"#,
        r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
        r#"{"method":"_x"}"#,
        r#"{"method":"unheard of"}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"id":"1","error":{"code":1,"message":""}}"#,
    ];
    let flood: String = lines
        .iter()
        .map(|line| format!("{line}\n").repeat(3_000))
        .collect();
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    peer.send_bytes(&flood).await;
    peer.send_prompt(1, &s, "still there?").await;
    peer.expect_result(1).await;

    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    peer.send_bytes(&flood).await;
    assert_alive(&session, &mut peer).await;
    let noise = session.agent().connection().noise();
    assert_eq!((noise.lines, noise.unmatched_responses), (0, 6_000));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_requests_with_unread_responses_leaks_nothing() {
    let agent = PromptAgent(async |turn: acp::agent::Turn, _| -> Result<StopReason> {
        loop {
            turn.send_message("on and on").await?;
        }
    });
    let small = limits_with(|l| l.outbox = 1_000);
    let (conn, mut peer, s) = TestPeer::open_agent_session_with(agent, small, 1024).await;
    peer.send_prompt("p", &s, "talk").await;
    let flood = r#"{"id":1,"method":"session/list"}"#.to_owned() + "\n";
    let taken = peer
        .send_until_blocked(flood.repeat(20_000).as_bytes())
        .await;
    assert!(taken < 400_000, "{taken}");
    // The peer has closed without reading anything.
    drop(peer);
    with_timeout("it ends", conn.closed()).await;
    wait_until_idle().await;
    assert_eq!(task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_one_direction_ends_the_connection_cleanly() {
    // An agent whose client closes its side still responds where it can, and does not wait for the rest.
    let agent = PromptAgent(async |turn: acp::agent::Turn, _| {
        let call = acp::v1::ToolCallUpdate::new("c");
        let asked = turn.request_permission(call, Vec::new()).await;
        // Nobody can respond any longer.
        assert!(asked.is_err());
        Ok(StopReason::EndTurn)
    });
    let lingering = limits_with(|l| l.linger = Duration::from_secs(2));
    let (conn, mut peer, s) =
        TestPeer::open_agent_session_with(agent, lingering, PIPE_CAPACITY).await;
    peer.send_prompt(1, &s, "ask").await;
    peer.expect_request("session/request_permission").await;
    peer.stop_writing();
    assert_eq!(peer.expect_result(1).await["stopReason"], "end_turn");
    peer.expect_end().await;
    with_timeout("it ends", conn.closed()).await;
    wait_until_idle().await;
    assert_eq!(task_count(), 0);

    // A client whose agent has stopped reading closes when it sends something, and handles what the agent sent before.
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    peer.send_text("s", "before").await;
    peer.stop_reading();
    wait_until_idle().await;
    assert!(session.prompt("hi").await.unwrap_err().is_closed());
    let agent = session.agent().clone();
    with_timeout("it ends", agent.closed()).await;
    drop((session, agent));
    wait_until_idle().await;
    assert_eq!(task_count(), 0);
}
