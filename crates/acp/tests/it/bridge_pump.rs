//! Tests of bridge shutdown, limits, non-message lines, and two chained bridges.

use crate::bridge_peers;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bridge_peers::{
    BridgedPeers, PIPE_CAPACITY, PeerRole, bridge_peer, limits_with, start_bridge,
    start_bridge_with,
};
use acp::bridge::{Bridge, BridgeSide};
use acp::transport;
use serde_json::{Value, json};

async fn initialize_bridge(b: &mut BridgedPeers, to: u8) {
    let params = json!({"protocolVersion": to, "info": {"name": "c", "version": "1"}});
    b.client.send_request(0, "initialize", params).await;
    b.agent.next().await;
    let info = json!({"name": "a", "version": "1"});
    b.agent
        .send_response(
            0,
            json!({"protocolVersion": 3 - to, "info": info, "capabilities": {"session": {}}}),
        )
        .await;
    b.client.next().await;
}

async fn start_initialized(to: u8) -> BridgedPeers {
    let mut b = start_bridge(to);
    initialize_bridge(&mut b, to).await;
    b
}

fn prompt_params(text: &str) -> Value {
    json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]})
}

/// Sends a prompt as a version 2 client, and receives it as the agent.
async fn begin_turn(b: &mut BridgedPeers, id: i64) {
    b.client
        .send_request(id, "session/prompt", prompt_params("hi"))
        .await;
    for _ in 0..3 {
        b.client.next().await;
    }
    b.agent.next().await;
}

#[tokio::test(start_paused = true)]
async fn pending_requests_get_errors_when_the_agent_exits() {
    let mut b = start_initialized(2).await;
    begin_turn(&mut b, 1).await;
    b.client
        .send_request(2, "session/prompt", prompt_params("held"))
        .await;
    b.client
        .send_request(3, "session/new", json!({"cwd": "/"}))
        .await;
    b.client.send_request(4, "_x/y", json!({})).await;
    b.client
        .send_request(5, "session/close", json!({"sessionId": "s"}))
        .await;
    b.client.expect_error(2, -32800).await;
    for _ in 0..3 {
        b.agent.next().await;
    }
    // Its last message, without a line ending.
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}}});
    b.agent.send_line(&update.to_string()).await;
    b.agent.close();
    b.client.expect_message(update).await;
    let ended = b.client.next().await["params"]["update"].clone();
    assert_eq!(ended["stopReason"], "error");
    assert_eq!(ended["error"]["code"], -32603);
    b.client.expect_error(3, -32603).await;
    b.client.expect_error(4, -32603).await;
    b.client.expect_error(5, -32603).await;
    b.client.expect_end().await;
    b.agent.expect_end().await;
    let end = b.end.await.unwrap();
    assert_eq!(end.first, BridgeSide::Agent);
    assert!(end.error.is_none());

    let mut b = start_initialized(1).await;
    b.client
        .send_request(1, "session/prompt", prompt_params("hi"))
        .await;
    b.agent.next().await;
    b.agent.send_response(1, json!({"messageId": "u"})).await;
    b.agent.close();
    b.client.expect_error(1, -32603).await;
    b.client.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_exits_in_the_handshake_is_reported() {
    let mut b = start_bridge(2);
    b.client
        .send_request(0, "initialize", json!({"protocolVersion": 2}))
        .await;
    b.client.send_request(1, "session/new", json!({})).await;
    b.agent.next().await;
    b.agent.close();
    b.client.expect_error(0, -32603).await;
    b.client.expect_end().await;
    assert_eq!(b.end.await.unwrap().first, BridgeSide::Agent);
}

#[tokio::test(start_paused = true)]
async fn the_agent_can_finish_after_the_client_exits() {
    let mut b = start_initialized(2).await;
    begin_turn(&mut b, 1).await;
    b.client
        .send_request(2, "session/prompt", prompt_params("held"))
        .await;
    b.client.close();
    b.agent.expect_end().await;
    b.agent
        .send_response(1, json!({"stopReason": "end_turn"}))
        .await;
    let ended = b.client.next().await;
    assert_eq!(ended["params"]["update"]["stopReason"], "end_turn");
    b.agent.close();
    // Queued prompts can no longer start.
    b.client.expect_error(2, -32603).await;
    b.client.expect_end().await;
    assert_eq!(b.end.await.unwrap().first, BridgeSide::Client);
}

