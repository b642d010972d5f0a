//! Checks how connections end and what is shared between them: "Unified Endpoint Routing" and "Connection and
//! Session Model".

use hyper::Method;
use serde_json::json;

use crate::agent_harness::{QUIET_TIME, UNKNOWN_METHOD};
use crate::check::remote_checks;
use crate::options::AgentTask;
use crate::remote::http::RawHttpRequest;
use crate::remote::server_harness::ServerHarness;
use crate::verdict::{CheckStop, fail, require, skip};

remote_checks! { Server "connections";
    1 Must "A DELETE gets status 202." => accepts_delete;
    2 Must "A DELETE ends the streams of the connection." => ends_streams_on_delete;
    3 Must "After a DELETE, a POST to the connection gets status 404." => forgets_deleted_connection;
    4 Must "A connection can have several sessions." => allows_several_sessions_per_connection;
    5 Must "Messages reach only the connection that they belong to." => separates_connections;
    6 Should "A session survives its connection: `session/load` opens the session in a new connection." => keeps_sessions_across_connections;
}

fn delete(connection: &str) -> RawHttpRequest {
    RawHttpRequest::new(Method::DELETE).connection(connection)
}

async fn accepts_delete(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let (connection, _) = harness.initialize().await?;
    let request = delete(&connection);
    harness.require_status("DELETE", request, 202).await?;
    Ok(())
}

async fn ends_streams_on_delete(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let session = harness.open_session(&connection).await?;
    harness.send(&delete(&connection.id)).await?;
    harness.wait_until_ended(connection.stream).await?;
    harness.wait_until_ended(session.stream).await
}

async fn forgets_deleted_connection(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    harness.send(&delete(&connection.id)).await?;
    let (_, message) = harness.request_message(UNKNOWN_METHOD, json!({}));
    let request = RawHttpRequest::post(message.to_string()).connection(&connection.id);
    harness
        .require_status("a POST after DELETE", request, 404)
        .await?;
    Ok(())
}

async fn allows_several_sessions_per_connection(
    harness: &mut ServerHarness,
) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    let one = harness.open_session(&connection).await?;
    let two = harness.open_session(&connection).await?;
    require(one.id != two.id, || {
        format!("two sessions have the same id: {}", one.id)
    })
}

async fn separates_connections(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let one = harness.connect().await?;
    let other = harness.connect().await?;
    let session = harness.open_session(&one).await?;
    harness.run_turn(&session, AgentTask::Answer).await?;
    harness.collect(QUIET_TIME).await?;
    let mut messages = harness.messages.iter();
    match messages.find(|(stream, _)| *stream == other.stream) {
        Some((_, message)) => fail(format!(
            "received a message that belongs to another connection: {message}"
        )),
        None => Ok(()),
    }
}

async fn keeps_sessions_across_connections(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let connection = harness.connect().await?;
    if connection.initialize_result["agentCapabilities"]["loadSession"] != true {
        return skip("the agent does not support `loadSession`");
    }
    let session = harness.open_session(&connection).await?;
    harness.run_turn(&session, AgentTask::Answer).await?;
    harness.send(&delete(&connection.id)).await?;
    let connection = harness.connect().await?;
    let mut params = harness.session_params();
    params["sessionId"] = json!(session.id);
    let of = Some(&*session.id);
    // If the server rejects this, the response may arrive on the connection's stream.
    let _ = harness.open_stream(&connection.id, of).await;
    let id = harness.post_request(&connection.id, of, "session/load", params);
    let id = id.await?;
    let (_, response) = harness.wait_for_response(&id).await?;
    require(response.code().is_none(), || {
        format!("`session/load` on a new connection failed: {response:?}")
    })
}
