//! Checks how a client reads streams: "Streamable HTTP Message Flow", and server-sent events as specified in the
//! HTML Living Standard (9.2.6).

use hyper::Method;

use crate::check::remote_checks;
use crate::client_harness::SESSION_ID;
use crate::remote::client_harness::{
    RemoteClientEvent, RemoteClientHarness, RemotePrompt, liveness_request,
};
use crate::verdict::{CheckStop, fail, require};

remote_checks! { RemoteClient "streams";
    101 Must "The client opens the connection's stream without `Acp-Session-Id`." => opens_connection_stream;
    102 Must "The client opens the session's stream with its `Acp-Session-Id`." => opens_session_stream;
    103 Must "Comments are ignored." => ignores_comments;
    104 Must "Lines may end with a carriage return, with or without a line feed." => accepts_all_line_endings;
    105 Must "An event may have several `data` lines." => joins_data_lines;
    106 Must "The space after the colon may be missing." => accepts_missing_space_after_colon;
    107 Must "The fields `id`, `event` and `retry` and unknown fields do not affect a message." => accepts_other_event_fields;
    108 Must "An event may arrive in pieces." => accepts_event_in_pieces;
    109 Must "Several events may arrive at once." => accepts_events_at_once;
    110 Must "A byte order mark at the start of a stream is ignored." => ignores_byte_order_mark;
    111 Should "If the session's stream ends during a turn, the client reopens it or ends the connection." => handles_end_of_stream;
}

/// Starts the client, and waits for its prompt and for the session's stream.
async fn open(harness: &mut RemoteClientHarness) -> Result<RemotePrompt, CheckStop> {
    harness.start("http").await?;
    let prompt = harness.wait_for_prompt().await?;
    if !harness.has_session_stream() {
        wait_for_session_stream(harness).await?;
    }
    Ok(prompt)
}

async fn wait_for_session_stream(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let patience = harness.options.timeout;
    harness
        .wait_within(patience, "a GET with the session's id", |harness, _| {
            harness.has_session_stream().then_some(())
        })
        .await
}

async fn opens_connection_stream(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness.end_turn(&prompt).await?;
    let mut requests = harness.requests.iter();
    let is_open = requests.any(|request| {
        request.method == Method::GET && request.header("acp-session-id").is_empty()
    });
    require(is_open, || {
        "the client sent no GET without Acp-Session-Id".to_owned()
    })
}

async fn opens_session_stream(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness.end_turn(&prompt).await
}

/// Requires that the client responds to a request written in these pieces. If the check fails, the reason mentions
/// `what`, a description of the pieces.
async fn require_response_to_pieces(
    harness: &mut RemoteClientHarness,
    what: &str,
    pieces: &[String],
) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    for piece in pieces {
        harness.write(Some(SESSION_ID), piece.as_bytes());
        // Each piece leaves before the next one.
        tokio::task::yield_now().await;
    }
    harness.wait_for_response("alive", what).await?;
    harness.end_turn(&prompt).await
}

async fn ignores_comments(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let message = liveness_request("alive");
    let text = format!(": hello\n:\n\n: within\ndata: {message}\n:after\n\n");
    require_response_to_pieces(harness, "comments", &[text]).await
}

async fn accepts_all_line_endings(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    for (id, end) in [("both", "\r\n"), ("return", "\r")] {
        let text = format!("id: 1{end}data: {}{end}{end}", liveness_request(id));
        harness.write(Some(SESSION_ID), text.as_bytes());
        let what = format!("lines that end with {end:?}");
        harness.wait_for_response(id, &what).await?;
    }
    harness.end_turn(&prompt).await
}

async fn joins_data_lines(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let message = format!("{:#}", liveness_request("alive"));
    let lines = message.lines().map(|line| format!("data: {line}\n"));
    let text = lines.collect::<String>() + "\n";
    require_response_to_pieces(harness, "an event with several `data` lines", &[text]).await
}

async fn accepts_missing_space_after_colon(
    harness: &mut RemoteClientHarness,
) -> Result<(), CheckStop> {
    let text = format!("data:{}\n\n", liveness_request("alive"));
    require_response_to_pieces(harness, "`data:` without a space", &[text]).await
}

async fn accepts_other_event_fields(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let message = liveness_request("alive");
    let text = format!(
        "retry: 100\n\nevent: message\nid: 7\nunknown: x\nnothing\ndata: {message}\nretry: 100\n\n"
    );
    require_response_to_pieces(harness, "an event with other fields", &[text]).await
}

async fn accepts_event_in_pieces(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let text = format!("data: {}\n\n", liveness_request("alive"));
    let bytes = text.as_bytes().chunks(7);
    let pieces: Vec<String> = bytes
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect();
    require_response_to_pieces(harness, "an event in pieces", &pieces).await
}

async fn accepts_events_at_once(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let (one, two) = (liveness_request("one"), liveness_request("alive"));
    let text = format!("data: {one}\n\ndata: {two}\n\n");
    require_response_to_pieces(harness, "two events at once", &[text]).await
}

async fn ignores_byte_order_mark(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.starts_with_mark = true;
    let text = format!("data: {}\n\n", liveness_request("alive"));
    require_response_to_pieces(harness, "a byte order mark", &[text]).await
}

async fn handles_end_of_stream(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    open(harness).await?;
    harness.end_stream();
    let patience = harness.options.timeout;
    let noticed = harness
        .wait_within(patience, "a reaction", |harness, event| match event {
            RemoteClientEvent::Ended => Some(()),
            RemoteClientEvent::Request(request) if request.method == Method::DELETE => Some(()),
            _ => harness.has_session_stream().then_some(()),
        })
        .await;
    match noticed {
        Err(CheckStop::Fail(_)) => fail(format!(
            "the session's stream ended during a turn; within {patience:?}, the client neither reopened it nor ended the connection"
        )),
        noticed => noticed,
    }
}
