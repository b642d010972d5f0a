//! Checks how a client reads lines of JSON that arrive split in various ways.

use std::time::Duration;

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail};

use super::steps::{add_context, require_responsive, require_updates_accepted, wait_for_response};

checks! { V1 Client "transport";
    101 Must "A line may end with a carriage return and line feed." => accepts_carriage_return;
    102 May "Empty lines are ignored." => ignores_empty_lines;
    103 Must "A message may arrive in pieces." => accepts_message_in_parts;
    104 Must "Messages that arrive at once are all processed." => accepts_concurrent_messages;
    105 May "Lines that are not messages do not close the connection." => ignores_noise;
    106 Should "A 1 MB message is processed." => accepts_large_message;
    107 Must "Non-ASCII characters are preserved." => accepts_non_ascii;
    108 May "A line of invalid UTF-8 does not close the connection." => ignores_invalid_utf8;
    109 May "The client does not wait for an agent that exits during a turn." => closes_when_agent_exits;
    110 Must "JSON escapes are decoded, and field order does not matter." => decodes_escapes;
}

/// The pause between two parts of a message, long enough for the client to read them separately.
const SPLIT_PAUSE: Duration = Duration::from_millis(50);

/// Returns a request as a line, without the line end.
fn request_line(id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/alive", "params": {}}).to_string()
}

async fn require_bytes_accepted(
    harness: &mut ClientHarness,
    what: &str,
    bytes: &[u8],
) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.wire.add_note(format!("sending {what}"));
    harness.wire.send_bytes(bytes).await?;
    require_responsive(harness, what).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_carriage_return(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let line = format!("{}\r", request_line("cr"));
    harness.wire.send_line(line.as_bytes()).await?;
    add_context(
        "a line that ends with \\r\\n",
        harness.wait_for_response(&json!("cr")).await,
    )?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_empty_lines(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_bytes_accepted(harness, "empty lines", b"\n\n\n").await
}

async fn accepts_message_in_parts(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let line = format!("{}\n", request_line("pieces"));
    let (head, tail) = line.split_at(line.len() / 2);
    harness
        .wire
        .add_note(format!("sending {line:?} in two parts"));
    harness.wire.send_bytes(head.as_bytes()).await?;
    tokio::time::sleep(SPLIT_PAUSE).await;
    let sent = harness.wire.send_bytes(tail.as_bytes()).await;
    add_context("a message in two parts", sent)?;
    add_context(
        "a message in two parts",
        harness.wait_for_response(&json!("pieces")).await,
    )?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_concurrent_messages(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let lines = format!("{}\n{}\n", request_line("one"), request_line("two"));
    harness.wire.add_note(format!("sending {lines:?}"));
    harness.wire.send_bytes(lines.as_bytes()).await?;
    for id in [json!("two"), json!("one")] {
        add_context(
            "two messages at once",
            wait_for_response(harness, &id).await,
        )?;
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_noise(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let lines = b"Loading the model... done\n{\"jsonrpc\": \"2.0\", \n[1, 2\n\"text\"\n";
    require_bytes_accepted(harness, "lines that are not messages", lines).await
}

async fn accepts_large_message(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let content = json!({"type": "text", "text": "0123456789abcdef".repeat(64 * 1024)});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    require_updates_accepted(harness, "a 1 MB message", [update]).await
}

async fn accepts_non_ascii(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let id = json!("Grüße, κόσμε, 世界, 🦀");
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    harness.wire.send(&asked).await?;
    harness.wait_for_response(&id).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_invalid_utf8(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let mut line = br#"{"jsonrpc":"2.0","method":"_acp_check/note","params":{"text":""#.to_vec();
    line.extend_from_slice(&[0xff, 0xfe, 0xc3]);
    line.extend_from_slice(b"\"}}\n");
    require_bytes_accepted(harness, "invalid UTF-8", &line).await
}

async fn closes_when_agent_exits(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.send_text(&prompted.session, "One moment").await?;
    harness.wire.close();
    let patience = harness.wire.timeout();
    let ending = async {
        while harness.next().await?.is_some() {}
        Ok(())
    };
    match tokio::time::timeout(patience, ending).await {
        Ok(ended) => ended,
        Err(_) => fail(format!(
            "the client did not close the connection within {patience:?} after the agent exited"
        )),
    }
}

async fn decodes_escapes(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let line = br#" { "params" : { } , "method":"\u005facp_check\/alive","id" :"\u0065scapes", "jsonrpc":"2\u002e0" } "#;
    harness.wire.send_line(line).await?;
    add_context(
        "a message with escapes",
        harness.wait_for_response(&json!("escapes")).await,
    )?;
    harness.end_turn(&prompted, "end_turn").await
}
