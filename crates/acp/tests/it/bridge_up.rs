//! Tests of a bridge between a version 1 agent and a version 2 client, message by message.

use crate::bridge_peers::{BridgedPeers, start_bridge};
use serde_json::{Value, json};

/// Returns an initialized bridge whose agent has the given capabilities.
async fn initialize_bridge(capabilities: Value) -> BridgedPeers {
    let mut b = start_bridge(2);
    let info = json!({"name": "c", "version": "1"});
    b.client
        .send_request(
            0,
            "initialize",
            json!({"protocolVersion": 2, "info": info, "capabilities": {}}),
        )
        .await;
    b.agent.next().await;
    b.agent
        .send_response(
            0,
            json!({"protocolVersion": 1, "agentCapabilities": capabilities,
                   "agentInfo": {"name": "a", "version": "1"}, "authMethods": []}),
        )
        .await;
    b.client.next().await;
    b
}

/// Returns a bridge with an open session `s`. The response to `session/new` contains the given fields.
async fn open_session_with(capabilities: Value, mut fields: Value) -> BridgedPeers {
    let mut b = initialize_bridge(capabilities).await;
    b.client
        .send_request(1, "session/new", json!({"cwd": "/w"}))
        .await;
    b.agent.next().await;
    fields["sessionId"] = json!("s");
    b.agent.send_response(1, fields).await;
    b.client.next().await;
    b
}

async fn open_session() -> BridgedPeers {
    open_session_with(json!({}), json!({})).await
}

fn prompt_params(text: &str) -> Value {
    json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]})
}

fn state_update(state: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": state})
}

fn idle_update(reason: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})
}

/// Sends a prompt as the client, and expects the turn to start on both sides.
async fn send_prompt(b: &mut BridgedPeers, id: i64, text: &str) {
    b.client
        .send_request(id, "session/prompt", prompt_params(text))
        .await;
    begin_turn(b, id, text).await;
}

/// Expects a turn to start on both sides.
async fn begin_turn(b: &mut BridgedPeers, id: i64, text: &str) {
    let answer = b.client.next().await;
    assert_eq!(answer["id"], id, "{answer}");
    let message = &answer["result"]["messageId"];
    assert!(!message.as_str().unwrap().is_empty());
    b.client
        .expect_update(
            json!({"sessionUpdate": "user_message", "messageId": message,
                     "content": [{"type": "text", "text": text}]}),
        )
        .await;
    b.client.expect_update(state_update("running")).await;
    b.agent
        .expect_message(
            json!({"id": id, "method": "session/prompt", "params": prompt_params(text)}),
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_handshake_is_translated_for_each_side() {
    let mut b = start_bridge(2);
    b.client
        .send_request(
            "init",
            "initialize",
            json!({
                "protocolVersion": 3,
                "info": {"name": "c", "version": "1", "title": "C"},
                "capabilities": {"auth": {"terminal": {}}, "elicitation": {"form": {}}, "_meta": {"x": 1}},
                "_meta": {"trace": 12_345_678_901_234_567_890_u64},
            }),
        )
        .await;
    let asked = b.agent.next().await;
    let params = &asked["params"];
    assert_eq!(asked["id"], "init");
    assert_eq!(params["protocolVersion"], 1);
    assert_eq!(params["clientInfo"]["title"], "C");
    assert_eq!(
        params["clientCapabilities"],
        json!({
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
            "session": {"configOptions": {"boolean": {}}},
            "plan": {},
            "subagents": {},
            "auth": {"terminal": true},
            "elicitation": {"form": {}},
            "_meta": {"x": 1, "terminal_output": true},
        })
    );
    assert_eq!(params["_meta"]["trace"].to_string(), "12345678901234567890");

    b.agent
        .send_response(
            "init",
            json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                    "mcpCapabilities": {"http": true, "sse": true},
                    "sessionCapabilities": {"delete": {}, "fork": {}, "list": {}, "additionalDirectories": null},
                    "_meta": {"y": 2},
                },
                "authMethods": [
                    {"id": "key", "name": "Key", "_meta": {"z": 3}},
                    {"id": "tty", "name": "Log in", "type": "terminal", "args": ["login"], "env": {"A": "1"}},
                ],
                "_meta": {"w": 4},
            }),
        )
        .await;
    b.client
        .expect_response(
            "init",
            json!({
                "protocolVersion": 2,
                "info": {"name": "agent", "version": "unknown"},
                "capabilities": {
                    "session": {
                        "prompt": {"image": {}, "embeddedContext": {}},
                        "mcp": {"stdio": {}, "http": {}},
                        "delete": {},
                        "fork": {},
                    },
                    "_meta": {"y": 2},
                },
                "authMethods": [
                    {"methodId": "key", "name": "Key", "type": "agent", "_meta": {"z": 3}},
                    {"methodId": "tty", "name": "Log in", "type": "terminal", "args": ["login"],
                     "env": [{"name": "A", "value": "1"}]},
                ],
                "_meta": {"w": 4},
            }),
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn messages_wait_for_the_handshake() {
    let mut b = start_bridge(2);
    b.client
        .send_request(0, "session/new", json!({"cwd": "/"}))
        .await;
    b.client.expect_error(0, -32600).await;
    b.client.send_notification("_x/y", json!({})).await;
    b.agent.send_notification("_x/y", json!({})).await;
    let params = json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}});
    b.client.send_request(1, "initialize", params.clone()).await;
    b.client
        .send_request(2, "session/new", json!({"cwd": "/"}))
        .await;
    assert_eq!(b.agent.next().await["method"], "initialize");
    b.agent.expect_nothing().await;
    b.agent
        .send_response(1, json!({"protocolVersion": 1}))
        .await;
    assert_eq!(b.client.next().await["id"], 1);
    b.agent
        .expect_message(
            json!({"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}),
        )
        .await;
    b.client.send_request(3, "initialize", params).await;
    b.client.expect_error(3, -32600).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_handshake_can_be_retried() {
    let mut b = start_bridge(2);
    let params = json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}});
    b.client.send_request(1, "initialize", params.clone()).await;
    b.agent.next().await;
    b.agent.send_error(1, -32603, "not now").await;
    assert_eq!(b.client.expect_error(1, -32603).await, "not now");
    b.client.send_request(2, "initialize", params.clone()).await;
    b.agent.next().await;
    b.agent
        .send_response(2, json!({"protocolVersion": 7}))
        .await;
    let text = b.client.expect_error(2, -32022).await;
    assert!(text.contains("version 7"), "{text}");
    b.client.send_request(3, "initialize", params).await;
    b.agent.next().await;
    b.agent
        .send_response(3, json!({"protocolVersion": 1}))
        .await;
    assert_eq!(b.client.next().await["result"]["protocolVersion"], 2);
}