#[tokio::test(start_paused = true)]
async fn the_bridge_waits_only_briefly_for_an_agent_that_does_not_exit() {
    let mut b = start_initialized(2).await;
    begin_turn(&mut b, 1).await;
    let started = tokio::time::Instant::now();
    b.client.close();
    b.agent.expect_end().await;
    // Two seconds for the agent to finish the turn.
    let ended = b.client.next().await;
    assert_eq!(ended["params"]["update"]["stopReason"], "error");
    b.client.expect_end().await;
    b.end.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    // The same for an agent that does not respond to `initialize`.
    let mut b = start_bridge(2);
    b.client
        .send_request(0, "initialize", json!({"protocolVersion": 2}))
        .await;
    b.client.send_request(1, "session/new", json!({})).await;
    b.client.close();
    b.agent.next().await;
    b.client.expect_error(0, -32603).await;
    b.client.expect_end().await;
    assert_eq!(b.end.await.unwrap().first, BridgeSide::Client);
}

#[tokio::test(start_paused = true)]
async fn the_bridge_ends_when_the_client_has_exited() {
    let BridgedPeers {
        client,
        mut agent,
        end,
    } = {
        let mut b = start_initialized(2).await;
        begin_turn(&mut b, 1).await;
        b
    };
    drop(client);
    agent.expect_end().await;
    drop(agent);
    assert_eq!(end.await.unwrap().first, BridgeSide::Client);
}

#[tokio::test(start_paused = true)]
async fn invalid_lines_are_noise_from_agents_and_errors_for_clients() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let shown = Arc::clone(&seen);
    let mut b = start_bridge_with(2, PIPE_CAPACITY, |bridge| {
        bridge.on_noise(move |line| shown.lock().unwrap().push(line.to_owned()))
    });
    b.agent.send_line("starting ...").await;
    b.client.send_line("what?").await;
    b.client.expect_error(Value::Null, -32700).await;
    initialize_bridge(&mut b, 2).await;
    b.agent.send_line("warn: \u{1b}[31mred").await;
    b.agent.send_line("{\"half\":").await;
    b.client.send_line("{\"half\":").await;
    b.client.expect_error(Value::Null, -32700).await;
    b.client.send_line("[{\"jsonrpc\":\"2.0\"}]").await;
    b.client.expect_error(Value::Null, -32600).await;
    b.client
        .send_line(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#)
        .await;
    b.client.expect_error(Value::Null, -32600).await;
    b.agent.expect_nothing().await;
    begin_turn(&mut b, 1).await;
    b.agent.close();
    assert_eq!(b.end.await.unwrap().noise, 3);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["starting ...", "warn: \u{1b}[31mred", "{\"half\":"]);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_message_is_reported_to_the_side_that_waits_for_it() {
    let mut b = start_bridge_with(2, PIPE_CAPACITY, |bridge| {
        bridge.limits(limits_with(|limits| limits.message = 10_000))
    });
    initialize_bridge(&mut b, 2).await;
    let large = "x".repeat(20_000);
    b.client
        .send_request(1, "session/prompt", prompt_params(&large))
        .await;
    let text = b.client.expect_error(1, -32600).await;
    assert!(text.contains("limit: 10000 bytes"), "{text}");
    // A response of the agent: the turn ends with the error.
    begin_turn(&mut b, 2).await;
    b.agent
        .send_response(2, json!({"stopReason": "end_turn", "_meta": {"x": large}}))
        .await;
    let ended = b.client.next().await["params"]["update"].clone();
    assert_eq!(ended["stopReason"], "error");
    assert!(
        ended["error"]["message"]
            .as_str()
            .unwrap()
            .contains("message too large")
    );
    // A response of the client: the agent does not wait forever.
    b.agent.send_request(3, "_x/ask", json!({})).await;
    b.client.next().await;
    b.client.send_response(3, json!({"x": large})).await;
    b.agent.expect_error(3, -32603).await;
    // A request of the agent, and an update, which is lost.
    b.agent.send_request(4, "_x/ask", json!({"x": large})).await;
    b.agent.expect_error(4, -32600).await;
    b.agent
        .send_notification("session/update", json!({"x": large}))
        .await;
    b.client.expect_nothing().await;
    b.agent.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_can_still_cancel() {
    let mut b = start_initialized(2).await;
    begin_turn(&mut b, 1).await;
    let chunk = json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x".repeat(1000)}}});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": chunk}).to_string();
    // The agent writes until it has to wait.
    let mut agent = b.agent;
    let mut written = 0;
    while tokio::time::timeout(Duration::from_secs(1), agent.send_line(&line))
        .await
        .is_ok()
    {
        written += 1;
        assert!(written < 2000, "what nobody reads is read without end");
    }
    // Both pipes, the output buffer of 256 KiB, and the part of it that is being written.
    assert!((200..1000).contains(&written), "{written}");
    b.client
        .send_notification("session/cancel", json!({"sessionId": "s"}))
        .await;
    assert_eq!(agent.next().await["method"], "session/cancel");
    // Once it reads, everything arrives in order.
    let mut id = None;
    for _ in 0..written {
        let seen = b.client.next().await["params"]["update"]["messageId"].clone();
        assert_eq!(*id.get_or_insert(seen.clone()), seen);
    }
}

