//! Checks for messages on streams: "Long-lived GET streams" and "Streamable HTTP Message Flow".

use serde_json::{Value, json};

use crate::agent_harness::UNKNOWN_METHOD;
use crate::check::remote_checks;
use crate::options::AgentTask;
use crate::remote::http::RawHttpRequest;
use crate::remote::server_harness::{ServerHarness, StreamId};
use crate::remote::server_sessions::HttpSession;
use crate::verdict::{CheckStop, fail, require, skip};

remote_checks! { Server "streams";
    1 Must "A GET with `Acp-Connection-Id` opens the connection's stream, which has the type `text/event-stream`." => opens_connection_stream;
    2 Must "A GET that also has `Acp-Session-Id` opens the session's stream." => opens_session_stream;
    3 Must "The response to `session/new` arrives on the connection's stream." => answers_session_new;
    4 Must "Updates of a session arrive on the session's stream." => sends_updates_on_session_stream;
    5 Must "The response to `session/prompt` arrives on the session's stream." => answers_prompt;
    6 Must "The agent's requests about a session arrive on the session's stream." => sends_requests_on_session_stream;
    7 Must "A response to the agent gets status 202, and the agent receives it." => accepts_responses;
    8 Must "After `session/cancel`, the response to the prompt arrives on the session's stream." => answers_cancelled_prompt;
    9 Must "With two sessions, the messages of each session arrive on that session's stream." => separates_session_streams;
    10 Must "Each event is one JSON-RPC message." => sends_one_message_per_event;
    11 Must "The history of a loaded session arrives on the session's stream." => replays_history;
    12 Must "The response to `session/load` arrives on the connection's stream or on the session's stream." => answers_load;
    13 Must "All requests that are sent at the same time while streams are open get responses." => answers_concurrent_requests;
    14 Should "The client can reopen a stream that it has closed." => reopens_stream;
}

/// The number of requests to send at once.
const CONCURRENT_REQUESTS: usize = 20;

/// Opens a connection and a session.
async fn open(harness: &mut ServerHarness) -> Result<HttpSession, CheckStop> {
    let connection = harness.connect().await?;
    harness.open_session(&connection).await
}

/// Returns the updates received so far, each with its stream and session.
fn updates(harness: &ServerHarness) -> impl Iterator<Item = (StreamId, &str)> {
    let messages = harness.messages.iter();
    let updates = messages.filter(|(_, message)| message["method"] == "session/update");
    updates.map(|(stream, message)| {
        let session = message["params"]["sessionId"].as_str();
        (*stream, session.unwrap_or_default())
    })
}

async fn opens_connection_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.connect().await.map(drop)
}

async fn opens_session_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    open(harness).await.map(drop)
}

async fn answers_session_new(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    // With another stream open, there is a choice.
    harness.open_session(&connection).await?;
    let (stream, _) = harness.new_session_on_connection(&connection).await?;
    harness.require_expected_stream("the response to `session/new`", stream, connection.stream)
}

async fn sends_updates_on_session_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    harness.run_turn(&session, AgentTask::Answer).await?;
    let all: Vec<(StreamId, &str)> = updates(harness).collect();
    if all.is_empty() {
        return skip("the agent sent no updates");
    }
    for (stream, _) in all {
        harness.require_expected_stream("an update for the session", stream, session.stream)?;
    }
    Ok(())
}

async fn answers_prompt(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    let (stream, _) = harness.run_turn(&session, AgentTask::Answer).await?;
    harness.require_expected_stream("the response to `session/prompt`", stream, session.stream)
}

/// Runs a turn until the agent requests permission. Returns the id of the prompt, the stream on which the request
/// arrived, and the request. Skips the check if the agent does not request permission.
async fn run_turn_until_permission_request(
    harness: &mut ServerHarness,
    session: &HttpSession,
) -> Result<(Value, (StreamId, Value)), CheckStop> {
    let id = harness.prompt(session, AgentTask::Run).await?;
    let patience = harness.options.turn_timeout;
    let question = harness
        .wait_within(patience, "a permission request", |stream, message| {
            if message["method"] == "session/request_permission" {
                return Some(Some((stream, message.clone())));
            }
            let is_over = message["id"] == id && message.get("method").is_none();
            is_over.then_some(None)
        })
        .await?;
    match question {
        Some(question) => Ok((id, question)),
        None => skip("the agent did not request permission"),
    }
}

async fn sends_requests_on_session_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    let (_, (stream, _)) = run_turn_until_permission_request(harness, &session).await?;
    harness.require_expected_stream("`session/request_permission`", stream, session.stream)
}

async fn accepts_responses(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    let (prompt, (_, question)) = run_turn_until_permission_request(harness, &session).await?;
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome});
    let request = RawHttpRequest::post(response.to_string())
        .connection(&session.connection)
        .session(&session.id);
    let what = "the response to `session/request_permission`";
    harness.require_status(what, request, 202).await?;
    match harness.wait_for_turn_end(&prompt).await {
        Err(CheckStop::Fail(why)) => fail(format!(
            "after the response to `session/request_permission`: {why}"
        )),
        done => done.map(drop),
    }
}