#[tokio::test(start_paused = true)]
async fn lines_pass_unchanged_between_equal_versions() {
    // A version 1 client, and a client and an agent of version 2.
    for version in [1, 2] {
        let mut b = start_bridge(2);
        let init = format!(
            r#"{{"id":1, "method":"initialize","params":{{"protocolVersion":{version},"info":{{}}}}}}"#
        );
        b.client.send_line(&init).await;
        let asked = b.agent.expect_line().await;
        if version == 1 {
            assert_eq!(asked, init);
        }
        let answer = format!(r#"{{"result":{{"protocolVersion":{version}}},  "id":1}}"#);
        b.agent.send_line(&answer).await;
        assert_eq!(b.client.expect_line().await, answer);
        for line in [
            r#"{"method":"session/update",  "params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[1e400]}}}"#,
            r#"{"id":12345678901234567890,"method":"x"}"#,
            "[1, 2]",
        ] {
            b.agent.send_line(line).await;
            assert_eq!(b.client.expect_line().await, line);
            b.client.send_line(line).await;
            assert_eq!(b.agent.expect_line().await, line);
        }
        b.agent.send_line("starting up ...").await;
        b.client.expect_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_rejects_the_version_is_offered_the_clients_version() {
    let mut b = start_bridge(2);
    let init = r#"{"id":1, "method":"initialize","params":{"protocolVersion":2,"info":{}}}"#;
    b.client.send_line(init).await;
    assert_eq!(b.agent.next().await["params"]["protocolVersion"], 1);
    b.agent.send_error(1, -32022, "only 2").await;
    assert_eq!(b.agent.expect_line().await, init);
    let answer = r#"{"result":{"protocolVersion":2},  "id":1}"#;
    b.agent.send_line(answer).await;
    assert_eq!(b.client.expect_line().await, answer);
}

#[tokio::test(start_paused = true)]
async fn a_turn_starts_with_a_response_and_ends_with_idle() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "yes"}});
    b.agent.send_update(chunk.clone()).await;
    b.client.expect_update(chunk).await;
    b.agent
        .send_response(5, json!({"stopReason": "end_turn", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
                           "_meta": {"a": 1}, "other": [1]}))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn",
                     "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2},
                     "_meta": {"a": 1}, "other": [1]}),
        )
        .await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_the_turn() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    b.agent
        .send_line(r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"broke","data":{"n":1e400}}}"#)
        .await;
    assert_eq!(
        b.client.expect_line().await,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"error","error":{"code":-32603,"message":"broke","data":{"n":1e400}}}}}"#
    );
    send_prompt(&mut b, 6, "again").await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_prompt_is_rejected() {
    let mut b = open_session().await;
    for (id, params) in [
        (5, json!({"sessionId": "s", "prompt": []})),
        (6, json!({"sessionId": "s"})),
        (7, json!({})),
    ] {
        b.client.send_request(id, "session/prompt", params).await;
        b.client.expect_error(id, -32602).await;
    }
    b.agent.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn prompts_are_queued_in_order() {
    let mut b = open_session().await;
    send_prompt(&mut b, 100, "0").await;
    for n in 1..=16 {
        b.client
            .send_request(100 + n, "session/prompt", prompt_params(&n.to_string()))
            .await;
    }
    b.client
        .send_request(117, "session/prompt", prompt_params("too many"))
        .await;
    b.client.expect_error(117, -32603).await;
    b.agent.expect_nothing().await;
    // A request with that id is pending, although the agent has not seen it.
    b.client.send_request(105, "session/list", json!({})).await;
    b.client.expect_error(105, -32600).await;
    for n in 0..16 {
        b.agent
            .send_response(100 + n, json!({"stopReason": "end_turn"}))
            .await;
        b.client.expect_update(idle_update("end_turn")).await;
        begin_turn(&mut b, 101 + n, &(n + 1).to_string()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_also_cancels_queued_prompts() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    for id in [6, 7, 8] {
        b.client
            .send_request(id, "session/prompt", prompt_params("more"))
            .await;
    }
    // One of them alone.
    b.client
        .send_notification("$/cancel_request", json!({"requestId": 7}))
        .await;
    b.client.expect_error(7, -32800).await;
    // An acknowledged prompt cannot be cancelled this way, and the agent is not told.
    b.client
        .send_notification("$/cancel_request", json!({"requestId": 5}))
        .await;
    b.agent.expect_nothing().await;
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    b.client.expect_error(6, -32800).await;
    b.client.expect_error(8, -32800).await;
    b.agent
        .expect_message(json!({"method": "session/cancel", "params": {"sessionId": "s"}}))
        .await;
    // Sent before the end of the cancelled turn is known, so it is not cancelled.
    b.client
        .send_request(9, "session/prompt", prompt_params("next"))
        .await;
    // Whatever the agent responds, the turn was cancelled.
    b.agent.send_error(5, -32603, "aborted").await;
    b.client.expect_update(idle_update("cancelled")).await;
    begin_turn(&mut b, 9, "next").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_sent_as_the_turn_ends_affects_no_other_turn() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    b.agent
        .send_response(5, json!({"stopReason": "end_turn"}))
        .await;
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    b.client.expect_update(idle_update("end_turn")).await;
    assert_eq!(b.agent.next().await["method"], "session/cancel");
    send_prompt(&mut b, 6, "next").await;
    b.agent.send_error(6, -32603, "broke").await;
    assert_eq!(
        b.client.next().await["params"]["update"]["stopReason"],
        "error"
    );
}

fn permission_params() -> Value {
    json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "status": null},
           "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}], "_meta": {"k": 1}})
}

#[tokio::test(start_paused = true)]
async fn permission_requests_are_translated_to_version_2() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Delete it", "kind": "delete"}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Delete it", "kind": "delete"}))
        .await;
    b.agent
        .send_request("p1", "session/request_permission", permission_params())
        .await;
    b.client
        .expect_update(state_update("requires_action"))
        .await;
    b.client
        .expect_message(json!({"id": "p1", "method": "session/request_permission", "params": {
            "sessionId": "s", "title": "Delete it",
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}], "_meta": {"k": 1},
        }}))
        .await;
    // A second one, with a question of another type.
    let ask = json!({"sessionId": "s", "mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}});
    b.agent
        .send_request("p2", "elicitation/create", ask.clone())
        .await;
    b.client
        .expect_message(json!({"id": "p2", "method": "elicitation/create", "params": ask}))
        .await;
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "y"}, "_meta": {"q": 2}});
    b.client.send_response("p1", yes.clone()).await;
    b.agent.expect_response("p1", yes).await;
    b.client.expect_nothing().await;
    b.client
        .send_response("p2", json!({"action": "decline"}))
        .await;
    b.agent
        .expect_response("p2", json!({"action": "decline"}))
        .await;
    b.client.expect_update(state_update("running")).await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_an_error_response() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    for id in ["p1", "p2"] {
        b.agent
            .send_request(id, "session/request_permission", permission_params())
            .await;
        if id == "p1" {
            b.client
                .expect_update(state_update("requires_action"))
                .await;
        }
        assert_eq!(b.client.next().await["id"], id);
    }
    b.client.send_error("p1", -32603, "no").await;
    assert_eq!(b.agent.next().await["error"]["code"], -32603);
    b.client.expect_nothing().await;
    // A question that the agent cancels gets an error response, too.
    let withdrawn = json!({"requestId": "p2"});
    b.agent
        .send_notification("$/cancel_request", withdrawn)
        .await;
    assert_eq!(b.client.next().await["method"], "$/cancel_request");
    b.client.send_error("p2", -32800, "cancelled").await;
    assert_eq!(b.agent.next().await["error"]["code"], -32800);
    b.client.expect_update(state_update("running")).await;
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_cancelled_turn_are_answered_for_the_client() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    b.agent
        .send_request("p1", "session/request_permission", permission_params())
        .await;
    b.client
        .expect_update(state_update("requires_action"))
        .await;
    b.client.next().await;
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    // The cancel comes first, so that the agent does not take the response for a rejection.
    assert_eq!(b.agent.next().await["method"], "session/cancel");
    b.agent
        .expect_response("p1", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    b.client
        .expect_message(json!({"method": "$/cancel_request", "params": {"requestId": "p1"}}))
        .await;
    // A response that comes nevertheless is dropped, and further questions are not passed on.
    b.client
        .send_response("p1", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    b.agent
        .send_request("p2", "session/request_permission", permission_params())
        .await;
    b.agent
        .expect_response("p2", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    b.agent
        .send_response(5, json!({"stopReason": "cancelled"}))
        .await;
    b.client.expect_update(idle_update("cancelled")).await;
    b.agent.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn chunks_of_one_message_get_the_same_id() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    let chunk = |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": "x"}, "_meta": {"n": 1}});
    let usage = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let call =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let mut ids: Vec<String> = Vec::new();
    for update in [
        chunk("agent_thought_chunk"),
        chunk("agent_thought_chunk"),
        chunk("agent_message_chunk"),
        usage,
        chunk("agent_message_chunk"),
        call,
        chunk("agent_message_chunk"),
    ] {
        b.agent.send_update(update.clone()).await;
        let seen = b.client.next().await;
        let mut seen = seen["params"]["update"].clone();
        if update["content"].is_object() {
            let id = seen.as_object_mut().unwrap().remove("messageId").unwrap();
            ids.push(id.as_str().unwrap().to_owned());
        }
        assert_eq!(seen, update);
    }
    // Two chunks of a thought, two of a message, and another message.
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ids[2], ids[3]);
    let different: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 3, "{ids:?}");
    b.agent
        .send_response(5, json!({"stopReason": "end_turn"}))
        .await;
    b.client.next().await;
    send_prompt(&mut b, 6, "hi").await;
    b.agent.send_update(chunk("agent_message_chunk")).await;
    let id = b.client.next().await["params"]["update"]["messageId"].clone();
    assert!(
        !ids.contains(&id.as_str().unwrap().to_owned()),
        "{id} {ids:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn null_from_version_1_clears_nothing() {
    let mut b = open_session().await;
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "rawInput": {"a": 1}}))
        .await;
    b.client.next().await;
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": null, "content": null,
                        "kind": null, "locations": null, "rawOutput": 5, "status": "failed", "_meta": null}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawOutput": 5, "status": "failed"}))
        .await;
    // The same id again is another call.
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "U"}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "U", "kind": null, "status": null,
                     "content": null, "locations": null, "rawInput": null, "rawOutput": null}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn tool_call_content_is_translated_to_version_2() {
    let mut b = open_session().await;
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "content": [
            {"type": "diff", "path": "/a", "oldText": "one\n", "newText": "two\n", "_meta": {"n": 1}},
            {"type": "diff", "path": "/b", "oldText": null, "newText": "new"},
            {"type": "text", "text": "bare"},
            {"type": "content", "content": {"type": "text", "text": "x"}},
            {"type": "terminal", "terminalId": "t"},
        ]}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "T", "content": [
            {"type": "diff", "_meta": {"n": 1},
             "changes": [{"operation": "modify", "path": "/a", "fileType": "text"}],
             "patch": {"format": "git_patch", "text": "diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-one\n+two\n"}},
            {"type": "diff",
             "changes": [{"operation": "add", "path": "/b", "fileType": "text"}],
             "patch": {"format": "git_patch", "text": "diff --git /b /b\nnew file mode 100644\n--- /dev/null\n+++ /b\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"}},
            {"type": "content", "content": {"type": "text", "text": "bare"}},
            {"type": "content", "content": {"type": "text", "text": "x"}},
            {"type": "terminal", "terminalId": "t"},
        ]}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn terminals_in_meta_become_terminals() {
    let mut b = open_session().await;
    let call = |meta: Value| json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": meta});
    b.agent
        .send_update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run",
                        "content": [{"type": "terminal", "terminalId": "t"}],
                        "_meta": {"terminal_info": {"terminal_id": "t", "cwd": "/w"}, "mine": 1}}),
        )
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "terminal_update", "terminalId": "t", "cwd": "/w"}))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Run",
                     "content": [{"type": "terminal", "terminalId": "t"}], "_meta": {"mine": 1}}),
        )
        .await;
    b.agent
        .send_update(call(
            json!({"terminal_output": {"terminal_id": "t", "data": "hé\n"}}),
        ))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "aMOpCg=="}))
        .await;
    // This terminal was not announced. Without an id, it belongs to the call.
    b.agent
        .send_update(call(json!({"terminal_output_delta": {"data": "x"}, "terminal_exit": {"exit_code": 0, "signal": null}})))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "terminal_update", "terminalId": "c"}))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "c", "data": "eA=="}),
        )
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "terminal_update", "terminalId": "c", "exitStatus": {"exitCode": 0}}))
        .await;
    let mut done = call(
        json!({"terminal_exit": {"terminal_id": "t", "exit_code": null, "signal": "SIGKILL"}}),
    );
    done["status"] = json!("failed");
    b.agent.send_update(done).await;
    b.client
        .expect_update(json!({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"signal": "SIGKILL"}}))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}),
        )
        .await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn plans_commands_and_usage_are_translated_to_version_2() {
    let mut b = open_session().await;
    let entries = json!([{"content": "a", "priority": "high", "status": "pending"}]);
    b.agent
        .send_update(json!({"sessionUpdate": "plan", "entries": entries, "_meta": {"n": 1}}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "plan_update", "_meta": {"n": 1},
                     "plan": {"type": "items", "planId": "plan", "entries": entries}}))
        .await;
    b.agent
        .send_update(
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [
            {"name": "a", "description": "A", "input": {"hint": "what"}},
            {"name": "b", "description": "B", "input": null}]}),
        )
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [
            {"type": "command", "name": "a", "description": "A", "input": {"type": "text", "hint": "what"}},
            {"type": "command", "name": "b", "description": "B", "input": null}]}))
        .await;
    b.agent
        .send_update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": null}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}))
        .await;
}

