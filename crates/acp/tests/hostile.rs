//! Whatever arrives, it gets the answer it is due, and the connection goes on.

// Clippy takes only what is in a test function for a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use acp::client::{Session, Update};
use acp::v1::StopReason;
use acp::{CloseReason, Error, Limits};
use serde_json::{Value, json};

use common::{Nobody, OnPrompt, OnUpdate, PIPE, Peer, idle, limits, pipes, settle, shown, soon};

/// What a line gets.
#[derive(Clone, Copy)]
enum Due {
    Nothing,
    /// An error with this code, for the request with this id.
    Error(i64, &'static str),
}
use Due::Nothing;

const fn error(code: i64, id: &'static str) -> Due {
    Due::Error(code, id)
}

/// What either side makes of a line.
const EITHER: &[(&[u8], Due)] = &[
    // Not JSON, though it was meant to be.
    (br#"{"jsonrpc":"2.0","id":1,"#, error(-32700, "null")),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"x"}}"#,
        error(-32700, "null"),
    ),
    (
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        error(-32700, "null"),
    ),
    (
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":\"\xc3\"}",
        error(-32700, "null"),
    ),
    // JSON, but no message.
    (b"42", error(-32600, "null")),
    (b"\"text\"", error(-32600, "null")),
    (b"null", error(-32600, "null")),
    (b"true", error(-32600, "null")),
    (b"[]", error(-32600, "null")),
    (
        br#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
        error(-32600, "null"),
    ),
    (b"{}", error(-32600, "null")),
    (br#"{"jsonrpc":"2.0","id":8}"#, error(-32600, "8")),
    (
        br#"{"jsonrpc":"2.0","id":8,"method":5}"#,
        error(-32600, "8"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
        error(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#,
        error(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
        error(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
        error(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1e999,"method":"x"}"#,
        error(-32600, "null"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"x"}"#,
        error(-32600, "null"),
    ),
    // Nothing at all.
    (b"", Nothing),
    (b"\r", Nothing),
    (b" \t \r", Nothing),
    // Ids come back as they are.
    (
        br#"{"jsonrpc":"2.0","id":0,"method":"x"}"#,
        error(-32601, "0"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":-7,"method":"x"}"#,
        error(-32601, "-7"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"x"}"#,
        error(-32601, "9223372036854775807"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"","method":"x"}"#,
        error(-32601, r#""""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"7","method":"x"}"#,
        error(-32601, r#""7""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":"\u00e9 \"quoted\"\n","method":"x"}"#,
        error(-32601, r#""\u00e9 \"quoted\"\n""#),
    ),
    (
        br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        error(-32601, "null"),
    ),
    // Spaces, a line end of the other kind, other orders, no version, and more than is needed.
    (
        b"  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}  \r",
        error(-32601, "1"),
    ),
    (
        br#"{"params":{},"id":1,"method":"x","extra":[{}]}"#,
        error(-32601, "1"),
    ),
    // Methods that nobody has heard of.
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"_private/thing","params":[1]}"#,
        error(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"session/unheard_of"}"#,
        error(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"$/unheard_of"}"#,
        error(-32601, "1"),
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        error(-32601, "1"),
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
    // Answers to nothing, in every form.
    (br#"{"jsonrpc":"2.0","id":77,"result":{}}"#, Nothing),
    (br#"{"jsonrpc":"2.0","id":"a","result":null}"#, Nothing),
    (
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        Nothing,
    ),
    (br#"{"jsonrpc":"2.0","id":78,"error":"just text"}"#, Nothing),
    (br#"{"jsonrpc":"2.0","result":1}"#, Nothing),
    // Cancelling what is not there, or nothing.
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

async fn each_gets_its_due(peer: &mut Peer, lines: &[(&[u8], Due)]) {
    for (line, due) in lines {
        let shown = String::from_utf8_lossy(line);
        peer.line(line).await;
        if let Due::Error(code, id) = due {
            let answer = peer.next().await;
            let id: Value = serde_json::from_str(id).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(code)),
                "{shown}: {answer}"
            );
            assert!(answer.get("id").is_some(), "{shown}: {answer}");
        }
        peer.silence().await;
    }
    peer.alive().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_answers_each_line_as_it_is_due() {
    let (_conn, mut peer, s) = Peer::in_session(idle()).await;
    each_gets_its_due(&mut peer, EITHER).await;
    each_gets_its_due(
        &mut peer,
        &[
            (b"what is this", error(-32700, "null")),
            (b"\xff\xff\xff", error(-32700, "null")),
            (br#"{"id":1,"method":"session/new"}"#, error(-32602, "1")),
            (br#"{"id":1,"method":"session/new","params":{"cwd":5,"mcpServers":[]}}"#, error(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":[]}"#, error(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":"s"}"#, error(-32602, "1")),
            (br#"{"id":1,"method":"session/prompt","params":{"sessionId":"none","prompt":[]}}"#, error(-32002, "1")),
            (br#"{"id":1,"method":"session/set_mode","params":{"sessionId":"none","modeId":"x"}}"#, error(-32002, "1")),
            (br#"{"method":"session/cancel","params":{"sessionId":"none"}}"#, Nothing),
            (br#"{"method":"session/cancel","params":7}"#, Nothing),
            // Methods of the other direction, and those that this agent does not offer.
            (br#"{"id":1,"method":"session/request_permission","params":{}}"#, error(-32601, "1")),
            (br#"{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}"#, error(-32601, "1")),
            (br#"{"id":1,"method":"session/list","params":{}}"#, error(-32601, "1")),
            (br#"{"id":1,"method":"authenticate","params":{"methodId":"x"}}"#, error(-32601, "1")),
            (br#"{"id":1,"method":"logout","params":{}}"#, error(-32601, "1")),
            // A notification's name with an id, and a request's name without.
            (br#"{"id":1,"method":"session/cancel","params":{"sessionId":"s"}}"#, error(-32601, "1")),
            (br#"{"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#, Nothing),
        ],
    )
    .await;
    peer.prompt(5, &s, "still there?").await;
    assert_eq!(peer.result(5).await, json!({"stopReason": "end_turn"}));
}

#[tokio::test(start_paused = true)]
async fn a_client_answers_each_line_as_it_is_due() {
    let (session, mut peer) = Peer::with_session(Nobody).await;
    each_gets_its_due(&mut peer, EITHER).await;
    let read = br#"{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}"#;
    each_gets_its_due(
        &mut peer,
        &[
            (br#"{"id":1,"method":"session/request_permission"}"#, error(-32602, "1")),
            (br#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#, error(-32602, "1")),
            (read, error(-32601, "1")),
            (br#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"ls"}}"#, error(-32601, "1")),
            (br#"{"id":1,"method":"session/prompt","params":{}}"#, error(-32601, "1")),
            (br#"{"method":"session/update","params":{}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s"}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s","update":null}}"#, Nothing),
            (br#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call"}}}"#, Nothing),
        ],
    )
    .await;
    lives(&session, &mut peer).await;
}

/// A turn goes through.
async fn lives(session: &Session, peer: &mut Peer) {
    let (id, turn) = peer.prompted(session, "still there?").await;
    peer.says(session.id().as_str(), "yes").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        soon("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(shown(session.thread()).last().unwrap(), "agent: yes");
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_prints_to_stdout_is_skipped_and_counted() {
    let (transport, mut peer) = pipes(PIPE);
    // Before the first answer, too.
    peer.line("Welcome to the agent!").await;
    let connecting = tokio::spawn(acp::client::connect(transport, Nobody));
    let (id, _) = peer.request("initialize").await;
    peer.line("[2026-01-01T00:00:00Z INFO] starting").await;
    peer.answer(&id, json!({"protocolVersion": 1})).await;
    let conn = soon("the client connects", connecting)
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
        peer.line(noise).await;
    }
    // As noisy as it can be: without a line end for long, then in the middle of messages.
    peer.line("x".repeat(3 * PIPE)).await;
    let session = peer.opens(&conn, json!({"sessionId": "s"})).await;
    lives(&session, &mut peer).await;
    peer.silence().await;
    assert_eq!(conn.connection().noise().lines, 7);
    assert_eq!(conn.connection().noise().unasked, 0);
}

#[tokio::test(start_paused = true)]
async fn answers_to_nothing_and_unread_notifications_are_counted() {
    let (session, mut peer) = Peer::with_session(Nobody).await;
    for id in [json!(77), json!("a"), json!(null)] {
        peer.answer(&id, json!({})).await;
    }
    peer.tell("session/unheard_of", json!({})).await;
    peer.tell("session/update", json!({"sessionId": 3})).await;
    peer.alive().await;
    let noise = session.agent().connection().noise();
    assert_eq!((noise.lines, noise.unasked, noise.unread), (0, 3, 2));
}

/// A message of more than 2,000 bytes, from one with `BIG` in it.
fn big(message: &str) -> String {
    message.replace("BIG", &"x".repeat(5_000))
}

fn short() -> Limits {
    limits(|l| l.message = 2_000)
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_refused_by_its_id() {
    for pipe in [16, PIPE] {
        let (_conn, mut peer, s) = Peer::in_session_with(idle(), short(), pipe).await;
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
            // A notification, or what nobody can tell.
            (
                r#"{"jsonrpc":"2.0","method":"session/new","params":{"id":4,"cwd":"/BIG","x":{"id":4}}}"#,
                json!(null),
            ),
            (
                r#"[{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/BIG"}}]"#,
                json!(3),
            ),
        ] {
            peer.line(big(message)).await;
            let (code, text) = peer.error(id).await;
            assert_eq!(code, -32600, "{message}");
            assert!(text.contains("over the limit of 2000 bytes"), "{text}");
        }
        peer.prompt(5, &s, "still there?").await;
        peer.result(5).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_fails_its_request() {
    for pipe in [16, PIPE] {
        let (conn, mut peer) = Peer::of_client_with(Nobody, short(), pipe, json!({})).await;
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
            let (id, _) = peer.request("session/new").await;
            peer.line(big(answer).replace("ID", &id.to_string())).await;
            let error = soon("the request fails", opening)
                .await
                .unwrap()
                .unwrap_err();
            assert!(
                matches!(error, Error::Unreadable { .. }),
                "{answer}: {error}"
            );
            assert!(
                error.to_string().contains("over the limit of 2000 bytes"),
                "{error}"
            );
        }
        // A request of the agent's that is over the limit fails nobody's of ours.
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session("/work").await }
        });
        let (id, _) = peer.request("session/new").await;
        peer.line(big(r#"{"id":ID,"params":"BIG","method":"x"}"#).replace("ID", &id.to_string()))
            .await;
        assert_eq!(peer.error(id.clone()).await.0, -32600);
        peer.answer(&id, json!({"sessionId": "s"})).await;
        let session = soon("the session opens", opening).await.unwrap().unwrap();
        peer.line(big(r#"{"method":"session/update","params":"BIG"}"#))
            .await;
        assert_eq!(peer.error(json!(null)).await.0, -32600);
        lives(&session, &mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_that_was_read_ahead_fails_its_request() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let client = OnUpdate({
        let gate = std::sync::Arc::clone(&gate);
        move |_, _: Update| {
            let gate = std::sync::Arc::clone(&gate);
            async move { gate.acquire().await.unwrap().forget() }
        }
    });
    let (session, mut peer) = Peer::with_session_and(client, short(), json!({})).await;
    let (id, turn) = peer.prompted(&session, "hi").await;
    peer.says("s", "a").await;
    peer.line(big(r#"{"id":ID,"result":"BIG"}"#).replace("ID", &id.to_string()))
        .await;
    settle().await;
    // A turn's answer comes after its updates, even when it cannot be read.
    assert!(!turn.is_finished());
    gate.add_permits(2);
    let error = soon("the turn fails", turn).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("over the limit"), "{error}");
    lives(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn a_last_line_without_an_end_counts() {
    let (_conn, mut peer) = Peer::of_agent_with(
        idle(),
        limits(|l| l.linger = std::time::Duration::from_secs(2)),
        PIPE,
    );
    let params = json!({"protocolVersion": 1});
    peer.bytes(json!({"id": 1, "method": "initialize", "params": params}).to_string())
        .await;
    peer.stop_writing();
    assert_eq!(peer.result(1).await["protocolVersion"], 1);
    peer.end().await;

    let (conn, mut peer) = Peer::of_client(Nobody).await;
    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session("/work").await }
    });
    let (id, _) = peer.request("session/new").await;
    peer.bytes(json!({"id": id, "result": {"sessionId": "s"}}).to_string())
        .await;
    peer.stop_writing();
    let session = soon("the session opens", opening).await.unwrap().unwrap();
    assert_eq!(session.id().as_str(), "s");
    assert!(matches!(
        soon("it ends", conn.closed()).await,
        CloseReason::Peer
    ));

    // Half an oversized line, and half a message, are nothing.
    for half in [
        "{\"id\":1,\"method\":\"initia".to_owned(),
        "x".repeat(5_000),
    ] {
        let (conn, mut peer) = Peer::of_agent_with(idle(), short(), PIPE);
        peer.bytes(half).await;
        peer.stop_writing();
        assert!(matches!(
            soon("it ends", conn.closed()).await,
            CloseReason::Peer
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_in_use_is_refused_and_free_again_once_answered() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let agent = OnPrompt({
        let gate = std::sync::Arc::clone(&gate);
        move |_, _| {
            let gate = std::sync::Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(StopReason::EndTurn)
            }
        }
    });
    let (_conn, mut peer, s) = Peer::in_session(agent).await;
    peer.prompt(1, &s, "first").await;
    peer.prompt(1, &s, "second").await;
    let (code, text) = peer.error(1).await;
    assert_eq!(code, -32600);
    assert!(text.contains("this id is still being worked on"), "{text}");
    // "1" is another id.
    peer.prompt("1", &s, "third").await;
    gate.add_permits(2);
    peer.result(1).await;
    peer.result("1").await;
    gate.add_permits(1);
    peer.prompt(1, &s, "fourth").await;
    peer.result(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_is_free_as_soon_as_its_answer_is_seen() {
    let (_conn, mut peer, s) = Peer::in_session(idle()).await;
    for _ in 0..2_000 {
        peer.prompt(1, &s, "again").await;
        peer.result(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_and_huge_numbers_are_borne() {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let objects = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    let (_conn, mut peer, s) = Peer::in_session(idle()).await;
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
            peer.line(&message).await;
            let code = peer.error(1).await.0;
            assert!(
                code == -32601 || code == -32602,
                "{code} for {}",
                &message[..80]
            );
        }
        peer.line(format!(r#"{{"id":{nest},"method":"_x"}}"#)).await;
        assert_eq!(peer.error(json!(null)).await.0, -32600);
        // Where it does not matter, it does not matter.
        let prompt = r#"[{"type":"text","text":"hi"}]"#;
        peer.line(format!(r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"{s}","prompt":{prompt},"x":{nest},"_meta":{{"x":{nest}}}}}}}"#)).await;
        peer.result(1).await;
    }
    let (session, mut peer) = Peer::with_session(Nobody).await;
    for nest in [deep(100_000), objects(100_000)] {
        let update = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","rawInput":{nest}}}"#
        );
        peer.line(format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        ))
        .await;
        peer.line(format!(r#"{{"id":99,"result":{nest}}}"#)).await;
        peer.line(format!(r#"{{"id":99,"error":{nest}}}"#)).await;
    }
    lives(&session, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_begins_with_initialize() {
    let (_conn, mut peer) = Peer::of_agent(idle());
    for (method, params) in [
        ("session/new", json!({"cwd": "/", "mcpServers": []})),
        ("session/prompt", json!({"sessionId": "s", "prompt": []})),
        (
            "session/load",
            json!({"sessionId": "s", "cwd": "/", "mcpServers": []}),
        ),
        ("authenticate", json!({"methodId": "x"})),
    ] {
        peer.ask(1, method, params).await;
        let (code, text) = peer.error(1).await;
        assert_eq!(code, -32600, "{method}");
        assert!(text.contains("initialize"), "{text}");
    }
    peer.initialize(json!({})).await;
    peer.new_session().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_answers_any_version_with_the_one_it_speaks() {
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
        let (_conn, mut peer) = Peer::of_agent(idle());
        peer.ask(0, "initialize", json!({"protocolVersion": version}))
            .await;
        assert_eq!(peer.result(0).await["protocolVersion"], 1, "{version}");
        peer.new_session().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_refuses_a_version_it_does_not_speak_and_closes() {
    for (version, theirs) in [
        (json!(2), 2),
        (json!(0), 0),
        (json!(99), 99),
        (json!("2024-01-01"), 0),
    ] {
        let (transport, mut peer) = pipes(PIPE);
        let connecting = tokio::spawn(acp::client::connect(transport, Nobody));
        let (id, _) = peer.request("initialize").await;
        peer.answer(&id, json!({"protocolVersion": version})).await;
        let error = soon("the client refuses", connecting)
            .await
            .unwrap()
            .unwrap_err();
        assert!(
            matches!(error, Error::Version { theirs: t, ours: 1 } if t == theirs),
            "{version}: {error}"
        );
        peer.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_connecting_fails_closes() {
    for answer in [
        json!({"error": {"code": -32603, "message": "out of order"}}),
        json!({"result": null, "error": {"code": "odd"}}),
        json!({"result": []}),
    ] {
        let (transport, mut peer) = pipes(PIPE);
        let connecting = tokio::spawn(acp::client::connect(transport, Nobody));
        let (id, _) = peer.request("initialize").await;
        let mut message = answer.clone();
        message["id"] = id;
        peer.send(message).await;
        soon("the client gives up", connecting)
            .await
            .unwrap()
            .unwrap_err();
        peer.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn null_is_as_good_as_an_empty_object_for_an_answer() {
    let capabilities = json!({
        "loadSession": true,
        "auth": {"logout": {}},
        "sessionCapabilities": {"close": {}, "delete": {}, "resume": {}},
    });
    let (conn, mut peer) = Peer::of_client_with(Nobody, limits(|_| ()), PIPE, capabilities).await;
    let modes = json!({"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]});
    let session = peer
        .opens(&conn, json!({"sessionId": "s", "modes": modes}))
        .await;
    macro_rules! answered_with_null {
        ($method:literal, $call:expr) => {{
            let working = tokio::spawn(async move { $call.await.map(drop) });
            let (id, _) = peer.request($method).await;
            peer.answer(&id, json!(null)).await;
            soon($method, working).await.unwrap().unwrap();
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
    peer.alive().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_fails_its_request_only() {
    let (session, mut peer) = Peer::with_session(Nobody).await;
    for result in [
        json!(null),
        json!({}),
        json!([1]),
        json!("end_turn"),
        json!({"stopReason": 5}),
    ] {
        let (id, turn) = peer.prompted(&session, "hi").await;
        peer.answer(&id, result.clone()).await;
        let error = soon("the turn fails", turn).await.unwrap().unwrap_err();
        assert!(
            matches!(&error, Error::Unreadable { method, .. } if method == "session/prompt"),
            "{result}: {error}"
        );
        assert!(!session.thread().read(acp::Thread::is_running));
    }
    // Errors of every form are errors, and a stop reason nobody has heard of is one.
    for (error, expected) in [
        (json!({"code": 5, "message": "no"}), "no (5)"),
        (json!({"message": "no"}), "no (-32603)"),
        (
            json!({"code": "x", "message": 3}),
            "an error without a message (-32603)",
        ),
        (json!("no"), "\"no\" (-32603)"),
    ] {
        let (id, turn) = peer.prompted(&session, "hi").await;
        peer.send(json!({"id": id, "error": error})).await;
        let error = soon("the turn fails", turn).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let (id, turn) = peer.prompted(&session, "hi").await;
    peer.answer(&id, json!({"stopReason": "tired"})).await;
    assert_eq!(
        soon("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Unknown("tired".to_owned())
    );
    lives(&session, &mut peer).await;
}