#[tokio::test(start_paused = true)]
async fn reading_stops_if_a_peer_does_not_read_its_responses() {
    let mut b = start_initialized(2).await;
    // The agent sends requests that are rejected, and does not read the errors.
    let mut written = 0;
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": {}});
    let ask = ask.to_string();
    while tokio::time::timeout(Duration::from_secs(1), b.agent.send_line(&ask))
        .await
        .is_ok()
    {
        written += 1;
        assert!(written < 40_000, "what must be refused is read without end");
    }
    assert!(written > 5000, "{written}");
}

#[tokio::test(start_paused = true)]
async fn pending_requests_are_limited() {
    let mut b = start_bridge_with(2, PIPE_CAPACITY, |bridge| {
        bridge.limits(limits_with(|limits| limits.requests = 3))
    });
    initialize_bridge(&mut b, 2).await;
    for id in 1..=3 {
        b.client.send_request(id, "_x/y", json!({})).await;
    }
    b.client.send_request(4, "_x/y", json!({})).await;
    b.client.expect_error(4, -32603).await;
    b.client.send_request(2, "_x/y", json!({})).await;
    b.client.expect_error(2, -32600).await;
    b.agent.send_response(1, json!({})).await;
    b.client.expect_response(1, json!({})).await;
    b.client.send_request(4, "_x/y", json!({})).await;
    for id in [1, 2, 3, 4] {
        assert_eq!(b.agent.next().await["id"], id);
    }
}

/// Returns a client and an agent that both speak version 1. If `bridges` is `true`, two chained bridges connect them.
/// Otherwise, a single bridge passes on their messages unchanged.
fn version_1_peers(bridges: bool) -> (bridge_peers::BridgePeer, bridge_peers::BridgePeer) {
    let (client_side, client) = bridge_peer(PeerRole::Client(1), PIPE_CAPACITY);
    let (agent_side, agent) = bridge_peer(PeerRole::Agent(1), PIPE_CAPACITY);
    if bridges {
        let (front, back) = transport::memory();
        tokio::spawn(Bridge::to_v1().run(client_side, front));
        tokio::spawn(Bridge::to_v2().run(back, agent_side));
    } else {
        // Both sides speak version 1, so this one changes nothing.
        tokio::spawn(Bridge::to_v2().run(client_side, agent_side));
    }
    (client, agent)
}