fn mode_option(current: &str) -> Value {
    json!({"configId": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": current,
           "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code", "description": "C"}]})
}

#[tokio::test(start_paused = true)]
async fn modes_and_models_become_config_options() {
    let mut b = initialize_bridge(json!({})).await;
    b.client
        .send_request(1, "session/new", json!({"cwd": "/w"}))
        .await;
    b.agent.next().await;
    b.agent
        .send_response(1, json!({
            "sessionId": "s",
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "C"}]},
            "models": {"currentModelId": "m1", "availableModels": [{"modelId": "m1", "name": "One"}]},
            "configOptions": [
                {"id": "model", "name": "Taken", "type": "boolean", "currentValue": true},
                {"id": "t", "name": "T", "type": "select", "currentValue": "x", "category": "thought_level",
                 "options": [{"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]},
            ],
            "_meta": {"n": 1},
        }))
        .await;
    let own = |on: bool| json!({"configId": "model", "name": "Taken", "type": "boolean", "currentValue": on});
    let thought = json!({"configId": "t", "name": "T", "type": "select", "currentValue": "x", "category": "thought_level",
                         "options": [{"groupId": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]});
    let model = |current: &str| {
        json!({"configId": "model_", "name": "Model", "category": "model", "type": "select",
                         "currentValue": current, "options": [{"value": "m1", "name": "One"}]})
    };
    b.client
        .expect_response(
            1,
            json!({"sessionId": "s", "_meta": {"n": 1},
                           "configOptions": [own(true), thought, mode_option("ask"), model("m1")]}),
        )
        .await;

    // An option that stands for a mode is set with the version 1 method, and an option of the agent's own without the
    // type of the id.
    let set = |id: &str, type_: &str, value: Value| json!({"sessionId": "s", "configId": id, "type": type_, "value": value});
    b.client
        .send_request(
            2,
            "session/set_config_option",
            set("mode", "id", json!("code")),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 2, "method": "session/set_mode", "params": {"sessionId": "s", "modeId": "code"}}))
        .await;
    b.agent
        .send_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"}))
        .await;
    let all =
        |on: bool, mode: &str, m: &str| json!([own(on), thought, mode_option(mode), model(m)]);
    b.client
        .expect_update(json!({"sessionUpdate": "config_option_update", "configOptions": all(true, "code", "m1")}))
        .await;
    b.agent.send_response(2, json!({})).await;
    b.client
        .expect_response(2, json!({"configOptions": all(true, "code", "m1")}))
        .await;
    b.client
        .send_request(
            3,
            "session/set_config_option",
            set("model_", "id", json!("m2")),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 3, "method": "session/set_model", "params": {"sessionId": "s", "modelId": "m2"}}))
        .await;
    b.agent.send_response(3, Value::Null).await;
    b.client
        .expect_response(3, json!({"configOptions": all(true, "code", "m2")}))
        .await;
    b.client
        .send_request(4, "session/set_config_option", set("t", "id", json!("x")))
        .await;
    b.agent
        .expect_message(json!({"id": 4, "method": "session/set_config_option", "params": {"sessionId": "s", "configId": "t", "value": "x"}}))
        .await;
    b.agent.send_error(4, -32602, "no").await;
    b.client.expect_error(4, -32602).await;
    b.client
        .send_request(
            5,
            "session/set_config_option",
            set("model", "boolean", json!(false)),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 5, "method": "session/set_config_option", "params": set("model", "boolean", json!(false))}))
        .await;
    let answered = json!([{"id": "model", "name": "Taken", "type": "boolean", "currentValue": false},
        {"id": "t", "name": "T", "type": "select", "currentValue": "x", "category": "thought_level",
         "options": [{"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]}]);
    b.agent
        .send_response(5, json!({"configOptions": answered}))
        .await;
    b.client
        .expect_response(5, json!({"configOptions": all(false, "code", "m2")}))
        .await;
    // What the client already knows is not sent again.
    b.agent
        .send_update(json!({"sessionUpdate": "current_mode_update", "modeId": "code"}))
        .await;
    b.client.expect_nothing().await;
    // An option of that category is the agent's own, and is preferred.
    b.agent
        .send_update(json!({"sessionUpdate": "config_options_update", "configOptions": [
            {"id": "how", "name": "How", "category": "mode", "type": "select", "currentValue": "ask", "options": []}]}))
        .await;
    let how = |current: &str| json!({"configId": "how", "name": "How", "category": "mode", "type": "select", "currentValue": current, "options": []});
    let model = json!({"configId": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "m2", "options": [{"value": "m1", "name": "One"}]});
    b.client
        .expect_update(
            json!({"sessionUpdate": "config_option_update", "configOptions": [how("ask"), model]}),
        )
        .await;
    b.agent
        .send_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"}))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "config_option_update", "configOptions": [how("code"), model]}),
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn mcp_servers_are_translated_to_version_1() {
    let mut b = initialize_bridge(json!({})).await;
    b.client
        .send_line(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"type":"stdio","name":"a","command":"/a","_meta":{"n":1e400}},{"type":"http","name":"b","url":"http://b"},{"type":"_odd","x":12345678901234567890}]},"trace":"t"}"#)
        .await;
    assert_eq!(
        b.agent.expect_line().await,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"a","command":"/a","_meta":{"n":1e400},"args":[],"env":[]},{"type":"http","name":"b","url":"http://b","headers":[]},{"type":"_odd","x":12345678901234567890}]},"trace":"t"}"#
    );
}

