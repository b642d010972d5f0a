//! Transports: lines of JSON, however they come.

use std::time::Duration;

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail};

use super::steps::{after, answer, lives, takes};

checks! { V1 Client "transport";
    101 Must "A message may have whitespace of JSON around it: a line may end with a carriage return before its line feed." => carriage_return;
    102 May "Empty lines are passed over." => empty_lines;
    103 Must "A message is whole at its line feed, however many pieces it comes in." => pieces;
    104 Must "Messages that come at once are all read." => at_once;
    105 May "Lines that are no message, which agents print by mistake, do not end the connection." => noise;
    106 Should "A message of 1 MB is read." => large;
    107 Must "Messages are UTF-8: characters outside of ASCII come back as they were sent." => utf8;
    108 May "A line that is no UTF-8 does not end the connection." => no_utf8;
    109 May "An agent that ends in the middle of a turn is not waited for." => agent_ends;
    110 Must "Messages are JSON: escapes mean the characters they stand for, and the order of fields means nothing." => escapes;
}

/// How long lies between two pieces of a message, so that they are read one by one.
const BETWEEN: Duration = Duration::from_millis(50);

/// A request, as a line without its end.
fn request(id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/alive", "params": {}}).to_string()
}

async fn send_bytes(play: &mut ClientHarness, what: &str, bytes: &[u8]) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    play.wire.note(format!("{what} are sent"));
    play.wire.send_bytes(bytes).await?;
    lives(play, what).await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn carriage_return(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let line = format!("{}\r", request("cr"));
    play.wire.send_line(line.as_bytes()).await?;
    after(
        "a line that ends with \\r\\n",
        play.answer(&json!("cr")).await,
    )?;
    play.end_turn(&prompted, "end_turn").await
}

async fn empty_lines(play: &mut ClientHarness) -> Result<(), CheckStop> {
    send_bytes(play, "empty lines", b"\n\n\n").await
}

async fn pieces(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let line = format!("{}\n", request("pieces"));
    let (head, tail) = line.split_at(line.len() / 2);
    play.wire.note(format!("two pieces of {line:?} are sent"));
    play.wire.send_bytes(head.as_bytes()).await?;
    tokio::time::sleep(BETWEEN).await;
    let sent = play.wire.send_bytes(tail.as_bytes()).await;
    after("a message in two pieces", sent)?;
    after(
        "a message in two pieces",
        play.answer(&json!("pieces")).await,
    )?;
    play.end_turn(&prompted, "end_turn").await
}

async fn at_once(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let lines = format!("{}\n{}\n", request("one"), request("two"));
    play.wire.note(format!("{lines:?} is sent"));
    play.wire.send_bytes(lines.as_bytes()).await?;
    for id in [json!("two"), json!("one")] {
        after("two messages at once", answer(play, &id).await)?;
    }
    play.end_turn(&prompted, "end_turn").await
}

async fn noise(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let lines = b"Loading the model... done\n{\"jsonrpc\": \"2.0\", \n[1, 2\n\"text\"\n";
    send_bytes(play, "lines that are no messages", lines).await
}

async fn large(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let content = json!({"type": "text", "text": "0123456789abcdef".repeat(64 * 1024)});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    takes(play, "a message of 1 MB", [update]).await
}

async fn utf8(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let id = json!("Grüße, κόσμε, 世界, 🦀");
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    play.wire.send(&asked).await?;
    play.answer(&id).await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn no_utf8(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let mut line = br#"{"jsonrpc":"2.0","method":"_acp_check/note","params":{"text":""#.to_vec();
    line.extend_from_slice(&[0xff, 0xfe, 0xc3]);
    line.extend_from_slice(b"\"}}\n");
    send_bytes(play, "bytes that are no UTF-8", &line).await
}

async fn agent_ends(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    play.say(&prompted.session, "One moment").await?;
    play.wire.close();
    let patience = play.wire.patience();
    let ending = async {
        while play.next().await?.is_some() {}
        Ok(())
    };
    match tokio::time::timeout(patience, ending).await {
        Ok(ended) => ended,
        Err(_) => fail(format!(
            "{patience:?} after the agent's end it has not closed the connection"
        )),
    }
}

async fn escapes(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    let line = br#" { "params" : { } , "method":"\u005facp_check\/alive","id" :"\u0065scapes", "jsonrpc":"2\u002e0" } "#;
    play.wire.send_line(line).await?;
    after(
        "a message with escapes",
        play.answer(&json!("escapes")).await,
    )?;
    play.end_turn(&prompted, "end_turn").await
}
