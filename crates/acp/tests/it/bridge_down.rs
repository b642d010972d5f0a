//! Tests of a bridge between a version 2 agent and a version 1 client, message by message.

use crate::bridge_peers::{BridgedPeers, start_bridge};
use serde_json::{Value, json};

/// Returns an initialized bridge whose client has the given capabilities.
async fn initialize_bridge(capabilities: Value) -> BridgedPeers {
    let mut b = start_bridge(1);
    b.client
        .send_request(
            0,
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        )
        .await;
    b.agent.next().await;
    b.agent
        .send_response(
            0,
            json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": {"session": {}}}),
        )
        .await;
    b.client.next().await;
    b
}

/// Returns a bridge with an open session `s`. The response to `session/new` contains the given fields.
async fn open_session_with(capabilities: Value, mut fields: Value) -> BridgedPeers {
    let mut b = initialize_bridge(capabilities).await;
    b.client
        .send_request(1, "session/new", json!({"cwd": "/w", "mcpServers": []}))
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

/// Sends a prompt as the client, and accepts it as the agent.
async fn begin_turn(b: &mut BridgedPeers, id: i64) {
    b.client
        .send_request(id, "session/prompt", prompt_params("hi"))
        .await;
    b.agent
        .expect_message(
            json!({"id": id, "method": "session/prompt", "params": prompt_params("hi")}),
        )
        .await;
    b.agent
        .send_response(id, json!({"messageId": format!("u{id}")}))
        .await;
    b.agent.send_update(state_update("running")).await;
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn message_chunk(kind: &str, id: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": id, "content": content})
}

fn whole_message(kind: &str, id: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": id, "content": content})
}

fn tool_call(fields: Value) -> Value {
    let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
    for (key, value) in fields.as_object().unwrap() {
        call[key] = value.clone();
    }
    call
}

#[tokio::test(start_paused = true)]
async fn the_handshake_is_translated_for_each_side() {
    let mut b = start_bridge(1);
    let theirs = json!({
        "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true,
        "auth": {"terminal": true}, "elicitation": {"url": {}}, "session": {"notices": {}}, "plan": {},
        "_meta": {"x": 1}, "_odd": {"n": 1},
    });
    b.client
        .send_request(
            0,
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": theirs, "clientInfo": {"name": "c", "version": "1"}}),
        )
        .await;
    let asked = b.agent.next().await;
    let params = &asked["params"];
    assert_eq!(params["protocolVersion"], 2);
    assert_eq!(params["info"], json!({"name": "c", "version": "1"}));
    assert_eq!(
        params["capabilities"],
        json!({"auth": {"terminal": {}}, "elicitation": {"url": {}}, "_meta": {"x": 1}, "_odd": {"n": 1}})
    );
    // For an agent that responds in version 1.
    assert_eq!(params["clientCapabilities"], theirs);
    b.agent
        .send_response(
            0,
            json!({
                "protocolVersion": 2,
                "info": {"name": "a", "version": "1", "title": "A"},
                "capabilities": {
                    "session": {"prompt": {"image": {}}, "mcp": {"stdio": {}, "http": {}}, "delete": {}, "fork": {"_meta": {"n": 1}}},
                    "_meta": {"y": 2},
                },
                "authMethods": [
                    {"methodId": "key", "name": "Key", "type": "agent"},
                    {"methodId": "tty", "name": "T", "type": "terminal", "env": [{"name": "A", "value": "1"}]},
                    {"methodId": "odd", "name": "O", "type": "_odd", "n": 1},
                ],
                "_meta": {"w": 4},
            }),
        )
        .await;
    b.client
        .expect_response(
            0,
            json!({
                "protocolVersion": 1,
                "agentInfo": {"name": "a", "version": "1", "title": "A"},
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": true, "audio": false, "embeddedContext": false},
                    "mcpCapabilities": {"http": true, "sse": false},
                    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {"_meta": {"n": 1}}},
                    "auth": {"logout": {}},
                    "_meta": {"y": 2},
                },
                "authMethods": [
                    {"id": "key", "name": "Key"},
                    {"id": "tty", "name": "T", "type": "terminal", "env": {"A": "1"}},
                    {"id": "odd", "name": "O", "type": "_odd", "n": 1},
                ],
                "_meta": {"w": 4},
            }),
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn absent_capabilities_are_translated() {
    let mut b = start_bridge(1);
    b.client
        .send_request(0, "initialize", json!({"protocolVersion": 1}))
        .await;
    let asked = b.agent.next().await;
    assert_eq!(
        asked["params"]["info"],
        json!({"name": "client", "version": "unknown"})
    );
    b.agent
        .send_response(
            0,
            json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"},
            "authMethods": [{"methodId": "tty", "name": "T", "type": "terminal"}]}),
        )
        .await;
    let answer = b.client.next().await;
    assert_eq!(answer["result"]["agentCapabilities"]["loadSession"], false);
    assert_eq!(
        answer["result"]["agentCapabilities"]["sessionCapabilities"],
        json!({})
    );
    assert_eq!(answer["result"]["authMethods"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_version_1_agent_is_passed_through() {
    let mut b = start_bridge(1);
    b.client
        .send_request(0, "initialize", json!({"protocolVersion": 1}))
        .await;
    b.agent.next().await;
    let answer = r#"{"id":0,"result":{"protocolVersion":1,  "agentCapabilities":{}}}"#;
    b.agent.send_line(answer).await;
    assert_eq!(b.client.expect_line().await, answer);
    let line = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}"#;
    b.agent.send_line(line).await;
    assert_eq!(b.client.expect_line().await, line);
    let mut b = start_bridge(1);
    b.client
        .send_request(0, "initialize", json!({"protocolVersion": 1}))
        .await;
    b.agent.next().await;
    b.agent
        .send_response(0, json!({"protocolVersion": 3}))
        .await;
    let text = b.client.expect_error(0, -32603).await;
    assert!(text.contains("version 3"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_gets_its_response_when_the_agent_is_idle() {
    let mut b = open_session().await;
    // A state before any prompt ends nothing.
    b.agent.send_update(state_update("idle")).await;
    b.client
        .send_request(5, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.agent.send_response(5, json!({"messageId": "u"})).await;
    b.agent.send_update(state_update("idle")).await;
    b.client.expect_nothing().await;
    b.agent
        .send_update(
            json!({"sessionUpdate": "user_message", "messageId": "u", "content": [text_block("hi")]}),
        )
        .await;
    b.agent.send_update(state_update("running")).await;
    let said = message_chunk("agent_message_chunk", "m", text_block("yes"));
    b.agent.send_update(said.clone()).await;
    b.client.expect_update(said).await;
    b.agent.send_update(state_update("requires_action")).await;
    b.agent.send_update(state_update("_thinking")).await;
    b.client.expect_nothing().await;
    let mut end = idle_update("max_tokens");
    end["usage"] = json!({"totalTokens": 3, "inputTokens": 1, "outputTokens": 2});
    end["background"] = json!([]);
    end["_meta"] = json!({"n": 1});
    b.agent.send_update(end).await;
    b.client
        .expect_response(5, json!({"stopReason": "max_tokens", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}, "_meta": {"n": 1}}))
        .await;
    // The same options again are not sent.
    b.agent.send_update(idle_update("max_tokens")).await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn every_stop_reason_is_translated() {
    let mut b = open_session().await;
    for (id, end, result) in [
        (5, json!({}), json!({"stopReason": "end_turn"})),
        (
            6,
            json!({"stopReason": null}),
            json!({"stopReason": "end_turn"}),
        ),
        (
            7,
            json!({"stopReason": "cancelled"}),
            json!({"stopReason": "cancelled"}),
        ),
        (
            8,
            json!({"stopReason": "_odd"}),
            json!({"stopReason": "end_turn", "_meta": {"acp-bridge": {"stopReason": "_odd"}}}),
        ),
    ] {
        begin_turn(&mut b, id).await;
        let mut update = state_update("idle");
        for (key, value) in end.as_object().unwrap() {
            update[key] = value.clone();
        }
        b.agent.send_update(update).await;
        b.client.expect_response(id, result).await;
    }
    begin_turn(&mut b, 9).await;
    let mut failed = idle_update("error");
    failed["error"] = json!({"code": -32000, "message": "log in first", "data": {"n": 1}});
    b.agent.send_update(failed).await;
    b.client
        .expect_message(json!({"id": 9, "error": {"code": -32000, "message": "log in first", "data": {"n": 1}}}))
        .await;
    begin_turn(&mut b, 10).await;
    b.agent.send_update(idle_update("error")).await;
    b.client.expect_error(10, -32603).await;
    // Rejected before it was accepted.
    b.client
        .send_request(11, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_error(11, -32602, "no images").await;
    b.client.expect_error(11, -32602).await;
    // Accepted, and ended without running.
    b.client
        .send_request(12, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_response(12, json!({})).await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(12, json!({"stopReason": "end_turn"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_agents_own_work_does_not_end_a_prompt() {
    let mut b = open_session().await;
    b.agent.send_update(state_update("running")).await;
    b.client
        .send_request(5, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.agent.send_response(5, json!({"messageId": "u"})).await;
    b.client.expect_nothing().await;
    b.agent.send_update(state_update("running")).await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(5, json!({"stopReason": "end_turn"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn each_of_two_prompts_ends_with_its_own_work() {
    let mut b = open_session().await;
    // The agent queues the second prompt.
    begin_turn(&mut b, 5).await;
    b.client
        .send_request(6, "session/prompt", prompt_params("more"))
        .await;
    assert_eq!(b.agent.next().await["id"], 6);
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(5, json!({"stopReason": "end_turn"}))
        .await;
    b.agent.send_response(6, json!({"messageId": "u6"})).await;
    b.agent.send_update(state_update("running")).await;
    b.client.expect_nothing().await;
    b.agent.send_update(idle_update("refusal")).await;
    b.client
        .expect_response(6, json!({"stopReason": "refusal"}))
        .await;
    // The second prompt joins the turn of the first, so both end together.
    begin_turn(&mut b, 7).await;
    b.client
        .send_request(8, "session/prompt", prompt_params("more"))
        .await;
    b.agent.next().await;
    b.agent.send_response(8, json!({"messageId": "u8"})).await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(7, json!({"stopReason": "end_turn"}))
        .await;
    b.client
        .expect_response(8, json!({"stopReason": "end_turn"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_cancel_reach_the_agent() {
    let mut b = open_session().await;
    begin_turn(&mut b, 5).await;
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    b.agent
        .expect_message(json!({"method": "session/cancel", "params": {"sessionId": "s"}}))
        .await;
    b.agent.send_update(idle_update("cancelled")).await;
    b.client
        .expect_response(5, json!({"stopReason": "cancelled"}))
        .await;
    begin_turn(&mut b, 6).await;
    b.client.expect_nothing().await;
    b.client
        .send_notification("$/cancel_request", json!({"requestId": 6}))
        .await;
    // The agent has already responded to that request, so this cancels the turn.
    b.agent
        .expect_message(json!({"method": "session/cancel", "params": {"sessionId": "s"}}))
        .await;
    b.agent.send_update(idle_update("cancelled")).await;
    b.client
        .expect_response(6, json!({"stopReason": "cancelled"}))
        .await;
    // The prompt was not accepted yet, so this cancels the request.
    b.client
        .send_request(7, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.client
        .send_notification("$/cancel_request", json!({"requestId": 7}))
        .await;
    b.agent
        .expect_message(json!({"method": "$/cancel_request", "params": {"requestId": 7}}))
        .await;
    b.agent.send_error(7, -32800, "cancelled").await;
    b.client.expect_error(7, -32800).await;
    // The cancel crosses the agent's response, after which the agent would ignore it.
    b.client
        .send_request(8, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.client
        .send_notification("$/cancel_request", json!({"requestId": 8}))
        .await;
    b.agent.next().await;
    b.agent.send_response(8, json!({"messageId": "u8"})).await;
    b.agent
        .expect_message(json!({"method": "session/cancel", "params": {"sessionId": "s"}}))
        .await;
    b.agent.send_update(idle_update("cancelled")).await;
    b.client
        .expect_response(8, json!({"stopReason": "cancelled"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_clients_own_message_is_not_echoed() {
    let mut b = open_session().await;
    let mine = |id: &str| whole_message("user_message", id, json!([text_block("hi")]));
    // The echo comes before the response, after it, in chunks, and from an agent that sends no id.
    b.client
        .send_request(5, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_update(mine("u5")).await;
    b.agent.send_response(5, json!({"messageId": "u5"})).await;
    b.agent
        .send_update(message_chunk("user_message_chunk", "u5", text_block("hi")))
        .await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(5, json!({"stopReason": "end_turn"}))
        .await;
    b.agent.send_update(mine("u5")).await;
    b.client
        .send_request(6, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_response(6, json!({})).await;
    b.agent
        .send_update(message_chunk("user_message_chunk", "u6", text_block("h")))
        .await;
    b.agent
        .send_update(message_chunk("user_message_chunk", "u6", text_block("i")))
        .await;
    b.client.expect_nothing().await;
    // A message of another client is not an echo.
    let other = message_chunk("user_message_chunk", "v", text_block("me, too"));
    b.agent
        .send_update(whole_message(
            "user_message",
            "v",
            json!([text_block("me, too")]),
        ))
        .await;
    b.client.expect_update(other).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_new_part_of_a_whole_message_is_sent() {
    let mut b = open_session().await;
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let told = |content: Value| whole_message("agent_message", "m", content);
    let piece = |content: Value| message_chunk("agent_message_chunk", "m", content);
    b.agent.send_update(piece(text_block("Hel"))).await;
    b.client.expect_update(piece(text_block("Hel"))).await;
    b.agent
        .send_update(told(json!([text_block("Hello")])))
        .await;
    b.client.expect_update(piece(text_block("lo"))).await;
    b.agent
        .send_update(told(json!([text_block("Hello")])))
        .await;
    b.agent
        .send_update(json!({"sessionUpdate": "agent_message", "messageId": "m", "_meta": {"n": 1}}))
        .await;
    // The text is the same, however it is split.
    b.agent
        .send_update(told(json!([
            text_block("He"),
            text_block("llo"),
            image,
            text_block("!")
        ])))
        .await;
    b.client.expect_update(piece(image.clone())).await;
    b.client.expect_update(piece(text_block("!"))).await;
    // Other text becomes another message with another id, to which later chunks belong.
    b.agent.send_update(told(json!([text_block("Help")]))).await;
    let again = b.client.next().await["params"]["update"].clone();
    let id = again["messageId"].as_str().unwrap().to_owned();
    assert_ne!(id, "m");
    assert_eq!(again["content"], text_block("Help"));
    b.agent.send_update(piece(text_block(" me"))).await;
    b.client
        .expect_update(message_chunk("agent_message_chunk", &id, text_block(" me")))
        .await;
    b.agent
        .send_update(told(json!([text_block("Help me")])))
        .await;
    b.client.expect_nothing().await;
    // A cleared message stays as it is, but later chunks form another message.
    b.agent.send_update(told(Value::Null)).await;
    b.agent.send_update(piece(text_block("new"))).await;
    let after = b.client.next().await["params"]["update"].clone();
    assert_eq!(after["content"], text_block("new"));
    assert!(after["messageId"] != id && after["messageId"] != "m");
    b.agent
        .send_update(whole_message(
            "agent_thought",
            "t",
            json!([text_block("hm")]),
        ))
        .await;
    b.client
        .expect_update(message_chunk("agent_thought_chunk", "t", text_block("hm")))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_announced_once_and_null_clears_its_fields() {
    let mut b = open_session().await;
    b.agent.send_update(tool_call(json!({"name": "rm", "kind": "delete", "title": null, "rawInput": {"a": 1}, "_meta": {"n": 1}}))).await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "rm", "title": "rm", "kind": "delete",
                     "rawInput": {"a": 1}, "_meta": {"n": 1}}))
        .await;
    b.agent
        .send_update(tool_call(json!({"title": null, "kind": null, "status": null, "content": null, "locations": null, "rawInput": null, "_meta": null})))
        .await;
    b.client
        .expect_update(tool_call(json!({"title": "", "kind": "other", "status": "pending", "content": [], "locations": []})))
        .await;
    for (status, told) in [
        ("cancelled", "failed"),
        ("paused", "in_progress"),
        ("_odd", "in_progress"),
    ] {
        b.agent
            .send_update(tool_call(json!({"status": status})))
            .await;
        b.client
            .expect_update(tool_call(
                json!({"status": told, "_meta": {"acp-bridge": {"status": status}}}),
            ))
            .await;
    }
    b.agent
        .send_update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "d"}))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call", "toolCallId": "d", "title": ""}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn chunks_of_tool_call_content_are_merged() {
    let mut b = open_session().await;
    let item = |t: &str| json!({"type": "content", "content": text_block(t)});
    let piece = |t: &str| json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item(t)});
    b.agent.send_update(piece("a")).await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "", "content": [item("a")]}))
        .await;
    b.agent.send_update(piece("b")).await;
    b.client
        .expect_update(tool_call(json!({"content": [item("a"), item("b")]})))
        .await;
    b.agent
        .send_update(tool_call(json!({"content": [item("x")]})))
        .await;
    b.client
        .expect_update(tool_call(json!({"content": [item("x")]})))
        .await;
    b.agent.send_update(piece("y")).await;
    b.client
        .expect_update(tool_call(json!({"content": [item("x"), item("y")]})))
        .await;
    // If there is a lot of output, its end is kept.
    let large = "l".repeat(200 * 1024);
    b.agent.send_update(piece(&large)).await;
    b.client.next().await;
    b.agent.send_update(piece(&large)).await;
    b.client
        .expect_update(tool_call(json!({"content": [item(&large)]})))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_diff_becomes_text_with_locations() {
    let mut b = open_session().await;
    let patch = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-1\n+2\n";
    let diff = json!({"type": "diff", "changes": [{"operation": "modify", "path": "/a"}],
                      "patch": {"format": "git_patch", "text": patch}});
    let bare = json!({"type": "diff", "changes": [
        {"operation": "add", "path": "/b"}, {"operation": "delete", "path": "/c"},
        {"operation": "move", "oldPath": "/d", "path": "/e"}, {"operation": "_odd", "path": "/f"}]});
    b.agent
        .send_update(tool_call(json!({"title": "T", "content": [diff, bare]})))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "content": [
            {"type": "content", "content": text_block(&format!("```diff\n{patch}```"))},
            {"type": "content", "content": text_block("added /b\ndeleted /c\nmoved /d to /e\n_odd /f")},
        ], "locations": [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}, {"path": "/e"}, {"path": "/f"}]}))
        .await;
    // The call's own locations are preferred.
    b.agent
        .send_update(tool_call(json!({"locations": [{"path": "/a", "line": 3}]})))
        .await;
    b.client.next().await;
    b.agent
        .send_update(
            json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": diff}),
        )
        .await;
    let told = b.client.next().await;
    assert!(
        told["params"]["update"].get("locations").is_none(),
        "{told}"
    );
}

/// Returns a tool call update that shows a terminal in its `_meta`.
fn shown_terminal(meta: Value) -> Value {
    tool_call(json!({"_meta": meta}))
}

#[tokio::test(start_paused = true)]
async fn a_terminal_is_sent_in_the_meta_of_its_call() {
    use base64::Engine;
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let output = |bytes: &[u8]| json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": base64(bytes)});
    let mut b = open_session().await;
    b.agent
        .send_update(json!({"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls", "cwd": "/w", "size": {"cols": 80, "rows": 24}}))
        .await;
    b.agent.send_update(output(b"early ")).await;
    b.client.expect_nothing().await;
    let item = json!({"type": "terminal", "terminalId": "t"});
    b.agent
        .send_update(tool_call(json!({"title": "T", "content": [item]})))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "content": [item]}))
        .await;
    b.client
        .expect_update(shown_terminal(
            json!({"terminal_info": {"terminal_id": "t", "command": "ls", "cwd": "/w"},
                           "terminal_output": {"terminal_id": "t", "data": "early "}}),
        ))
        .await;
    // A character of four bytes in four chunks.
    let crab = "🦀".as_bytes();
    for byte in &crab[..3] {
        b.agent.send_update(output(&[*byte])).await;
    }
    b.client.expect_nothing().await;
    b.agent
        .send_update(output(&[crab[3], b'!', 0xff, 0xc3]))
        .await;
    b.client
        .expect_update(shown_terminal(
            json!({"terminal_output": {"terminal_id": "t", "data": "🦀!\u{fffd}"}}),
        ))
        .await;
    // Only the end of the repeated output is new.
    let all = [b"early ", crab, b"!\xff\xc3\xa9."].concat();
    b.agent
        .send_update(json!({"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": base64(&all)}}))
        .await;
    b.client
        .expect_update(shown_terminal(
            json!({"terminal_output": {"terminal_id": "t", "data": "é."}}),
        ))
        .await;
    b.agent.send_update(output(&[0xc3])).await;
    b.agent
        .send_update(json!({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"exitCode": 3}}))
        .await;
    b.client
        .expect_update(shown_terminal(
            json!({"terminal_output": {"terminal_id": "t", "data": "\u{fffd}"},
                           "terminal_exit": {"terminal_id": "t", "exit_code": 3, "signal": null}}),
        ))
        .await;
    // The same content again shows nothing, and invalid content does no harm.
    b.agent
        .send_update(tool_call(json!({"content": [item]})))
        .await;
    b.client
        .expect_update(tool_call(json!({"content": [item]})))
        .await;
    b.agent
        .send_update(
            json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "%%%"}),
        )
        .await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn plans_are_merged_for_clients_that_support_one() {
    let entry = |content: &str, status: &str| json!({"content": content, "priority": "low", "status": status});
    let plan = |id: &str, entries: Value| json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": entries}});
    let cancelled = json!({"content": "b", "priority": "low", "status": "completed", "_meta": {"acp-bridge": {"status": "cancelled"}}});
    let document = json!({"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "m", "content": "# x"}});
    let removed = json!({"sessionUpdate": "plan_removed", "planId": "1"});

    let mut b = open_session().await;
    b.agent
        .send_update(plan("1", json!([entry("a", "pending")])))
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "plan", "entries": [entry("a", "pending")]}))
        .await;
    b.agent
        .send_update(plan("2", json!([entry("b", "cancelled")])))
        .await;
    b.client
        .expect_update(
            json!({"sessionUpdate": "plan", "entries": [entry("a", "pending"), cancelled]}),
        )
        .await;
    b.agent.send_update(document.clone()).await;
    b.agent.send_update(removed.clone()).await;
    b.client
        .expect_update(json!({"sessionUpdate": "plan", "entries": [cancelled]}))
        .await;

    let mut b = open_session_with(json!({"plan": {}}), json!({})).await;
    b.agent
        .send_update(plan("2", json!([entry("b", "cancelled")])))
        .await;
    b.client.expect_update(plan("2", json!([cancelled]))).await;
    for update in [document, removed] {
        b.agent.send_update(update.clone()).await;
        b.client.expect_update(update).await;
    }
}

#[tokio::test(start_paused = true)]
async fn optional_features_are_sent_only_to_clients_that_support_them() {
    let notice = json!({"sessionUpdate": "notice", "severity": "info", "title": "m"});
    let compaction =
        json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"});
    let mut b = open_session().await;
    b.agent.send_update(notice.clone()).await;
    b.agent.send_update(compaction.clone()).await;
    b.client.expect_nothing().await;
    let mut b = open_session_with(
        json!({"session": {"notices": {}, "compaction": {}}}),
        json!({}),
    )
    .await;
    for update in [notice, compaction] {
        b.agent.send_update(update.clone()).await;
        let seen = b.client.next().await;
        assert_eq!(seen["params"]["update"], update);
    }
}

fn mode_option(current: &str) -> Value {
    json!({"configId": "how", "name": "How", "category": "mode", "type": "select", "currentValue": current,
           "options": [{"groupId": "g", "name": "G", "options": [{"value": "ask", "name": "Ask"}]}, ]})
}

fn mode_option_v1(current: &str) -> Value {
    json!({"id": "how", "name": "How", "category": "mode", "type": "select", "currentValue": current,
           "options": [{"group": "g", "name": "G", "options": [{"value": "ask", "name": "Ask"}]}, ]})
}

#[tokio::test(start_paused = true)]
async fn the_mode_option_is_also_sent_as_modes() {
    let mut b = initialize_bridge(json!({})).await;
    let servers = json!([{"name": "a", "command": "/a", "args": [], "env": []}, {"type": "http", "name": "b", "url": "u", "headers": []}]);
    b.client
        .send_request(
            1,
            "session/new",
            json!({"cwd": "/w", "mcpServers": servers}),
        )
        .await;
    b.agent
        .expect_message(
            json!({"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": [
            {"type": "stdio", "name": "a", "command": "/a", "args": [], "env": []},
            {"type": "http", "name": "b", "url": "u", "headers": []}]}}),
        )
        .await;
    let fast = json!({"configId": "fast", "name": "Fast", "type": "boolean", "currentValue": true});
    b.agent
        .send_response(1, json!({"sessionId": "s", "configOptions": [mode_option("ask"), fast], "_meta": {"n": 1},
            "availableCommands": [{"type": "command", "name": "a", "description": "A", "input": {"type": "text", "hint": "h"}},
                                  {"type": "_odd", "name": "b"},
                                  {"type": "command", "name": "c", "description": "C", "input": {"type": "_odd"}}]}))
        .await;
    b.client
        .expect_response(
            1,
            json!({"sessionId": "s", "configOptions": [mode_option_v1("ask")], "_meta": {"n": 1},
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}}),
        )
        .await;
    b.client
        .expect_update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [
            {"name": "a", "description": "A", "input": {"hint": "h"}}, {"name": "c", "description": "C"}]}))
        .await;

    b.client
        .send_request(
            2,
            "session/set_mode",
            json!({"sessionId": "s", "modeId": "code"}),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 2, "method": "session/set_config_option",
                     "params": {"sessionId": "s", "configId": "how", "type": "id", "value": "code"}}))
        .await;
    b.agent
        .send_response(2, json!({"configOptions": [mode_option("code"), fast]}))
        .await;
    b.client.expect_response(2, json!({})).await;
    let changed = |mode: &str| json!({"sessionUpdate": "config_option_update", "configOptions": [mode_option_v1(mode)]});
    let mode = |mode: &str| json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
    b.client.expect_update(changed("code")).await;
    b.client.expect_update(mode("code")).await;

    b.client
        .send_request(
            3,
            "session/set_config_option",
            json!({"sessionId": "s", "configId": "how", "value": "ask"}),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 3, "method": "session/set_config_option",
                     "params": {"sessionId": "s", "configId": "how", "value": "ask", "type": "id"}}))
        .await;
    b.agent
        .send_response(3, json!({"configOptions": [mode_option("ask")]}))
        .await;
    b.client
        .expect_response(3, json!({"configOptions": [mode_option_v1("ask")]}))
        .await;
    b.client.expect_update(mode("ask")).await;

    b.agent
        .send_update(json!({"sessionUpdate": "config_option_update", "configOptions": [mode_option("code")]}))
        .await;
    b.client.expect_update(changed("code")).await;
    b.client.expect_update(mode("code")).await;
    b.agent
        .send_update(json!({"sessionUpdate": "config_option_update", "configOptions": [mode_option("code")]}))
        .await;
    b.client.expect_update(changed("code")).await;
    b.client.expect_nothing().await;

    b.client
        .send_request(
            4,
            "session/set_model",
            json!({"sessionId": "s", "modelId": "m"}),
        )
        .await;
    b.client.expect_error(4, -32602).await;
    b.client
        .send_request(
            5,
            "session/set_config_option",
            json!({"sessionId": "s", "configId": "fast", "type": "boolean", "value": false}),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 5, "method": "session/set_config_option",
                     "params": {"sessionId": "s", "configId": "fast", "type": "boolean", "value": false}}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn boolean_options_are_sent_only_to_clients_that_support_them() {
    let fast = json!({"configId": "fast", "name": "Fast", "type": "boolean", "currentValue": true});
    let told = json!({"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true});
    for (capabilities, list) in [
        (json!({}), json!([])),
        (
            json!({"session": {"configOptions": {"boolean": {}}}}),
            json!([told]),
        ),
    ] {
        let mut b = open_session_with(capabilities, json!({})).await;
        b.agent
            .send_update(json!({"sessionUpdate": "config_option_update", "configOptions": [fast]}))
            .await;
        b.client
            .expect_update(json!({"sessionUpdate": "config_option_update", "configOptions": list}))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn load_becomes_resume_with_a_replay() {
    let mut b = initialize_bridge(json!({})).await;
    b.client
        .send_request(
            1,
            "session/load",
            json!({"sessionId": "s", "cwd": "/w", "mcpServers": []}),
        )
        .await;
    b.agent
        .expect_message(json!({"id": 1, "method": "session/resume",
                     "params": {"sessionId": "s", "cwd": "/w", "mcpServers": [], "replayFrom": {"type": "start"}}}))
        .await;
    b.agent
        .send_update(whole_message(
            "user_message",
            "u",
            json!([text_block("hi"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
        ))
        .await;
    b.client
        .expect_update(message_chunk("user_message_chunk", "u", text_block("hi")))
        .await;
    b.client
        .expect_update(message_chunk(
            "user_message_chunk",
            "u",
            json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}),
        ))
        .await;
    b.agent
        .send_update(whole_message(
            "agent_message",
            "m",
            json!([text_block("ho")]),
        ))
        .await;
    b.client
        .expect_update(message_chunk("agent_message_chunk", "m", text_block("ho")))
        .await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.agent
        .send_response(1, json!({"configOptions": [mode_option("ask")]}))
        .await;
    b.client
        .expect_response(
            1,
            json!({"configOptions": [mode_option_v1("ask")],
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}}),
        )
        .await;
    b.client
        .send_request(2, "session/resume", json!({"sessionId": "s", "cwd": "/w"}))
        .await;
    b.agent
        .expect_message(
            json!({"id": 2, "method": "session/resume", "params": {"sessionId": "s", "cwd": "/w"}}),
        )
        .await;
    b.agent.send_error(2, -32002, "gone").await;
    b.client.expect_error(2, -32002).await;
    // The replay is over.
    begin_turn(&mut b, 3).await;
    b.agent
        .send_update(whole_message(
            "user_message",
            "u3",
            json!([text_block("hi")]),
        ))
        .await;
    b.client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn permission_requests_always_have_a_tool_call() {
    let mut b = open_session().await;
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let ask = |mut fields: Value| {
        fields["sessionId"] = json!("s");
        fields["options"] = options.clone();
        fields
    };
    // A call that the client knows, with its content.
    let item = |t: &str| json!({"type": "content", "content": text_block(t)});
    b.agent
        .send_update(tool_call(json!({"title": "T", "content": [item("old")]})))
        .await;
    b.client.next().await;
    b.agent
        .send_request("p", "session/request_permission", ask(json!({
            "title": "Delete it?", "description": "It is old.", "_meta": {"n": 1},
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c", "status": "paused", "kind": null}}})))
        .await;
    b.client
        .expect_message(json!({"id": "p", "method": "session/request_permission", "params": ask(json!({
            "_meta": {"n": 1},
            "toolCall": {"toolCallId": "c", "status": "in_progress", "_meta": {"acp-bridge": {"status": "paused"}},
                         "title": "T", "content": [item("Delete it?\n\nIt is old."), item("old")]}}))}))
        .await;
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    b.client.send_response("p", yes.clone()).await;
    b.agent.expect_response("p", yes).await;
    // The question is not content of the call.
    b.client
        .expect_update(tool_call(json!({"content": [item("old")]})))
        .await;
    // A question that equals the title of the call.
    b.agent
        .send_request(
            "o",
            "session/request_permission",
            ask(json!({"title": "T",
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c"}}})),
        )
        .await;
    b.client
        .expect_message(
            json!({"id": "o", "method": "session/request_permission", "params": ask(json!({
            "toolCall": {"toolCallId": "c", "title": "T"}}))}),
        )
        .await;
    // A command with a tool call, and one without.
    b.agent
        .send_request(
            "q",
            "session/request_permission",
            ask(json!({"title": "Run?",
            "subject": {"type": "command", "command": "rm x", "cwd": "/w", "toolCallId": "d"}})),
        )
        .await;
    b.client
        .expect_message(json!({"id": "q", "method": "session/request_permission", "params": ask(json!({
            "toolCall": {"toolCallId": "d", "kind": "execute", "title": "Run?", "content": [item("rm x")],
                         "rawInput": {"command": "rm x", "cwd": "/w"}}}))}))
        .await;
    // A request without a subject.
    b.agent
        .send_request(
            "r",
            "session/request_permission",
            ask(json!({"title": "May I?", "subject": null})),
        )
        .await;
    let asked = b.client.next().await;
    assert_eq!(asked["params"]["toolCall"]["title"], "May I?");
    assert!(
        !asked["params"]["toolCall"]["toolCallId"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    assert!(asked["params"].get("title").is_none());
    // The agent cancels its question.
    b.agent
        .send_notification("$/cancel_request", json!({"requestId": "r"}))
        .await;
    b.client
        .expect_message(json!({"method": "$/cancel_request", "params": {"requestId": "r"}}))
        .await;
    b.client
        .send_response("r", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    b.agent
        .expect_response("r", json!({"outcome": {"outcome": "cancelled"}}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn version_1_methods_are_renamed_for_the_agent() {
    let mut b = open_session().await;
    for (asked, called) in [
        ("authenticate", "auth/login"),
        ("logout", "auth/logout"),
        ("session/list", "session/list"),
        ("session/delete", "session/delete"),
        ("session/close", "session/close"),
    ] {
        let params = json!({"methodId": "m", "sessionId": "other"});
        b.client.send_request(7, asked, params.clone()).await;
        b.agent
            .expect_message(json!({"id": 7, "method": called, "params": params}))
            .await;
        let result = json!({"sessions": []});
        b.agent.send_response(7, result.clone()).await;
        b.client.expect_response(7, result).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_messages_pass_unchanged() {
    let mut b = open_session().await;
    for line in [
        r#"{"jsonrpc":"2.0",  "id":77,"method":"_x/ask","params":{"n":12345678901234567890,"f":1e400}}"#,
        r#"{"method":"_x/tell","params":[1, 2],"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":"nobody asked","result":{"a" : 1}}"#,
    ] {
        b.client.send_line(line).await;
        assert_eq!(b.agent.expect_line().await, line);
        b.agent.send_line(line).await;
        assert_eq!(b.client.expect_line().await, line);
    }
    for line in [
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"_odd","n":1e400}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk", "messageId":"m","content":{"type":"_odd","n":12345678901234567890}}}}"#,
    ] {
        b.agent.send_line(line).await;
        assert_eq!(b.client.expect_line().await, line);
    }
    b.agent
        .send_line(r#"{"x":[1.50],"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"n":12345678901234567890},"sessionId":"s","update":{"toolCallId":"c","sessionUpdate":"tool_call_update","title":"T","rawInput":{"n":1e400},"future":{"a" : 1}}}}"#)
        .await;
    assert_eq!(
        b.client.expect_line().await,
        r#"{"x":[1.50],"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"n":12345678901234567890},"sessionId":"s","update":{"toolCallId":"c","sessionUpdate":"tool_call","title":"T","rawInput":{"n":1e400},"future":{"a" : 1}}}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_are_independent() {
    let mut b = open_session().await;
    begin_turn(&mut b, 5).await;
    let other = json!({"sessionId": "t", "prompt": [text_block("x")]});
    b.client.send_request(6, "session/prompt", other).await;
    b.agent.next().await;
    b.agent.send_response(6, json!({})).await;
    let says = |update: Value| json!({"sessionId": "t", "update": update});
    b.agent
        .send_notification("session/update", says(state_update("running")))
        .await;
    // The same ids in another session refer to other things.
    b.agent.send_update(tool_call(json!({"title": "T"}))).await;
    b.client.next().await;
    b.agent
        .send_notification("session/update", says(tool_call(json!({"title": "T"}))))
        .await;
    assert_eq!(
        b.client.next().await["params"]["update"]["sessionUpdate"],
        "tool_call"
    );
    b.agent
        .send_notification("session/update", says(idle_update("end_turn")))
        .await;
    b.client
        .expect_response(6, json!({"stopReason": "end_turn"}))
        .await;
    b.agent.send_update(idle_update("end_turn")).await;
    b.client
        .expect_response(5, json!({"stopReason": "end_turn"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_capabilities_pass_unchanged() {
    let mut b = start_bridge(1);
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    b.client.send_request(0, "initialize", params).await;
    b.agent.next().await;
    let theirs = json!({
        "session": {
            "prompt": {"image": {}, "_odd": {"a": 1}},
            "mcp": {"stdio": {}, "_odd": {}},
            "delete": {},
            "_odd": {"deep": [1]},
        },
        "auth": {"_odd": {}},
        "_odd": true,
    });
    let info = json!({"name": "a", "version": "1"});
    let answer = json!({"protocolVersion": 2, "info": info, "capabilities": theirs});
    b.agent.send_response(0, answer).await;
    let answer = b.client.next().await;
    assert_eq!(
        answer["result"]["agentCapabilities"],
        json!({
            "loadSession": true,
            "promptCapabilities":
                {"image": true, "audio": false, "embeddedContext": false, "_odd": {"a": 1}},
            "mcpCapabilities": {"http": false, "_odd": {}, "sse": false},
            "sessionCapabilities":
                {"list": {}, "resume": {}, "close": {}, "delete": {}, "_odd": {"deep": [1]}},
            "auth": {"_odd": {}},
            "_odd": true,
        })
    );
}

/// A client without support for subagents gets their permission requests, but not their updates.
#[tokio::test(start_paused = true)]
async fn subagents_are_sent_only_to_clients_that_support_them() {
    let announced =
        json!({"sessionUpdate": "subagent_update", "sessionId": "c", "title": "Look around"});
    let said = json!({"sessionId": "c", "update": {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text_block("I look.")}});
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let asked = json!({"sessionId": "c", "title": "May I?", "options": options,
                       "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": "May I?"}}});
    for knows in [false, true] {
        let capabilities = match knows {
            true => json!({"subagents": {}}),
            false => json!({}),
        };
        let mut b = open_session_with(capabilities, json!({})).await;
        b.agent.send_update(announced.clone()).await;
        if knows {
            b.client.expect_update(announced.clone()).await;
        }
        b.agent
            .send_notification("session/update", said.clone())
            .await;
        if knows {
            b.client
                .expect_message(json!({"method": "session/update", "params": said}))
                .await;
        }
        // Questions are asked in either case, because the agent waits for the response.
        b.agent
            .send_request("p", "session/request_permission", asked.clone())
            .await;
        let session = if knows { "c" } else { "s" };
        b.client
            .expect_message(
                json!({"id": "p", "method": "session/request_permission", "params": {
                "sessionId": session, "options": options,
                "toolCall": {"toolCallId": "t", "title": "May I?"}}}),
            )
            .await;
        let yes = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
        b.client.send_response("p", yes.clone()).await;
        b.agent.expect_response("p", yes).await;
        b.client.expect_nothing().await;
    }
}