async fn answers_cancelled_prompt(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    let id = harness.prompt(&session, AgentTask::Long).await?;
    let patience = harness.options.turn_timeout;
    let has_ended = harness
        .wait_within(patience, "an update during the turn", |_, message| {
            let is_over = message["id"] == id && message.get("method").is_none();
            (is_over || message["method"] == "session/update").then_some(is_over)
        })
        .await?;
    if has_ended {
        return skip("the turn ended before it was cancelled");
    }
    let params = json!({"sessionId": session.id});
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
    let (connection, of) = (&session.connection, Some(&*session.id));
    harness
        .post(connection, of, "`session/cancel`", &cancel)
        .await?;
    let (stream, _) = harness.wait_for_turn_end(&id).await?;
    harness.require_expected_stream("the response to `session/prompt`", stream, session.stream)
}

async fn separates_session_streams(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let sessions = [
        harness.open_session(&connection).await?,
        harness.open_session(&connection).await?,
    ];
    let mut prompts = Vec::new();
    for session in &sessions {
        prompts.push(harness.prompt(session, AgentTask::Answer).await?);
    }
    for (session, id) in sessions.iter().zip(&prompts) {
        let (stream, _) = harness.wait_for_turn_end(id).await?;
        let what = format!("the response to the prompt in session {}", session.id);
        harness.require_expected_stream(&what, stream, session.stream)?;
    }
    for session in &sessions {
        for (stream, _) in updates(harness).filter(|(_, of)| *of == session.id) {
            let what = format!("an update for session {}", session.id);
            harness.require_expected_stream(&what, stream, session.stream)?;
        }
    }
    Ok(())
}

async fn sends_one_message_per_event(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    let turn = harness.run_turn(&session, AgentTask::Answer).await;
    if let Some((stream, text)) = harness.noise.first() {
        let name = harness.name(*stream);
        return fail(format!("an event on {name} is not JSON: {text:?}"));
    }
    for (stream, message) in &harness.messages {
        let is_message = message.is_object() && message["jsonrpc"] == "2.0";
        require(is_message, || {
            let name = harness.name(*stream);
            format!("an event on {name} is not a JSON-RPC message: {message}")
        })?;
    }
    turn.map(drop)
}

/// Opens a new connection and loads a session that has already run a turn. Returns the session, the connection's
/// stream, and the stream on which the response arrived.
async fn load(harness: &mut ServerHarness) -> Result<(HttpSession, StreamId, StreamId), CheckStop> {
    let before = harness.connect().await?;
    if before.initialize_result["agentCapabilities"]["loadSession"] != true {
        return skip("the agent does not support `loadSession`");
    }
    let session = harness.open_session(&before).await?;
    harness.run_turn(&session, AgentTask::Answer).await?;
    let connection = harness.connect().await?;
    // The draft's own flow opens the stream first. Some servers know the session only once it is loaded.
    let early = harness
        .open_stream(&connection.id, Some(&session.id))
        .await
        .ok();
    let mut params = harness.session_params();
    params["sessionId"] = json!(session.id);
    let of = Some(&*session.id);
    let id = harness.post_request(&connection.id, of, "session/load", params);
    let id = id.await?;
    let stream = match early {
        Some(stream) => stream,
        None => harness.open_stream(&connection.id, of).await?,
    };
    let (arrived, response) = harness.wait_for_response(&id).await?;
    require(response.code().is_none(), || {
        format!("`session/load` failed: {response:?}")
    })?;
    let loaded = HttpSession {
        connection: connection.id,
        id: session.id,
        stream,
    };
    Ok((loaded, connection.stream, arrived))
}

async fn replays_history(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (session, connection, _) = load(harness).await?;
    let misplaced = updates(harness).find(|(stream, _)| *stream == connection);
    if let Some((stream, _)) = misplaced {
        harness.require_expected_stream("a replayed update", stream, session.stream)?;
    }
    // Between two streams there is no order, so the history may arrive after the response.
    let patience = harness.timeout();
    let what = "the replay on the session's stream";
    harness
        .wait_within(patience, what, |stream, message| {
            let is_history = stream == session.stream && message["method"] == "session/update";
            is_history.then_some(())
        })
        .await
}

async fn answers_load(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (session, connection, arrived) = load(harness).await?;
    if arrived == connection {
        return Ok(());
    }
    harness.require_expected_stream("the response to `session/load`", arrived, session.stream)
}

async fn answers_concurrent_requests(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    harness.open_session(&connection).await?;
    harness.open_session(&connection).await?;
    let mut ids = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..CONCURRENT_REQUESTS {
        let (id, message) = harness.request_message(UNKNOWN_METHOD, json!({}));
        ids.push(id);
        requests.push(RawHttpRequest::post(message.to_string()).connection(&connection.id));
    }
    for status in harness.send_concurrently(requests).await? {
        require((200..300).contains(&status), || {
            format!("one of several concurrent requests got status {status}")
        })?;
    }
    for id in ids {
        harness.wait_for_response(&id).await?;
    }
    Ok(())
}

async fn reopens_stream(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let session = open(harness).await?;
    harness.run_turn(&session, AgentTask::Answer).await?;
    harness.close_stream(session.stream);
    let stream = harness
        .open_stream(&session.connection, Some(&session.id))
        .await?;
    let session = HttpSession { stream, ..session };
    let (arrived, _) = harness.run_turn(&session, AgentTask::Answer).await?;
    harness.require_expected_stream("the response to `session/prompt`", arrived, stream)
}