#[tokio::test(start_paused = true)]
async fn resume_becomes_resume_or_load() {
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "old"}});
    let info = json!({"sessionUpdate": "session_info_update", "title": "T"});
    let resume = json!({"sessionId": "s", "cwd": "/w"});
    let passed = json!({"sessionId": "s", "cwd": "/w", "mcpServers": []});
    let mut from_start = resume.clone();
    from_start["replayFrom"] = json!({"type": "start"});
    let load = json!({"loadSession": true});
    let both = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    for (capabilities, params, called, replayed) in [
        (&both, &resume, "session/resume", true),
        (&both, &from_start, "session/load", true),
        (&load, &from_start, "session/load", true),
        (&load, &resume, "session/load", false),
    ] {
        let mut b = initialize_bridge(capabilities.clone()).await;
        b.client
            .send_request(1, "session/resume", params.clone())
            .await;
        b.agent
            .expect_message(json!({"id": 1, "method": called, "params": passed}))
            .await;
        b.agent.send_update(chunk.clone()).await;
        b.agent.send_update(info.clone()).await;
        if replayed {
            b.client.expect_update(chunk.clone()).await;
        }
        b.client.expect_update(info.clone()).await;
        b.agent.send_response(1, Value::Null).await;
        b.client.expect_update(state_update("idle")).await;
        b.client.expect_response(1, json!({})).await;
        b.agent.send_update(chunk.clone()).await;
        b.client.expect_update(chunk.clone()).await;
    }
    let resume_only = json!({"sessionCapabilities": {"resume": {}}});
    for (capabilities, params, code) in [
        (json!({}), &resume, -32601),
        (resume_only, &from_start, -32601),
        (
            both,
            &json!({"sessionId": "s", "cwd": "/w", "replayFrom": {"type": "_odd"}}),
            -32602,
        ),
    ] {
        let mut b = initialize_bridge(capabilities).await;
        b.client
            .send_request(1, "session/resume", params.clone())
            .await;
        b.client.expect_error(1, code).await;
        b.agent.expect_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_bridge_lists_and_closes_sessions_if_the_agent_cannot() {
    let mut b = open_session().await;
    b.client.send_request(2, "session/list", json!({})).await;
    let sessions = json!([{"sessionId": "s", "cwd": "/w"}]);
    b.client
        .expect_response(2, json!({"sessions": sessions}))
        .await;
    b.client
        .send_request(3, "session/list", json!({"cwd": "/elsewhere"}))
        .await;
    b.client.expect_response(3, json!({"sessions": []})).await;
    b.client
        .send_request(4, "session/list", json!({"cursor": "x"}))
        .await;
    b.client.expect_error(4, -32602).await;

    send_prompt(&mut b, 5, "hi").await;
    b.client
        .send_request(6, "session/prompt", prompt_params("held"))
        .await;
    b.client
        .send_request(7, "session/close", json!({"sessionId": "s"}))
        .await;
    assert_eq!(b.agent.next().await["method"], "session/cancel");
    b.client.expect_error(6, -32800).await;
    b.client.expect_nothing().await;
    b.agent
        .send_response(5, json!({"stopReason": "cancelled"}))
        .await;
    b.client.expect_update(idle_update("cancelled")).await;
    b.client.expect_response(7, json!({})).await;
    b.client.send_request(8, "session/list", json!({})).await;
    b.client.expect_response(8, json!({"sessions": []})).await;
    b.client
        .send_request(9, "session/close", json!({"sessionId": "s"}))
        .await;
    b.client.expect_response(9, json!({})).await;
    b.agent.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn list_and_close_are_passed_to_agents_that_support_them() {
    let capabilities = json!({"sessionCapabilities": {"list": {}, "close": {}}});
    let mut b = open_session_with(capabilities, json!({})).await;
    b.client
        .send_request(2, "session/list", json!({"cursor": "x"}))
        .await;
    b.agent
        .expect_message(json!({"id": 2, "method": "session/list", "params": {"cursor": "x"}}))
        .await;
    let list =
        json!({"sessions": [{"sessionId": "s", "cwd": "/w", "title": "T"}], "nextCursor": "y"});
    b.agent.send_response(2, list.clone()).await;
    b.client.expect_response(2, list).await;
    send_prompt(&mut b, 3, "hi").await;
    b.client
        .send_request(4, "session/close", json!({"sessionId": "s"}))
        .await;
    assert_eq!(b.agent.next().await["method"], "session/close");
    // Closed before the turn has ended. What the agent reports about the turn after that is dropped.
    b.agent.send_response(4, Value::Null).await;
    b.client.expect_update(idle_update("cancelled")).await;
    b.client.expect_response(4, json!({})).await;
    b.agent
        .send_response(3, json!({"stopReason": "cancelled"}))
        .await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn authentication_methods_are_renamed() {
    let mut b = initialize_bridge(json!({"auth": {"logout": {}}})).await;
    b.client
        .send_request(1, "auth/login", json!({"methodId": "m"}))
        .await;
    b.agent
        .expect_message(json!({"id": 1, "method": "authenticate", "params": {"methodId": "m"}}))
        .await;
    b.agent.send_response(1, Value::Null).await;
    b.client.expect_response(1, json!({})).await;
    b.client.send_request(2, "auth/logout", json!({})).await;
    b.agent
        .expect_message(json!({"id": 2, "method": "logout", "params": {}}))
        .await;
    b.agent.send_response(2, json!({"_meta": {"n": 1}})).await;
    b.client
        .expect_response(2, json!({"_meta": {"n": 1}}))
        .await;
    let mut b = initialize_bridge(json!({})).await;
    b.client.send_request(2, "auth/logout", json!({})).await;
    b.client.expect_error(2, -32601).await;
    b.agent.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn methods_of_one_version_only_are_rejected() {
    let mut b = open_session().await;
    for method in ["fs/read_text_file", "terminal/create", "fs/_future"] {
        b.agent
            .send_request("a", method, json!({"sessionId": "s"}))
            .await;
        b.agent.expect_error("a", -32601).await;
    }
    for method in ["session/load", "session/set_mode", "authenticate", "logout"] {
        b.client
            .send_request(1, method, json!({"sessionId": "s"}))
            .await;
        b.client.expect_error(1, -32601).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_messages_pass_unchanged() {
    let mut b = open_session().await;
    for line in [
        r#"{"jsonrpc":"2.0",  "id":77,"method":"_x/ask","params":{"n":12345678901234567890,"f":1e400}}"#,
        r#"{"method":"_x/tell","params":[1, 2],"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":"nobody asked","result":{"a" : 1}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}"#,
    ] {
        b.client.send_line(line).await;
        assert_eq!(b.agent.expect_line().await, line);
        b.agent.send_line(line).await;
        assert_eq!(b.client.expect_line().await, line);
    }
    for line in [
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"_odd","n":1e400}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update", "title":null}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"plan"}}}"#,
        r#"[{"a":  1}]"#,
    ] {
        b.agent.send_line(line).await;
        assert_eq!(b.client.expect_line().await, line);
    }
    // A line is changed only where the versions differ.
    b.agent
        .send_line(r#"{"x":[1.50],"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"n":12345678901234567890},"sessionId":"s","update":{"toolCallId":"c","sessionUpdate":"tool_call","title":"T","rawInput":{"n":1e400},"future":{"a" : 1}}}}"#)
        .await;
    assert_eq!(
        b.client.expect_line().await,
        r#"{"x":[1.50],"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"n":12345678901234567890},"sessionId":"s","update":{"toolCallId":"c","sessionUpdate":"tool_call_update","title":"T","rawInput":{"n":1e400},"future":{"a" : 1}}}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_are_independent() {
    let mut b = open_session().await;
    b.client
        .send_request(2, "session/new", json!({"cwd": "/v"}))
        .await;
    b.agent.next().await;
    // An update before the response that contains the session's id.
    let early = json!({"sessionId": "t", "update": {"sessionUpdate": "available_commands_update", "availableCommands": []}});
    b.agent
        .send_notification("session/update", early.clone())
        .await;
    b.client
        .expect_message(json!({"method": "session/update", "params": early}))
        .await;
    b.agent.send_response(2, json!({"sessionId": "t"})).await;
    b.client.expect_response(2, json!({"sessionId": "t"})).await;
    send_prompt(&mut b, 3, "hi").await;
    let other = json!({"sessionId": "t", "prompt": [{"type": "text", "text": "x"}]});
    b.client.send_request(4, "session/prompt", other).await;
    assert_eq!(b.agent.next().await["id"], 4);
    for _ in 0..3 {
        b.client.next().await;
    }
    let chunk = |session: &str| {
        json!({"sessionId": session, "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}})
    };
    let mut ids = Vec::new();
    for session in ["s", "t", "s", "t"] {
        b.agent
            .send_notification("session/update", chunk(session))
            .await;
        let seen = b.client.next().await;
        assert_eq!(seen["params"]["sessionId"], session);
        ids.push(seen["params"]["update"]["messageId"].clone());
    }
    assert!(
        ids[0] == ids[2] && ids[1] == ids[3] && ids[0] != ids[1],
        "{ids:?}"
    );
    b.agent
        .send_response(4, json!({"stopReason": "refusal"}))
        .await;
    let ended = b.client.next().await;
    assert_eq!(ended["params"]["sessionId"], "t");
    assert_eq!(ended["params"]["update"], idle_update("refusal"));
    b.agent
        .send_response(3, json!({"stopReason": "end_turn"}))
        .await;
    b.client.expect_update(idle_update("end_turn")).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_capabilities_pass_unchanged() {
    let mut b = start_bridge(2);
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
    b.client.send_request(0, "initialize", params).await;
    b.agent.next().await;
    let theirs = json!({
        "promptCapabilities": {"image": false, "_odd": true, "_off": false},
        "mcpCapabilities": {"sse": true, "_odd": {"a": 1}},
        "sessionCapabilities": {"list": {}, "_odd": {"deep": [1]}, "_off": null},
        "auth": {"logout": {}, "_odd": {}},
        "_odd": {"x": 18_446_744_073_709_551_615_u64},
    });
    let answer = json!({"protocolVersion": 1, "agentCapabilities": theirs, "agentInfo": info, "authMethods": []});
    b.agent.send_response(0, answer).await;
    let answer = b.client.next().await;
    assert_eq!(
        answer["result"]["capabilities"],
        json!({
            "session": {
                "prompt": {"_odd": {}},
                "mcp": {"stdio": {}, "_odd": {"a": 1}},
                "_odd": {"deep": [1]},
            },
            "auth": {"_odd": {}},
            "_odd": {"x": 18_446_744_073_709_551_615_u64},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_subagents_questions_are_answered_when_its_parent_is_cancelled() {
    let mut b = open_session().await;
    send_prompt(&mut b, 5, "hi").await;
    let announced = json!({"sessionUpdate": "subagent_update", "sessionId": "c"});
    b.agent.send_update(announced.clone()).await;
    b.client.expect_update(announced).await;
    let mut asked = permission_params();
    asked["sessionId"] = json!("c");
    b.agent
        .send_request("p1", "session/request_permission", asked)
        .await;
    assert_eq!(b.client.next().await["params"]["sessionId"], "c");
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    assert_eq!(b.agent.next().await["method"], "session/cancel");
    b.agent
        .expect_response("p1", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    b.client
        .expect_message(json!({"method": "$/cancel_request", "params": {"requestId": "p1"}}))
        .await;
    b.agent
        .send_response(5, json!({"stopReason": "cancelled"}))
        .await;
    b.client.expect_update(idle_update("cancelled")).await;
}
