//! Checks how an agent reads and writes lines of JSON on stdin and stdout, and how it handles the end of the
//! connection.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_METHOD;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "transports"
    fresh "sends `initialize` in another form, or closes stdin";
    1 Must "Only messages are written to stdout." => writes_only_messages;
    2 Must "A message is one line." => writes_one_line_per_message;
    3 Must "Messages are valid UTF-8." => writes_utf8;
    4 Must "A message may arrive in pieces." => accepts_message_in_parts;
    5 Must "Several messages may arrive at once." => accepts_concurrent_messages, shared_last;
    6 Should "A line may end with a carriage return." => accepts_carriage_return;
    7 Should "Empty lines are ignored." => ignores_empty_lines, shared_last;
    8 Must "Whitespace and field order in a message do not matter." => accepts_whitespace;
    9 Must "Any character in a string may be escaped." => accepts_escapes;
    10 Must "A message may be split in the middle of a character." => accepts_split_character;
    11 Must "A prompt may contain any Unicode characters." => accepts_any_unicode, shared;
    12 Must "A 1 MB request gets a response." => accepts_large_request, shared_last;
    13 Should "A line of invalid UTF-8 does not affect later lines." => survives_invalid_utf8, shared_last;
    14 Should "Lines of invalid JSON do not affect later lines." => survives_invalid_json, shared_last;
    15 Should "Deeply nested JSON does not affect later lines." => survives_deep_nesting, shared_last;
    16 Should "JSON that is not a message does not affect later lines." => survives_json_that_is_not_a_message, shared_last;
    17 Should "The agent exits when stdin is closed." => closes_output;
    18 Should "The agent exits when stdin is closed during a turn." => closes_output_during_turn;
    19 Should "The agent process exits on its own when stdin is closed." => process_exits_on_its_own;
    20 Should "When the agent exits, no child processes keep running." => leaves_no_child_processes;
}

/// Runs one turn, and returns the lines on stdout that are not JSON. If there are any, ignores other failures.
async fn collect_noise(harness: &mut AgentHarness) -> Result<Vec<Vec<u8>>, CheckStop> {
    let said = async {
        let session = harness.new_session().await?;
        harness.run_task(&session, AgentTask::Read).await
    };
    let said = said.await;
    let noise = harness.wire.noise().to_vec();
    match said {
        Err(stop) if noise.is_empty() => Err(stop),
        _ => Ok(noise),
    }
}

fn is_utf8(line: &[u8]) -> bool {
    match std::str::from_utf8(line) {
        Ok(_) => true,
        // A long line may be truncated within a character.
        Err(e) => e.error_len().is_none(),
    }
}

/// Returns `true` if a line is part of a message that was split across several lines. Returns `false` for log output,
/// which can also start with a bracket.
fn is_part(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    is_utf8(line) && (text.starts_with(['{', '}', '"']) || matches!(text, "[" | "]" | "],"))
}

async fn writes_only_messages(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let noise = collect_noise(harness).await?;
    match noise.iter().find(|line| !is_part(line) && is_utf8(line)) {
        Some(line) => fail(format!(
            "unexpected output on stdout: {:?}",
            String::from_utf8_lossy(line)
        )),
        None => Ok(()),
    }
}

async fn writes_one_line_per_message(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let noise = collect_noise(harness).await?;
    match noise.iter().find(|line| is_part(line)) {
        Some(line) => fail(format!(
            "a line contains only part of a message: {:?}",
            String::from_utf8_lossy(line)
        )),
        None => Ok(()),
    }
}

async fn writes_utf8(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let noise = collect_noise(harness).await?;
    match noise.iter().find(|line| !is_utf8(line)) {
        Some(line) => fail(format!(
            "a line is not valid UTF-8: {:?}",
            String::from_utf8_lossy(line)
        )),
        None => Ok(()),
    }
}

/// Returns a request with this id and method, as a line of JSON.
fn request_line(harness: &AgentHarness, id: &str, method: &str) -> String {
    let params = match method {
        "initialize" => harness.initialize_params(),
        _ => json!({}),
    };
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

async fn accepts_message_in_parts(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let line = request_line(harness, "pieces", "initialize") + "\n";
    for piece in line.as_bytes().chunks(40) {
        harness.wire.send_bytes(piece).await?;
        tokio::task::yield_now().await;
    }
    harness.wait_for_response(&json!("pieces")).await?;
    Ok(())
}

async fn accepts_concurrent_messages(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let ids = ["a", "b", "c"];
    let lines = ids
        .map(|id| request_line(harness, id, UNKNOWN_METHOD) + "\n")
        .concat();
    harness.wire.send_bytes(lines.as_bytes()).await?;
    harness.wait_for_responses(&ids.map(Value::from)).await?;
    Ok(())
}

async fn accepts_carriage_return(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let line = request_line(harness, "cr", "initialize") + "\r";
    harness.wire.send_line(line.as_bytes()).await?;
    harness.wait_for_response(&json!("cr")).await?;
    Ok(())
}

async fn ignores_empty_lines(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.wire.send_bytes(b"\n\n\n").await?;
    harness.require_responsive("empty lines").await
}

async fn accepts_whitespace(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = harness.initialize_params();
    let line = format!(
        " {{ \"params\" :\t{params} , \"method\" : \"initialize\", \"id\": \"spaced\" , \"jsonrpc\" : \"2.0\" }} "
    );
    harness.wire.send_line(line.as_bytes()).await?;
    harness.wait_for_response(&json!("spaced")).await?;
    Ok(())
}

async fn accepts_escapes(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let params = harness.initialize_params();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"\u0065scaped \ud83d\ude00","m\u0065thod":"initi\u0061lize","params":{params}}}"#
    );
    harness.wire.send_line(line.as_bytes()).await?;
    match harness
        .wait_for_response(&json!("escaped 😀"))
        .await?
        .code()
    {
        None => Ok(()),
        Some(code) => fail(format!(
            "`initialize`, written as \"initi\\u0061lize\", failed with error {code}"
        )),
    }
}