#[tokio::test(start_paused = true)]
async fn a_turn_over_two_bridges_is_unchanged() {
    let mut seen = Vec::new();
    for bridges in [false, true] {
        let (mut client, mut agent) = version_1_peers(bridges);
        let mut said = Vec::new();
        let capabilities = json!({"session": {"configOptions": {"boolean": {}}}, "plan": {}});
        client
            .send_request(
                0,
                "initialize",
                json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
            )
            .await;
        assert_eq!(agent.next().await["params"]["protocolVersion"], 1);
        agent
            .send_response(0, json!({"protocolVersion": 1, "agentInfo": {"name": "a", "version": "1"},
                "agentCapabilities": {"loadSession": true, "promptCapabilities": {"image": true, "audio": false, "embeddedContext": false},
                    "mcpCapabilities": {"http": true, "sse": false}, "sessionCapabilities": {"resume": {}, "list": {}, "close": {}},
                    "auth": {"logout": {}}},
                "authMethods": [{"id": "k", "name": "K"}]}))
            .await;
        said.push(client.next().await);
        client
            .send_request(1, "session/new", json!({"cwd": "/w", "mcpServers": []}))
            .await;
        agent.next().await;
        let mode = |mode: &str| {
            json!({"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
                      "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]})
        };
        agent
            .send_response(1, json!({"sessionId": "s", "configOptions": [mode("ask")], "modes": {"currentModeId": "ask",
                "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}}))
            .await;
        said.push(client.next().await);
        client
            .send_request(2, "session/prompt", prompt_params("hi"))
            .await;
        agent
            .expect_message(
                json!({"id": 2, "method": "session/prompt", "params": prompt_params("hi")}),
            )
            .await;
        let call = |kind: &str, fields: Value| {
            let mut call = json!({"sessionUpdate": kind, "toolCallId": "c"});
            for (key, value) in fields.as_object().unwrap() {
                call[key] = value.clone();
            }
            call
        };
        let item = json!({"type": "content", "content": {"type": "text", "text": "x"}});
        let plan = json!({"type": "items", "planId": "p", "entries": [{"content": "a", "priority": "high", "status": "pending"}]});
        let updates = [
            json!({"sessionUpdate": "agent_thought_chunk", "messageId": "t", "content": {"type": "text", "text": "hm"}}),
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "a"}}),
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "b"}, "_meta": {"n": 1}}),
            call(
                "tool_call",
                json!({"title": "T", "kind": "edit", "status": "pending", "rawInput": {"a": 1}}),
            ),
            call(
                "tool_call_update",
                json!({"status": "in_progress", "content": [item]}),
            ),
            call(
                "tool_call_update",
                json!({"_meta": {"terminal_info": {"terminal_id": "x", "cwd": "/w"}}, "content": [{"type": "terminal", "terminalId": "x"}]}),
            ),
            call(
                "tool_call_update",
                json!({"_meta": {"terminal_output": {"terminal_id": "x", "data": "é\n"}}}),
            ),
            call(
                "tool_call_update",
                json!({"_meta": {"terminal_exit": {"terminal_id": "x", "exit_code": 0, "signal": null}}}),
            ),
            call(
                "tool_call_update",
                json!({"status": "completed", "locations": [{"path": "/a", "line": 1}]}),
            ),
            json!({"sessionUpdate": "plan_update", "plan": plan}),
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a", "description": "A", "input": {"hint": "h"}}]}),
            json!({"sessionUpdate": "config_option_update", "configOptions": [mode("code")]}),
            json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
            json!({"sessionUpdate": "_odd", "n": 1}),
        ];
        for update in updates {
            agent.send_update(update).await;
        }
        agent
            .send_request(
                "p",
                "session/request_permission",
                json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "T"},
                "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}),
            )
            .await;
        loop {
            let message = client.next().await;
            let asked = message["method"] == "session/request_permission";
            said.push(message);
            if asked {
                break;
            }
        }
        client
            .send_response(
                "p",
                json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
            )
            .await;
        agent
            .expect_response(
                "p",
                json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
            )
            .await;
        agent
            .send_response(2, json!({"stopReason": "refusal", "_meta": {"n": 1}}))
            .await;
        said.push(client.next().await);
        // A turn that fails, and one that is cancelled.
        client
            .send_request(3, "session/prompt", prompt_params("again"))
            .await;
        agent.next().await;
        agent.send_error(3, -32000, "log in").await;
        said.push(client.next().await);
        client
            .send_request(4, "session/prompt", prompt_params("again"))
            .await;
        agent.next().await;
        client
            .send_notification("session/cancel", json!({"sessionId": "s"}))
            .await;
        assert_eq!(agent.next().await["method"], "session/cancel");
        agent
            .send_response(4, json!({"stopReason": "cancelled"}))
            .await;
        said.push(client.next().await);
        client.expect_nothing().await;
        seen.push(said);
    }
    let over = seen.pop().unwrap();
    let mut plain = seen.pop().unwrap();
    // What every version 2 agent supports, so that the client at the other end sees it.
    plain[0]["result"]["agentCapabilities"]["auth"] = json!({"logout": {}});
    // The terminal has an update of its own, and the change of mode is also sent as a mode update.
    let info = plain
        .iter()
        .position(|m| !m["params"]["update"]["_meta"]["terminal_info"].is_null())
        .unwrap();
    let meta = plain[info]["params"]["update"]
        .as_object_mut()
        .unwrap()
        .remove("_meta")
        .unwrap();
    let mut own = plain[info].clone();
    own["params"]["update"] =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": meta});
    plain.insert(info + 1, own);
    let config = plain
        .iter()
        .position(|m| m["params"]["update"]["sessionUpdate"] == "config_option_update")
        .unwrap();
    let mut mode = plain[config].clone();
    mode["params"]["update"] =
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"});
    plain.insert(config + 1, mode);
    for (plain, over) in plain.iter().zip(&over) {
        assert_eq!(plain, over);
    }
    assert_eq!(plain.len(), over.len());
}
