//! The agent of the benchmark of live sessions. Each chunk contains the time at which it was sent.
//!
//! The prompt `N R` sends N chunks, R of them per second, or as fast as possible if R is 0. The last chunk is
//! `took NANOSECONDS`.

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

/// The length of a chunk's text, in bytes.
const CHUNK: usize = 200;

fn main() {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut sessions = 0;
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = line.map(|line| serde_json::from_str::<Value>(&line)) else {
            return;
        };
        let Ok(message) = message else {
            continue;
        };
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": 1,
                "agentCapabilities": { "sessionCapabilities": { "resume": {} } },
            }),
            Some("session/new") => {
                sessions += 1;
                json!({ "sessionId": format!("s{}-{sessions}", std::process::id()) })
            }
            Some("session/prompt") => {
                let text = params["prompt"][0]["text"].as_str().unwrap_or_default();
                if stream(&mut out, &params["sessionId"], text).is_err() {
                    return;
                }
                json!({ "stopReason": "end_turn" })
            }
            _ if id.is_null() => continue,
            _ => json!({}),
        };
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        if writeln!(out, "{response}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Sends the chunks that a prompt asks for.
fn stream(out: &mut impl Write, session: &Value, prompt: &str) -> std::io::Result<()> {
    let mut numbers = prompt.split(' ').map(|number| number.parse().unwrap_or(0));
    let (count, rate): (u64, u64) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let begun = now();
    for number in 0..count {
        let offset = (number * 1_000_000_000).checked_div(rate);
        if let Some(offset) = offset {
            let due = begun + offset;
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(now())));
        }
        send(out, session, &format!("{:<CHUNK$}", now()))?;
        if offset.is_some() {
            out.flush()?;
        }
    }
    out.flush()?;
    send(out, session, &format!("took {}", now() - begun))
}

fn send(out: &mut impl Write, session: &Value, text: &str) -> std::io::Result<()> {
    writeln!(
        out,
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{session},"update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

/// Returns the time in nanoseconds. It is the same for all processes of the machine.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}
