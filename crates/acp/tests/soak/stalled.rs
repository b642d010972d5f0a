//! Tests of peers that stop reading or keep sending forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp::Client;
use acp::client::{Update, UpdateContext};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::memory::{PROGRAM_BYTES, check_peak, peak_memory};
use super::{agent, rerun_as, soak_limits};

pub(crate) const CLIENT_ROLE: &str = "--as-the-client";

/// The number of bytes offered to a process, which must not read all of them.
const FLOOD_BYTES: usize = 64 * 1024 * 1024;

/// Writes until the other side stops reading, and returns the number of bytes written.
async fn write_flood(output: &mut (impl AsyncWrite + Unpin), line: &str) -> usize {
    let mut sent = 0;
    loop {
        assert!(sent < FLOOD_BYTES, "it takes in whatever is sent");
        let at = sent % line.len();
        let writing = output.write(&line.as_bytes()[at..]);
        match tokio::time::timeout(Duration::from_secs(1), writing).await {
            Ok(written) => sent += written.unwrap(),
            Err(_) => return sent,
        }
    }
}

/// Returns the next message.
async fn read_message(input: &mut BufReader<impl AsyncRead + Unpin>) -> Value {
    let mut line = String::new();
    input.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Runs an agent with many turns whose client keeps sending requests but reads nothing.
pub(crate) async fn check_agent_of_stalled_client() {
    let mut child = rerun_as(agent::AGENT_ROLE).spawn().unwrap();
    let process = child.id().unwrap().to_string();
    let mut output = child.stdin.take().unwrap();
    let mut input = BufReader::with_capacity(1024 * 1024, child.stdout.take().unwrap());
    let ask = |id: usize, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{message}\n")
    };
    let initialize = ask(0, "initialize", json!({"protocolVersion": 1}));
    output.write_all(initialize.as_bytes()).await.unwrap();
    for n in 1..=100 {
        let new = ask(n, "session/new", json!({"cwd": "/", "mcpServers": []}));
        output.write_all(new.as_bytes()).await.unwrap();
    }
    for n in 0..=100 {
        assert_eq!(read_message(&mut input).await["id"], n);
    }
    for n in 0..100 {
        let prompt = json!([{"type": "text", "text": "1000"}]);
        let prompt = ask(
            200 + n,
            "session/prompt",
            json!({"sessionId": format!("s{n}"), "prompt": prompt}),
        );
        output.write_all(prompt.as_bytes()).await.unwrap();
    }
    // The error response is longer than each request.
    let line = "{\"id\":-1,\"method\":\"x\"}\n";
    let sent = write_flood(&mut output, line).await;
    check_peak(
        "agent whose client does not read",
        peak_memory(&process).unwrap(),
        PROGRAM_BYTES + soak_limits().max_agent_memory(100),
    );

    // Once the client reads again, all updates, responses and errors arrive.
    let rest = line.len() - sent % line.len();
    let refusals = (sent + rest) / line.len();
    let rest = &line.as_bytes()[line.len() - rest..];
    let (mut updates, mut turns, mut refused) = (0, 0, 0);
    let mut lines = input.lines();
    let reading = async {
        while updates < 100_000 || turns < 100 || refused < refusals {
            let line = lines.next_line().await.unwrap();
            let line = line.expect("it has not closed");
            if line.contains("\"method\":\"session/update\"") {
                updates += 1;
            } else if line.contains("\"id\":-1,\"error\"") {
                refused += 1;
            } else {
                assert!(line.contains("end_turn"), "{line}");
                turns += 1;
            }
        }
    };
    let (written, ()) = tokio::join!(output.write_all(rest), reading);
    written.unwrap();
    assert_eq!((updates, turns, refused), (100_000, 100, refusals));
    drop(output);
    assert!(child.wait().await.unwrap().success());
}

/// Runs a client that waits for a response that never comes, and whose handler blocks while the agent keeps sending.
pub(crate) async fn check_client_of_endless_agent() {
    let mut child = rerun_as(CLIENT_ROLE).spawn().unwrap();
    let process = child.id().unwrap().to_string();
    let mut output = child.stdin.take().unwrap();
    let mut input = BufReader::new(child.stdout.take().unwrap());
    for answer in [json!({"protocolVersion": 1}), json!({"sessionId": "s"})] {
        let id = read_message(&mut input).await["id"].take();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": answer});
        output
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
    }
    assert_eq!(read_message(&mut input).await["method"], "_stalls");
    let text = json!({"type": "text", "text": "more and more of it"});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": text});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    let line = format!("{line}\n");
    let sent = write_flood(&mut output, &line).await;
    check_peak(
        "client that takes no update",
        peak_memory(&process).unwrap(),
        PROGRAM_BYTES + soak_limits().max_client_memory(1),
    );

    // Once it reads again, it learns how much there was.
    output
        .write_all(&line.as_bytes()[sent % line.len()..])
        .await
        .unwrap();
    let go = "{\"jsonrpc\":\"2.0\",\"method\":\"_end\"}\n";
    let (written, heard) = tokio::join!(output.write_all(go.as_bytes()), async {
        loop {
            let heard = read_message(&mut input).await;
            if heard["method"] == "_seen" {
                return heard["params"].as_u64().unwrap();
            }
        }
    });
    written.unwrap();
    assert_eq!(heard as usize, (sent + line.len()) / line.len());
    drop(output);
    assert!(child.wait().await.unwrap().success());
}

/// A client that handles no updates for three seconds, and then handles all of them.
struct StallingClient {
    seen: Arc<AtomicUsize>,
    end: Arc<tokio::sync::Notify>,
}

impl Client for StallingClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {
        if self.seen.fetch_add(1, Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }
    async fn extension_notification(&self, _: acp::client::ExtensionNotification) {
        self.end.notify_one();
    }
}

pub(crate) async fn run_client() {
    let (seen, end) = (Arc::default(), Arc::default());
    let stalls = StallingClient {
        seen: Arc::clone(&seen),
        end: Arc::clone(&end),
    };
    let transport = acp::transport::stdio().unwrap();
    let agent = acp::testing::start_client(transport, stalls, soak_limits())
        .await
        .unwrap();
    let session = agent.new_session("/").await.unwrap();
    let connection = agent.connection().clone();
    // Waits, so that as much as possible is read ahead.
    let asking =
        tokio::spawn(async move { connection.request_raw("_stalls", &()).await.map(drop) });
    end.notified().await;
    assert!(asking.await.unwrap().is_err());
    let kept = session.thread().read(|thread| thread.items().len());
    assert_eq!(kept, 1);
    let seen = seen.load(Ordering::Relaxed);
    agent.connection().notify_raw("_seen", &seen).await.unwrap();
    agent.closed().await;
}