async fn accepts_split_character(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let line = request_line(harness, "Grüße 😀", "initialize") + "\n";
    // Each byte of a non-ASCII character starts a new piece.
    for piece in line.as_bytes().chunk_by(|_, next| next.is_ascii()) {
        harness.wire.send_bytes(piece).await?;
        tokio::task::yield_now().await;
    }
    harness.wait_for_response(&json!("Grüße 😀")).await?;
    Ok(())
}

async fn accepts_any_unicode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Answer) + " Žluťoučký kůň, 漢字, שלום, e\u{301}, 👩‍🚀";
    harness
        .run_prompt(&session, json!([{"type": "text", "text": text}]))
        .await?;
    Ok(())
}

async fn accepts_large_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let params = json!({"text": "0123456789abcdef".repeat(64 * 1024)});
    // Use a method that no agent knows, because no agent should send a megabyte to a model.
    harness.request(UNKNOWN_METHOD, params).await?;
    Ok(())
}

async fn survives_invalid_utf8(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let mut line = br#"{"jsonrpc":"2.0","method":"_acp-check/hello","params":{"text":""#.to_vec();
    line.extend_from_slice(b"\xff\xfe\xc3\"}}");
    harness.wire.send_line(&line).await?;
    harness
        .require_responsive("a line that is not valid UTF-8")
        .await
}

async fn survives_invalid_json(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    for line in [&b"hello"[..], b"{", b"]]]", b"\x00\x01\x02", b"{\"a\":}"] {
        harness.wire.send_line(line).await?;
    }
    harness.require_responsive("lines of invalid JSON").await
}

async fn survives_deep_nesting(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    const NESTING_DEPTH: usize = 100_000;
    harness.initialize().await?;
    let open = r#"{"jsonrpc":"2.0","method":"_acp-check/hello","params":{"list":"#.to_owned();
    let line = open + &"[".repeat(NESTING_DEPTH) + &"]".repeat(NESTING_DEPTH) + "}}";
    harness.wire.send_line(line.as_bytes()).await?;
    harness
        .require_responsive("a message nested 100,000 levels deep")
        .await
}

async fn survives_json_that_is_not_a_message(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let lines = [
        json!(null),
        json!(17),
        json!("hello"),
        json!([]),
        json!([1]),
        json!({}),
    ];
    for line in &lines {
        harness.wire.send(line).await?;
    }
    harness
        .require_responsive("JSON that is not a message")
        .await
}

/// Closes the agent's input and waits for the end of its output.
async fn close_and_wait(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.wire.close();
    let patience = harness.wire.timeout();
    // Do not use the harness's `next`: it would send responses, but the output is closed.
    let ending = async {
        while harness.wire.next().await?.is_some() {}
        Ok(())
    };
    match tokio::time::timeout(patience, ending).await {
        Ok(ended) => ended,
        Err(_) => fail(format!(
            "the agent did not close its output within {patience:?} after its input was closed"
        )),
    }
}

async fn closes_output(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    close_and_wait(harness).await
}

async fn closes_output_during_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Long);
    harness.begin_prompt(&session, &text).await?;
    harness
        .wait_until_in_turn("the beginning of a turn", |harness, message| {
            let began = message.method() == "session/update" || harness.wire.has_ended();
            began.then_some(())
        })
        .await?;
    close_and_wait(harness).await
}

async fn process_exits_on_its_own(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.wire.close();
    let patience = harness.wire.timeout();
    let Some(process) = harness.process() else {
        return skip("the agent runs inside this process");
    };
    match tokio::time::timeout(patience, process.wait()).await {
        Ok(_) => Ok(()),
        Err(_) => fail(format!(
            "the process did not exit within {patience:?} after its input was closed"
        )),
    }
}

async fn leaves_no_child_processes(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.new_session().await?;
    harness.wire.close();
    let patience = harness.wire.timeout();
    let Some(process) = harness.process() else {
        return skip("the agent runs inside this process");
    };
    if tokio::time::timeout(patience, process.wait())
        .await
        .is_err()
    {
        return skip("the process did not exit on its own");
    }
    require(process.wait_all(patience).await, || {
        format!("a child process is still running {patience:?} after the agent exited")
    })
}
