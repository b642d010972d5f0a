//! Tests of single lines of every kind, valid and invalid.

use acp::v1::StopReason;
use serde_json::{Value, json};

use crate::common::{
    NoopClient, PIPE_CAPACITY, PromptAgent, TestPeer, connect_pipes, idle_agent, with_timeout,
};
use crate::hostile::assert_alive;

/// The expected reply to a line.
#[derive(Clone, Copy)]
enum ExpectedReply {
    Nothing,
    /// An error response with this code, to the request with this id.
    Error(i64, &'static str),
}
use ExpectedReply::Nothing;

const fn error_reply(code: i64, id: &'static str) -> ExpectedReply {
    ExpectedReply::Error(code, id)
}

/// Lines to which both sides reply in the same way.
const LINES_FOR_BOTH_SIDES: &[(&[u8], ExpectedReply)] = &[
    // Invalid JSON.
    (br#"{"jsonrpc":"2.0","id":1,"#, error_reply(-32700, "null")),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"x"}}"#,
        error_reply(-32700, "null"),
    ),
    (
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        error_reply(-32700, "null"),
    ),
    (
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":\"\xc3\"}",
        error_reply(-32700, "null"),
    ),
    // JSON that is not a message.
    (b"42", error_reply(-32600, "null")),
    (b"\"text\"", error_reply(-32600, "null")),
    (b"null", error_reply(-32600, "null")),
    (b"true", error_reply(-32600, "null")),
    (b"[]", error_reply(-32600, "null")),
    (
        br#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
        error_reply(-32600, "null"),
    ),
    (b"{}", error_reply(-32600, "null")),
    (br#"{"jsonrpc":"2.0","id":8}"#, error_reply(-32600, "8")),
    (
        br#"{"jsonrpc":"2.0","id":8,"method":5}"#,
        error_reply(-32600, "8"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1e999,"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"x"}"#,
        error_reply(-32600, "null"),
    ),
    // Empty lines.
    (b"", Nothing),
    (b"\r", Nothing),
    (b" \t \r", Nothing),
    // Ids are repeated unchanged.
    (
        br#"{"jsonrpc":"2.0","id":0,"method":"x"}"#,
        error_reply(-32601, "0"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":-7,"method":"x"}"#,
        error_reply(-32601, "-7"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"x"}"#,
        error_reply(-32601, "9223372036854775807"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"","method":"x"}"#,
        error_reply(-32601, r#""""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"7","method":"x"}"#,
        error_reply(-32601, r#""7""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"\u00e9 \"quoted\"\n","method":"x"}"#,
        error_reply(-32601, r#""\u00e9 \"quoted\"\n""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        error_reply(-32601, "null"),
    ),
    // Spaces, another line ending, other orders, no version, and additional members.
    (
        b"  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}  \r",
        error_reply(-32601, "1"),
    ),
    (
        br#"{"params":{},"id":1,"method":"x","extra":[{}]}"#,
        error_reply(-32601, "1"),
    ),
    // Unknown methods.
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"_private/thing","params":[1]}"#,
        error_reply(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"session/unheard_of"}"#,
        error_reply(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"$/unheard_of"}"#,
        error_reply(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        error_reply(-32601, "1"),
    ),
    (br#"{"jsonrpc":"2.0","method":"_private/thing"}"#, Nothing),
    (
        br#"{"jsonrpc":"2.0","method":"session/unheard_of","params":{}}"#,
        Nothing,
    ),
    (
        br#"{"jsonrpc":"2.0","method":"$/unheard_of","params":null}"#,
        Nothing,
    ),
    // Responses that match no request, in every form.
    (br#"{"jsonrpc":"2.0","id":77,"result":{}}"#, Nothing),
    (br#"{"jsonrpc":"2.0","id":"a","result":null}"#, Nothing),
    (
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        Nothing,
    ),
    (br#"{"jsonrpc":"2.0","id":78,"error":"just text"}"#, Nothing),
    (br#"{"jsonrpc":"2.0","result":1}"#, Nothing),
    // Cancellations of unknown requests, or without an id.
    (
        br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}"#,
        Nothing,
    ),
    (
        br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}"#,
        Nothing,
    ),
    (br#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#, Nothing),
];

async fn assert_replies(peer: &mut TestPeer, lines: &[(&[u8], ExpectedReply)]) {
    for (line, due) in lines {
        let shown = String::from_utf8_lossy(line);
        peer.send_line(line).await;
        if let ExpectedReply::Error(code, id) = due {
            let answer = peer.next().await;
            let id: Value = serde_json::from_str(id).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(code)),
                "{shown}: {answer}"
            );
            assert!(answer.get("id").is_some(), "{shown}: {answer}");
        }
        peer.expect_silence().await;
    }
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_responds_to_each_invalid_line() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    assert_replies(&mut peer, LINES_FOR_BOTH_SIDES).await;
    assert_replies(
        &mut peer,
        &[
            (b"what is this", error_reply(-32700, "null")),
            (b"\xff\xff\xff", error_reply(-32700, "null")),
            (br#"{"id":1,"method":"session/new"}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/new","params":{"cwd":5,"mcpServers":[]}}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":[]}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/new","params":["/",[],[]]}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/new","params":["/",[]]}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":"s"}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":{"sessionId":"none","prompt":[]}}"#, error_reply(-32002, "1")),
            (br#"{"id":1,"method":"session/set_mode","params":{"sessionId":"none","modeId":"x"}}"#, error_reply(-32002, "1")),
            (br#"{"method":"session/cancel","params":{"sessionId":"none"}}"#, Nothing),
            (br#"{"method":"session/cancel","params":7}"#, Nothing),
            (br#"{"method":"session/cancel","params":["s"]}"#, Nothing),
            // Methods of the other direction, and methods that this agent does not support.
            (br#"{"id":1,"method":"session/request_permission","params":{}}"#, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"session/list","params":{}}"#, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"authenticate","params":{"methodId":"x"}}"#, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"logout","params":{}}"#, error_reply(-32601, "1")),
            // The method of a notification with an id, and the method of a request without one.
            (br#"{"id":1,"method":"session/cancel","params":{"sessionId":"s"}}"#, error_reply(-32601, "1")),
            (br#"{"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#, Nothing),
        ],
    )
    .await;
    peer.send_prompt(5, &s, "still there?").await;
    assert_eq!(
        peer.expect_result(5).await,
        json!({"stopReason": "end_turn"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_responds_to_each_invalid_line() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    assert_replies(&mut peer, LINES_FOR_BOTH_SIDES).await;
    let read = br#"{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}"#;
    assert_replies(
        &mut peer,
        &[
            (br#"{"id":1,"method":"session/request_permission"}"#, error_reply(-32602, "1")),
            (br#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#, error_reply(-32602, "1")),
            (read, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}"#, error_reply(-32601, "1")),
            (br#"{"id":1,"method":"session/prompt","params":{}}"#, error_reply(-32601, "1")),
            (br#"{"method":"session/update","params":{}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s"}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s","update":null}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call"}}}"#, Nothing),
        ],
    )
    .await;
    assert_alive(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn noise_on_agent_stdout_is_skipped_and_counted() {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    // Also before the first response.
    peer.send_line("Welcome to the agent!").await;
    let connecting = tokio::spawn(acp::testing::start_client(
        transport,
        NoopClient,
        acp::Options::new(),
    ));
    let (id, _) = peer.expect_request("initialize").await;
    peer.send_line("[2026-01-01T00:00:00Z INFO] starting").await;
    peer.answer(&id, json!({"protocolVersion": 1})).await;
    let conn = with_timeout("the client connects", connecting)
        .await
        .unwrap()
        .unwrap();
    for noise in [
        &b"\x1b[32m> npm start\x1b[0m"[..],
        b"(node:1) Warning: \xe4\xf6",
        b"[debug] {}",
        b"-",
        b"",
    ] {
        peer.send_line(noise).await;
    }
    // A lot of noise: without a line ending for long, and then between messages.
    peer.send_line("x".repeat(3 * PIPE_CAPACITY)).await;
    let session = peer.open_session(&conn, json!({"sessionId": "s"})).await;
    assert_alive(&session, &mut peer).await;
    peer.expect_silence().await;
    assert_eq!(conn.connection().noise().lines, 7);
    assert_eq!(conn.connection().noise().unmatched_responses, 0);
}

#[tokio::test(start_paused = true)]
async fn unmatched_responses_and_unread_notifications_are_counted() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    for id in [json!(77), json!("a"), json!(null)] {
        peer.answer(&id, json!({})).await;
    }
    peer.notify("session/unheard_of", json!({})).await;
    peer.notify("session/update", json!({"sessionId": 3})).await;
    peer.check_alive().await;
    let noise = session.agent().connection().noise();
    assert_eq!(
        (
            noise.lines,
            noise.unmatched_responses,
            noise.unread_notifications
        ),
        (0, 3, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_id_is_rejected_until_the_response() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let agent = PromptAgent({
        let gate = std::sync::Arc::clone(&gate);
        move |_, _| {
            let gate = std::sync::Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(StopReason::EndTurn)
            }
        }
    });
    let (_conn, mut peer, s) = TestPeer::open_agent_session(agent).await;
    peer.send_prompt(1, &s, "first").await;
    peer.send_prompt(1, &s, "second").await;
    let (code, text) = peer.expect_error(1).await;
    assert_eq!(code, -32600);
    assert!(text.contains("this id is already in flight"), "{text}");
    // `"1"` is another id than `1`.
    peer.send_prompt("1", &s, "third").await;
    gate.add_permits(2);
    peer.expect_result(1).await;
    peer.expect_result("1").await;
    gate.add_permits(1);
    peer.send_prompt(1, &s, "fourth").await;
    peer.expect_result(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_can_be_reused_after_its_response() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    for _ in 0..2_000 {
        peer.send_prompt(1, &s, "again").await;
        peer.expect_result(1).await;
    }
}
